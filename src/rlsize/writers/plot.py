"""A chart as PNG, SVG or PDF, drawn by matplotlib."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.reports.chart import Gantt, Panels
from rlsize.units import short
from rlsize.writers.areas import draw_areas
from rlsize.writers.chart_text import plain_text
from rlsize.writers.colours import COLOURS, PHASES, STACK
from rlsize.writers.files import check_target, write_whole
from rlsize.writers.panels import draw_panels
from rlsize.writers.small_svg import small_svg
from rlsize.writers.spans import draw_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.reports.chart import Chart, Mark, Picture, Series

FORMATS = ("png", "svg", "pdf")
_MOST_LABELS = 24  # more collide
_MANY = 150  # points of a line, which is drawn thinner then
_ROOM, _LOG_ROOM = 1.08, 1.8  # above the tallest bar, for its label
_LABEL_ROOM = 90  # characters of labels that fit side by side
_STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#E3E3E3",
    "axes.axisbelow": True,
    "figure.dpi": 160,
    "savefig.dpi": 160,
    "svg.hashsalt": "rlsize",
    "svg.fonttype": "none",  # text: shapes of letters are most of a picture's bytes
    "legend.frameon": False,
    "font.family": "DejaVu Sans",
}


def write_picture(chart: Picture | None, target: str, *, force: bool = False) -> None:
    """
    Draw a chart into a file.

    Args:
        chart: What to draw.
        target: The file; its ending says the format.
        force: Whether a file that exists may be overwritten.

    Raises:
        InputError: The ending is none of png, svg and pdf, the file exists or cannot be written.
    """
    ending = check_picture(target, force)
    if chart is None:
        raise InputError(Fault(f"cannot draw to {target}", "--plot", "there is nothing to draw"))
    write_whole(target, picture(chart, ending), force=force)


def check_picture(target: str, force: bool) -> str:
    """
    The format of a file to draw into, checked before any work is done for it.

    Args:
        target: The file; its ending says the format.
        force: Whether a file that exists may be overwritten.

    Raises:
        InputError: The ending is none of png, svg and pdf, the file exists or cannot be written.
    """
    ending = Path(target).suffix.lower().lstrip(".")
    if ending not in FORMATS:
        raise InputError(Fault(f"cannot draw to {target}", "--plot", "name a file that ends in .png, .svg or .pdf"))
    check_target(target, force)
    return ending


def picture(chart: Picture, form: str) -> bytes:
    """The chart's bytes in one of `FORMATS`; the same chart gives the same bytes, so it can be committed."""
    with drawing(chart) as figure:
        stream = BytesIO()
        metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
        figure.savefig(stream, format=form, metadata=metadata)
        drawn = stream.getvalue()
        return small_svg(drawn.decode("utf-8")).encode("utf-8") if form == "svg" else drawn


