"""A report for people: a sentence, the figures, the tables; 80 columns are enough."""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_left
from dataclasses import replace
from functools import partial
from io import StringIO
from textwrap import wrap
from typing import IO, TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from rlsize.facts.figure import Figure
from rlsize.reports.wording import Line, inputs_line, lines, numbered, origin_word, shown, words
from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlsize.reports.report import Cell, Decision, Report, Table

NARROW = 80
_NARROWEST = 40  # labels and words need that much
_PART = re.compile(r"[^._/=]*[._/=]?")
_LONG_WORDS = (48, 40, 32, 24)  # words that may wrap are broken in lines of these, the first that fits; the last: flags
_ANY_WIDTH = 100_000  # wider than any table
_DOUBT = "*"
_NAME_WIDTH = 12  # what a table with every column leaves for the names

MOST_LINES = 25
LABEL = 10
_USUAL_LINES = 15  # up to which parts say more than their first sentence
_ROWS = 6  # of a table beside a decision
_FEWEST_ROWS = 3  # of a table that is cut to a screen
_FIGURES = 6  # above such a table, or fewer where it would have fewer rows than that
_LINES_EACH = 3  # of a warning
_OF_HEADLINE = 5
_WHOLE = {"take", "figures", "assumed", "unused", "done", "next"}  # parts that lose a word last


