"""A plan: what was searched, what was chosen, and what stands around the choice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import matching
from rlsize.errors import Refused
from rlsize.estimates.step_assembly import REFILLING
from rlsize.planner.choice import AS_GOOD, Around, as_good, choice
from rlsize.planner.evaluation import MEMORY_KEYS, central_results, memory_of
from rlsize.planner.families import SAME, Found
from rlsize.planner.options import KIND
from rlsize.planner.search import Bar, search, tabulated
from rlsize.planner.space import misfits, trainer_counts
from rlsize.planner.tornado import tornado

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.planner.choice import Alternative, Choice, Takes
    from rlsize.planner.families import Family, Objective
    from rlsize.planner.least_change import LeastChange, Pose
    from rlsize.planner.options import FleetOption, Placement
    from rlsize.planner.outlook import Outlook
    from rlsize.planner.search import Tables
    from rlsize.planner.space import Space
    from rlsize.planner.tornado import Swing

_BEYOND = 2.0  # times the GPUs that there are, for what more of them would bring
_ROOM = (0.0, 0.1, 0.25)  # of the memory, beyond the margin, where what runs the loop needs more than that
_POINTS = 48  # of the picture of splits


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """
    A split of the best plan's GPUs, all else as it is.

    Args:
        rollout_gpus: GPUs of the fleet. [1]
        trainer_gpus: GPUs of the trainer. [1]
        rollout: Samples that the fleet could make. [sample/s]
        trainer: Samples that the trainer could take. [sample/s]
        loop: Samples that the loop makes of both. [sample/s]
    """

    rollout_gpus: float
    trainer_gpus: float
    rollout: float
    trainer: float
    loop: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """
    What a search found, and what it means.

    Args:
        outlook: How placements are worked out.
        space: What could be chosen.
        found: What the search found.
        chosen: The choice; None where nothing is possible.
        neighbours: The best plan with a unit more or less on each side.
        swings: What it is most sensitive to.
        splits: The best plan at other splits; empty where both sides share their GPUs.
        changes: The least changes that would make a plan possible, where none is; else a batch near the asked one with
            which a better one is.
        nearest: Where limits exclude all plans, the one that is the least beyond them.
        refusals: Why what runs the loop takes none of the plans that were found, for each of them.
        runs_as_said: Whether the loop can run as it was said where that is so.
        unlaunched: The best plan of each mode that is better and cannot be launched, and why.
    """

    outlook: Outlook
    space: Space
    found: Found
    chosen: Choice | None
    neighbours: tuple[Neighbour, ...] = ()
    swings: tuple[Swing, ...] = ()
    splits: tuple[Split, ...] = ()
    changes: tuple[LeastChange, ...] = ()
    nearest: Family | None = None
    refusals: tuple[str, ...] = ()
    runs_as_said: bool = False
    unlaunched: Mapping[str, tuple[Family, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Otherwise:
    """
    How a loop is posed with some quantities otherwise.

    Args:
        pose: The loop with some of them otherwise, and its space; None where it cannot be.
        unsaid: Quantities that nobody said, and that may be tried.
        batch: The quantity that says the batch, and its number; None where it stays as it is.
    """

    pose: Pose
    unsaid: tuple[str, ...] = ()
    batch: tuple[str, float] | None = None


def planned(
    outlook: Outlook,
    space: Space,
    objective: Objective,
    written: Placement | None = None,
    tell: Callable[[float], None] | None = None,
    takes: Takes | None = None,
    otherwise: Otherwise | None = None,
    fits: Takes | None = None,
) -> Planned:
    """
    The best plan of a space, and what stands around it.

    Args:
        outlook: How placements are worked out.
        space: What may be chosen.
        objective: What is made small.
        written: The plan as the scenario has it, which can run.
        tell: Hears of a long search which share of it is done. [1]
        takes: Whether what runs the loop takes a placement; None for all. With more room left, it takes more of them.
        otherwise: How the loop is posed with other quantities; None where only limits and GPUs are changed.
        fits: Whether the memory of a placement is enough for sure; None where nobody knows.

    Raises:
        InputError: The space is too large.
    """
    from rlsize.planner.least_change import least_changes, near_batch, nearest_plan

    choose = partial(choice, outlook, written=written, takes=takes, fits=fits, brief=True)
    tried: list[tuple[Found, Tables, Choice | None]] = []
    for more in _ROOM:
        wide = replace(space, margin=space.margin + more, uneven=otherwise is not None and otherwise.batch is not None)
        tables = tabulated(outlook.central, wide)
        found, chosen = _chosen(outlook, tables, objective, choose, tell)
        tried.append((found, tables, chosen))
        if not found.best or (takes is None and chosen is None) or (chosen is not None and not chosen.doubted):
            break
    surer = tried[-1]
    found, tables, chosen = next((one for one in tried if one[2] is not None), tried[0])
    if chosen is not None and surer[2] is not None and not surer[2].doubted:
        found, tables, chosen = surer if as_good(surer[2].best, chosen.best, AS_GOOD) else (found, tables, chosen)
    if chosen is not None and chosen.doubted:
        found, chosen = _chosen(outlook, tables, objective, partial(choose, brief=False), tell)
    if chosen is None:
        changes: tuple[LeastChange, ...] = ()
        if not found.best:
            asked = (None, ()) if otherwise is None else (otherwise.pose, otherwise.unsaid)
            changes = least_changes(outlook.central, tables, found, objective, *asked)
        near = None if found.best else nearest_plan(tables)
        return Planned(outlook=outlook, space=space, found=found, chosen=None, changes=changes, nearest=near)
    batch = None
    if otherwise is not None and otherwise.batch is not None:
        batch = near_batch(tables, chosen.best.family, objective, otherwise.pose, *otherwise.batch)
    counts = possible_counts(outlook, space, chosen.best.place)
    return Planned(
        outlook=outlook,
        space=space,
        found=found,
        chosen=chosen,
        neighbours=neighbours(outlook, chosen.best, counts),
        swings=tornado(outlook, chosen),
        splits=_splits(outlook, found, chosen.best.place.loop),
        changes=() if batch is None else (batch,),
    )


def _chosen(
    outlook: Outlook,
    tables: Tables,
    objective: Objective,
    choose: Callable[..., Choice | None],
    tell: Callable[[float], None] | None,
) -> tuple[Found, Choice | None]:
    """What a search finds, and the choice of it: a layout that few run only where it is better for sure."""
    found, chosen = Found(objective=objective), None
    for usual in (True, False):
        found = search(outlook.central, tables.space, objective, tell, tables, usual=usual)
        around = Around(alike=partial(_alike, tables, objective, usual), own=partial(_own, tables, objective))
        chosen = choose(found, around=around)
        if found.rare is None or (chosen is not None and not chosen.rare_is_better):
            break
    return found, chosen


def _own(tables: Tables, objective: Objective, own: Family, best: Family, share: float) -> bool:
    """Whether a plan is one of a space and keeps its limits, and is worse than the best by a share at most."""
    space, place = tables.space, own.place
    question, sizes = place.trainer.question, (float(place.rollout_gpus), float(place.trainer_gpus))
    tokens = None if question is None or place.trainer.seconds.known else float(question.bare().micro_batch_tokens)
    rollout, trainer = (
        tuple(count for count in counts or (size,) if count == size)
        for counts, size in zip((space.rollout_gpus, space.trainer_gpus), sizes, strict=True)
    )
    kept = (place.trainer.name, place.trainer.savings)
    narrow = replace(
        space,
        fleets=tuple(one for one in space.fleets if _built_alike(one, place)),
        trainers=tuple(one for one in space.trainers if (one.name, one.savings) == kept),
        loops=tuple(loop for loop in space.loops if loop == place.loop),
        staleness=tuple(cap for cap in space.staleness if cap == place.max_staleness or place.loop not in REFILLING),
        transports=tuple(name for name in space.transports if place.shared or name == place.transport),
        micro_batches=tuple(size for size in space.micro_batches if size == tokens),
        rollout_gpus=rollout,
        trainer_gpus=trainer,
    )
    if not (rollout and trainer and (narrow.micro_batches or tokens is None)):
        return False
    bar = Bar(
        step_seconds=np.inf if objective == "cost" else best.step_seconds * (1.0 + share),
        cost=np.inf if objective == "time" else best.cost * (1.0 + share),
        gpus=best.gpus if objective == "gpus" else np.inf,
    )
    found = search(tables.terms, narrow, objective, bar=bar, alone=True).best
    return bool(found) and abs(found[0].step_seconds - own.step_seconds) <= SAME * own.step_seconds


def _built_alike(fleet: FleetOption, place: Placement) -> bool:
    """Whether instances are those of a plan, with its share of the memory."""
    shares = {one.memory_fraction(shared=place.shared) for one in (fleet, place.fleet)}
    return fleet.name == place.fleet.name and len(shares) == 1 and (place.shared or not fleet.shared_only)


def _alike(tables: Tables, objective: Objective, usual: bool, best: Family, share: float) -> list[Family]:
    """
    The plans that are worse than one by a share at most, and take no more GPUs: the fewest, then the plainest first.

    Layouts that have more than one kind of parallelism more than the plainest of them are none of them, and plans that
    lend GPUs only where no other is.
    """
    most = 1.0 + share
    bar = Bar(
        step_seconds=np.inf if objective == "cost" else best.step_seconds * most,
        cost=best.cost * most,
        gpus=best.gpus,
    )
    lending = tuple(loop for loop in tables.space.loops if loop == "hybrid")
    plain = tuple(loop for loop in tables.space.loops if loop != "hybrid")
    for loops in (plain, *([lending] if best.place.loop == "hybrid" else [])):
        space = replace(tables.space, loops=loops)
        plainest = search(tables.terms, space, "plain", tables=tables, bar=bar, usual=usual, alone=True).best
        if plainest:
            able = replace(bar, burden=(plainest[0].burden // KIND + 2.0) * KIND)
            return search(tables.terms, space, "fewest", tables=tables, bar=able, usual=usual).best
    return []


def possible_counts(outlook: Outlook, space: Space, place: Placement) -> tuple[float, ...]:
    """Numbers of GPUs that a plan's trainer can be spread over as it is, and fits; beyond those that there are too."""
    most = _BEYOND * space.most(place.trainer)
    wide = replace(space, gpus=most if space.gpus is not None else None, trainer_gpus=())
    trainer = replace(place.trainer, most=most if place.trainer.most is not None else None)
    counts = trainer_counts(wide, outlook.problem, trainer)
    counts = counts[[not why for why in misfits(outlook.problem, trainer, counts)]]
    left = memory_of(outlook.central, replace(place, trainer_gpus=counts)).get(MEMORY_KEYS[1], np.inf)
    fits = (np.broadcast_to(left, counts.shape) >= space.trainer_margin) | (counts == place.trainer_gpus)
    return tuple(counts[fits].tolist())


