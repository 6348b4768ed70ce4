"""A report as GitHub Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.wording import inputs_line, lines, origin_word, shown
from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.figure import Figure
    from rlsize.reports.report import Report, Table


def markdown_text(report: Report, *, explain: bool = False) -> str:
    """
    The report as Markdown: headline, results, tables, notes, warnings.

    Args:
        report: What to write.
        explain: Whether to add formula, numbers and source of each result.
    """
    parts = [f"### rlsize {report.command}", f"**{escaped(report.headline)}**"]
    if report.told:
        parts.append(_results(report))
    for table in (one for one in report.tables.values() if one.shown != 0):  # some are for programs
        parts += [f"#### {escaped(table.title)}"] if table.title else []
        parts.append(table_text(table))
    if report.inputs:
        parts.append(escaped(f"Inputs: {inputs_line(report.inputs)}"))
    parts += [escaped(note) for note in report.notes]
    parts += [f"> **Warning:** {escaped(warning)}" for warning in report.warnings]
    if explain:
        from rlsize.reports.equation_page import explanations

        parts.append("#### How each result came about")
        for explained in explanations(report.results):
            body = printable("\n".join(explained.lines)).replace("```", "'''")
            parts.append(f"`{explained.key}` = {escaped(explained.value)}\n\n```\n{body}\n```")
    return "\n\n".join(parts) + "\n"


def _results(report: Report) -> str:
    found = lines(report.told)
    paired = any(line.nameplate or line.expected for line in found)
    banded = any(figure.band for figure in report.told)
    header = ["", *(["nameplate", "expected"] if paired else ["value"]), *(["80 % band"] if banded else []), "from"]
    rows = []
    for line in found:
        first = [_shown(line.nameplate)] if paired else []
        middle = [line.band] if banded else []
        origin = origin_word(line.main) if line.main.known else ""
        rows.append([line.name, *first, _shown(line.expected or line.plain), *middle, origin])
    sides = ["left", *["right"] * (len(header) - 2), "left"]
    return _grid(header, sides, rows)


def _shown(figure: Figure | None) -> str:
    return "" if figure is None else shown(figure, figure.key)


def table_text(table: Table) -> str:
    """A table in the pipes of GitHub, with its note."""
    rows = [
        [shown(row.get(column.key), column.key, like=table.like(column)) for column in table.columns]
        for row in table.seen
    ]
    sides = [column.side for column in table.columns]
    text = _grid([column.title for column in table.columns], sides, rows, table.marked)
    return f"{text}\n\n{escaped(table.note)}" if table.note else text


def _grid(header: Sequence[str], sides: Sequence[str], rows: list[list[str]], bold: int | None = None) -> str:
    rule = ["---:" if side == "right" else "---" for side in sides]
    cells = [[escaped(cell) for cell in row] for row in rows]
    if bold is not None:
        cells[bold] = [f"**{cell}**" if cell else "" for cell in cells[bold]]
    return "\n".join(f"| {' | '.join(row)} |" for row in [[escaped(cell) for cell in header], rule, *cells])


_MARKUP = str.maketrans({character: f"\\{character}" for character in "\\|`*_[]!~"} | {"<": "&lt;", "\n": " "})


def escaped(text: str) -> str:
    """Text that cannot break out of its cell or start markup that it did not mean."""
    return printable(text).translate(_MARKUP)
