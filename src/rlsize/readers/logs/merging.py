"""
Steps whose parts stand in several rows, put together by number; and how the last of them are known to be whole.

A log that is still written ends in the middle of a step. Its rows are compared with those before: a step that lacks
what at least half of the others have is not used.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.readers.logs.rows import UNFINISHED, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rlsize.readers.logs.rows import Skips

_WINDOW = 1_000
"""Steps that are open at once; parts of one step stand nearer together."""
_NEVER = {"\0"}
"""A key that no step has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """
    What the parts of a step are.

    Args:
        halves: Keys, one of which stands in each part; empty if the parts cannot be told.
        together: Whether the parts always stand in one log, so that a step without one of them is not written out.
        scattered: Whether a part is a single value.
    """

    halves: Sequence[Sequence[str]] = ()
    together: bool = False
    scattered: bool = False

    def again(self, new: Mapping[str, float], old: Mapping[str, float]) -> bool:
        """Whether a part says again what its step has already."""
        if self.scattered or not self.halves:
            return any(key in old for key in new)
        return any(_has(new, half) and _has(old, half) for half in self.halves)

    def whole(self, row: Row, needed: AbstractSet[str], *, alone: bool) -> bool:
        """Whether a step has what others have: `needed`, unless it is alone."""
        full = bool(self.halves) and all(_has(row.values, half) for half in self.halves)
        if row.sure or (full and not self.scattered):
            return True
        return not alone and needed <= row.values.keys() and (full or not self.together)


def _has(values: Mapping[str, float], half: Iterable[str]) -> bool:
    return any(key in values for key in half)


@dataclass(slots=True)
class _Open:
    """A step to which parts may still come."""

    step: float
    place: str
    values: dict[str, float] = field(default_factory=dict)

    def row(self, *, sure: bool = True) -> Row:
        """The step as a row."""
        return Row(self.step, self.values, self.place, sure)


def merged(rows: Iterable[Row], parts: Parts, skips: Skips) -> Iterator[Row]:
    """
    Rows, one for each step.

    Args:
        rows: Parts of steps; those without a number pass as they are.
        parts: What the parts are.
        skips: Hears of steps that are not written out.
    """
    steps = _Steps(parts, skips)
    for row in rows:
        if row.step is None:
            yield row
        else:
            yield from steps.add(row.step, row)
    yield from steps.close()


@dataclass(slots=True)
class _Steps:
    """Steps to which parts may still come, and how often each key stood in those that are done."""

    parts: Parts
    skips: Skips
    opened: dict[float, _Open] = field(default_factory=dict)
    often: Counter[str] = field(default_factory=Counter)
    done: int = 0

    def add(self, number: float, row: Row) -> Iterator[Row]:
        """Put a part to its step; a step that it shows to be done is given out."""
        step = self.opened.get(number)
        if step is not None and self.parts.again(row.values, step.values):
            needed, total = self._needed()
            del self.opened[number]  # the run went back to it, maybe because it died in the middle of it
            yield from self._done(step.row(sure=False), needed, alone=total == 1)
            step = None
        if step is None:
            step = self.opened[number] = _Open(number, row.place)
        for key, value in row.values.items():
            step.values.setdefault(key, value)
        if len(self.opened) > _WINDOW:
            first = self.opened.pop(next(iter(self.opened)))
            yield from self._done(first.row(sure=not self.parts.together), set(), alone=False)

    def close(self) -> Iterator[Row]:
        """What is left at the end of a log, without the last steps if they are not written out."""
        needed, total = self._needed()
        left = [step.row(sure=False) for step in self.opened.values()]
        used = len(left)
        while used and not self.parts.whole(left[used - 1], needed, alone=total == 1):
            used -= 1
        for index, row in enumerate(left):
            row.sure = index < used and not self.parts.together
            yield from self._done(row, needed if index < used else _NEVER, alone=total == 1)

    def _needed(self) -> tuple[set[str], int]:
        """The keys that at least half of the steps have, and how many steps there are."""
        often = Counter(self.often)
        for step in self.opened.values():
            often.update(step.values.keys())
        total = self.done + len(self.opened)
        return {key for key, count in often.items() if 2 * count >= total}, total

    def _done(self, row: Row, needed: set[str], *, alone: bool) -> Iterator[Row]:
        """A step, if it is whole."""
        self.done += 1
        self.often.update(row.values.keys())
        if self.parts.whole(row, needed, alone=alone):
            yield row
        else:
            self.skips.add(UNFINISHED, row.place)
