"""Charts below each other, in matplotlib."""

from __future__ import annotations

from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rlsize.reports.chart import Gantt
from rlsize.writers.spans import height_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlsize.reports.chart import Chart, Panels

_WIDTH, _HEIGHT = 8.0, 2.0  # of a picture, of a panel; inches
_TITLE, _SUBTITLE, _FOOT, _EDGE = 0.26, 0.22, 0.35, 0.10  # of a line of the title, ...; inches
_ABOVE_LEGEND = 22.0  # points
_DOT_ROOM = 1.06
_LABEL_ROOM = 1.15
_FEW = 12  # positions along x that all have a number
_TITLE_LETTERS, _SUBTITLE_LETTERS = 80, 118  # that fit on a line


def draw_panels(plt: Any, panels: Panels, draw: Callable[[Any, Chart], None]) -> Any:  # noqa: ANN401 (matplotlib is untyped here)
    """
    A figure of panels.

    Args:
        plt: matplotlib's pyplot.
        panels: What to draw.
        draw: Draws one chart into its axes, all but its title, labels and legend.
    """
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
        _group(part, group, draw)
    return figure


def _group(figure: Any, charts: Sequence[Chart], draw: Callable[[Any, Chart], None]) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    """Panels that share their x, as wide as their own labels and legends let them be."""
    heights = [_height(chart) for chart in charts]
    grid = figure.subplots(len(charts), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, chart in zip(grid, charts, strict=True):
        _panel(axes, chart, draw)
    grid[-1].set_xlabel(charts[-1].x_label)
    _ticks(grid[-1].xaxis, charts)
    figure.align_ylabels(grid)


def _height(chart: Chart) -> float:
    if isinstance(chart, Gantt):
        return height_of(chart) + (_TITLE if chart.title else 0.0)
    return _HEIGHT


def _panel(axes: Any, chart: Chart, draw: Callable[[Any, Chart], None]) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    draw(axes, chart)
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


def _ticks(axis: Any, charts: Sequence[Chart]) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    """Round places along x; where it counts a few things, each of them."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    xs = {float(x) for chart in charts for series in chart.series for x in series.xs}
    whole = bool(xs) and all(x.is_integer() for x in xs)
    few = whole and len(xs) <= _FEW
    axis.set_major_locator(
        FixedLocator(sorted(xs)) if few else MaxNLocator(nbins=9, steps=[1, 2, 5, 10], integer=whole)
    )
