"""What a picture shows, in numbers and in words, for readers who do not see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.chart import Gantt, Panels
from rlsize.reports.report import Column, Table
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.reports.chart import Chart, Mark, Picture, Series
    from rlsize.reports.report import Cell

_MOST_ROWS = 40  # of a table that somebody reads


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
