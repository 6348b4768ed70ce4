"""A link profile as figures: its bandwidth, and the share of it that transfers reach, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import weight_sync
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.facts.link import Link
    from rlsize.facts.sourced import Sourced

NO_BANDWIDTH = absent("bandwidth_bytes_per_second", "--bandwidth or --link")
NO_FRACTION = absent("achievable_fraction", "--efficiency")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFigures:
    """
    One link, ready for equations.

    Args:
        name: The profile's name; empty for a bandwidth that was typed.
        title: Its full name.
        scope: `node`, `network` or `host`; empty for a typed bandwidth.
        bandwidth: One direction, per GPU. [B/s]
        achievable_fraction: Share of it that transfers reach. [1]
        basis: `measured`, `assumed` or `given`: what that share rests on; empty where nobody says.
        both_directions: The sum that data sheets advertise; None where the link is not sold that way. [B/s]
    """

    name: str = ""
    title: str = ""
    scope: str = ""
    bandwidth: Figure = NO_BANDWIDTH
    achievable_fraction: Figure = NO_FRACTION
    basis: str = ""
    both_directions: float | None = None


def link_figures(link: Link) -> LinkFigures:
    """The figures of a profile; what was measured on it goes before what is assumed."""
    specified = link.specification.bandwidth_one_direction
    both = link.specification.bandwidth_both_directions
    fraction, basis = _fraction(link)
    return LinkFigures(
        name=link.name,
        title=link.title,
        scope=link.specification.scope,
        bandwidth=Figure(
            key="bandwidth_bytes_per_second",
            value=specified.value,
            source=f"link profile {link.name}: one direction, {_origin(link, specified)}",
            verified=specified.verified,
        ),
        achievable_fraction=fraction,
        basis=basis,
        both_directions=both.value if both else None,
    )


def expected_bandwidth(link: LinkFigures) -> Figure:
    """The bandwidth that transfers are expected to reach; without a value where nobody knows which share they do."""
    return apply(
        "expected_bandwidth_bytes_per_second",
        weight_sync.achieved_bandwidth,
        bandwidth=link.bandwidth,
        achievable_fraction=link.achievable_fraction,
    )


def _fraction(link: Link) -> tuple[Figure, str]:
    measured = link.measured.achievable_fraction if link.measured else None
    assumed = link.assumed.achievable_fraction if link.assumed else None
    if measured is not None:
        return _as_figure(link, measured, "measured"), "measured"
    if assumed is not None:
        return _as_figure(link, assumed, "assumed"), "assumed"
    return NO_FRACTION, ""


def _as_figure(link: Link, fraction: Sourced, basis: str) -> Figure:
    return Figure(
        key="achievable_fraction",
        value=fraction.value,
        provenance="measured" if basis == "measured" else "default",
        source=f"{basis} (link profile {link.name}): {_origin(link, fraction)}",
        verified=fraction.verified,
    )


def _origin(link: Link, number: Sourced) -> str:
    text = link.sources.get(number.source, number.source)
    return f"{text} ({number.note})" if number.note else text
