"""Areas on top of each other, and lines against an axis on the right, in matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.units import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.reports.chart import Chart

_LINE = "#111111"
_ROOM = 1.12  # above the line, so that it does not touch the frame


def draw_areas(axes: Any, chart: Chart, colours: Sequence[str]) -> None:  # noqa: ANN401 (matplotlib is untyped here)
    """
    Draw a chart of areas.

    Args:
        axes: Where.
        chart: What; all areas have the same positions.
        colours: One for each area.
    """
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
        colors=[colours[index % len(colours)] for index in range(len(stacked))],
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
        right.plot(xs, series.ys, color=_LINE, linewidth=2.0)
        axes.plot([], [], color=_LINE, linewidth=2.0, label=series.name)  # for the legend, which the left axes have
    right.set_ylim(0.0, _ROOM * max(y for series in lines for y in series.ys))
    right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    right.set_ylabel(chart.right_label)
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
