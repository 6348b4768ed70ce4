"""Where no plan exists: the least changes that would make one exist; and a batch near the asked one that divides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import gcd, inf
from typing import TYPE_CHECKING, Any

from rlsize.equations import planning, rollout_batch
from rlsize.planner.choice import AS_GOOD
from rlsize.planner.families import ORDER
from rlsize.planner.rounding import rounded_up
from rlsize.planner.search import Bar, counted, just, search, tabulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlsize.planner.families import Family, Found, Objective
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Terms
    from rlsize.planner.search import Tables
    from rlsize.planner.space import Limit, Space

    Pose = Callable[[Mapping[str, Any]], tuple[Terms, Space] | None]
    """The loop with some quantities otherwise, and its space; None where it cannot be."""

_DOUBLINGS = 6  # of the GPUs that there are
_HALVINGS = 6  # of the step between too little and enough
_MOST_WORK = 3_000_000  # candidates that the search for enough GPUs works out: some two seconds
_GROWTH = 4  # times the candidates with twice the GPUs
_NEAR = 0.125  # of a batch that another one may differ by
_ADAPTERS, _EIGHT_BITS, _NARROW, _SHARE = 32.0, "adam-8bit", "fp8", 0.95
LEVERS: tuple[tuple[str, Any], ...] = (
    ("memory_fraction", _SHARE), ("optimizer", _EIGHT_BITS), ("kv_dtype", _NARROW), ("rollout_dtype", _NARROW),
    ("lora_rank", _ADAPTERS),
)  # fmt: skip
"""
What makes room in memory and is never part of a plan unasked, the mildest first.

A larger share for the engine leaves little for what it does not count; the others change numerics, or the training.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastChange:
    """
    A change that would make a plan possible, or a better one.

    Args:
        key: What changes: a limit's result, `gpus`, `memory_margin`, or a quantity.
        now: As it is; None where nobody says.
        needed: As it must be.
        share: The change over what it is; 0 where it is another word. [1]
        best: The best plan with it; None where nobody looked.
        beside: What changes with it.
    """

    key: str
    now: Any
    needed: Any
    share: float
    best: Family | None = None
    beside: LeastChange | None = None


def least_changes(
    terms: Terms,
    tables: Tables,
    found: Found,
    objective: Objective,
    pose: Pose | None = None,
    unsaid: Iterable[str] = (),
) -> tuple[LeastChange, ...]:
    """
    The least changes that would make a plan possible: each by itself, smallest first; two together where none does.

    A limit moves together with a lever where that is less than what the nearest plan is beyond all limits.

    Args:
        terms: In central numbers.
        tables: Both sides of what may be chosen.
        found: What a search of it found: nothing.
        objective: What is made small.
        pose: Poses the loop otherwise; None where only limits and numbers of GPUs are tried.
        unsaid: Quantities among `LEVERS` that nobody said, so that they may be changed.
    """
    space = tables.space
    changes = [_of_limit(terms, tables, limit, found, objective) for limit in space.limits]
    changes += [_margin(terms, space)] if space.margin > 0 else []
    changes += [_more_gpus(terms, space)] if space.gpus is not None else []
    known = sorted((change for change in changes if change is not None), key=lambda change: change.share)
    levers = [LeastChange(key=key, now=None, needed=value, share=0.0) for key, value in LEVERS if key in set(unsaid)]
    if pose is None:
        return tuple(known)
    moved: list[LeastChange] = []
    able: list[tuple[LeastChange, tuple[Terms, Space]]] = []
    for lever in levers:
        posed = pose({lever.key: lever.needed})
        if posed is None:
            continue
        own = tabulated(*posed)
        tried = search(*posed, objective, tables=own, usual=True, alone=True)
        known += [replace(lever, best=tried.best[0])] if tried.best else []
        limits = (_of_limit(posed[0], own, limit, tried, objective) for limit in posed[1].limits if not known)
        moved += [replace(change, beside=lever) for change in limits if change is not None]
        able.append((lever, posed))
    if known or not moved:
        return tuple(known) or tuple(_two(pose, able, objective))
    near, least = nearest_plan(tables), min(moved, key=lambda change: change.share)
    return (least,) if near is None or least.share < near.burden else ()


