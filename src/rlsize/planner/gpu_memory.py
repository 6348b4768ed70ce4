"""What one GPU offers: memory, the share that may be planned with, and what is gone before the first model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.gpu import Gpu
    from rlsize.facts.sourced import Sourced


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

    def figure(key: str, fact: Sourced | None) -> Figure:
        if fact is None:
            return Figure(
                key=key, value=0, provenance="default", source=f"profile {gpu.name} does not say", verified=False
            )
        source = f"profile {gpu.name}: {gpu.sources.get(fact.source, fact.source)}"
        return Figure(key=key, value=fact.value, source=source, verified=fact.verified)

    specification, assumed = gpu.specification, gpu.assumed
    nccl = assumed.nccl_reserved if assumed else {}
    sizes = {int(name.removeprefix("tp")): fact for name, fact in nccl.items() if name.removeprefix("tp").isdecimal()}
    node = gpus_per_node if gpus_per_node.known else figure("gpus_per_node", specification.gpus_per_node)
    return GpuMemory(
        name=gpu.name,
        memory=figure("gpu_memory_bytes", specification.memory_usable or specification.memory),
        trainer_fraction=trainer_fraction,
        rollout_fraction=rollout_fraction,
        runtime_reserved=figure("runtime_reserved_bytes", assumed.runtime_reserved if assumed else None),
        nccl_reserved={size: figure("nccl_reserved_bytes", fact) for size, fact in sizes.items()},
        gpus_per_node=node,
    )
