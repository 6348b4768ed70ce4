"""What one GPU offers: memory, and the share of it that may be planned with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.sourced import Sourced


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """
    What one GPU offers.

    Args:
        name: Its profile.
        memory: Its memory as it is sold. [B/gpu]
        trainer_fraction: Share of it that the trainer may plan with. [1]
        rollout_fraction: Share of it that an engine may plan with; absent where the engine finds it out. [1]
        gpus_per_node: GPUs of a node. [1]
    """

    name: str
    memory: Figure
    trainer_fraction: Figure
    rollout_fraction: Figure
    gpus_per_node: Figure


def gpu_memory(gpu: Gpu, trainer_fraction: Figure, rollout_fraction: Figure, gpus_per_node: Figure) -> GpuMemory:
    """
    The memory of a GPU, from its profile.

    Args:
        gpu: The profile.
        trainer_fraction: Share that the trainer may plan with. [1]
        rollout_fraction: Share that an engine may plan with; absent where the engine finds it out. [1]
        gpus_per_node: GPUs of a node; the profile's where absent. [1]
    """
    specification = gpu.specification
    node = _specified(gpu, "gpus_per_node", "gpus_per_node", specification.gpus_per_node)
    return GpuMemory(
        name=gpu.name,
        memory=_specified(gpu, "gpu_memory_bytes", "memory", specification.memory),
        trainer_fraction=trainer_fraction,
        rollout_fraction=rollout_fraction,
        gpus_per_node=gpus_per_node if gpus_per_node.known else node,
    )


def _specified(gpu: Gpu, key: str, field: str, fact: Sourced) -> Figure:
    """A number of the data sheet."""
    return Figure(key=key, value=fact.value, source=_source(gpu, field, fact), verified=fact.verified)


def _source(gpu: Gpu, field: str, fact: Sourced) -> str:
    return f"profile {gpu.name}: {field}; {gpu.sources.get(fact.source, fact.source)}"