def _splits(outlook: Outlook, found: Found, loop: str) -> tuple[Split, ...]:
    """What both sides could do at each split of all GPUs, each with the layouts that suit it."""
    samples = outlook.problem.samples.number
    families = [family for (mode, _), family in found.splits.items() if mode == loop and not family.place.shared]
    told = []
    for family in _thinned(sorted(families, key=lambda one: float(one.place.trainer_gpus))):
        step = central_results(outlook, family.place)
        rates = [
            float(matching.consumption(tokens_per_step=samples, train_seconds=step[key]))
            for key in ("generation_seconds", "train_seconds", "step_seconds")
        ]
        told.append(
            Split(
                rollout_gpus=float(family.place.rollout_gpus),
                trainer_gpus=float(family.place.trainer_gpus),
                rollout=rates[0],
                trainer=rates[1],
                loop=rates[2],
            )
        )
    return tuple(sorted(told, key=lambda split: split.rollout_gpus))


def _thinned(families: list[Family]) -> list[Family]:
    """Some of many, the quickest among them."""
    if len(families) <= _POINTS:
        return families
    quickest = min(range(len(families)), key=lambda place: families[place].step_seconds)
    places = np.linspace(0, len(families) - 1, _POINTS).round().astype(int)
    return [families[place] for place in sorted({quickest, *places.tolist()})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """
    The best plan with one unit more, or less, on a side.

    Args:
        side: rollout or trainer; both where they share.
        place: The plan.
        gpus: GPUs more; negative for fewer. [1]
        results: What it gives, in central numbers.
        change: By how much each result differs from that of the best plan.
    """

    side: str
    place: Placement
    gpus: float
    results: dict[str, float]
    change: dict[str, float]


def neighbours(outlook: Outlook, best: Alternative, trainer_counts: Sequence[float]) -> tuple[Neighbour, ...]:
    """
    What the next unit of GPUs on each side would bring, limits on GPUs aside.

    Args:
        outlook: How placements are worked out.
        best: The best plan.
        trainer_counts: Numbers of GPUs that its trainer can be spread over, beyond what there is too.
    """
    place = best.place
    changed: list[tuple[str, Placement]] = []
    for step in (-1, 1):
        count = _next(trainer_counts, float(place.trainer_gpus), step)
        if place.shared:
            if count is not None and count >= place.fleet.gpus:
                changed.append(("both", replace(place, trainer_gpus=count, instances=float(count // place.fleet.gpus))))
            continue
        if place.instances + step >= 1:
            changed.append(("rollout", replace(place, instances=place.instances + step)))
        if count is not None:
            changed.append(("trainer", replace(place, trainer_gpus=count)))
    found = []
    for side, other in changed:
        try:
            results = central_results(outlook, other)
        except Refused:  # fewer trainer GPUs than an instance takes cannot be lent
            continue
        change = {key: results[key] - best.results[key] for key in results}
        gpus = float(other.gpus - place.gpus)
        found.append(Neighbour(side=side, place=other, gpus=gpus, results=results, change=change))
    return tuple(found)


def _next(counts: Sequence[float], count: float, step: int) -> float | None:
    """The next larger or smaller number."""
    if step > 0:
        return min((one for one in counts if one > count), default=None)
    return max((one for one in counts if one < count), default=None)
