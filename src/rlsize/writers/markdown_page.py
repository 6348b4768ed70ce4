"""A page as GitHub Markdown: its words, tables and the numbers behind its pictures, without sliders."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.reports.page import basis, figures_table, picture_tables, picture_words, table_notes
from rlsize.reports.report import Column, Table
from rlsize.reports.wording import shown
from rlsize.writers.html_parts import harmless
from rlsize.writers.markdown import escaped, table_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.reports.chart import Picture
    from rlsize.reports.page import Page, Section, Widget
    from rlsize.reports.report import Cell

_BLOCK = re.compile(r"^\s*(?P<number>\d*)(?P<mark>[-#>+=.)])")


def page_markdown(page: Page) -> str:
    """
    The page as Markdown; the same page gives the same text.

    Args:
        page: What to write.
    """
    parts = [f"# {escaped(page.title)}", _paragraph(page.question), "## Recommendation"]
    parts.append(f"**{escaped(page.recommendation.strip())}**")
    if page.facts:
        parts.append(table_text(figures_table("", page.facts)))
    parts += [f"> **Warning:** {escaped(warning)}" for warning in page.warnings]
    for section in page.sections[:1]:
        parts += _section(section)
    if page.widget:
        parts += _widget(page.widget)
    for section in page.sections[1:]:
        parts += _section(section)
    if page.command:
        command = page.command.replace("`", "'").replace("\n", " ")
        parts += ["## Made by", f"```\n{command}\n```"]
    if page.made_with:
        parts.append(_paragraph(page.made_with))
    return harmless("\n\n".join(parts)) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield f"## {escaped(section.title)}"
    yield from map(_paragraph, section.text)
    if section.listed:
        marks = (f"{place}." if section.numbered else "-" for place in range(1, 1 + len(section.listed)))
        yield "\n".join(f"{mark} {_paragraph(point)}" for mark, point in zip(marks, section.listed, strict=True))
    for picture in section.pictures:
        yield from _picture(picture)
    for table in section.tables:
        if table.title:
            yield f"### {escaped(table.title)}"
        yield table_text(replace(table, rows=tuple(_with_basis(table, row) for row in table.seen), note=""))
        yield from map(_paragraph, table_notes(table))


def _with_basis(table: Table, row: Mapping[str, Cell]) -> dict[str, Cell]:
    """A row whose figures have their bands, and who says so, beside them."""
    found = dict(row)
    for column in table.columns:
        cell = row.get(column.key)
        said = basis(cell, table)
        if said:
            found[column.key] = f"{shown(cell, column.key, like=table.like(column))} ({said})"
    return found


def _picture(picture: Picture) -> Iterator[str]:
    """What a picture says, and its numbers."""
    yield f"### {escaped(picture.title)}"
    yield _paragraph(picture_words(picture))
    for table in picture_tables(picture):
        yield f"*{escaped(table.title)}*"
        yield table_text(table)


def _widget(widget: Widget) -> Iterator[str]:
    """The sliders where they start, and what follows."""
    said = widget.said(widget.start)
    yield f"## {escaped(widget.title)}"
    yield _paragraph(widget.text)
    sides = (Column("name", "", "left"), Column("value", "value"))
    given = tuple({"name": slider.label, "value": slider.said(slider.start)} for slider in widget.sliders)
    yield table_text(Table(title="", columns=sides, rows=given))
    found = tuple({"name": output.label, "value": said[output.key]} for output in widget.outputs)
    yield table_text(Table(title="", columns=sides, rows=found))


def _paragraph(text: str) -> str:
    """Text that begins no heading, list or quotation that it did not mean."""
    return _BLOCK.sub(r"\g<number>\\\g<mark>", escaped(text))
