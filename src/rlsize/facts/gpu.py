"""
An accelerator: what its maker promises, what has been measured on it, what we assume.

The three are kept apart, because a specification is never reached and a measurement holds for its own conditions only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

from rlsize.facts.fields import (
    Quantity,
    Says,
    Sourced,
)
from rlsize.facts.kernels import Kernels, kernels_of

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUp:
    """The fast network among the GPUs of one node or rack."""

    link: Annotated[str, Says("Name of the link profile.")]
    bandwidth_one_direction: Annotated[
        Sourced, Quantity("B/s", "Bandwidth of one GPU to all others together, one direction.")
    ]
    bandwidth_both_directions: Annotated[
        Sourced, Quantity("B/s", "Sum of both directions, as data sheets advertise it.")
    ]
    domain_gpus: Annotated[Sourced, Quantity("count", "GPUs that reach each other over it.", whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpecification:
    """What the data sheet says; compute rates are dense, without structured sparsity."""

    bf16_dense: Annotated[Sourced, Quantity("FLOP/s", "Peak matrix rate in bf16.")]
    fp8_dense: Annotated[Sourced | None, Quantity("FLOP/s", "Peak matrix rate in fp8; absent where there is none.")] = (
        None
    )
    fp4_dense: Annotated[Sourced | None, Quantity("FLOP/s", "Peak matrix rate in fp4; absent where there is none.")] = (
        None
    )
    memory: Annotated[Sourced, Quantity("B", "Device memory as it is sold.")]
    memory_usable: Annotated[Sourced | None, Quantity("B", "Device memory that the driver reports.")] = None
    memory_bandwidth: Annotated[Sourced, Quantity("B/s", "Peak bandwidth of the device memory.")]
    scale_up: Annotated[ScaleUp, Says("Network among the GPUs of one node or rack.")]
    nic: Annotated[Sourced | None, Quantity("B/s", "Network adapter bandwidth per GPU, one direction.")] = None
    pcie: Annotated[Sourced | None, Quantity("B/s", "Bandwidth to the host, one direction.")] = None
    power: Annotated[Sourced | None, Quantity("W", "Board power, maximum or typical as the maker states it.")] = None
    gpus_per_node: Annotated[Sourced, Quantity("count", "GPUs in the usual node.", whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMeasured:
    """What has been reached on the real thing; the source of each number says how."""

    matmul_bf16: Annotated[Sourced | None, Quantity("FLOP/s", "Best bf16 matrix multiplication of any shape.")] = None
    matmul_fp8: Annotated[Sourced | None, Quantity("FLOP/s", "Best fp8 matrix multiplication of any shape.")] = None
    matmul_bf16_fraction: Annotated[
        Sourced | None, Quantity("1", "The same bf16 rate over the peak that its source used.", most=1.0)
    ] = None
    gemm_bf16_hbm_fraction: Annotated[
        Sourced | None, Quantity("1", "Share of the memory bandwidth in bf16 GEMMs of few rows.", most=1.0)
    ] = None
    gemm_bf16_flops_fraction: Annotated[
        dict[str, Annotated[Sourced, Quantity("1", most=1.0)]],
        Says("Share of the bf16 peak in GEMMs of 1024 rows and more: low and high."),
    ] = field(default_factory=dict)
    decode_attention_hbm_fraction: Annotated[
        dict[str, Annotated[Sourced, Quantity("1", most=1.0)]],
        Says("Share of the memory bandwidth in decode attention, by batch b and context s."),
    ] = field(default_factory=dict)
    prefill_attention_flops_fraction: Annotated[
        dict[str, Annotated[Sourced, Quantity("1", most=1.0)]],
        Says("Share of the bf16 peak in prefill attention, by prompt length s."),
    ] = field(default_factory=dict)
    nccl_bus_bandwidth: Annotated[
        dict[str, dict[str, Annotated[Sourced, Quantity("B/s")]]],
        Says("NCCL bus bandwidth of large messages, by number of GPUs and collective."),
    ] = field(default_factory=dict)
    custom_all_reduce_latency: Annotated[
        dict[str, dict[str, Annotated[Sourced, Quantity("s")]]],
        Says("Time of the engine's own all-reduce, by tensor parallel size and message bytes."),
    ] = field(default_factory=dict)
    scale_up_copy_one_direction: Annotated[
        Sourced | None, Quantity("B/s", "Copy between two GPUs over the scale-up link, one direction at a time.")
    ] = None
    scale_up_copy_both_directions: Annotated[
        Sourced | None, Quantity("B/s", "Copies between two GPUs, both directions at once, summed.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAssumed:
    """What predictions take for granted until it is measured."""

    memory_bandwidth_efficiency: Annotated[
        Sourced | None, Quantity("1", "Share of the memory bandwidth that kernels reach.", most=1.0)
    ] = None
    memory_operation_latency: Annotated[Sourced | None, Quantity("s", "Fixed time of one memory-bound kernel.")] = None
    runtime_reserved: Annotated[
        Sourced | None, Quantity("B", "Memory that driver, runtime and engine keep from each GPU.")
    ] = None
    nccl_reserved: Annotated[
        dict[str, Annotated[Sourced, Quantity("B")]],
        Says("Memory that NCCL keeps from each GPU, by tensor parallel size."),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """An accelerator profile."""

    name: Annotated[str, Says("Name of the profile, and of its file.")]
    title: Annotated[str, Says("Full name, for tables.")]
    vendor: Annotated[str, Says("Maker, in lower case.")]
    aliases: Annotated[tuple[str, ...], Says("Other names that people type.")] = ()
    specification: Annotated[GpuSpecification, Says("What the data sheet says.")]
    measured: Annotated[GpuMeasured | None, Says("What has been reached.")] = None
    assumed: Annotated[GpuAssumed | None, Says("What is taken for granted.")] = None
    kernels: Annotated[Kernels | None, Says("How long kernels take.")] = None
    kernels_like: Annotated[str, Says("GPU profile whose kernels stand in for those that were not measured.")] = ""
    sources: Annotated[dict[str, str], Says("The documents and measurements, by the key that numbers name.")]
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()

    @property
    def generation(self) -> str:
        """What kernels are made for: its maker and narrowest matrix units; cards without a fast network are apart."""
        said = self.specification
        units = "fp4" if said.fp4_dense else "fp8" if said.fp8_dense else "bf16"
        return f"{self.vendor} with {units}" + (", a card" if said.scale_up.domain_gpus.value <= 1 else "")


def completed(gpu: Gpu, like: Callable[[str], Gpu]) -> Gpu:
    """
    The profile with kernels that were not measured on it taken from the GPU that it calls alike.

    Args:
        gpu: The profile as it was written.
        like: Gives a profile, as it was written, by name.
    """
    kernels, sources = kernels_of(gpu, like)
    return replace(gpu, kernels=kernels, sources=sources)
