"""The table of what changed in two files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.reports import diff_words as say
from rlsize.reports.report import Column, Table
from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.reports.report import Cell

SHOWN_INPUTS = 30
"""Inputs that people see; JSON has all."""
_WIDTH = 66  # of 80 columns, without lines and what lies between columns


@dataclass(frozen=True, slots=True, kw_only=True)
class InputChange:
    """
    A value of a file that changed.

    Args:
        key: Its key, with dots.
        before: The value in the first file; None where that does not say.
        after: The value in the second.
        before_line: Where it stands in the first file.
        after_line: Where it stands in the second.
        detail: Whether it is for programs: who measured it, and how.
    """

    key: str
    before: Any
    after: Any
    before_line: int | None = None
    after_line: int | None = None
    detail: bool = False


def inputs_table(inputs: Sequence[InputChange], alone: Mapping[str, str]) -> Table:
    """
    The values that changed, with their lines; details of a measurement last, and for people only where nothing else is.

    Args:
        inputs: What changed.
        alone: Why single changes cannot be made by themselves, by key.
    """
    ranked = sorted(inputs, key=lambda entry: entry.detail)
    told = [entry for entry in ranked if not entry.detail][:SHOWN_INPUTS] or ranked[:SHOWN_INPUTS]
    values = [say.brief(entry.before, entry.after) for entry in ranked]
    widths = [max(map(len, texts)) for texts in zip(*values[: len(told)], strict=True)]
    room = max(_WIDTH - sum(widths), say.SHORTEST_KEY)
    rows = tuple(
        _input_row(entry, alone.get(entry.key), pair, room) for entry, pair in zip(ranked, values, strict=True)
    )
    columns = (
        Column("_input", "", "left"),
        Column("_before", "before", wide=True),
        Column("_after", "after", wide=True),
        *([Column("_lines", "line")] if any(row["_lines"] for row in rows) else []),
    )
    rest = len(rows) - len(told)
    return Table(
        title="Inputs that changed",
        columns=columns,
        rows=rows,
        note=f"{rest} more in --json" if rest else "",
        shown=len(told),
    )


def _input_row(entry: InputChange, alone: str | None, values: tuple[str, str], room: int) -> dict[str, Cell]:
    lines = [str(line) for line in (entry.before_line, entry.after_line) if line is not None]
    return {
        "input": printable(entry.key),
        "before": None if entry.before is None else say.written(entry.before),
        "after": None if entry.after is None else say.written(entry.after),
        "before_line": entry.before_line,
        "after_line": entry.after_line,
        "refused": alone,
        "_input": say.brief_key(entry.key, room),
        "_before": values[0],
        "_after": values[1],
        "_lines": ", ".join(dict.fromkeys(lines)),
    }
