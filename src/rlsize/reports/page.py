"""A page for a review: what there is to say, in a form that HTML and Markdown understand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table
from rlsize.reports.wording import band, origin_word, shown, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.figure import Figure
    from rlsize.reports.chart import Picture
    from rlsize.reports.sliders import Widget


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """
    A part of a page.

    Args:
        title: What it is about.
        text: Paragraphs.
        listed: Points, one below the other.
        numbered: Whether the points are steps, whose order matters.
        tables: Named rows; the marked row is the one that was chosen.
        pictures: What is drawn.
    """

    title: str
    text: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    numbered: bool = False
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """
    A page that is put before a capacity review.

    Args:
        title: What it is about.
        question: What was asked.
        recommendation: The answer in a sentence.
        facts: The figures that the answer rests on, in the order in which they are read.
        sections: Everything else.
        widget: What a reader may try; None for a page that only reads.
        widget_after: How many sections stand before it.
        warnings: What the reader must know before trusting the answer.
        command: The command that made it.
        made_with: What made it: program, version, facts.
    """

    title: str
    question: str
    recommendation: str
    facts: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    widget: Widget | None = None
    widget_after: int = 1
    warnings: tuple[str, ...] = ()
    command: str = ""
    made_with: str = ""


def figures_table(title: str, figures: Iterable[Figure], note: str = "") -> Table:
    """
    Figures with value, band, provenance and source, one in a row.

    Args:
        title: What the table shows.
        figures: In the order in which they are read.
        note: A line below the table.
    """
    columns = (
        Column("figure", "figure", "left"),
        Column("value", "value"),
        Column("band", "80 % band"),
        Column("from", "from", "left"),
        Column("source", "source", "left", wide=True),
    )
    found = tuple(figures)
    banded = any(figure.band for figure in found)
    rows = tuple(
        {
            "figure": words(figure.key),
            "value": shown(figure, figure.key),
            "band": band(figure),
            "from": origin_word(figure) if figure.known else "",
            "source": figure.source or figure.equation,
        }
        for figure in found
    )
    kept = tuple(column for column in columns if banded or column.key != "band")
    return Table(title=title, columns=kept, rows=rows, note=note)
