"""
What a search finds: families, and the best of them.

A family is what has the same mode, fleet and number of trainer GPUs; of its layouts the quickest within the limits
stands for it, as cost and GPUs follow from the step's time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from rlsize.planner.evaluation import placed_flow
from rlsize.planner.tables import Rejections, with_micro_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rlsize.planner.options import FleetOption, Placement
    from rlsize.planner.outlook import Terms
    from rlsize.planner.tables import TrainerTable

    Row = tuple[tuple[int, ...], FleetOption]
    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Places = NDArray[np.intp]

Objective = Literal["time", "cost", "gpus"]
Order = Literal["time", "cost", "gpus", "plain", "fewest", "near"]
ORDER: dict[Order, tuple[str, ...]] = {
    "time": ("step_seconds", "cost", "gpus"),
    "cost": ("cost", "step_seconds", "gpus"),
    "gpus": ("gpus", "cost", "step_seconds"),
    "plain": ("burden", "gpus", "step_seconds"),
    "fewest": ("gpus", "burden", "step_seconds"),
    "near": ("burden", "step_seconds", "gpus"),
}
"""What each order makes small, most important first: of an objective, among plans that are as good, among none."""
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
        burden: How far it is from simple, or how far beyond its limits; 0 where that was not asked. [1]
    """

    place: Placement
    step_seconds: float
    cost: float
    gpus: float
    burden: float = 0.0

    def score(self, objective: Order) -> tuple[float, ...]:
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
        rare: The best of the layouts that few run, where they were set apart; None where there are none.
    """

    objective: Order
    priced: bool = True
    best: list[Family] = field(default_factory=list)
    modes: dict[str, Family] = field(default_factory=dict)
    front: list[Family] = field(default_factory=list)
    splits: dict[tuple[str, float], Family] = field(default_factory=dict)
    worked_out: int = 0
    feasible: int = 0
    rejected: Rejections = field(default_factory=Rejections)
    rare: Family | None = None


def on_front(seconds: Array, cost: Array) -> Places:
    """Places of those that no other beats in both, quickest first; of equals the first."""
    able = np.flatnonzero(np.isfinite(seconds))
    if not len(able):
        return able
    order = able[np.lexsort((rounded(cost[able]), rounded(seconds[able])))]
    ahead = np.minimum.accumulate(cost[order])
    before = np.concatenate([[np.inf], ahead[:-1]])
    return order[cost[order] < before * (1 - SAME)]


KEPT = 96
"""Best families that are kept."""


class Pick(NamedTuple):
    """
    The best candidate of a family, as numbers.

    Args:
        score: What is made small, most important first.
        step_seconds: Its step. [s]
        cost: Its cost. [usd]
        gpus: Its GPUs. [1]
        burden: Its burden. [1]
        instances: Its instances. [1]
        entry: Its trainer among all.
        trainers: All.
        row: Where it stands among equals, and how its instances are built.
        block: The block that it is of.
    """

    score: tuple[float, ...]
    step_seconds: float
    cost: float
    gpus: float
    burden: float
    instances: float
    entry: int
    trainers: TrainerTable
    row: Row
    block: Placement


@dataclass(slots=True)
class Picks:
    """
    What was picked so far.

    Args:
        objective: What is made small.
        priced: Whether cost is in dollars.
        alone: Whether the best is all that is asked for.
        best: The best.
        modes: The best of each mode.
        front: Those that no other beats in both step and cost, quickest first.
        splits: The quickest of each mode and number of trainer GPUs that uses all GPUs.
        bar: Of the objective: what lies above it is not among the best that are kept.
        ahead: Steps and costs of the front. [s, usd]
    """

    objective: Order
    priced: bool
    alone: bool = False
    best: list[Pick] = field(default_factory=list)
    modes: dict[str, Pick] = field(default_factory=dict)
    front: list[Pick] = field(default_factory=list)
    splits: dict[tuple[str, float], Pick] = field(default_factory=dict)
    bar: float = float("inf")
    ahead: Array = field(default_factory=lambda: np.empty((2, 0)))

    def add(self, best: Sequence[Pick], front: Sequence[Pick], whole: Sequence[Pick]) -> None:
        """Note what a block found, its best first; what can no longer be told is let go."""
        if best:
            mode = best[0].block.loop
            self.modes[mode] = min(self.modes.get(mode, best[0]), best[0], key=_score)
        self.best = sorted([*self.best, *best], key=_score)[: self.kept]
        if len(self.best) == self.kept:
            self.bar = self.best[-1].score[0]
        if front:
            self.front = _front([*self.front, *front])
            self.ahead = np.array([(pick.step_seconds, pick.cost) for pick in self.front]).T
        for pick in whole:
            key = (pick.block.loop, float(pick.trainers.gpus[pick.entry]))
            known = self.splits.get(key)
            if known is None or _fuller(pick) < _fuller(known):
                self.splits[key] = pick

    @property
    def kept(self) -> int:
        """How many of the best are kept."""
        return 1 if self.alone else KEPT

    def bar_of(self, loop: str) -> float:
        """What a block of a mode must keep below to matter."""
        known = self.modes.get(loop)
        if self.alone:
            return self.bar
        return float("inf") if known is None else max(self.bar, known.score[0])

    @property
    def first(self) -> Family:
        """The best."""
        return _family(min(self.best, key=_score))

    def settle(self, found: Found) -> None:
        """Tell what was picked, in order."""
        found.best = [_family(pick) for pick in sorted(self.best, key=_score)]
        found.front = [_family(pick) for pick in self.front]
        found.modes = {mode: _family(pick) for mode, pick in self.modes.items()}
        best = found.best[0].place.loop if found.best else ""
        found.splits = {key: _family(pick) for key, pick in self.splits.items() if key[0] == best}


def _score(pick: Pick) -> tuple[object, ...]:
    return pick.score, pick.row[0]


def _fuller(pick: Pick) -> tuple[object, ...]:
    """By what one stands for its split: it takes the most GPUs, then the least time."""
    return -pick.gpus, pick.step_seconds, pick.row[0]


def _front(picks: list[Pick]) -> list[Pick]:
    """The front of several fronts."""
    picks = sorted(picks, key=lambda pick: pick.row[0])
    seconds, cost = (
        np.array(values) for values in zip(*((pick.step_seconds, pick.cost) for pick in picks), strict=True)
    )
    return [picks[place] for place in on_front(seconds, cost)]


def _family(pick: Pick) -> Family:
    option, tokens = pick.trainers.options[pick.entry], float(pick.trainers.micro_batches[pick.entry])
    place = replace(
        pick.block,
        fleet=pick.row[1],
        instances=pick.instances,
        trainer=with_micro_batch(option, tokens),
        trainer_gpus=float(pick.trainers.gpus[pick.entry]),
    )
    return Family(place=place, step_seconds=pick.step_seconds, cost=pick.cost, gpus=pick.gpus, burden=pick.burden)


class Steps(NamedTuple):
    """
    The steps of a block: fleets down, trainers across.

    Args:
        place: Its candidates.
        rows: Where each row stands among equals, and how its instances are built.
        seconds: Their steps; infinite where they break a limit. [s]
        columns: Its trainers among all.
        full: Which of its families use all GPUs, as far as whole instances do.
        burden: What the layouts of a family are chosen by before their steps; None for nothing. [1]
    """

    place: Placement
    rows: Sequence[Row]
    seconds: Array
    columns: slice
    full: Mask
    burden: Array | None = None


def pick_best(terms: Terms, trainers: TrainerTable, steps: Steps, picks: Picks) -> None:
    """Pick the best families of a block."""
    starts, first = groups_of(trainers, steps.columns)
    lightest: Array | None = None
    if steps.burden is not None:
        able = np.where(np.isfinite(steps.seconds), steps.burden, np.inf)
        lightest = np.minimum.reduceat(able, starts, axis=1)
        sizes = np.diff(np.append(starts, able.shape[1]))
        seconds = np.where(able == np.repeat(lightest, sizes, axis=1), steps.seconds, np.inf)
        steps = steps._replace(seconds=seconds)
    least = np.minimum.reduceat(steps.seconds, starts, axis=1)
    kept = np.isfinite(least)
    if not kept.any():
        return
    counts = trainers.counts[first : first + len(starts)]
    families = replace(steps.place, trainer_gpus=counts[None, :])
    paid = paid_of(terms, families, np.where(kept, least, 0.0), priced=picks.priced)
    cost, gpus = (np.where(kept, part, np.inf).ravel() for part in (paid, families.gpus))
    burden = np.zeros_like(cost) if lightest is None else np.where(kept, lightest, np.inf).ravel()
    scores = {"step_seconds": least.ravel(), "cost": cost, "gpus": gpus, "burden": burden}
    keys = [scores[name] for name in ORDER[picks.objective]]
    lowest, none = _lowest(keys, picks.bar_of(steps.place.loop), picks.kept), np.empty(0, dtype=np.intp)
    front = none if picks.alone else _unbeaten(scores["step_seconds"], cost, picks.ahead)
    told = lowest, front, none if picks.alone else np.flatnonzero(some_of(kept & steps.full))
    places = np.array(sorted(set(np.concatenate(told).tolist())), dtype=int)
    made = _made(trainers, steps, starts, places, (scores, keys))
    picks.add(*([made[flat] for flat in some.tolist()] for some in told))


def paid_of(terms: Terms, place: Placement, seconds: Array, *, priced: bool) -> Array:
    """Dollars of steps that take so long, or GPU-hours where some price is not known. [usd]"""
    found: Array = placed_flow(terms, place, seconds)["cost_per_step_usd" if priced else "gpu_hours_per_step"]
    return found


def promising(terms: Terms, families: Placement, least: Array, known: Picks) -> Mask:
    """
    Which families may be told beside those that are picked: the best of them, at most as many as are kept.

    Args:
        terms: In central numbers.
        families: The families.
        least: What the step of each takes at least; infinite where there is none. [s]
        known: What is picked of others.
    """
    there = np.isfinite(least)
    cost = paid_of(terms, families, np.where(there, least, 0.0), priced=known.priced)
    scores = {"step_seconds": least, "cost": cost, "gpus": families.gpus, "burden": np.zeros(least.shape)}
    first = scores[ORDER[known.objective][0]]
    worth = there & (first <= known.bar_of(families.loop) * (1 + SAME))
    if not known.alone:
        worth |= there & (cost <= _beside(least, known.ahead) * (1 + SAME))
    places = np.flatnonzero(worth)
    best = np.argsort(np.broadcast_to(first, least.shape).ravel()[places], kind="stable")[:KEPT]
    found = np.zeros(least.shape, dtype=bool)
    found.ravel()[places[best]] = True
    return found


def _made(
    trainers: TrainerTable,
    steps: Steps,
    starts: Places,
    places: Places,
    numbers: tuple[dict[str, Array], list[Array]],
) -> dict[int, Pick]:
    """Picks of some families of a block, by their places."""
    scores, keys = numbers
    ends = np.append(starts[1:], steps.seconds.shape[1])
    rows, groups = np.divmod(places, len(starts))
    counts = steps.place.instances
    instances = counts[np.minimum(rows, counts.shape[0] - 1), np.minimum(starts[groups], counts.shape[1] - 1)]
    names = ("step_seconds", "cost", "gpus", "burden")
    seconds, cost, gpus, burden = (scores[name][places].tolist() for name in names)
    score = list(zip(*(rounded(key[places]).tolist() for key in keys), strict=True))
    made: dict[int, Pick] = {}
    for index, place in enumerate(places.tolist()):
        start, end = int(starts[groups[index]]), int(ends[groups[index]])
        column = start + int(steps.seconds[rows[index], start:end].argmin())
        before, fleet = steps.rows[rows[index]]
        made[place] = Pick(
            score=score[index],
            step_seconds=seconds[index],
            cost=cost[index],
            gpus=gpus[index],
            burden=burden[index],
            instances=float(instances[index]),
            entry=steps.columns.start + column,
            trainers=trainers,
            row=((*before, place), fleet),
            block=steps.place,
        )
    return made


def some_of(families: Mask) -> Mask:
    """Some of many families, from the first to the last; at most as many as are kept."""
    places = np.flatnonzero(families)
    if len(places) <= KEPT:
        return families
    found = np.zeros_like(families)
    found.ravel()[places[np.linspace(0, len(places) - 1, KEPT).round().astype(int)]] = True
    return found


def groups_of(trainers: TrainerTable, columns: slice) -> tuple[Places, int]:
    """Where each number of trainer GPUs starts within some columns, and the place of the first among all."""
    first = int(np.searchsorted(trainers.starts, columns.start, side="right")) - 1
    last = int(np.searchsorted(trainers.starts, columns.stop, side="left"))
    return np.maximum(trainers.starts[first:last] - columns.start, 0), first


def _lowest(keys: list[Array], bar: float, kept: int) -> Places:
    """Places of the lowest, by the first key, ties by the next; at most as many as are kept, and none above a bar."""
    first = keys[0]
    able = np.isfinite(first) & (first <= bar * (1 + SAME))
    if able.sum() > kept:
        limit = np.partition(first, kept - 1)[kept - 1]
        able = first <= limit * (1 + SAME)
    places = np.flatnonzero(able)
    found: Places = places[np.lexsort([rounded(key[places]) for key in reversed(keys)])][:kept]
    return found


def _unbeaten(seconds: Array, cost: Array, front: Array) -> Places:
    """Places of those that no other of them beats in both step and cost, nor any of a front that is known already."""
    # what equals one of these may stand before it
    left = np.flatnonzero(cost <= _beside(seconds * (1 + SAME), front) * (1 + SAME))
    return left[on_front(seconds[left], cost[left])]


def _beside(seconds: Array, front: Array) -> Array:
    """The least cost on a front of what takes no longer."""
    times, costs = front
    found: Array = np.concatenate([[np.inf], costs])[np.searchsorted(times, seconds, side="right")]
    return found
