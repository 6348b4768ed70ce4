"""Nodes of GPUs and the network between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.sourced import Sourced  # noqa: TC001 (pydantic resolves the annotations at run time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster profile."""

    name: Annotated[str, Says("Name of the profile, and of its file.")]
    title: Annotated[str, Says("Full name, for tables.")]
    aliases: Annotated[tuple[str, ...], Says("Other names that people type.")] = ()
    gpu: Annotated[str, Says("Name of the GPU profile.")]
    gpus_per_node: Annotated[Sourced, Quantity("count", "GPUs of one node.", whole=True)]
    nodes: Annotated[
        Sourced | None, Quantity("count", "Nodes of one unit that is sold whole; absent where it is open.", whole=True)
    ] = None
    scale_up: Annotated[str, Says("Name of the link profile inside a node or rack.")]
    interconnect: Annotated[str, Says("Name of the link profile between nodes.")]
    nic: Annotated[Sourced, Quantity("B/s", "Network adapter bandwidth per GPU, one direction.")]
    sources: Annotated[dict[str, str], Says("The documents, by the key that numbers name.")]
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()