class _Console(Console):
    """A console that leaves a reader's leaving to the command line, which knows the exit code."""

    def on_broken_pipe(self) -> None:
        """Say so, where rich would end the program with exit code 1: here that means that the answer is no."""
        raise BrokenPipeError


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that respects NO_COLOR and a narrow terminal; piped output is 80 columns wide, or COLUMNS."""
    stream = sys.stderr if stderr else sys.stdout
    found = _console(stream, width or (None if stream.isatty() or os.environ.get("COLUMNS") else NARROW))
    if found.width < _NARROWEST:
        found.width = _NARROWEST if found.width > 0 else NARROW  # 0 is a terminal that does not know
    return found


def _console(stream: IO[str], width: int | None) -> Console:
    return _Console(file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)


def print_report(report: Report, *, explain: bool = False, full: bool = True) -> None:
    """
    Print a report: answer on stdout, warnings on stderr.

    Args:
        report: The report.
        explain: Whether to add formula, numbers and source of each result.
        full: Whether all of it is printed, also where its decision says what it comes to, or a screen is too small.
    """
    out = console()
    if full or seen_whole(report, out.width):
        _print_whole(out, report, explain=explain)
        print_warnings(report)
        return
    if report.decision is not None:
        _print_decision(out, report, report.decision)
    else:
        _print_brief(out, report)
    out.file.flush()
    err = console(stderr=True)
    for line in warning_lines(report, out.width):
        first, mark, rest = line.partition("warning: ")
        err.print(Text.assemble(first, (mark, "bold yellow"), rest))


def _print_whole(out: Console, report: Report, *, explain: bool) -> None:
    out.print(Text(printable(report.headline), style="bold"))
    if report.told:
        out.print()
        _whole(out, _results(lines(report.told)))
    for table in (one for one in report.tables.values() if one.shown != 0):  # some are for programs
        out.print()
        _print_table(out, table)
    if _doubtful(report.told, report.tables.values()):
        out.print()
        out.print(_unverified())
    if report.inputs:
        out.print()
        out.print(Text.assemble(("inputs: ", "dim"), (printable(inputs_line(report.inputs)), "dim")))
    for note in report.notes:
        out.print()
        out.print(Text(printable(note)))
    if explain:
        _print_explanations(out, report)
    out.file.flush()


def seen_whole(report: Report, width: int) -> bool:
    """
    Whether people see all of a report at first: it is a list that they asked for, or fits on a screen.

    Args:
        report: The report.
        width: Characters of a line.
    """
    if report.whole or report.decision is not None:
        return report.whole
    least = len(lines(report.told)) + sum(len(table.seen) for table in report.tables.values())
    if least > MOST_LINES:  # not worth drawing
        return False
    warnings = sum(len(wrapped(f"warning: {text}", width)) for text in report.warnings)
    return _height(width, lambda held: _print_whole(held, report, explain=False)) + warnings <= MOST_LINES


def _height(width: int, show: Callable[[Console], None]) -> int:
    """How many lines something takes on a console of that width."""
    held = StringIO()
    show(_console(held, width))
    return held.getvalue().count("\n")


def _print_brief(out: Console, report: Report) -> None:
    """A report that is longer than a screen: its figures and its first table, as many of each as there is room for."""
    rows = lines(report.told)
    known = [row for row in rows if row.main.known]
    lacking = [row.main for row in rows if not row.main.known]
    table = next((one for one in report.tables.values() if one.shown != 0), None)
    labelled = _brief_parts(report, lacking, out.width)
    above = len(headline_lines(report, out.width)) + len(warning_lines(report, out.width))
    doubt = _doubtful(report.told, [] if table is None else [table])  # some of it, which may not be shown
    figures, many = _shares(known, table, MOST_LINES - above - len(labelled) - 1 - doubt, out.width)
    for line in headline_lines(report, out.width):
        out.print(Text(line, style="bold"))
    _print_parts(out, known[:figures], table, many)
    told = [row.main for row in known[:figures]]
    if _doubtful(told, [table_shown(table, many)] if table is not None and many else []):
        out.print(_unverified())
    out.print()
    for label, line in labelled:
        out.print(Text.assemble((label.ljust(LABEL), "dim"), line))


def _shares(told: Sequence[Line], table: Table | None, room: int, width: int) -> tuple[int, int]:
    """How many figures and how many rows of a table there is room for: a few figures, the table, then more figures."""

    def over(figures: int, rows: int) -> bool:
        return _height(width, lambda held: _print_parts(held, told[:figures], table, rows)) > room

    every, rows = 0 if table is None else len(table.seen), 0
    for few in range(_FIGURES, -1, -1):
        rows = bisect_left(range(1, min(every, room) + 1), 1, key=partial(over, few))
        if rows >= min(every, _FEWEST_ROWS):
            break
    return bisect_left(range(1, len(told) + 1), 1, key=partial(over, rows=rows)), rows


def _print_parts(out: Console, told: Sequence[Line], table: Table | None, rows: int) -> None:
    """Figures, and so many rows of a table."""
    if told:
        out.print()
        _whole(out, _results(told))
    if table is not None and rows:
        out.print()
        _print_table(out, table_shown(table, rows))


def _brief_parts(report: Report, lacking: Sequence[Figure], width: int) -> list[tuple[str, str]]:
    """Label and text of the lines below the tables of a report that is cut to a screen."""
    needed = "; ".join(f"{words(one.key)}: {one.missing}" for one in lacking if one.missing)
    near = _went_into(report.told)
    assumed = [one for one in report.inputs if one.provenance == "default" and not one.equation]
    assumed.sort(key=lambda one: one.key not in near)
    notes = [note for note in report.notes if note not in {*report.unused, *report.done}]
    parts = (
        ("needs", needed, 2),
        ("assumed", ", ".join(f"{words(one.key)} {shown(one, one.key)}" for one in assumed), 2),
        ("notes", _first_whole(notes, 3 * (width - LABEL)), 3),
        ("done", " ".join(report.done), MOST_LINES),
        ("unused", report.idle, 3),
        ("next", "--full shows all", 1),
    )
    return [
        (f"{label}:" if place == 0 else "", line)
        for label, text, most in parts
        if text
        for place, line in enumerate(cut_lines(text, width - LABEL, most))
    ]


def _went_into(figures: Iterable[Figure]) -> set[str]:
    """Keys of all that figures were worked out from, as far as they tell."""
    seen: dict[int, str] = {}
    left = [*figures]
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen[id(one)] = one.key
            left += one.inputs.values()
    return {*seen.values()}


def _first_whole(texts: Sequence[str], most: int) -> str:
    """The first text, and those after it that end within so many characters."""
    kept = [*texts[:1]]
    for text in texts[1:]:
        if len(" ".join([*kept, text])) > most:
            break
        kept.append(text)
    return " ".join(kept)


def _unverified() -> Text:
    return Text(f"{_DOUBT} unverified: nobody has read it, or what it rests on, in a source", style="dim")


def _print_decision(out: Console, report: Report, decision: Decision) -> None:
    for line in headline_lines(report, out.width):
        out.print(Text(line, style="bold"))
    out.print()
    for label, line in decision_lines(report, decision, out.width):
        out.print(Text.assemble((label.ljust(LABEL), "dim"), line))
    if decision.table:
        out.print()
        _print_table(out, table_shown(report.tables[decision.table]))


def _doubtful(told: Iterable[Figure], tables: Iterable[Table]) -> bool:
    """Whether something that is shown rests on a figure that nobody verified."""
    seen = (row.get(column.key) for table in tables for row in table.seen for column in table.columns)
    return any(isinstance(cell, Figure) and cell.known and not cell.verified for cell in (*told, *seen))


def print_warnings(report: Report) -> None:
    """Print a report's warnings on stderr."""
    if report.warnings:
        err = console(stderr=True)
        for warning in report.warnings:
            err.print(Text.assemble(("warning: ", "bold yellow"), printable(warning)))


