"""A chart as data: what to draw, not how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

ChartKind: TypeAlias = Literal["lines", "bars", "stacked", "areas", "spans", "ranges"]
Role: TypeAlias = Literal[
    "rollout", "trainer", "main", "expected", "nameplate", "limit", "other",
    "update", "logprob", "waiting", "sync", "swap", "failure",  # what a trainer does
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """
    One line or one set of bars.

    Args:
        name: For the legend.
        xs: Positions, or categories for bars.
        ys: Heights, one for each x.
        role: What it stands for, so that the same thing has the same colour in every chart.
        steps: Whether values hold from one x to the next (whole instances) rather than change in between; for areas,
            whether each fills the width around its x.
        dots: Whether each point stands for itself, rather than for a place on a line.
        bands: Low and high end of each y, drawn as a thin bar; None where a point has no band.
        right: Whether it is a line against the axis on the right; for areas.
        labels: What stands beside each dot, where there is room.
    """

    name: str
    xs: tuple[float | str, ...]
    ys: tuple[float, ...]
    role: Role = "main"
    steps: bool = False
    dots: bool = False
    bands: tuple[tuple[float, float] | None, ...] = ()
    right: bool = False
    labels: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, points: Iterable[tuple[float | str, float]], role: Role = "main", *, dots: bool = False
    ) -> Series:
        """
        The series through some points.

        >>> Series.of("supply", [(1.0, 4.0), (2.0, 8.0)]).ys
        (4.0, 8.0)
        """
        found = tuple(points)
        return cls(name=name, xs=tuple(x for x, _ in found), ys=tuple(y for _, y in found), role=role, dots=dots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """
    A labelled line across the chart.

    Args:
        at: Where.
        label: What it says.
        axis: Along which axis `at` counts.
    """

    at: float
    label: str
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """
    A picture that supports an answer.

    Args:
        title: The takeaway in a sentence.
        x_label: What runs along the bottom, with its unit; empty where names do.
        y_label: What runs up the side, with its unit.
        series: What is drawn.
        kind: Lines, bars side by side, bars on top of each other, areas on top of each other, or ranges: a line of the
            page for each x with its y and band along the bottom; a `Gantt` has spans.
        marks: Lines across.
        percent: Whether y is a fraction, shown in percent.
        x_percent: Whether x is a fraction, shown in percent.
        log_y: Whether y runs in powers of ten.
        log_x: Whether x does.
        zoomed: Whether y begins near its smallest value rather than at 0; for points that are to be told apart.
        subtitle: The inputs, in a line.
        right_label: What runs up the right side, with its unit.
    """

    title: str
    x_label: str = ""
    y_label: str
    series: tuple[Series, ...]
    kind: ChartKind = "lines"
    marks: tuple[Mark, ...] = ()
    percent: bool = False
    x_percent: bool = False
    log_y: bool = False
    log_x: bool = False
    zoomed: bool = False
    subtitle: str = ""
    right_label: str = ""


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
