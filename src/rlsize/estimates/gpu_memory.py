"""What one GPU offers: memory, the share that may be planned with, and what processes see of it."""

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


def _source(gpu: Gpu, field: str, fact: Sourced) -> str:
    return f"profile {gpu.name}: {field}; {gpu.sources.get(fact.source, fact.source)}"
