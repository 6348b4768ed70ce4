"""Lanes of bars over time in the terminal: a letter for each phase, and blocks that are the denser the fuller."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from rich.text import Text

from rlsize.units import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlsize.reports.chart import Bar, Gantt

WIDTH = 80
MOST_ROWS = 20  # of lanes of shades; of more, several share a row
_SHADES = " ░▒▓█"
_SIGNS = {
    "update": ("U", "red"), "logprob": ("L", "yellow"), "waiting": ("·", "dim"), "sync": ("S", "green"),
    "swap": ("X", "magenta"), "failure": ("!", "bold red"),
}  # fmt: skip
_OTHER = ("o", "white")


def span_rows(chart: Gantt, width: int) -> list[Text]:
    """
    The rows of a chart of spans.

    Args:
        chart: What is drawn.
        width: Columns of the terminal, of which at most 80 are used.
    """
    bars: dict[str, list[Bar]] = {lane: [] for lane in chart.lanes}
    for bar in chart.spans:
        bars[bar.lane].append(bar)
    rows = _rows(chart.lanes, frozenset(bar.lane for bar in chart.spans if bar.shade is None))
    label = max((len(name) for name, _ in rows), default=0)
    columns = max(min(width, WIDTH) - label - 2, 10)
    begin = min((bar.start for bar in chart.spans), default=0.0)
    end = max((bar.end for bar in chart.spans), default=1.0)
    found = []
    for name, lanes in rows:
        own = [bar for lane in lanes for bar in bars[lane]]
        cells = _cells(own, begin, ((end - begin) or 1.0) / columns, columns, len(lanes))
        found.append(Text.assemble(f"{name:>{label}} │", *cells))
    ends = short(begin), f"{short(end)}  {chart.x_label}"
    foot = Text(f"{' ' * (label + 2)}{ends[0]}{ends[1]:>{columns - len(ends[0])}}", style="dim")
    return [*found, foot, *_legend(chart)]


def _rows(lanes: Sequence[str], phases: frozenset[str]) -> list[tuple[str, list[str]]]:
    """Each row's name and its lanes: one of phases, or as many of shades as must share it."""
    shades = [lane for lane in lanes if lane not in phases]
    each = ceil(len(shades) / MOST_ROWS) or 1
    shared = [shades[start : start + each] for start in range(0, len(shades), each)]
    named = [(group[0] if len(group) == 1 else f"{group[0]}-{group[-1].split()[-1]}", group) for group in shared]
    return [(lane, [lane]) for lane in lanes if lane in phases] + named


def _cells(bars: Iterable[Bar], begin: float, step: float, columns: int, lanes: int) -> list[tuple[str, str]]:
    """The styled characters of one row: the phase that takes most of a column, waiting last; how full lanes are."""
    filled = [0.0] * columns
    phases: list[dict[str, float]] = [{} for _ in range(columns)]
    for bar in bars:
        first = min(int((bar.start - begin) / step), columns - 1)
        last = min(int((bar.end - begin) / step), columns - 1)
        for column in range(first, last + 1):
            inside = min(bar.end, begin + (column + 1) * step) - max(bar.start, begin + column * step)
            if bar.shade is None:
                phases[column][bar.role] = phases[column].get(bar.role, 0.0) + max(inside, 0.0)
            else:
                filled[column] += bar.shade * max(inside, 0.0) / step / lanes
    return [_cell(own, share) for own, share in zip(phases, filled, strict=True)]


def _cell(phases: dict[str, float], share: float) -> tuple[str, str]:
    if phases:
        work = {role: seconds for role, seconds in phases.items() if role != "waiting" and seconds > 0.0}
        return _SIGNS.get(max(work or phases, key=lambda role: phases[role]), _OTHER)
    density = 0 if share <= 0.0 else min(1 + int(share * 4), 4)
    return _SHADES[density], "blue"


def _legend(chart: Gantt) -> list[Text]:
    signs = {(bar.name, *_SIGNS.get(bar.role, _OTHER)): None for bar in chart.spans if bar.shade is None}
    found = [Text.assemble(*((f"{sign} {name}   ", style) for name, sign, style in signs))] if signs else []
    if any(bar.shade is not None for bar in chart.spans):
        quarters = "  ".join(f"{_SHADES[step]} to {short(chart.full * step / 4)}" for step in (1, 2, 3, 4))
        found.append(Text.assemble((f"{chart.shade_label}: {quarters}", "blue")))
    return found