def _whole(out: Console, grid: RichTable) -> None:
    """Print a table; where its numbers do not fit, it grows wider than the terminal rather than lose a digit."""
    least = _least_width(grid, _LONG_WORDS[-1])
    (_console(out.file, least) if least > out.width else out).print(grid)


def _least_width(grid: RichTable, longest: int) -> int:
    """What a table needs: its longest cells, or longest words where they may wrap, which may be cut at `longest`."""
    needed = 2 * (len(grid.columns) - 1)
    for column in grid.columns:
        texts = [str(column.header), *(str(cell) for cell in column.cells)]
        parts = [part for text in texts for part in (text.splitlines() if column.no_wrap else text.split())]
        cells = max(map(cell_len, parts), default=0)
        needed += max(column.min_width or 0, cells if column.no_wrap else min(cells, longest))
    return needed


def _grid(title: str = "") -> RichTable:
    return RichTable(
        box=None,
        title=title or None,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        padding=(0, 1),
        header_style="dim",
    )


def _results(rows: Sequence[Line]) -> RichTable:
    table = _grid()
    told = [one for line in rows for one in (line.plain, line.nameplate, line.expected) if one is not None]
    paired = any(line.nameplate or line.expected for line in rows)
    banded = any(figure.band for figure in told)
    table.add_column("", max_width=_NAME_WIDTH if paired and banded else None)
    if paired:
        table.add_column("nameplate", justify="right", no_wrap=True)
    table.add_column("expected" if paired else "value", justify="right", min_width=_longest_flag(told))
    if banded:
        table.add_column("80 % band", justify="right")
    table.add_column("from", style="dim", no_wrap=True, min_width=len("predicted"))
    for line in rows:
        first = [_text(line.nameplate, missing="-" if line.expected else "")] if paired else []
        last = _text(line.expected or line.plain)
        middle = [Text(line.band)] if banded else []
        table.add_row(line.name, *first, last, *middle, Text(origin_word(line.main) if line.main.known else ""))
    return table


def _longest_flag(told: Iterable[Figure]) -> int:
    """Room for the longest flag that would fill a cell: cut short, it would tell nothing."""
    flags = (flag for figure in told if not figure.known for flag in figure.missing.split(", "))
    return max((len(flag) + 1 for flag in flags if flag.startswith("--")), default=0)


def _text(figure: Figure | None, missing: str = "") -> Text:
    if figure is None:
        return Text("")
    text = shown(figure, figure.key, _DOUBT) if figure.known or not missing else missing
    return Text(text, style="" if figure.known else "dim italic")


