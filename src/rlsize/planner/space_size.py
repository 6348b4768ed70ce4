"""How many candidates a space has, counted before they are worked out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlsize.errors import Fault, InputError
from rlsize.planner.space import packed
from rlsize.planner.tables import kind_of

if TYPE_CHECKING:
    from rlsize.planner.setting import Setting
    from rlsize.planner.space import Space
    from rlsize.planner.tables import FleetTable, TrainerTable

MOST_CANDIDATES = 600e6
"""What is worked out in about a minute."""


def pairs(setting: Setting, space: Space, fleet: FleetTable, trainers: TrainerTable) -> int:
    """How many numbers of instances go with one trainer of the table or another."""
    room = packed(space, setting.problem, fleet.fleet, trainers.options[0], trainers.gpus)
    return int(np.searchsorted(fleet.instances, room, side="right").sum())


def candidates_of(setting: Setting, space: Space, fleets: list[FleetTable], trainers: TrainerTable) -> int:
    """
    How many candidates there are with GPUs for each pool.

    Raises:
        InputError: More than `MOST_CANDIDATES`, which would take minutes.
    """
    ways = sum(
        (len(space.staleness) if kind_of(loop, 1.0) is not None else 1) * len(space.transports)
        for loop in space.loops
        if loop != "colocated"
    )
    count = ways * sum(pairs(setting, space, fleet, trainers) for fleet in fleets)
    if count > MOST_CANDIDATES:
        raise InputError(
            Fault(
                f"{count:,} candidates, more than the {MOST_CANDIDATES:,.0f} that are worked out",
                "the space of the plan",
                "narrow it, for example with --whole-nodes, --mode, --rollout-gpus or --trainer-gpus",
            )
        )
    return count
