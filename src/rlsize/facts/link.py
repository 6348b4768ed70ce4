"""Links between GPUs, and the nodes and networks of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from rlsize.facts.fields import (
    Says,
    Sourced,
)
from rlsize.facts.kinds import BANDWIDTH, COUNT, PART

_SAME = 1e-6  # typed figures are round; this forgives the float behind "0.9 TB/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSpecification:
    """What the data sheet says."""

    scope: Annotated[
        Literal["node", "network", "host"],
        Says("node: among GPUs of a node or rack; network: between nodes; host: between a GPU and its host."),
    ]
    bandwidth_one_direction: Annotated[Sourced, BANDWIDTH.saying("Bandwidth per GPU, one direction.")]
    bandwidth_both_directions: Annotated[
        Sourced | None, BANDWIDTH.saying("Sum of both directions, where the link is advertised so.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkReached:
    """What has been reached on it, or is taken for granted until it is measured."""

    achievable_fraction: Annotated[
        Sourced | None, PART.saying("Share of the one-direction bandwidth that large transfers reach.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link profile."""

    name: Annotated[str, Says("Name of the profile, and of its file.")]
    title: Annotated[str, Says("Full name, for tables.")]
    aliases: Annotated[tuple[str, ...], Says("Other names that people type.")] = ()
    specification: Annotated[LinkSpecification, Says("What the data sheet says.")]
    measured: Annotated[LinkReached | None, Says("What has been reached.")] = None
    assumed: Annotated[LinkReached | None, Says("What is taken for granted.")] = None
    sources: Annotated[dict[str, str], Says("The documents and measurements, by the key that numbers name.")]
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()


def achievable_fraction(link: Link) -> Sourced | None:
    """The measured achievable fraction of a link, else the assumed one, else None."""
    measured = link.measured.achievable_fraction if link.measured else None
    return measured or (link.assumed.achievable_fraction if link.assumed else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedLink:
    """
    A link and the sum of both directions that it is sold with.

    The same figures stand in the link profiles; they are repeated here, three of them, so that a bandwidth typed on the
    command line can be checked without reading a profile. A test compares the two.
    """

    profile: Annotated[str, Says("Name of the link profile.")]
    title: Annotated[str, Says("What people call it.")]
    both_directions: Annotated[float, BANDWIDTH.saying("Sum of both directions, as advertised.")]


ADVERTISED_AS_SUM = (
    AdvertisedLink(profile="nvlink3", title="NVLink 3 (A100)", both_directions=600e9),
    AdvertisedLink(profile="nvlink4", title="NVLink 4 (H100, H200)", both_directions=900e9),
    AdvertisedLink(profile="nvlink5", title="NVLink 5 (B200, GB200)", both_directions=1800e9),
)
"""NVIDIA's data sheets of A100, H100 and B200."""


def advertised_as_sum(bandwidth: float) -> AdvertisedLink | None:
    """
    The link whose advertised sum of both directions is this bandwidth, if there is one.

    >>> advertised_as_sum(900e9).profile
    'nvlink4'
    >>> advertised_as_sum(450e9) is None
    True
    """
    return next((link for link in ADVERTISED_AS_SUM if abs(bandwidth / link.both_directions - 1.0) < _SAME), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster profile."""

    name: Annotated[str, Says("Name of the profile, and of its file.")]
    title: Annotated[str, Says("Full name, for tables.")]
    aliases: Annotated[tuple[str, ...], Says("Other names that people type.")] = ()
    gpu: Annotated[str, Says("Name of the GPU profile.")]
    gpus_per_node: Annotated[Sourced, COUNT.saying("GPUs of one node.")]
    nodes: Annotated[Sourced | None, COUNT.saying("Nodes of one unit that is sold whole; absent where it is open.")] = (
        None
    )
    scale_up: Annotated[str, Says("Name of the link profile inside a node or rack.")]
    interconnect: Annotated[str, Says("Name of the link profile between nodes.")]
    nic: Annotated[Sourced, BANDWIDTH.saying("Network adapter bandwidth per GPU, one direction.")]
    sources: Annotated[dict[str, str], Says("The documents, by the key that numbers name.")]
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()