def _print_table(out: Console, table: Table) -> None:
    for longest in (_ANY_WIDTH, *_LONG_WORDS):
        grid = _filled(table, longest)
        if _least_width(grid, longest) <= out.width:
            _whole(out, grid)
            break
        if any(column.pasted for column in table.columns):
            _print_below(out, table)
            break
    else:
        _whole(out, grid)
    if table.note:
        out.print(Text(table.note, style="dim"))


def _print_below(out: Console, table: Table) -> None:
    """A table whose words that are pasted stand below their rows, uncut however long they are."""
    (pasted,) = (column for column in table.columns if column.pasted)
    others = tuple(column._replace(wide=False) for column in table.columns if column is not pasted)
    grid = _filled(replace(table, columns=others), _ANY_WIDTH)
    wide = _console(out.file, max(out.width, _least_width(grid, _ANY_WIDTH)))
    with wide.capture() as printed:
        wide.print(grid)
    lines = [Text.from_ansi(line.rstrip()) for line in printed.get().splitlines()]
    first = len(lines) - len(table.seen)
    for line, row in zip(lines, (*[{}] * first, *table.seen), strict=True):
        wide.print(line)
        for text in str(row.get(pasted.key, "")).split(", ") if row else ():
            wide.print(Text(f"  {printable(text)}"), no_wrap=True, overflow="ignore", crop=False)


def _filled(table: Table, longest: int) -> RichTable:
    """A table whose words are no longer than this where they may wrap."""
    grid = _grid(table.title)
    for column in table.columns:
        grid.add_column(column.title, justify=column.side, overflow="fold", no_wrap=not column.wide)
    for index, row in enumerate(table.seen):
        texts = (shown(row.get(one.key), one.key, _DOUBT, table.like(one)) for one in table.columns)
        cells = (
            _cell(text, longest if one.wide else _ANY_WIDTH, known=_known(row.get(one.key)))
            for text, one in zip(texts, table.columns, strict=True)
        )
        grid.add_row(*cells, style="bold green" if index == table.marked else "")
    return grid


def _known(cell: Cell) -> bool:
    return not isinstance(cell, Figure) or cell.known


def _cell(told: str, longest: int, *, known: bool) -> Text:
    text = " ".join(_parted(word, longest) for word in told.split(" "))
    return Text(text if known else text.replace(" ", "\n"), style="" if known else "dim italic")


def _parted(word: str, longest: int) -> str:
    """A word in lines, broken where a key or a path has its parts; as it is where it is short."""
    lines = [""]
    for part in _PART.findall(word) if len(word) > longest else [word]:
        if len(lines[-1] + part) > longest and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _print_explanations(out: Console, report: Report) -> None:
    from rlsize.reports.equation_page import explanations

    out.print()
    out.print(Text("How each result came about", style="bold"))
    for explained in explanations(report.results):
        out.print()
        out.print(Text.assemble((words(explained.key), "bold"), f"  =  {explained.value}"))
        for line in explained.lines:
            out.print(Text(f"  {printable(line)}"))


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


def table_shown(table: Table, rows: int = _ROWS) -> Table:
    """
    So many rows of a table: those around the one that is marked; the first ones where none is.

    Args:
        table: All of it.
        rows: How many are shown.
    """
    if len(table.seen) <= rows:
        return table
    first = min(max((table.marked or 0) - rows // 2, 0), len(table.seen) - rows)
    marked = None if table.marked is None else table.marked - first
    note = f"{table.note}; {numbered(len(table.seen) - rows, 'more row')}: --full".removeprefix("; ")
    return replace(table, rows=table.seen[first : first + rows], marked=marked, note=note, shown=None)


def wrapped(text: str, width: int) -> list[str]:
    """Text in lines of so many characters; a word that is longer is broken."""
    return wrap(printable(text), width, break_on_hyphens=False) or [""]


def cut_lines(text: str, width: int, most: int) -> list[str]:
    """Text in so many lines at most; dots stand for what is left out."""
    lines = wrapped(text, width)
    return lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][: width - 4]} ..."]
