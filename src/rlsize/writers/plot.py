"""A chart as PNG, SVG or PDF, drawn by matplotlib: one, several below each other, or lanes of bars over time."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from io import BytesIO
from itertools import groupby
from pathlib import Path
from stat import S_ISDIR
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.reports.chart import Gantt, Panels
from rlsize.units import short
from rlsize.writers.colours import COLOURS, PHASES, STACK
from rlsize.writers.files import check_target, write_whole
from rlsize.writers.html_parts import harmless
from rlsize.writers.spans import Mpl, draw_spans, height_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.reports.chart import Chart, Mark, Picture, Series

FORMATS = ("png", "svg", "pdf")
_MOST_LABELS = 24  # more collide
_ROW = 0.28  # inches of a row of ranges
_MANY = 150  # points of a line, which is drawn thinner then
_ROOM, _LOG_ROOM = 1.08, 1.8  # above the tallest bar, for its label
_LINE_ROOM = 1.12  # above a line over areas, so that it does not touch the frame
_NAME_LETTERS = 90  # of names of bars that fit side by side
_WIDTH, _HEIGHT = 8.0, 2.0  # of a picture of panels, of a panel; inches
_TITLE, _SUBTITLE, _FOOT, _EDGE = 0.26, 0.22, 0.35, 0.10  # of a line of the title, ...; inches
_ABOVE_LEGEND = 22.0  # points
_DOT_ROOM = 1.06
_LABEL_WIDTH, _LABEL_HEIGHT = 0.1, 0.09  # of the axes: what a label beside a dot takes
_LABEL_ROOM = 1.15
_FEW = 12  # positions along x that all have a number
_TITLE_LETTERS, _SUBTITLE_LETTERS = 80, 118  # that fit on a line
_NO_WORDS = frozenset({"kind", "role", "axis"})  # of a chart: words of ours
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
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_FONT = re.compile(r"'DejaVu Sans'")
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(?:url\(|href=")#([^")]+)')
_OUTLINE = re.compile(r' d="([^"]*)"')
_PLACE = re.compile(r' (x|y|width|height|transform)="([^"]*)"')
_NO_TURN = re.compile(r' transform="rotate\(-?0(\.0+)? [^)]*\)"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_AROUND_COMMAND = re.compile(r"\s*([A-Za-z])\s*")
_AGAIN = re.compile(r"(L[^A-Za-z]+)(?:\1)+(?=[A-Za-z]|$)")
_INDENT = re.compile(r"\n\s+")


def write_picture(chart: Picture, target: str, *, force: bool = False) -> None:
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
    _leave_home_alone()
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    chart = _plain(chart)
    with mpl.rc_context({**_STYLE, **(style or {})}):
        if isinstance(chart, Gantt):  # a figure of one panel, as its height is its own
            chart = Panels(title=chart.title, subtitle=chart.subtitle, charts=(replace(chart, title="", subtitle=""),))
        figure = _panels(plt, chart) if isinstance(chart, Panels) else _single(plt, chart)
        try:
            yield figure
        finally:
            plt.close(figure)


def _leave_home_alone() -> None:
    """Where nobody says, matplotlib keeps its list of fonts in a temporary folder of the user's, not below HOME."""
    if os.environ.get("MPLCONFIGDIR"):
        return
    user = os.getuid() if hasattr(os, "getuid") else 0  # 0: what lstat says on Windows
    folder = Path(tempfile.gettempdir()) / f"rlsize-matplotlib-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        there = folder.lstat()
        if S_ISDIR(there.st_mode) and there.st_uid == user:  # what another user left there is not trusted
            os.environ["MPLCONFIGDIR"] = str(folder)


