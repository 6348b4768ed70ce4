"""A page for a review: what there is to say, in a form that HTML and Markdown understand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rlsize.facts.figure import Figure
from rlsize.reports.chart import Gantt, Panels
from rlsize.reports.report import Column, Table, Unseen
from rlsize.reports.wording import band, origin_word, shown, words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.reports.chart import Chart, Mark, Picture, Series
    from rlsize.reports.report import Cell
    from rlsize.reports.sliders import Widget

_MOST_ROWS = 40  # of the table of a picture, which somebody reads


class Section(NamedTuple):
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
        widget: What a reader may try, after the first section; None for a page that only reads.
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
    found = tuple(figures)
    banded = any(figure.band for figure in found)
    cells: tuple[Column | Unseen, ...] = (
        Column("figure", "figure", "left", of=lambda figure: words(figure.key)),
        Column("value", "value", of=lambda figure: shown(figure, figure.key)),
        Column("band", "80 % band", of=band) if banded else Unseen("band", band),
        Column("from", "from", "left", of=lambda figure: origin_word(figure) if figure.known else ""),
        Column("source", "source", "left", wide=True, of=lambda figure: figure.source or figure.equation),
    )
    return Table.of(title, found, cells, note=note)


def basis(cell: Cell, table: Table) -> str:
    """The band of a figure, after who says so where not all figures of its table have it from the same."""
    if not isinstance(cell, Figure) or not cell.known:
        return ""
    origin = origin_word(cell) if len(_origins(table)) > 1 else ""
    return ", ".join(filter(None, [origin, band(cell)]))


def table_notes(table: Table) -> list[str]:
    """The lines below a table: its own, who says so, and what bands are."""
    origins = _origins(table)
    alike = f"All figures are {origins[0]}." if len(origins) == 1 else ""
    banded = "Beside a value stands its 80 % band." if any(figure.band for figure in _figures(table)) else ""
    return [note for note in (table.note, " ".join(filter(None, [alike, banded]))) if note]


def _figures(table: Table) -> list[Figure]:
    """What a table has in cells that are seen."""
    cells = (row.get(column.key) for row in table.seen for column in table.columns)
    return [cell for cell in cells if isinstance(cell, Figure) and cell.known]


def _origins(table: Table) -> list[str]:
    return list(dict.fromkeys(map(origin_word, _figures(table))))


def picture_tables(picture: Picture) -> tuple[Table, ...]:
    """
    The numbers behind a picture, a table for each of its charts.

    Args:
        picture: What is drawn; lanes of spans and lines of very many points have no table.
    """
    charts = picture.charts if isinstance(picture, Panels) else (picture,)
    return tuple(
        _table(chart, _full_title(chart, picture))
        for chart in charts
        if not isinstance(chart, Gantt) and 0 < len(_places(chart)) <= _MOST_ROWS
    )


def picture_words(picture: Picture) -> str:
    """What a picture shows, in sentences."""
    charts = picture.charts if isinstance(picture, Panels) else (picture,)
    said = [picture.subtitle, *(f"{_full_title(chart, picture)}{_words(chart)}" for chart in charts)]
    return " ".join(f"{sentence.rstrip('.')}." for sentence in said if sentence)


def _places(chart: Chart) -> list[float | str]:
    """Every place along x, in the order in which series have them; numbers from the smallest up."""
    found = list(dict.fromkeys(x for series in chart.series for x in series.xs))
    return sorted(found, key=lambda x: x if isinstance(x, (int, float)) else 0.0)


def _full_title(chart: Chart, picture: Picture) -> str:
    """What a chart is of: its quantity, after its title where it is one of several."""
    kind = "Lanes" if isinstance(chart, Gantt) else chart.y_label
    return ", ".join(filter(None, [chart.title if isinstance(picture, Panels) else "", kind]))


def _table(chart: Chart, title: str) -> Table:
    ending = "_fraction" if chart.percent else ""
    keys = {f"y{place}{ending}": series for place, series in enumerate(chart.series)}
    first = f"x{'_fraction' if chart.x_percent else ''}"
    values = {key: dict(zip(series.xs, series.ys, strict=True)) for key, series in keys.items()}
    rows: tuple[dict[str, Cell], ...] = tuple(
        {first: x, **{key: found.get(x) for key, found in values.items()}} for x in _places(chart)
    )
    columns = (
        Column(first, chart.x_label or "", "left"),
        *(Column(key, series.name or chart.y_label) for key, series in keys.items()),
    )
    note = f"{chart.right_label} against the axis on the right." if chart.right_label else ""
    return Table(title=title or "The numbers", columns=columns, rows=rows, note=note)


def _words(chart: Chart) -> str:
    """What a chart shows, after its title: along what, how far each series reaches, what is marked."""
    across = f" over {chart.x_label}" if chart.x_label else ""
    if isinstance(chart, Gantt):
        return f"{across}: {', '.join(chart.lanes)}"
    said = [_reach(series, chart) for series in chart.series if series.ys]
    marked = [f"{mark.label} at {_at(mark, chart)}" for mark in chart.marks if mark.label]
    return f"{across}: {'; '.join([*said, *marked])}"


def _at(mark: Mark, chart: Chart) -> str:
    percent = chart.x_percent if mark.axis == "x" else chart.percent
    return show(mark.at, "_fraction" if percent else "")


def _reach(series: Series, chart: Chart) -> str:
    """From where to where a series goes."""
    key = "y_fraction" if chart.percent else "y"
    least, most = show(min(series.ys), key), show(max(series.ys), key)
    return f"{series.name} {least}" if least == most else f"{series.name} {least} to {most}"
