"""
A search in plain loops: one placement after the other, through the same scalar functions, the best by `min`.

It shares no code with the search of the planner: no tables, no arrays, no families.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from rlsize.errors import Refused
from rlsize.planner.evaluation import memory_of, worked
from rlsize.planner.options import Placement
from rlsize.planner.space import misfits, packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlsize.planner.options import FleetOption, TrainerOption
    from rlsize.planner.outlook import Outlook
    from rlsize.planner.space import Limit, Space

_SLACK = 1e-9  # of an instance
_EXACT = 1e-12  # of a limit
SIZED: dict[str, tuple[str, ...]] = {
    "time": ("step_seconds", "cost", "gpus"),
    "cost": ("cost", "step_seconds", "gpus"),
    "gpus": ("gpus", "cost", "step_seconds"),
}
"""What each objective makes small, most important first."""


@dataclass(frozen=True, slots=True)
class Tried:
    """
    A placement that was worked out.

    Args:
        place: It.
        results: What it gives.
        cost: Dollars of a step, or GPU-hours where some price is not known.
    """

    place: Placement
    results: dict[str, float]
    cost: float

    def number(self, name: str) -> float:
        """One of the three quantities that are made small."""
        return self.cost if name == "cost" else self.results[name]

    def score(self, objective: str) -> tuple[float, ...]:
        """What is made small, most important first."""
        return tuple(self.number(name) for name in SIZED[objective])


def plain_search(outlook: Outlook, space: Space) -> list[Tried]:
    """All placements that fit and can run, whatever the limits."""
    cost = "cost_per_step_usd" if _priced(space) else "gpu_hours_per_step"
    found = []
    for place in _placements(outlook, space):
        try:
            left = memory_of(outlook.central, place)
            results = worked(outlook.central, place) | left
        except Refused:
            continue
        if all(float(share) >= space.margin for share in left.values()):
            told = {key: float(value) for key, value in results.items()}
            found.append(Tried(place, told, told[cost]))
    return found


def within(tried: Iterable[Tried], limits: Iterable[Limit]) -> list[Tried]:
    """Those that keep all limits on what is known of them."""
    kept = list(limits)
    return [
        one for one in tried if all(_keeps(one.results[limit.key], limit) for limit in kept if limit.key in one.results)
    ]


def _keeps(value: float, limit: Limit) -> bool:
    slack = _EXACT * (limit.value or 1.0)
    return value >= limit.value - slack if limit.least else value <= limit.value + slack


def _priced(space: Space) -> bool:
    """Whether all prices are known that a placement may need."""
    for fleet in space.fleets:
        if not fleet.gpu_hour.known and any(loop != "colocated" for loop in space.loops):
            return False
    return all(trainer.gpu_hour.known for trainer in space.trainers)


def _placements(outlook: Outlook, space: Space) -> Iterator[Placement]:
    """All that there is room for."""
    for fleet in space.fleets:
        for trainer in _trainers(space):
            for gpus in _trainer_gpus(outlook, space, trainer):
                yield from _colocated(space, fleet, trainer, gpus)
                yield from _two_pools(outlook, space, fleet, trainer, gpus)


def _trainers(space: Space) -> Iterator[TrainerOption]:
    """All ways to spread the trainer, with every micro-batch."""
    for trainer in space.trainers:
        if trainer.question is None or trainer.seconds.known or not space.micro_batches:
            yield trainer
            continue
        for tokens in space.micro_batches:
            yield replace(trainer, question=replace(trainer.question, micro_batch_tokens=tokens))


def _trainer_gpus(outlook: Outlook, space: Space, trainer: TrainerOption) -> Iterator[float]:
    """Numbers of GPUs that a trainer may take: replicas; any of one node, of several its parts and whole ones."""
    unit, node = trainer.replica, outlook.problem.gpus_per_node
    most = int(_most(space, trainer))
    for gpus in range(unit, most + 1, unit):
        if node is not None and (trainer.question is not None or space.whole_nodes):
            whole = gpus % lcm(unit, int(node)) == 0
            part = gpus < node and (most <= node or node % gpus == 0) and not space.whole_nodes
            if not (whole or part):
                continue
        if space.trainer_gpus and gpus not in space.trainer_gpus:
            continue
        if misfits(outlook.problem, trainer, np.array([float(gpus)])) == [""]:
            yield float(gpus)


def _colocated(space: Space, fleet: FleetOption, trainer: TrainerOption, gpus: float) -> Iterator[Placement]:
    """Both sides on the trainer's GPUs."""
    instances = float(int(gpus / fleet.gpus + _SLACK))
    if "colocated" not in space.loops or fleet.gpu != trainer.gpu or instances < 1:
        return
    if space.rollout_gpus and instances * fleet.gpus not in space.rollout_gpus:
        return
    yield Placement(
        loop="colocated",
        fleet=fleet,
        instances=instances,
        trainer=trainer,
        trainer_gpus=gpus,
        transport="colocated",
    )


def _two_pools(
    outlook: Outlook, space: Space, fleet: FleetOption, trainer: TrainerOption, gpus: float
) -> Iterator[Placement]:
    """Fleets of all sizes beside the trainer."""
    room = packed(space, outlook.problem, fleet, trainer, np.array([gpus]))[0]
    instances = 1
    while instances <= room and instances * fleet.gpus <= _most(space, fleet) + _SLACK:
        if _wanted(outlook, space, instances * fleet.gpus):
            for loop in space.loops:
                caps = space.staleness if loop in {"async", "hybrid"} else (1.0,)
                for cap in caps if loop != "colocated" else ():
                    for transport in space.transports:
                        yield Placement(
                            loop=loop,
                            fleet=fleet,
                            instances=float(instances),
                            trainer=trainer,
                            trainer_gpus=gpus,
                            max_staleness=cap,
                            transport=transport,
                        )
        instances += 1


def _wanted(outlook: Outlook, space: Space, gpus: float) -> bool:
    """Whether a fleet may have so many GPUs."""
    if space.rollout_gpus and gpus not in space.rollout_gpus:
        return False
    node = outlook.problem.gpus_per_node
    return not (space.whole_nodes and node is not None and gpus % node)


def _most(space: Space, option: FleetOption | TrainerOption) -> float:
    """GPUs that an option may take by itself."""
    if space.gpus is None:
        return option.most or 0.0
    return space.gpus if option.most is None else min(space.gpus, option.most)
