"""Where no plan exists: the least change, of one thing at a time, that would make one exist."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import planning
from rlsize.planner.rounding import rounded_up
from rlsize.planner.search import search

if TYPE_CHECKING:
    from rlsize.planner.families import Found
    from rlsize.planner.outlook import Terms
    from rlsize.planner.space import Limit, Space

_DOUBLINGS = 6  # of the GPUs that there are
_HALVINGS = 6  # of the step between too little and enough
_MOST_WORK = 40_000_000  # candidates that the search for enough GPUs works out: some twenty seconds
_GROWTH = 4  # times the candidates with twice the GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastChange:
    """
    A change that would make a plan possible.

    Args:
        key: What changes: a limit's result, `gpus`, or `memory_margin`.
        now: As it is.
        needed: As it must be.
        share: The change over what it is; 0 where it is another word. [1]
    """

    key: str
    now: float
    needed: float
    share: float


def least_changes(terms: Terms, space: Space, found: Found) -> tuple[LeastChange, ...]:
    """
    The least changes that would make a plan possible, each by itself, smallest first.

    Args:
        terms: In central numbers.
        space: What may be chosen.
        found: What a search of it found: nothing.
    """
    changes = [_of_limit(limit, found) for limit in space.limits]
    changes += [_margin(terms, space)] if space.margin > 0 else []
    changes += [_more_gpus(terms, space)] if space.gpus is not None else []
    known = [change for change in changes if change is not None]
    return tuple(sorted(known, key=lambda change: change.share))


def _of_limit(limit: Limit, found: Found) -> LeastChange | None:
    """A limit that alone is in the way of some candidate, moved until that one keeps it."""
    narrow = found.rejected.nearest.get(limit.key)
    if narrow is None:
        return None
    if not limit.value:  # nothing was allowed, so the miss is an amount
        return LeastChange(key=limit.key, now=0.0, needed=narrow.short, share=narrow.short)
    factor = 1.0 - narrow.short if limit.least else 1.0 + narrow.short
    return LeastChange(key=limit.key, now=limit.value, needed=limit.value * factor, share=narrow.short)


def _margin(terms: Terms, space: Space) -> LeastChange | None:
    """Less memory that must stay free, where that alone is in the way."""
    whole = search(terms, replace(space, margin=0.0))
    if not whole.best:
        return None
    enough, much = 0.0, space.margin
    for _ in range(_HALVINGS):
        middle = (enough + much) / 2
        works = search(terms, replace(space, margin=middle)).best
        enough, much = (middle, much) if works else (enough, middle)
    return LeastChange(key="memory_margin", now=space.margin, needed=enough, share=space.margin - enough)


def _more_gpus(terms: Terms, space: Space) -> LeastChange | None:
    """More GPUs, in whole nodes where there are nodes; as near to the fewest as some work comes."""
    now = space.gpus or 0.0
    unit = terms.problem.gpus_per_node or 1.0
    tried = _Tried(terms=terms, space=space)
    few, enough = now, 2 * now
    while not tried.works(enough):
        few, enough = enough, 2 * enough
        if enough > now * 2**_DOUBLINGS or tried.work + _GROWTH * tried.last > _MOST_WORK:
            return None
    whole = rounded_up(tried.fewest / unit) * unit  # no plan takes fewer, but nodes may leave it too little room
    if few < whole < enough:
        few, enough = (whole - unit, whole) if tried.works(whole) else (whole, enough)
    while enough - few > unit and tried.work + tried.last <= _MOST_WORK:
        middle = min(few + max(round((enough - few) / 2 / unit), 1) * unit, enough - unit)
        few, enough = (few, middle) if tried.works(middle) else (middle, enough)
    return LeastChange(key="gpus", now=now, needed=enough, share=float(planning.overshoot(value=enough, limit=now)))


@dataclass(slots=True, kw_only=True)
class _Tried:
    """
    Searches with more GPUs.

    Args:
        terms: In central numbers.
        space: What may be chosen.
        work: Candidates that were worked out. [1]
        last: Of these, those of the last search. [1]
        fewest: GPUs of the smallest plan that the last search found. [1]
    """

    terms: Terms
    space: Space
    work: int = 0
    last: int = 0
    fewest: float = 0.0

    def works(self, gpus: float) -> bool:
        """Whether there is a plan; a limit on GPUs is moved with them."""
        limits = tuple(
            replace(limit, value=max(limit.value, gpus)) if limit.key == "gpus" and not limit.least else limit
            for limit in self.space.limits
        )
        found = search(self.terms, replace(self.space, gpus=gpus, limits=limits), "gpus")
        self.last = found.worked_out
        self.work += found.worked_out
        self.fewest = found.best[0].gpus if found.best else 0.0
        return bool(found.best)
