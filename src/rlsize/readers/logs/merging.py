"""
Steps whose parts stand in several rows, put together by number; and how the last of them are known to be whole.

A log that is still written ends in the middle of a step. Its rows are compared with those before: a step that lacks
what at least half of the others have is not used.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import UNFINISHED, Row
from rlsize.readers.logs.names import is_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rlsize.readers.logs.figures import Skips

_WINDOW = 1_000
"""Steps that are open at once; parts of one step stand nearer together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """
    What the parts of a step are.

    Args:
        halves: Keys, one of which stands in each part; empty if the parts cannot be told.
        together: Whether the parts always stand in one log, so that a step without one of them is not written out.
        scattered: Whether a part is a single value.
        loose: Whether a step that is alone counts for what it says.
    """

    halves: Sequence[Sequence[str]] = ()
    together: bool = False
    scattered: bool = False
    loose: bool = False

    def again(self, new: Mapping[str, float], old: Mapping[str, float]) -> bool:
        """Whether a part says again what its step has already."""
        if self.scattered or not self.halves:
            return any(key in old for key in new)
        return any(_has(new, half) and _has(old, half) for half in self.halves)

    def full(self, values: Mapping[str, float]) -> bool:
        """Whether a step has all parts, as far as they can be told."""
        return bool(self.halves) and all(_has(values, half) for half in self.halves)

    def whole(self, values: Mapping[str, float], needed: AbstractSet[str], *, alone: bool) -> bool:
        """Whether a step has what others have: `needed`, unless it is alone."""
        full = self.full(values)
        if full and not self.scattered:
            return True
        return (self.loose or not alone) and needed <= values.keys() and (full or not self.together)


def _has(values: Mapping[str, float], half: Iterable[str]) -> bool:
    return any(key in values for key in half)


def grouped(rows: Iterable[Row], wants: Callable[[str], bool]) -> Iterator[Row]:
    """
    Parts that have no number, put to the number before them, or together until a key comes again.

    Args:
        rows: The parts, in their order.
        wants: Whether a key counts; others come again and again, and times are kept to be told.
    """
    step: float | None = None
    kept: dict[str, float] = {}
    place = ""
    for row in rows:
        values = {key: value for key, value in row.values.items() if wants(key) or is_time(key)}
        new = row.step is not None and row.step != step
        again = step is None and any(key in kept and wants(key) for key in values)
        if kept and (new or again):
            yield Row(step, kept, place)
        if new or again or not kept:
            step, kept, place = row.step if new else step, {}, row.place
        kept = {**values, **kept}
    if kept:
        yield Row(step, kept, place)


@dataclass(slots=True)
class _Open:
    """
    A step to which parts may still come, unless the run went back to it.

    Args:
        step: Its number.
        place: Where its first part stands.
        values: What it says.
        whole: Whether it is whole, where that is known.
    """

    step: float
    place: str
    values: dict[str, float] = field(default_factory=dict)
    whole: bool | None = None


def merged(rows: Iterable[Row], parts: Parts, skips: Skips, notes: list[str]) -> Iterator[Row]:
    """
    Rows, one for each step, in the order in which they began.

    Args:
        rows: Parts of steps; those without a number pass as they are.
        parts: What the parts are.
        skips: Hears of steps that are not written out.
        notes: Takes what else must be known of the steps.
    """
    steps = _Steps(parts, skips)
    for row in rows:
        if row.step is None:
            yield row
        else:
            yield from steps.add(row.step, row)
    yield from steps.close()
    if parts.together and steps.halved:
        notes.append("only one side of the loop stands in this log")


@dataclass(slots=True)
class _Steps:
    """Steps in the making, how often each key stood in those that are done, and whether none of them had all parts."""

    parts: Parts
    skips: Skips
    order: deque[_Open] = field(default_factory=deque)
    latest: dict[float, _Open] = field(default_factory=dict)
    often: Counter[str] = field(default_factory=Counter)
    halved: bool = True
    done: int = 0

    def add(self, number: float, row: Row) -> Iterator[Row]:
        """Put a part to its step, and give out the oldest step where there are too many."""
        step = self.latest.get(number)
        if step is not None and self.parts.again(row.values, step.values):
            needed, total = self._needed()  # the run went back to it, maybe because it died in the middle of it
            step.whole = self.parts.whole(step.values, needed, alone=total == 1)
            step = None
        if step is None:
            step = self.latest[number] = _Open(number, row.place)
            self.order.append(step)
        for key, value in row.values.items():
            step.values.setdefault(key, value)
        if len(self.order) > _WINDOW:
            first = self.order.popleft()
            if self.latest.get(first.step) is first:
                del self.latest[first.step]
            yield from self._done(first)

    def close(self) -> Iterator[Row]:
        """What is left at the end of a log, without the last steps if they are not written out."""
        self.halved = self.halved and not any(self.parts.full(step.values) for step in self.order)
        needed, total = self._needed()
        for step in reversed(self.order):
            if step.whole is None:
                step.whole = self._parts().whole(step.values, needed, alone=total == 1)
            if step.whole:
                break
        for step in self.order:
            yield from self._done(step)

    def _parts(self) -> Parts:
        """What the parts are; where no step has all of them, the log is of one side alone."""
        return replace(self.parts, together=self.parts.together and not self.halved)

    def _needed(self) -> tuple[set[str], int]:
        """The keys that at least half of the steps have, and how many steps there are."""
        often = Counter(self.often)
        for step in self.order:
            often.update(step.values.keys())
        total = self.done + len(self.order)
        return {key for key, count in often.items() if 2 * count >= total}, total

    def _done(self, step: _Open) -> Iterator[Row]:
        """A step, if it is whole; what only lacks a key that others have, in the middle of a log, is."""
        self.done += 1
        self.often.update(step.values.keys())
        self.halved = self.halved and not self.parts.full(step.values)
        if step.whole is None:
            step.whole = not self._parts().together or self.parts.full(step.values)
        if step.whole:
            yield Row(step.step, step.values, step.place)
        else:
            self.skips.add(UNFINISHED, step.place)