def _two(
    pose: Pose, able: list[tuple[LeastChange, tuple[Terms, Space]]], objective: Objective
) -> Iterator[LeastChange]:
    """The first two changes that do together what none does alone."""
    for (one, _), (two, _) in combinations(able, 2):
        best = _best(pose({one.key: one.needed, two.key: two.needed}), objective)
        if best is not None:
            yield replace(one, best=best, beside=two)
            return
    for lever, (terms, space) in able:
        more = None if space.gpus is None else _more_gpus(terms, space)
        if more is not None:
            yield replace(more, beside=lever)
            return


def _best(posed: tuple[Terms, Space] | None, objective: Objective, *, usual: bool = True) -> Family | None:
    """The best plan of another loop."""
    found = None if posed is None else search(*posed, objective, usual=usual, alone=True).best
    return found[0] if found else None


def _of_limit(terms: Terms, tables: Tables, limit: Limit, found: Found, objective: Objective) -> LeastChange | None:
    """A limit that alone is in the way of some candidate, moved until that one keeps it."""
    narrow = found.rejected.nearest.get(limit.key)
    if narrow is None:
        return None
    needed, now = narrow.short, 0.0
    if limit.value:  # else nothing was allowed, and the miss is an amount
        needed, now = limit.value * (1.0 - narrow.short if limit.least else 1.0 + narrow.short), limit.value
    limits = tuple(replace(one, value=needed) if one is limit else one for one in tables.space.limits)
    best = search(terms, replace(tables.space, limits=limits), objective, tables=tables, alone=True).best
    return LeastChange(key=limit.key, now=now, needed=needed, share=narrow.short, best=best[0] if best else None)


def _margin(terms: Terms, space: Space) -> LeastChange | None:
    """Less memory that must stay free, where that alone is in the way."""

    def works(margin: float) -> bool:
        return _Tried.of(terms, replace(space, margin=margin)).fewest < inf

    if not works(0.0):
        return None
    enough, much = 0.0, space.margin
    for _ in range(_HALVINGS):
        middle = (enough + much) / 2
        enough, much = (middle, much) if works(middle) else (enough, middle)
    best = _best((terms, replace(space, margin=enough)), "time", usual=False) if enough > 0.0 else None
    return LeastChange(key="memory_margin", now=space.margin, needed=enough, share=space.margin - enough, best=best)


def _more_gpus(terms: Terms, space: Space) -> LeastChange | None:
    """More GPUs, in whole nodes beyond the first; as near to the fewest as some work comes."""
    now = space.gpus or 0.0
    node = terms.problem.gpus_per_node or 1.0
    tried: list[_Tried] = []

    def works(gpus: float) -> bool:
        """Whether there is a plan; a limit on GPUs is moved with them."""
        limits = tuple(
            replace(limit, value=max(limit.value, gpus)) if limit.key == "gpus" and not limit.least else limit
            for limit in space.limits
        )
        tried.append(_Tried.of(terms, replace(space, gpus=gpus, limits=limits)))
        return tried[-1].fewest < inf

    few, enough = now, 2 * now
    while not works(enough):
        few, enough = enough, 2 * enough
        if enough > now * 2**_DOUBLINGS or _work(tried) + _GROWTH * tried[-1].work > _MOST_WORK:
            return None
    unit = 1.0 if enough <= node else node
    whole = rounded_up(tried[-1].fewest / unit) * unit  # no plan takes fewer, but nodes may leave it too little room
    if few < whole < enough:
        few, enough = (whole - unit, whole) if works(whole) else (whole, enough)
    while enough - few > unit and _work(tried) + tried[-1].work <= _MOST_WORK:
        middle = min(few + max(round((enough - few) / 2 / unit), 1) * unit, enough - unit)
        few, enough = (few, middle) if works(middle) else (middle, enough)
    share = float(planning.overshoot(value=enough, limit=now))
    best = next(one for one in reversed(tried) if one.fewest < inf).best
    return LeastChange(key="gpus", now=now, needed=enough, share=share, best=best)


