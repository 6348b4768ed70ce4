"""What passes from a form to a framework: rows of named numbers, and a tally of what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.facts.run_log import Skipped

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class Row:
    """
    One record of a log; not frozen, because a log has many, and frozen ones take five times as long to make.

    Args:
        step: Its number, where the form says it; else the framework finds it among the values, or counts.
        values: What it says, by key; what is no number is not among them.
        place: Where it stands, such as `line 12`.
        layout: Its keys, where many rows share them as one object.
    """

    step: float | None
    values: Mapping[str, float]
    place: str
    layout: tuple[str, ...] | None = None


@dataclass(slots=True)
class Skips:
    """Records that were not used, by reason."""

    _found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, why: str, place: str, count: int = 1) -> None:
        """Count records that were not used; the place of the first one is kept."""
        before, first = self._found.get(why, (0, place))
        self._found[why] = (before + count, first)

    def listing(self) -> tuple[Skipped, ...]:
        """All reasons, in the order in which they first came up."""
        return tuple(Skipped(why=why, count=count, first=first) for why, (count, first) in self._found.items())


CUT = "the file ends before the record does"
UNREADABLE = "damaged or mixed with other text"
HEADLESS = "its beginning is missing"
UNFINISHED = "the last step may not be written out yet"
CUT_NUMBER = "the file ends in a number that may go on"
COMMA = "a number with a comma that may be the decimal one"
"""Reasons that several forms share."""
