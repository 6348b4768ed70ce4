"""What one GPU offers: memory, the share that may be planned with, and what is gone before the first model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import engine_cache
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.sourced import Sourced

_EXACT = 1.0
_BINARY_GIGABYTE = 2.0**30 / 1e9  # over a decimal one: memory of binary size is sold by the GB


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """
    What one GPU offers.

    Args:
        name: Its profile.
        memory: Memory that the driver reports. [B/gpu]
        trainer_fraction: Share of it that the trainer may plan with. [1]
        rollout_fraction: Share of it that an engine may plan with. [1]
        runtime_reserved: What driver, runtime and engine keep. [B/gpu]
        nccl_reserved: What NCCL keeps, by the number of GPUs that talk to each other. [B/gpu]
        gpus_per_node: GPUs of a node. [1]
    """

    name: str
    memory: Figure
    trainer_fraction: Figure
    rollout_fraction: Figure
    runtime_reserved: Figure
    nccl_reserved: Mapping[int, Figure]
    gpus_per_node: Figure

    def reserved(self, gpus: float) -> list[Figure]:
        """What is gone before the first byte of a model, on a GPU that works with so many."""
        sizes = [size for size in self.nccl_reserved if size <= gpus]
        return [self.runtime_reserved, *(self.nccl_reserved[max(sizes)] for _ in sizes[:1])]


def gpu_memory(gpu: Gpu, trainer_fraction: Figure, rollout_fraction: Figure, gpus_per_node: Figure) -> GpuMemory:
    """
    The memory of a GPU, from its profile.

    Args:
        gpu: The profile.
        trainer_fraction: Share that the trainer may plan with. [1]
        rollout_fraction: Share that an engine may plan with. [1]
        gpus_per_node: GPUs of a node; the profile's where absent. [1]
    """
    specification, assumed = gpu.specification, gpu.assumed
    memory = "memory_usable" if specification.memory_usable else "memory"
    nccl = assumed.nccl_reserved if assumed else {}
    sizes = {int(name.removeprefix("tp")): name for name in nccl if name.removeprefix("tp").isdecimal()}
    reserved = assumed.runtime_reserved if assumed else None
    node = _specified(gpu, "gpus_per_node", "gpus_per_node", specification.gpus_per_node)
    return GpuMemory(
        name=gpu.name,
        memory=_specified(gpu, "gpu_memory_bytes", memory, specification.memory_usable or specification.memory),
        trainer_fraction=trainer_fraction,
        rollout_fraction=rollout_fraction,
        runtime_reserved=_assumed(gpu, "runtime_reserved_bytes", "runtime_reserved", reserved),
        nccl_reserved={
            size: _assumed(gpu, "nccl_reserved_bytes", f"nccl_reserved.{name}", nccl[name])
            for size, name in sizes.items()
        },
        gpus_per_node=gpus_per_node if gpus_per_node.known else node,
    )


def visible_memory(work: Callable[..., Real], gpu: Gpu, values: Mapping[str, Real]) -> Real:
    """Memory of the GPU that a process sees; a size that nobody verified is taken as sold, in binary gigabytes."""
    stated = gpu.specification.memory_usable
    exact = stated is not None and stated.verified
    found = stated if stated is not None and exact else gpu.specification.memory
    return work(
        "visible_memory_bytes",
        engine_cache.visible_memory,
        memory=found.value,
        binary_share=_EXACT if exact else _BINARY_GIGABYTE,
        visible_share=values["memory_visible_share"],
    )


def _specified(gpu: Gpu, key: str, field: str, fact: Sourced) -> Figure:
    """A number of the data sheet."""
    return Figure(key=key, value=fact.value, source=_source(gpu, field, fact), verified=fact.verified)


def _assumed(gpu: Gpu, key: str, field: str, fact: Sourced | None) -> Figure:
    """A number that the profile takes for granted; nothing, and unverified, where it does not."""
    if fact is None:
        source = f"profile {gpu.name}: says nothing of {field}"
        return Figure(key=key, value=0, provenance="default", source=source, verified=False)
    source = _source(gpu, f"assumed {field}", fact)
    return Figure(key=key, value=fact.value, provenance="default", source=source, verified=fact.verified)


def _source(gpu: Gpu, field: str, fact: Sourced) -> str:
    return f"profile {gpu.name}: {field}; {gpu.sources.get(fact.source, fact.source)}"
