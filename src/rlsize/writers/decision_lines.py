"""A decision in lines: its parts, each below the other, in no more of them than a reader sees at once."""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

from rlsize.units import printable

if TYPE_CHECKING:
    from rlsize.reports.decision import Decision
    from rlsize.reports.report import Report, Table

MOST_LINES = 25
LABEL = 10
_USUAL_LINES = 15  # up to which parts say more than their first sentence
_ROWS = 6  # of a table
_LINES_EACH = 3  # of a warning
_OF_HEADLINE = 5
_WHOLE = {"take", "figures", "assumed", "unused", "done", "next"}  # parts that lose a word last


def headline_lines(report: Report, width: int) -> list[str]:
    """The answer in a sentence."""
    return cut_lines(report.headline, width, _OF_HEADLINE)


def warning_lines(report: Report, width: int) -> list[str]:
    """The warnings that are shown beside a decision: the first ones, and how many more there are."""
    texts = [f"warning: {warning}" for warning in report.warnings[:3]]
    more = len(report.warnings) - len(texts)
    lines = [line for text in texts for line in cut_lines(text, width, _LINES_EACH)]
    return [*lines, *([f"warning: {more} more, with --full"] if more else [])]


def decision_lines(report: Report, decision: Decision, width: int) -> list[tuple[str, str]]:
    """
    Label and text of each line below the headline; what finds no room there, `--full` shows.

    Args:
        report: The answer, whose headline and warnings take lines too.
        decision: What it comes to.
        width: Characters of a line.
    """
    parts = [*decision.parts(report)]
    above = 1 + len(headline_lines(report, width)) + len(warning_lines(report, width))
    if decision.table:
        table = table_shown(report.tables[decision.table])
        above += 2 + len(table.rows) + sum(len(wrapped(text, width)) for text in (table.title, table.note) if text)
    counts = [1 for _ in parts]

    def lines(index: int) -> list[str]:
        return wrapped(" ".join(parts[index][1][: counts[index]]), width - LABEL)

    for index in (index for _ in range(2) for index in range(len(parts))):
        if counts[index] < len(parts[index][1]):
            counts[index] += 1
            counts[index] -= above + sum(len(lines(each)) for each in range(len(parts))) > _USUAL_LINES
    most = [len(lines(index)) for index in range(len(parts))]
    while above + sum(most) > MOST_LINES and max(most) > 1:  # a line of the longest, of those that may be cut first
        longer = [index for index, many in enumerate(most) if many > 1]
        most[max(longer, key=lambda index: (parts[index][0] not in _WHOLE, most[index]))] -= 1
    return [
        (f"{parts[index][0]}:" if place == 0 else "", line)
        for index in range(len(parts))
        for place, line in enumerate(cut_lines(" ".join(lines(index)), width - LABEL, most[index]))
    ]


def table_shown(table: Table) -> Table:
    """The rows of a table that end with the one that is marked; the first ones where that is among them."""
    last = max(_ROWS, (table.marked or 0) + 1)
    first = last - _ROWS
    if len(table.seen) <= _ROWS:
        return table
    marked = None if table.marked is None else table.marked - first
    note = f"{table.note}; {len(table.seen) - _ROWS} more rows: --full".removeprefix("; ")
    return replace(table, rows=table.seen[first:last], marked=marked, note=note, shown=None)


def wrapped(text: str, width: int) -> list[str]:
    """Text in lines of so many characters; a word that is longer is broken."""
    return wrap(printable(text), width, break_on_hyphens=False) or [""]


def cut_lines(text: str, width: int, most: int) -> list[str]:
    """Text in so many lines at most; dots stand for what is left out."""
    lines = wrapped(text, width)
    return lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][: width - 4]} ..."]
