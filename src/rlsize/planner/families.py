"""
What a search finds: families, and the best of them.

A family is what has the same mode, fleet and number of trainer GPUs; of its layouts the quickest within the limits
stands for it, as cost and GPUs follow from the step's time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from rlsize.planner.tables import Rejections

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.planner.options import Placement

    Array = NDArray[np.float64]
    Places = NDArray[np.intp]

Objective = Literal["time", "cost", "gpus"]
ORDER: dict[Objective, tuple[str, ...]] = {
    "time": ("step_seconds", "cost", "gpus"),
    "cost": ("cost", "step_seconds", "gpus"),
    "gpus": ("gpus", "cost", "step_seconds"),
}
"""What each objective makes small, most important first."""
_BITS = 30  # numbers that differ beyond these are the same but for rounding
SAME = 2.0 ** (1 - _BITS)
"""The same as a share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """
    The best candidate of a family.

    Args:
        place: It.
        step_seconds: Its step. [s]
        cost: Dollars of a step, or GPU-hours where some price is not known. [usd]
        gpus: GPUs of both sides. [1]
    """

    place: Placement
    step_seconds: float
    cost: float
    gpus: float

    def score(self, objective: Objective) -> tuple[float, ...]:
        """What is made small, most important first; what differs by rounding only is the same."""
        found: list[float] = rounded(np.array([getattr(self, name) for name in ORDER[objective]])).tolist()
        return tuple(found)


def rounded(values: Array) -> Array:
    """Numbers without what rounding makes of them."""
    shares, powers = np.frexp(values)
    found: Array = np.ldexp(np.round(np.ldexp(shares, _BITS)), powers - _BITS)
    return found


@dataclass(slots=True)
class Found:
    """
    What a search found.

    Args:
        objective: What is made small.
        priced: Whether cost is in dollars; in GPU-hours where some price is not known.
        best: The best families, best first.
        modes: The best of each mode.
        front: Families that no other beats in both step and cost, quickest first.
        splits: The quickest family of the best mode and each number of trainer GPUs that leaves no GPU unused that an
            instance could have.
        worked_out: Candidates whose step was worked out.
        feasible: Of these, those within all limits.
        rejected: What constraints left out.
    """

    objective: Objective
    priced: bool = True
    best: list[Family] = field(default_factory=list)
    modes: dict[str, Family] = field(default_factory=dict)
    front: list[Family] = field(default_factory=list)
    splits: dict[tuple[str, float], Family] = field(default_factory=dict)
    worked_out: int = 0
    feasible: int = 0
    rejected: Rejections = field(default_factory=Rejections)


def on_front(seconds: Array, cost: Array) -> Places:
    """Places of those that no other beats in both, quickest first; of equals the first."""
    able = np.flatnonzero(np.isfinite(seconds))
    if not len(able):
        return able
    order = able[np.lexsort((rounded(cost[able]), rounded(seconds[able])))]
    ahead = np.minimum.accumulate(cost[order])
    before = np.concatenate([[np.inf], ahead[:-1]])
    return order[cost[order] < before * (1 - SAME)]
