"""
An accelerator: what its maker promises, what has been measured on it, what we assume.

The three are kept apart, because a specification is never reached and a measurement holds for its own conditions only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from rlsize.facts.fields import (
    Quantity,
    Says,
    Sourced,
)
from rlsize.facts.kernels import Kernels, kernels_of
from rlsize.facts.kinds import BANDWIDTH, BYTES, COUNT, FLOP_RATE

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUp:
    """The fast network among the GPUs of one node or rack."""

    link: Annotated[str, Says("Name of the link profile.")]
    bandwidth_one_direction: Annotated[
        Sourced, BANDWIDTH.saying("Bandwidth of one GPU to all others together, one direction.")
    ]
    bandwidth_both_directions: Annotated[
        Sourced, BANDWIDTH.saying("Sum of both directions, as data sheets advertise it.")
    ]
    domain_gpus: Annotated[Sourced, COUNT.saying("GPUs that reach each other over it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpecification:
    """What the data sheet says; compute rates are dense, without structured sparsity."""

    bf16_dense: Annotated[Sourced, FLOP_RATE.saying("Peak matrix rate in bf16.")]
    fp8_dense: Annotated[Sourced | None, FLOP_RATE.saying("Peak matrix rate in fp8; absent where there is none.")] = (
        None
    )
    fp4_dense: Annotated[Sourced | None, FLOP_RATE.saying("Peak matrix rate in fp4; absent where there is none.")] = (
        None
    )
    memory: Annotated[Sourced, BYTES.saying("Device memory as it is sold.")]
    memory_usable: Annotated[Sourced | None, BYTES.saying("Device memory that the driver reports.")] = None
    memory_bandwidth: Annotated[Sourced, BANDWIDTH.saying("Peak bandwidth of the device memory.")]
    scale_up: Annotated[ScaleUp, Says("Network among the GPUs of one node or rack.")]
    nic: Annotated[Sourced | None, BANDWIDTH.saying("Network adapter bandwidth per GPU, one direction.")] = None
    pcie: Annotated[
        Sourced | None, BANDWIDTH.saying("Bandwidth to the host, one direction: PCIe, or what is there in its place.")
    ] = None
    power: Annotated[Sourced | None, Quantity("W", "Board power, maximum or typical as the maker states it.")] = None
    gpus_per_node: Annotated[Sourced, COUNT.saying("GPUs in the usual node.")]

    @property
    def card(self) -> bool:
        """Whether it has no fast network, so that GPUs of a node reach each other as they reach the host."""
        return self.scale_up.domain_gpus.value <= 1

    @property
    def joined_gpus(self) -> Sourced:
        """GPUs that no network between nodes joins: those of the fast one, or of a node of cards."""
        return self.gpus_per_node if self.card else self.scale_up.domain_gpus

    @property
    def adapter(self) -> Sourced | None:
        """What it sends to other nodes over, one direction: the host link where that is all, or on a card's way."""
        if self.nic is None or self.pcie is None:
            return self.nic or self.pcie
        return self.pcie if self.card and self.pcie.value < self.nic.value else self.nic


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """An accelerator profile."""

    name: Annotated[str, Says("Name of the profile, and of its file.")]
    title: Annotated[str, Says("Full name, for tables.")]
    vendor: Annotated[str, Says("Maker, in lower case.")]
    aliases: Annotated[tuple[str, ...], Says("Other names that people type.")] = ()
    specification: Annotated[GpuSpecification, Says("What the data sheet says.")]
    kernels: Annotated[Kernels | None, Says("How long kernels take.")] = None
    kernels_like: Annotated[str, Says("GPU profile whose kernels stand in for those that were not measured.")] = ""
    collectives_like: Annotated[
        tuple[str, ...], Says("GPU profiles amid whose collectives its own lie, where these go by the host.")
    ] = ()
    sources: Annotated[dict[str, str], Says("The documents and measurements, by the key that numbers name.")]
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()

    @property
    def generation(self) -> str:
        """What kernels are made for: its maker and narrowest matrix units; cards without a fast network are apart."""
        said = self.specification
        units = "fp4" if said.fp4_dense else "fp8" if said.fp8_dense else "bf16"
        return f"{self.vendor} with {units}" + (", a card" if said.card else "")


def completed(gpu: Gpu, like: Callable[[str], Gpu]) -> Gpu:
    """
    The profile with kernels that were not measured on it taken from the GPU that it calls alike.

    Args:
        gpu: The profile as it was written.
        like: Gives a profile, as it was written, by name.
    """
    kernels, sources = kernels_of(gpu, like)
    return replace(gpu, kernels=kernels, sources=sources)
