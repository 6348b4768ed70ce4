"""A decision in lines: its parts, each below the other, in no more of them than a reader sees at once."""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.reports.decision import Decision
    from rlsize.reports.report import Report, Table

MOST_LINES = 25
_USUAL_LINES = 15  # up to which parts say more than their first sentence
_LABEL = 10
_ROWS = 8  # of a table
_WHOLE = {"assumed", "unused", "done", "next"}  # parts that lose no word


def decision_lines(report: Report, decision: Decision, width: int) -> list[tuple[str, str]]:
    """
    Label and text of each line below the headline; what finds no room there, `--full` shows.

    Args:
        report: The answer, whose headline and warnings take lines too.
        decision: What it comes to.
        width: Characters of a line.
    """
    parts = [(label, [printable(text) for text in texts]) for label, texts in decision.parts(report)]
    shown = [f"warning: {warning}" for warning in warnings_shown(report)]
    above = 1 + sum(len(wrapped(text, width)) for text in (report.headline, *shown))
    if decision.table:
        table = table_shown(report.tables[decision.table])
        above += 1 + len(table.rows) + sum(len(wrapped(text, width)) for text in (table.title, table.note) if text)
    counts = [1 for _ in parts]

    def lines(index: int) -> list[str]:
        return wrapped(" ".join(parts[index][1][: counts[index]]), width - _LABEL)

    def total() -> int:
        return above + sum(len(lines(index)) for index in range(len(parts)))

    for index in (index for _ in range(2) for index in range(len(parts))):
        if counts[index] < len(parts[index][1]):
            counts[index] += 1
            counts[index] -= total() > _USUAL_LINES
    found = {index: lines(index) for index in range(len(parts))}
    for index in (index for index, (label, _) in enumerate(parts) if label not in _WHOLE):
        over = above + sum(map(len, found.values())) - MOST_LINES
        if over > 0:  # a sentence as long as that, of a name for one, ends where there is no more room
            kept = found[index][: max(1, len(found[index]) - over)]
            found[index] = [*kept[:-1], f"{kept[-1][: width - _LABEL - 4]} ..."] if kept != found[index] else kept
    return [
        (f"{parts[index][0]}:" if place == 0 else "", line)
        for index, texts in found.items()
        for place, line in enumerate(texts)
    ]


def table_shown(table: Table) -> Table:
    """The rows of a table around the one that is marked."""
    last = max(_ROWS, (table.marked or 0) + 1)
    first = last - _ROWS
    if len(table.seen) <= _ROWS:
        return table
    marked = None if table.marked is None else table.marked - first
    note = f"{table.note}; {len(table.seen) - _ROWS} more rows: --full".removeprefix("; ")
    return replace(table, rows=table.seen[first:last], marked=marked, note=note, shown=None)


def warnings_shown(report: Report) -> Sequence[str]:
    """The warnings that are shown beside a decision."""
    most = 3
    more = len(report.warnings) - most
    return (*report.warnings[:most], f"{more} more: --full shows them") if more > 0 else report.warnings


def wrapped(text: str, width: int) -> list[str]:
    """Text in lines of so many characters; a word that is longer is broken."""
    return wrap(printable(text), width, break_on_hyphens=False) or [""]
