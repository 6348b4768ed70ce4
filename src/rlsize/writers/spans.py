"""Lanes of bars over time (a Gantt chart), in matplotlib."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, TypeAlias

from rlsize.units import short
from rlsize.writers.colours import COLOURS, shaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.reports.chart import Bar, Gantt

Mpl: TypeAlias = Any
"""What matplotlib gives, which is untyped here."""
MOST_NAMED = 16  # lanes that all have their name beside them
_FEW_NAMES = 8  # of more lanes than that
_PHASE, _LANE, _ALL_LANES = 0.30, 0.25, 4.0  # height of a lane of phases, of shades, of all of shades; inches
_LEGEND = 0.45  # above the lanes; inches
_BETWEEN = 0.12  # lanes of phases and those of shades; inches
_STRIP, _SHADES = (90.0, 9.0), 46  # the scale of shades; points, and how many there are
_NARROW = 1 / 800  # of the width: phases are drawn at least as wide, if nothing follows
_MOST_SHAPES = 500  # beyond that, SVG and PDF have a picture of the shades
_THIN = 0.15  # lanes below that have no gap; inches
_LABEL_ROOM = 0.045  # of the width, for what is written beside a bar


def height_of(chart: Gantt) -> float:
    """Height that a chart of spans needs. [inch]"""
    return _places(chart)[1] + _LEGEND


def draw_spans(axes: Mpl, chart: Gantt) -> None:
    """
    Draw lanes, with a legend of phases and a scale of shades above them.

    Args:
        axes: Where.
        chart: What.
    """
    places, deep = _places(chart)
    begin = min((bar.start for bar in chart.spans), default=0.0)
    end = max((bar.end for bar in chart.spans), default=1.0)
    lanes: dict[str, list[Bar]] = {}
    for bar in chart.spans:
        lanes.setdefault(bar.lane, []).append(bar)
    for lane, bars in lanes.items():
        top, height = places[lane]
        gap = 0.15 * height if height > _THIN else 0.0
        axes.broken_barh(
            _extents(bars, (end - begin) * _NARROW),
            (top + gap / 2, height - gap),
            facecolors=[COLOURS[bar.role] if bar.shade is None else shaded(bar.shade) for bar in bars],
            linewidth=0,
            antialiased=False,  # else bars that touch have a pale line between them
            rasterized=len(chart.spans) > _MOST_SHAPES and bars[0].shade is not None,
        )
        _labels(axes, bars, top + height / 2, (end - begin) * _LABEL_ROOM)
    axes.set_xlim(begin, end + (end - begin) * _NARROW)
    axes.set_ylim(deep, 0.0)
    # Names of lanes: of all of them, or of every so manieth of many
    phases = lanes_of_phases(chart)
    others = [lane for lane in chart.lanes if lane not in phases]
    if len(others) > MOST_NAMED:
        others = others[:: _round(len(others) / _FEW_NAMES)]
    shown = [lane for lane in chart.lanes if lane in phases] + others
    axes.set_yticks([places[lane][0] + places[lane][1] / 2 for lane in shown], shown)
    axes.tick_params(axis="y", length=0, pad=4)
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_axisbelow(True)
    _legend(axes, chart)


def lanes_of_phases(chart: Gantt) -> frozenset[str]:
    """Lanes whose bars have a colour each rather than a shade."""
    return frozenset(bar.lane for bar in chart.spans if bar.shade is None)


def _places(chart: Gantt) -> tuple[dict[str, tuple[float, float]], float]:
    """Top and height of each lane, downwards, and of all of them together. [inch]"""
    phases = lanes_of_phases(chart)
    shades = sum(lane not in phases for lane in chart.lanes)
    each = min(_LANE, _ALL_LANES / max(shades, 1))
    found: dict[str, tuple[float, float]] = {}
    top, before = 0.0, None
    for lane in chart.lanes:
        phase = lane in phases
        top += _BETWEEN if before is True and not phase else 0.0
        found[lane] = top, _PHASE if phase else each
        top, before = top + found[lane][1], phase
    return found, top or _LANE


def _extents(bars: Sequence[Bar], least: float) -> list[tuple[float, float]]:
    """Start and width of each bar; those of phases can be seen, however short they are."""
    following = [bar.start for bar in bars[1:]] + [float("inf")]
    return [
        (bar.start, max(bar.end - bar.start, min(least, after - bar.start) if bar.shade is None else 0.0))
        for bar, after in zip(bars, following, strict=True)
    ]


def _labels(axes: Mpl, bars: Sequence[Bar], middle: float, room: float) -> None:
    """Labels to the right of bars, where the next one is far enough away."""
    following = [bar.start for bar in bars[1:]] + [float("inf")]
    for bar, after in zip(bars, following, strict=True):
        if bar.label and after - bar.end > room:
            axes.annotate(
                bar.label, (bar.end, middle), (3, 0), textcoords="offset points", va="center_baseline", fontsize=8.5,
                color="#333333", annotation_clip=True, clip_on=True,
            )  # fmt: skip


def _round(step: float) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ..."""
    power = 1
    while True:
        for first in (1, 2, 5):
            if first * power >= ceil(step):
                return first * power
        power *= 10


def _legend(axes: Mpl, chart: Gantt) -> None:
    from matplotlib.patches import Patch

    phases = {bar.name: bar.role for bar in chart.spans if bar.shade is None}
    axes.legend(
        handles=[Patch(color=COLOURS[role], label=name, linewidth=0) for name, role in phases.items()],
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=6, borderaxespad=0.4, borderpad=0.0, fontsize=9,
        handlelength=1.2, handleheight=0.9, columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip
    if any(bar.shade is not None for bar in chart.spans):
        _scale(axes, chart)


def _scale(axes: Mpl, chart: Gantt) -> None:
    """What shades stand for, at the right above the lanes."""
    from matplotlib.offsetbox import AnchoredOffsetbox, DrawingArea, HPacker, TextArea
    from matplotlib.patches import Rectangle

    strip = DrawingArea(_STRIP[0], _STRIP[1])
    each = _STRIP[0] / _SHADES
    for step in range(_SHADES):
        colour = shaded(step / (_SHADES - 1))
        strip.add_artist(Rectangle((step * each, 0), each, _STRIP[1], facecolor=colour, linewidth=0, antialiased=False))
    strip.add_artist(Rectangle((0, 0), *_STRIP, facecolor="none", edgecolor="#AAAAAA", linewidth=0.6))
    low, high = (
        TextArea(text, textprops={"fontsize": 9})
        for text in (f"{chart.shade_label}\N{NO-BREAK SPACE} \N{NO-BREAK SPACE}0", short(chart.full))
    )
    packed = HPacker(children=[low, strip, high], align="center", pad=0, sep=4)
    where = {"bbox_to_anchor": (1.0, 1.0), "bbox_transform": axes.transAxes, "prop": {"size": 9}}
    axes.add_artist(AnchoredOffsetbox("lower right", child=packed, pad=0, borderpad=0.4, frameon=False, **where))
