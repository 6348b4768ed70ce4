"""Pictures beyond a single chart, as data: what lasted how long in lanes, and charts below each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rlsize.reports.chart import Chart, ChartKind, Role, Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """
    Something that lasted, in a lane.

    Args:
        lane: In which.
        start: From, in the unit of x.
        end: To.
        name: What it was, for the legend.
        role: What it stands for, which gives it its colour unless it has a shade.
        shade: How full something was, 0 to 1, drawn from light to dark; None where that is not the question.
        label: What is written beside it where there is room.
    """

    lane: str
    start: float
    end: float
    name: str = ""
    role: Role = "rollout"
    shade: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gantt(Chart):
    """
    Lanes from top to bottom, and what lasted how long in each.

    Args:
        kind: Spans.
        series: None.
        y_label: What lanes are, where their names do not say it.
        lanes: Their names, from top to bottom.
        spans: What is drawn in them; those of a lane do not overlap.
        full: What a shade of 1 stands for.
        shade_label: What shades count.
    """

    kind: ChartKind = "spans"
    series: tuple[Series, ...] = ()
    y_label: str = ""
    lanes: tuple[str, ...]
    spans: tuple[Bar, ...]
    full: float = 1.0
    shade_label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """
    Charts below each other; those that follow each other with the same x label share their x.

    Args:
        title: The takeaway in a sentence.
        charts: From top to bottom; the title of each says what it shows.
        subtitle: The inputs, in a line.
    """

    title: str
    charts: tuple[Chart, ...]
    subtitle: str = ""


Picture: TypeAlias = Chart | Panels
"""What a report may have drawn."""