def _work(tried: Iterable[_Tried]) -> int:
    """Candidates that were worked out."""
    return sum(one.work for one in tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """
    A space in which a plan is looked for, of as few GPUs as can be.

    Args:
        tables: Both sides of it.
        work: Candidates that there are. [1]
        fewest: GPUs of the smallest plan; infinite where there is none. [1]
    """

    tables: Tables
    work: int
    fewest: float

    @classmethod
    def of(cls, terms: Terms, space: Space) -> _Tried:
        """A space; only where it has limits, times are worked out."""
        tables = tabulated(terms, space)
        work, fewest = counted(tables)
        if space.limits and work:
            found = search(terms, space, "gpus", tables=tables, alone=True).best
            fewest = found[0].gpus if found else inf
        return cls(tables=tables, work=work, fewest=fewest)

    @property
    def best(self) -> Family:
        """The smallest plan, of a layout that few run only where it has no other."""
        tables = just(self.tables, self.fewest)
        terms, space = tables.terms, tables.space
        tried = (search(terms, space, "gpus", tables=tables, usual=usual, alone=True).best for usual in (True, False))
        return next(found for found in tried if found)[0]


def nearest_plan(tables: Tables) -> Family | None:
    """Where limits exclude every plan, the one that is beyond them by the least share, all of them together."""
    found = search(tables.terms, tables.space, "near", tables=tables, alone=True) if tables.space.limits else None
    return found.best[0] if found is not None and found.best else None


def near_batch(
    tables: Tables, best: Family, objective: Objective, pose: Pose, key: str, now: float
) -> LeastChange | None:
    """
    A batch near the asked one that divides over more GPUs, and makes a step shorter by more than its own size.

    Args:
        tables: Both sides of what may be chosen.
        best: The best plan.
        objective: What is made small.
        pose: Poses the loop otherwise.
        key: The quantity that says the batch: prompts or samples.
        now: As it is. [1]

    With another batch, the best of those that are built and laid out as the best plan for an uneven one.
    """
    if not tables.uneven:
        return None
    uneven = replace(tables, trainers=tables.uneven)
    most = best.score(objective)[0] / (1.0 + AS_GOOD)
    bar = Bar(**{"step_seconds": inf, "cost": inf, "gpus": inf, ORDER[objective][0]: most})
    anyhow = search(tables.terms, tables.space, objective, tables=uneven, bar=bar, usual=True, alone=True).best
    if not anyhow or (_rare(tables, anyhow[0].place) and not _rare(tables, best.place)):
        return None
    place = anyhow[0].place
    question = place.trainer.question
    steps = 1.0 if question is None else float(question.bare().optimizer_steps)
    replicas = round(float(place.trainer_gpus) / place.trainer.replica * steps)
    unit = replicas // gcd(replicas, round(tables.terms.problem.samples.number / now))
    before = rollout_batch.share_of(part=best.score(objective)[0], whole=now)
    laid_out = _laid_out(place)
    found: list[tuple[float, LeastChange]] = []
    for batch in sorted({now // unit * unit, (now // unit + 1) * unit}):
        if batch == now or abs(batch - now) > _NEAR * now or batch < 1:
            continue
        posed = pose({key: batch, **laid_out})
        other = _best(posed and (posed[0], _just(posed[1], place)), objective)
        if posed is not None and other is not None:
            each = float(rollout_batch.share_of(part=other.score(objective)[0], whole=batch))
            change = LeastChange(key=key, now=now, needed=batch, share=abs(batch - now) / now, best=other)
            found += [(each, change)] if each * (1.0 + AS_GOOD) < before else []
    return min(found, key=lambda one: one[0])[1] if found else None


def _rare(tables: Tables, place: Placement) -> bool:
    """Whether few run one side or the other as it is laid out."""
    return place.trainer.rare or id(place.fleet) in tables.rare


def _laid_out(place: Placement) -> dict[str, str]:
    """The degrees of a plan as the only ones that are tried."""
    trained = {} if place.trainer.question is None else place.trainer.question.degrees._asdict()
    made = {f"rollout_{kind}": degree for kind, degree in place.fleet.layout.items() if kind != "expert"}
    return {f"searched_{kind}_parallel": str(degree) for kind, degree in {**trained, **made}.items()}


def _just(space: Space, place: Placement) -> Space:
    """Of a space the plans that are built and laid out as one is, on any number of instances."""
    kept = (place.trainer.gpu, place.trainer.name)
    return replace(
        space,
        fleets=tuple(fleet for fleet in space.fleets if fleet.name == place.fleet.name),
        trainers=tuple(one for one in space.trainers if (one.gpu, one.name) == kept),
        loops=tuple(loop for loop in space.loops if loop == place.loop),
        trainer_gpus=(float(place.trainer_gpus),),
    )
