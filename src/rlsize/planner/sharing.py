"""GPUs that both sides use: colocated ones, and those that a hybrid loop lends. Engines stand beside the trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlsize.planner.options import SHARING
from rlsize.planner.tables import checked_headroom

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.planner.options import FleetOption
    from rlsize.planner.setting import Setting
    from rlsize.planner.space import Space
    from rlsize.planner.tables import Rejections, TrainerTable

    Array = NDArray[np.float64]

WHOLE = 1e-9
"""Of an instance: what is lacking by rounding only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """
    One way to build instances on the GPUs of every trainer.

    Args:
        instances: Instances that the GPUs of each trainer make; 0 where they make none, or memory does not hold both.
        rollout_left: Share of memory beyond the longest sample; None where nobody knows. [1]
        trainer_left: Share of memory that is left on the GPUs of each trainer, whatever runs. [1]
    """

    instances: Array
    rollout_left: float | None
    trainer_left: Array


def sharings(setting: Setting, space: Space, trainers: TrainerTable, rejected: Rejections) -> dict[int, Sharing]:
    """The ways to build instances that can share GPUs with these trainers, by the identity of the way."""
    if SHARING.isdisjoint(space.loops):
        return {}
    kind = trainers.options[0].gpu
    alike = [fleet for fleet in space.fleets if fleet.gpu == kind]
    found = {id(fleet): _sharing(setting, space, trainers, fleet, rejected) for fleet in alike}
    return {key: one for key, one in found.items() if one is not None}


def _sharing(
    setting: Setting, space: Space, trainers: TrainerTable, fleet: FleetOption, rejected: Rejections
) -> Sharing | None:
    """One way; None where an instance does not fit by itself."""
    left = checked_headroom(setting, space, fleet, rejected, shared=True)
    if isinstance(left, str):
        return None
    instances = np.floor(trainers.gpus / fleet.gpus + WHOLE)
    beside = _beside(trainers, fleet)
    tight = (instances >= 1) & (beside < space.margin)
    if tight.any():
        narrow = int(np.argmax(np.where(tight, beside, -np.inf)))
        what = f"{fleet.name} beside {trainers.options[narrow].name} on {trainers.gpus[narrow]:g} GPUs"
        rejected.add("trainer_memory", int(tight.sum()), what, float(space.margin - beside[narrow]))
    return Sharing(
        instances=np.where(tight, 0.0, instances),
        rollout_left=left,
        trainer_left=np.minimum(trainers.headroom, beside),
    )


def _beside(trainers: TrainerTable, fleet: FleetOption) -> Array:
    """Share of memory that is left beside the trainer's states while the engine generates."""
    engine = fleet.engines.get(True)
    if engine is None or isinstance(engine, str):
        return np.ones_like(trainers.states)
    from rlsize.estimates.loop_memory import headroom_beside

    found: Array = np.asarray(headroom_beside(trainers.states, engine))
    return found
