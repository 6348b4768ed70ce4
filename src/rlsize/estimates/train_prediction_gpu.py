"""The numbers of a GPU that the time of a training step depends on, as figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.estimates.remembered import remembered
from rlsize.estimates.train_prediction_shape import bare
from rlsize.facts.figure import Figure
from rlsize.facts.kernels import among, pick

if TYPE_CHECKING:
    from rlsize.equations._ops import Real
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.sourced import Sourced

NO_POWER_LIMIT = 1e9  # W; for a profile that names no power


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainGpu:
    """
    What a GPU brings to a training step; figures, or bare numbers.

    Args:
        matmul_peak: Peak rate of the number type of linear layers.
        matmul_fraction: Share of it that large matrix products reach.
        bf16_peak: Peak rate in bf16.
        bf16_fraction: Share of it that large matrix products reach.
        expert_peak: Peak rate of the number type of experts.
        expert_fraction: Share of it that grouped products of experts reach.
        attention_fraction: Share of the bf16 peak that attention of long sequences reaches.
        half_length: Length at which attention reaches half of that.
        memory_bandwidth: Of the device memory.
        power: Board power.
        scale_up: Bandwidth inside the node, one direction.
        nic: Bandwidth of the network adapter, one direction; that of the node where the profile names none.
        pcie: Bandwidth to the host, one direction.
        domain_gpus: GPUs that share the fast network.
        gather_fraction: Share of the fast network that gathers reach.
        tensor_fraction: The same among the tensor-parallel ranks.
        exchange_fraction: Share that all-to-all exchanges reach.
        recent: Whether it has fp8 units: newer than most training kernels of attention.
        newest: Whether it has fp4 units: of a generation that takes less energy for the same work.
    """

    matmul_peak: Real
    matmul_fraction: Real
    bf16_peak: Real
    bf16_fraction: Real
    expert_peak: Real
    expert_fraction: Real
    attention_fraction: Real
    half_length: Real
    memory_bandwidth: Real
    power: Real
    scale_up: Real
    nic: Real
    pcie: Real
    domain_gpus: Real
    gather_fraction: Real
    tensor_fraction: Real
    exchange_fraction: Real
    recent: bool
    newest: bool


@remembered
def train_gpu(gpu: Gpu, dtype: str, ranks: int, tensor: int, expert: int) -> TrainGpu:
    """
    The numbers of a GPU, as figures.

    Args:
        gpu: Its profile, with kernels.
        dtype: Number type of linear layers: bf16 or fp8.
        ranks: Ranks over which weights are sharded.
        tensor: Tensor-parallel ranks.
        expert: Expert-parallel ranks.
    """
    spec, kernels = gpu.specification, gpu.kernels
    if kernels is None:
        raise ValueError(f"the profile of {gpu.name} has no kernels")
    says = _Profile(gpu)
    domain = int(spec.scale_up.domain_gpus.value)
    name, gemm = pick(kernels.gemm, dtype)
    expert_kernel = pick(kernels.moe, dtype)[1]
    wide_kernel = pick(kernels.moe, "bf16")[1]
    attention = kernels.prefill_attention["bf16"]
    gathers, exchanges = kernels.nccl["all_gather"], kernels.nccl["all_to_all"]
    peaks = {
        "bf16": spec.bf16_dense,
        "fp8": spec.fp8_dense or spec.bf16_dense,
        "fp4": spec.fp4_dense or spec.bf16_dense,
    }
    link = spec.scale_up.bandwidth_one_direction
    return TrainGpu(
        matmul_peak=says.fact("peak_flops", peaks["fp8" if name.startswith("fp8") else "bf16"]),
        matmul_fraction=says.kernel("gemm_compute_fraction", gemm.compute_fraction),
        bf16_peak=says.fact("peak_flops", spec.bf16_dense),
        bf16_fraction=says.kernel("gemm_compute_fraction", kernels.gemm["bf16"].compute_fraction),
        expert_peak=says.fact("peak_flops", peaks[expert_kernel.peak]),
        expert_fraction=says.kernel(  # trainers scale fp8 by tensor, which costs less than the blocks that were timed
            "moe_compute_fraction", max(expert_kernel.compute_fraction, wide_kernel.compute_fraction)
        ),
        attention_fraction=says.kernel("attention_compute_fraction", attention.compute_fraction),
        half_length=says.kernel("half_length", attention.half_length),
        memory_bandwidth=says.fact("memory_bandwidth_bytes_per_second", spec.memory_bandwidth),
        power=says.fact("power_watts", spec.power, NO_POWER_LIMIT),
        scale_up=says.fact("scale_up_bytes_per_second", link),
        nic=says.fact("nic_bytes_per_second", spec.nic or spec.pcie or link),
        pcie=says.fact("pcie_bytes_per_second", spec.pcie or spec.nic or link),
        domain_gpus=says.fact("domain_gpus", spec.scale_up.domain_gpus),
        gather_fraction=says.kernel("gather_link_fraction", among(gathers, min(ranks, domain)).link_fraction),
        tensor_fraction=says.kernel("tensor_link_fraction", among(gathers, min(tensor, domain)).link_fraction),
        exchange_fraction=says.kernel("exchange_link_fraction", among(exchanges, min(expert, domain)).link_fraction),
        recent=spec.fp8_dense is not None,
        newest=spec.fp4_dense is not None,
    )


@remembered
def bare_train_gpu(gpu: Gpu, dtype: str, ranks: int, tensor: int, expert: int) -> TrainGpu:
    """The same, bare."""
    found: TrainGpu = bare(train_gpu(gpu, dtype, ranks, tensor, expert))
    return found


@dataclass(frozen=True, slots=True)
class _Profile:
    """Quotes a GPU profile."""

    gpu: Gpu

    def fact(self, key: str, said: Sourced | None, otherwise: float = 0.0) -> Figure:
        """A number of the specification."""
        if said is None:
            why = f"GPU profile {self.gpu.name} does not say: no limit"
            return Figure(key=key, value=otherwise, provenance="default", source=why)
        source = f"GPU profile {self.gpu.name}: {self.gpu.sources.get(said.source, said.source)}"
        return Figure(key=key, value=said.value, source=source, verified=said.verified)

    def kernel(self, key: str, value: float) -> Figure:
        """A number of the measured kernels."""
        kernels = self.gpu.kernels
        named = kernels.source if kernels else ""
        source = f"kernels of {self.gpu.name}: {self.gpu.sources.get(named, named)}"
        return Figure(
            key=key, value=value, provenance="measured", source=source, verified=not kernels or kernels.verified
        )