def _single(plt: Mpl, chart: Chart) -> Mpl:
    rows = sum(len(series.xs) for series in chart.series) if chart.kind == "ranges" else 0
    figure, axes = plt.subplots(figsize=(8.0, max(4.5, _ROW * rows)), layout="constrained")
    _content(axes, chart)
    axes.set_title(chart.title, pad=24 if chart.subtitle else 12, wrap=True)
    if chart.subtitle:
        axes.text(0.0, 1.02, chart.subtitle, transform=axes.transAxes, fontsize=9.5, color="#555555")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    if len(chart.series) > 1:
        beside = {"loc": "upper left", "bbox_to_anchor": (1.16 if chart.kind == "areas" else 1.0, 1.0)}
        axes.legend(**({"loc": "best"} if chart.kind in {"lines", "ranges"} else beside))
    return figure


def _panels(plt: Mpl, panels: Panels) -> Mpl:
    """Charts below each other."""
    groups = [list(group) for _, group in groupby(panels.charts, key=lambda chart: chart.x_label)]
    heights = [sum(map(_height, group)) + _FOOT for group in groups]
    title, subtitle = wrap(panels.title, _TITLE_LETTERS), wrap(panels.subtitle, _SUBTITLE_LETTERS)
    head = _EDGE + _TITLE * len(title) + _SUBTITLE * len(subtitle)
    height = head + sum(heights)
    figure = plt.figure(figsize=(_WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(rect=(0.0, 0.0, 1.0, 1.0 - head / height), h_pad=0.06)
    top = 1.0 - _EDGE / height
    figure.text(0.012, top, "\n".join(title), va="top", fontsize=13, fontweight="bold")
    top -= _TITLE * len(title) / height
    figure.text(0.012, top, "\n".join(subtitle), va="top", fontsize=9.5, color="#555555")
    parts = figure.subfigures(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, group in zip(parts, groups, strict=True):
        _group(part, group)
    return figure


def _group(figure: Mpl, charts: Sequence[Chart]) -> None:
    """Panels that share their x, as wide as their own labels and legends let them be."""
    heights = [_height(chart) for chart in charts]
    grid = figure.subplots(len(charts), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, chart in zip(grid, charts, strict=True):
        _panel(axes, chart)
    grid[-1].set_xlabel(charts[-1].x_label)
    _ticks(grid[-1].xaxis, charts)
    figure.align_ylabels([axes for axes, chart in zip(grid, charts, strict=True) if not isinstance(chart, Gantt)])


def _height(chart: Chart) -> float:
    if isinstance(chart, Gantt):
        return height_of(chart) + (_TITLE if chart.title else 0.0)
    return _HEIGHT


def _panel(axes: Mpl, chart: Chart) -> None:
    _content(axes, chart)
    axes.set_ylabel(chart.y_label, fontsize=10)
    axes.tick_params(labelsize=9.5)
    if chart.title:
        pad = _ABOVE_LEGEND if isinstance(chart, Gantt) else 6.0
        axes.set_title(chart.title, fontsize=10.5, fontweight="normal", pad=pad)
    if isinstance(chart, Gantt):
        return
    if axes.get_ylim()[1] < 1.0 and not any(y for series in chart.series for y in series.ys):
        axes.set_ylim(0.0, 1.0)  # nothing at all, rather than an axis of tiny numbers
        axes.set_yticks([0.0, 1.0])
    elif chart.kind == "lines":
        axes.set_ylim(top=_DOT_ROOM * axes.get_ylim()[1])  # where the dots of the highest points stand
    if any(mark.label for mark in chart.marks):
        axes.set_ylim(top=_LABEL_ROOM * axes.get_ylim()[1])  # where labels stand
    if len(chart.series) > 1:
        axes.legend(loc="upper left", bbox_to_anchor=(1.16 if chart.right_label else 1.0, 1.02), fontsize=9.5)


def _ticks(axis: Mpl, charts: Sequence[Chart]) -> None:
    """Round places along x; where it counts a few things, each of them."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    xs = {float(x) for chart in charts for series in chart.series for x in series.xs}
    whole = bool(xs) and all(x.is_integer() for x in xs)
    few = whole and len(xs) <= _FEW
    axis.set_major_locator(
        FixedLocator(sorted(xs)) if few else MaxNLocator(nbins=9, steps=[1, 2, 5, 10], integer=whole)
    )


def _content(axes: Mpl, chart: Chart) -> None:
    if isinstance(chart, Gantt):
        draw_spans(axes, chart)
    elif chart.kind == "lines":
        _lines(axes, chart)
    elif chart.kind == "areas":
        _areas(axes, chart)
    elif chart.kind == "ranges":
        _ranges(axes, chart)
    else:
        _bars(axes, chart)
    for mark in chart.marks:
        _mark(axes, mark)
    _labels(axes, chart)
    if not isinstance(chart, Gantt) and chart.kind != "ranges":
        _scale(axes, chart)


def _scale(axes: Mpl, chart: Chart) -> None:
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
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 5, 10], integer=True))


def _heights(chart: Chart) -> list[float]:
    """How high the drawing reaches: every value, or the sums where bars are stacked."""
    if chart.kind not in {"stacked", "areas"}:
        return [y for series in chart.series for y in series.ys]
    totals: dict[str, float] = {}
    for series in chart.series:
        for x, y in () if series.right else zip(series.xs, series.ys, strict=True):
            totals[str(x)] = totals.get(str(x), 0.0) + y
    return list(totals.values())


def _lines(axes: Mpl, chart: Chart) -> None:
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


def _dots(axes: Mpl, series: Series, colour: str) -> None:
    """Points with their bands; every series has a colour of its own, whatever its role."""
    size = 36 if len(series.xs) <= _MANY else 12
    axes.scatter(series.xs, series.ys, label=series.name, color=colour, s=size, alpha=0.75, linewidths=0, zorder=3)
    banded = [(x, *band) for x, band in zip(series.xs, series.bands, strict=False) if band is not None]
    if banded:
        axes.vlines(*zip(*banded, strict=True), color=colour, alpha=0.25, linewidth=1.0, zorder=2)


def _labels(axes: Mpl, chart: Chart) -> None:
    """What stands beside dots; of those that lie close to each other the first is told."""
    found = [(*each, text) for one in chart.series for *each, text in zip(one.xs, one.ys, one.labels, strict=False)]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    told: list[tuple[float, float]] = []
    for x, y, text in found:
        here = (float(x) - left) / (right - left), (float(y) - low) / (high - low)
        if all(abs(here[0] - one[0]) > _LABEL_WIDTH or abs(here[1] - one[1]) > _LABEL_HEIGHT for one in told):
            told.append(here)
            axes.annotate(text, (x, y), (6, 4), textcoords="offset points", fontsize=8.5, color="#555555")


def _bars(axes: Mpl, chart: Chart) -> None:
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
    fits = max(map(len, names)) * len(names) <= _NAME_LETTERS
    axes.set_xticks(range(len(names)), names, rotation=0 if fits else 20, ha="center" if fits else "right")


def _ranges(axes: Mpl, chart: Chart) -> None:
    """A row for each x, from the top: its y as a dot along the bottom, and its band."""
    names = [str(x) for series in chart.series for x in series.xs]
    place = len(names)
    for index, series in enumerate(chart.series):
        colour = STACK[index % len(STACK)]
        rows = range(place - 1, place - 1 - len(series.xs), -1)
        place -= len(series.xs)
        axes.scatter(series.ys, rows, label=series.name, color=colour, s=36, zorder=3)
        for row, band in zip(rows, series.bands, strict=False):
            if band is not None:
                axes.hlines(row, *band, color=colour, alpha=0.5, linewidth=2.4, zorder=2)
    axes.set_yticks(range(len(names) - 1, -1, -1), names, fontsize=9)
    axes.set_ylim(-0.7, len(names) + 0.2)  # above: where labels of marks stand
    axes.grid(axis="x", color="#E3E3E3")
    axes.grid(axis="y", visible=False)


def _areas(axes: Mpl, chart: Chart) -> None:
    """Areas on top of each other, all with the same positions, and lines against an axis on the right."""
    stacked = [series for series in chart.series if not series.right]
    lines = [series for series in chart.series if series.right]
    if not stacked:
        return
    xs = [float(x) for x in stacked[0].xs]
    heights = [series.ys for series in stacked]
    if stacked[0].steps:  # each value is as wide as it is far from the next, the outer ones on both sides
        half = (xs[1] - xs[0]) / 2 if len(xs) > 1 else 0.5
        xs = [xs[0] - half, *xs, xs[-1] + half]
        heights = [(ys[0], *ys, ys[-1]) for ys in heights]
    axes.stackplot(
        xs,
        *heights,
        labels=[series.name for series in stacked],
        colors=[COLOURS[s.role] if s.role in PHASES else STACK[i % len(STACK)] for i, s in enumerate(stacked)],
        alpha=0.85,
        linewidth=0,
        step="mid" if stacked[0].steps else None,
    )
    axes.set_xlim(xs[0], xs[-1])
    if not lines:
        return
    from matplotlib.ticker import FuncFormatter

    right = axes.twinx()
    for series in lines:
        xs = [float(x) for x in series.xs]
        right.plot(xs, series.ys, color="white", linewidth=4.0)  # so that it stands out from dark areas
        right.plot(xs, series.ys, color="#111111", linewidth=2.0)
        axes.plot([], [], color="#111111", linewidth=2.0, label=series.name)  # for the legend, which the left axes have
    right.set_ylim(0.0, _LINE_ROOM * max(y for series in lines for y in series.ys))
    right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    right.set_ylabel(chart.right_label)
    right.grid(visible=False)
    right.spines["right"].set_visible(True)


def _mark(axes: Mpl, mark: Mark) -> None:
    along = mark.axis == "x"
    (axes.axvline if along else axes.axhline)(mark.at, color=COLOURS["limit"], linewidth=1.2, linestyle=":")
    axes.annotate(
        mark.label,
        (mark.at, 1.0) if along else (0.995, mark.at),
        xycoords=("data", "axes fraction") if along else ("axes fraction", "data"),
        xytext=(4, -12) if along else (0, 4),
        textcoords="offset points",
        fontsize=9.5,
        color=COLOURS["limit"],
        ha="left" if along else "right",
    )


def _plain(thing: Any) -> Any:  # noqa: ANN401 (whatever charts are made of)
    r"""
    A chart with words that matplotlib draws as they are, and that drive nothing: a price is no formula.

    >>> from rlsize.reports.chart import Chart
    >>> _plain(Chart(title="$2 or\x1b $3", x_label="", y_label="", series=())).title
    '\\$2 or \\$3'
    """
    if isinstance(thing, str):
        return harmless(thing).replace("$", r"\$")
    if isinstance(thing, tuple):
        return tuple(map(_plain, thing))
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {field.name: getattr(thing, field.name) for field in fields(thing) if field.name not in _NO_WORDS}
        return replace(thing, **{name: _plain(part) for name, part in parts.items()})
    return thing


def small_svg(svg: str, prefix: str = "n") -> str:
    """
    The same picture with fewer bytes.

    Coordinates are rounded to a hundredth of a point; metadata, names that nothing refers to, turns by nothing, points
    that repeat the one before and white space go.

    Args:
        svg: SVG as matplotlib writes it.
        prefix: What names begin with.
    """
    names = {name: f"{prefix}{place}" for place, name in enumerate(dict.fromkeys(_REFERENCE.findall(svg)))}
    svg = _METADATA.sub("", svg)
    svg = _FONT.sub("'DejaVu Sans', Verdana, sans-serif", svg)  # Verdana is as wide
    svg = _ID.sub(lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", svg)
    svg = _REFERENCE.sub(lambda found: found[0].replace(found[1], names[found[1]]), svg)
    svg = _NO_TURN.sub("", svg)
    svg = _OUTLINE.sub(lambda found: f' d="{_outline(found[1])}"', svg)
    svg = _PLACE.sub(lambda found: f' {found[1]}="{_NUMBER.sub(_rounded, found[2])}"', svg)
    return _INDENT.sub("\n", svg)


def _outline(path: str) -> str:
    """The commands of a path, without the white space around them."""
    tight = _AROUND_COMMAND.sub(r"\1", _NUMBER.sub(_rounded, path)).strip()
    return _AGAIN.sub(r"\1", tight)


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
