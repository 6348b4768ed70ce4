"""What a step spends on moving between the GPUs and the host what phases take turns to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations.memory import optimizer_offload_time

if TYPE_CHECKING:
    from rlsize.loop.phases import Phases
    from rlsize.loop.resolve import Loop

_MOVED = ("trainer_weights", "adapters", "reference", "critic", "reward", "engine_weights")
_ONCE = frozenset({"load", "engine_start"})


def moved_seconds(loop: Loop, phases: Phases | None) -> float:
    """
    Time in which weights leave the GPUs and come back in a step; that of optimizer states is in the update. [s]

    Args:
        loop: The loop.
        phases: Its memory.
    """
    if phases is None or loop.stages is None:
        return 0.0
    spec = loop.stages.train.gpu.specification
    link = spec.pcie or spec.nic
    held = [one.parts for one in phases.phases if one.pool != "rollout" and one.name not in _ONCE]
    if link is None or not held:
        return 0.0
    sizes = [[parts.get(name, 0.0) for parts in held] for name in _MOVED]
    return float(optimizer_offload_time(sum(max(one) - min(one) for one in sizes), bandwidth=link.value))