@contextmanager
def drawing(chart: Picture, style: dict[Any, Any] | None = None) -> Iterator[Any]:
    """
    The chart as a figure of matplotlib, as long as the context lasts.

    Args:
        chart: What to draw.
        style: Settings of matplotlib that differ from those of a picture in a file.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    chart = plain_text(chart)
    with mpl.rc_context({**_STYLE, **(style or {})}):
        figure = _panels(plt, chart) if isinstance(chart, (Gantt, Panels)) else _single(plt, chart)
        try:
            yield figure
        finally:
            plt.close(figure)


def _single(plt: Any, chart: Chart) -> Any:  # noqa: ANN401 (matplotlib is untyped here)
    figure, axes = plt.subplots(figsize=(8.0, 4.5), layout="constrained")
    _content(axes, chart)
    axes.set_title(chart.title, pad=24 if chart.subtitle else 12, wrap=True)
    if chart.subtitle:
        axes.text(0.0, 1.02, chart.subtitle, transform=axes.transAxes, fontsize=9.5, color="#555555")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    _scale(axes, chart)
    if len(chart.series) > 1:
        axes.legend(
            loc="best" if chart.kind == "lines" else "upper left",
            bbox_to_anchor=None if chart.kind == "lines" else (1.16 if chart.kind == "areas" else 1.0, 1.0),
        )
    return figure


def _panels(plt: Any, chart: Gantt | Panels) -> Any:  # noqa: ANN401 (matplotlib is untyped here)
    """A figure of panels; a Gantt chart is one, too, as its height is its own."""
    if isinstance(chart, Gantt):
        alone = replace(chart, title="", subtitle="")
        chart = Panels(title=chart.title, subtitle=chart.subtitle, charts=(alone,))
    return draw_panels(plt, chart, _panel)


def _panel(axes: Any, chart: Chart) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    _content(axes, chart)
    if not isinstance(chart, Gantt):
        _scale(axes, chart)


def _content(axes: Any, chart: Chart) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    if isinstance(chart, Gantt):
        draw_spans(axes, chart)
    elif chart.kind == "lines":
        _lines(axes, chart)
    elif chart.kind == "areas":
        stacked = [series for series in chart.series if not series.right]
        draw_areas(
            axes,
            chart,
            [COLOURS[s.role] if s.role in PHASES else STACK[i % len(STACK)] for i, s in enumerate(stacked)],
        )
    else:
        _bars(axes, chart)
    for mark in chart.marks:
        _mark(axes, mark)


def _scale(axes: Any, chart: Chart) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

    heights = _heights(chart)
    if chart.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    if chart.log_y:
        axes.set_yscale("log")
        axes.set_ylim(min(filter(None, heights)) / _LOG_ROOM, max(heights) * _LOG_ROOM)
    elif not chart.zoomed:
        axes.set_ylim(bottom=0, top=None if chart.kind == "lines" else max(heights) * _ROOM or None)
    plain = FuncFormatter(lambda value, _: short(value))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0) if chart.percent else plain)
    if chart.x_percent:
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    elif (
        chart.kind == "lines"
        and not chart.log_x
        and all(isinstance(x, (int, float)) and x == int(x) for series in chart.series for x in series.xs)
    ):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _heights(chart: Chart) -> list[float]:
    """How high the drawing reaches: every value, or the sums where bars are stacked."""
    if chart.kind not in {"stacked", "areas"}:
        return [y for series in chart.series for y in series.ys]
    totals: dict[str, float] = {}
    for series in chart.series:
        for x, y in () if series.right else zip(series.xs, series.ys, strict=True):
            totals[str(x)] = totals.get(str(x), 0.0) + y
    return list(totals.values())


def _lines(axes: Any, chart: Chart) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    for index, series in enumerate(chart.series):
        if series.dots:
            _dots(axes, series, STACK[index % len(STACK)])
            continue
        few = len(series.xs) <= 12 and not chart.log_x  # noqa: PLR2004 (more dots than that hide the line)
        axes.plot(
            series.xs,
            series.ys,
            label=series.name,
            color=COLOURS[series.role],
            linewidth=0.9 if series.role == "limit" else 2.2 if len(series.xs) <= _MANY else 1.3,
            marker="o" if few else None,
            drawstyle="steps-post" if series.steps else "default",
            linestyle="--" if series.role in {"nameplate", "limit"} else "-",
        )


def _dots(axes: Any, series: Series, colour: str) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    """Points with their bands; every series has a colour of its own, whatever its role."""
    axes.scatter(series.xs, series.ys, label=series.name, color=colour, s=12, alpha=0.75, linewidths=0, zorder=3)
    banded = [(x, *band) for x, band in zip(series.xs, series.bands, strict=False) if band is not None]
    if banded:
        axes.vlines(*zip(*banded, strict=True), color=colour, alpha=0.25, linewidth=1.0, zorder=2)


def _bars(axes: Any, chart: Chart) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    names = list(dict.fromkeys(str(x) for series in chart.series for x in series.xs))
    base = dict.fromkeys(names, 0.0)
    width = 0.62 if chart.kind == "stacked" else 0.8 / len(chart.series)
    for index, series in enumerate(chart.series):
        offset = 0.0 if chart.kind == "stacked" else (index - (len(chart.series) - 1) / 2) * width
        places = [names.index(str(x)) + offset for x in series.xs]
        bottoms = [base[str(x)] for x in series.xs] if chart.kind == "stacked" else None
        colour = STACK[index % len(STACK)] if chart.kind == "stacked" or series.role == "main" else COLOURS[series.role]
        drawn = axes.bar(places, series.ys, width=width, bottom=bottoms, label=series.name, color=colour)
        if chart.kind == "bars" and len(names) * len(chart.series) <= _MOST_LABELS:
            axes.bar_label(drawn, labels=[short(y) for y in series.ys], padding=2, fontsize=9)
        for x, y in zip(series.xs, series.ys, strict=True):
            base[str(x)] += y
    if chart.kind == "stacked" and len(names) <= _MOST_LABELS:
        for place, name in enumerate(names):
            axes.annotate(
                short(base[name]), (place, base[name]), (0, 3), textcoords="offset points", ha="center", fontsize=9
            )
    if len(names) == 1:
        axes.set_xlim(-1.0, 1.0)  # one bar need not fill the page
    fits = max(map(len, names)) * len(names) <= _LABEL_ROOM
    axes.set_xticks(
        range(len(names)),
        names,
        rotation=0 if fits else 20,
        ha="center" if fits else "right",
    )


def _mark(axes: Any, mark: Mark) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    colour = COLOURS["limit"]
    if mark.axis == "x":
        axes.axvline(mark.at, color=colour, linewidth=1.2, linestyle=":")
        axes.annotate(
            mark.label,
            (mark.at, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -12),
            textcoords="offset points",
            fontsize=9.5,
            color=colour,
        )
    else:
        axes.axhline(mark.at, color=colour, linewidth=1.2, linestyle=":")
        axes.annotate(
            mark.label,
            (0.995, mark.at),
            xycoords=("axes fraction", "data"),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=9.5,
            color=colour,
            ha="right",
        )
