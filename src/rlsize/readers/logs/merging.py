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
    from collections.abc import Iterable, Iterator, Sequence

    from rlsize.readers.logs.rows import Skips

_WINDOW = 1_000
"""Steps that are open at once; parts of one step stand nearer together."""


@dataclass(slots=True)
class _Open:
    """A step to which parts may still come."""

    step: float
    place: str
    values: dict[str, float] = field(default_factory=dict)


def merged(rows: Iterable[Row], halves: Sequence[Sequence[str]], skips: Skips) -> Iterator[Row]:
    """
    Rows, one for each step.

    Args:
        rows: Parts of steps; those without a number pass as they are.
        halves: Keys, one of which stands in each part; empty if the parts cannot be told.
        skips: Hears of steps that are not written out.
    """
    opened: dict[float, _Open] = {}
    done: Counter[str] = Counter()
    total = 0
    for row in rows:
        if row.step is None:
            yield row
            continue
        step = opened.get(row.step)
        if step is not None and _repeats(row, step, halves):
            del opened[row.step]  # the run went back to it
            total += 1
            done.update(step.values.keys())
            yield Row(step.step, step.values, step.place)
            step = None
        if step is None:
            step = opened[row.step] = _Open(row.step, row.place)
            if len(opened) > _WINDOW:
                first = opened.pop(next(iter(opened)))
                total += 1
                done.update(first.values.keys())
                yield Row(first.step, first.values, first.place)
        for key, value in row.values.items():
            step.values.setdefault(key, value)
    left = [Row(step.step, step.values, step.place, sure=False) for step in opened.values()]
    yield from finished(left, halves, skips, done, total)


def _repeats(row: Row, step: _Open, halves: Sequence[Sequence[str]]) -> bool:
    """Whether a row says again what its step has already."""
    if not halves:
        return any(key in step.values for key in row.values)
    return any(any(key in row.values for key in half) and any(key in step.values for key in half) for half in halves)


def finished(
    rows: Sequence[Row],
    halves: Sequence[Sequence[str]],
    skips: Skips,
    done: Counter[str] | None = None,
    total: int = 0,
) -> Iterator[Row]:
    """
    The last rows of a log, without those that are not written out.

    Args:
        rows: The rows, in order.
        halves: As for `merged`.
        skips: Hears of those that are left out.
        done: How often each key stood in rows before.
        total: How many rows those were.
    """
    often = Counter(done)
    for row in rows:
        often.update(row.values.keys())
    total += len(rows)
    needed = {key for key, count in often.items() if 2 * count >= total}
    used = len(rows)
    while used and not _whole(rows[used - 1], needed, halves, alone=total == 1):
        used -= 1
    if used < len(rows):
        skips.add(UNFINISHED, rows[used].place, len(rows) - used)
    yield from rows[:used]


def _whole(row: Row, needed: set[str], halves: Sequence[Sequence[str]], *, alone: bool) -> bool:
    """Whether a row has what it should have."""
    if row.sure or (halves and all(any(key in row.values for key in half) for half in halves)):
        return True
    return not alone and needed <= row.values.keys()
