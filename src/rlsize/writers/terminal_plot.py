"""A chart in the terminal: braille dots for lines, blocks for bars; letters and shades for lanes of bars over time."""

from __future__ import annotations

from math import ceil, log10
from typing import TYPE_CHECKING

from rich.text import Text

from rlsize.dataclass import replace
from rlsize.reports.chart import Gantt, Panels, Series
from rlsize.units import short
from rlsize.writers.table import console

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlsize.reports.chart import Bar, Chart, Picture

HEIGHT, PANEL_HEIGHT = 14, 8
LEFT = 9
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bit of each dot in a braille cell: 4 rows of 2
_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red", "white")
_BLOCKS = " ▏▎▍▌▋▊▉█"
SPAN_WIDTH = 80  # columns that lanes use at most
MOST_LANE_ROWS = 20  # of lanes of shades; of more, several share a row
_SHADES = " ░▒▓█"
_SIGNS = {
    "update": ("U", "red"), "logprob": ("L", "yellow"), "waiting": ("·", "dim"), "sync": ("S", "green"),
    "swap": ("X", "magenta"), "failure": ("!", "bold red"),
}  # fmt: skip
_OTHER = ("o", "white")
_MOST_ROWS = 12  # of areas, which have more positions than a terminal has lines


def print_chart(chart: Picture) -> None:
    """Draw a chart on stdout, as wide as the terminal, at most 100 columns; panels one after the other."""
    out = console()
    width = min(out.width, 100)
    out.print()
    out.print(Text(chart.title, style="bold"))
    if not isinstance(chart, Panels):
        for line in _drawn(chart, width, HEIGHT):
            out.print(line)
        return
    for panel in chart.charts:
        out.print()
        for line in [Text(panel.title), *_drawn(panel, width, PANEL_HEIGHT)]:
            out.print(line)


def _drawn(chart: Chart, width: int, height: int) -> list[Text]:
    if isinstance(chart, Gantt):
        return _span_rows(chart, width)
    return _lines(chart, width, height) if chart.kind == "lines" else _bars(_as_bars(chart), width)


def _lines(chart: Chart, width: int, height: int) -> list[Text]:
    columns = width - LEFT - 1
    across = _Scale([float(x) for series in chart.series for x in series.xs], powers=chart.log_x)
    up = _Scale([y for series in chart.series for y in series.ys], powers=chart.log_y)
    xs = [across.place(float(x)) for series in chart.series for x in series.xs]
    xs += [across.place(mark.at) for mark in chart.marks if mark.axis == "x"]
    ys = [up.place(y) for series in chart.series for y in series.ys]
    ys += [up.place(mark.at) for mark in chart.marks if mark.axis == "y"]
    left, right, top = min(xs), max(xs), max(*ys, 1e-12)
    canvas = _Canvas(columns, height, (left, right if right > left else left + 1), top)
    for mark in chart.marks:
        canvas.rule((across if mark.axis == "x" else up).place(mark.at), mark.axis)
    for index, series in sorted(enumerate(chart.series), key=lambda entry: entry[1].dots):  # dots lie on top of lines
        points = [(across.place(float(x)), up.place(y)) for x, y in zip(series.xs, series.ys, strict=True)]
        if series.dots:
            canvas.dots(points, _style(index, series))
        else:
            canvas.draw(points, _style(index, series), _stroke(index, series)[1])
    beside = [" " * LEFT] * height
    beside[::4] = [_axis(up.value(top * (height - row) / height), chart) for row in range(0, height, 4)]
    rows = [Text.assemble(said, "│", *canvas.row(row)) for row, said in enumerate(beside)]
    ends = [f"{100 * end:.0f} %" if chart.x_percent else short(across.value(end)) for end in (left, right)]
    foot = [
        Text(" " * LEFT + "└" + "─" * columns),
        Text(f"{' ' * (LEFT + 1)}{ends[0]}{ends[1]:>{columns - len(ends[0])}}"),
        Text(f"{chart.x_label}  (up: {chart.y_label})", style="dim"),
    ]
    return [*rows, *foot, _legend(chart)]


class _Scale:
    """Where a value lies along an axis: at itself, or as many powers of ten above the smallest."""

    def __init__(self, values: Sequence[float], *, powers: bool) -> None:
        above = [value for value in values if value > 0]
        self.least = min(above) if powers and above else 0.0

    def place(self, value: float) -> float:
        """The place of a value; one that has no logarithm lies at the end."""
        return log10(max(value, self.least) / self.least) if self.least else value

    def value(self, place: float) -> float:
        """The value at a place."""
        return float(self.least * 10**place) if self.least else place


def _style(index: int, series: Series) -> str:
    return "dim" if series.role == "limit" else _COLOURS[index % len(_COLOURS)]


def _stroke(index: int, series: Series) -> tuple[str, tuple[int, int]]:
    """How a series is told apart without colour: its sign in the legend, and how many dots of a line are drawn."""
    if series.role == "limit":
        return "┈", (1, 8)
    return ("╍", (3, 6)) if index % 2 else ("━", (1, 1))


def _legend(chart: Chart) -> Text:
    named = [
        (f"{'•' if series.dots else _stroke(index, series)[0]} {series.name}   ", _style(index, series))
        for index, series in enumerate(chart.series)
    ]
    return Text.assemble(*named, *((f"┈ {mark.label}   ", "dim") for mark in chart.marks if mark.label))


def _axis(value: float, chart: Chart) -> str:
    text = f"{100 * value:.0f} %" if chart.percent else short(value)
    return f"{text:>{LEFT - 1}} "


class _Canvas:
    """A grid of braille cells, each two dots wide and four high."""

    def __init__(self, columns: int, rows: int, span: tuple[float, float], top: float) -> None:
        self.columns, self.rows, self.span, self.top = columns, rows, span, top
        self.cells: dict[tuple[int, int], int] = {}
        self.styles: dict[tuple[int, int], str] = {}

    def _place(self, x: float, y: float) -> tuple[int, int]:
        across = round((x - self.span[0]) / (self.span[1] - self.span[0]) * (2 * self.columns - 1))
        up = round(max(y, 0.0) / self.top * (4 * self.rows - 1))
        return across, 4 * self.rows - 1 - up

    def _dot(self, across: int, down: int, style: str) -> None:
        cell = (down // 4, across // 2)
        self.cells[cell] = self.cells.get(cell, 0) | _DOTS[down % 4][across % 2]
        self.styles[cell] = style

    def rule(self, at: float, axis: str) -> None:
        """A dotted line across the canvas."""
        across, down = self._place(at, 0.0) if axis == "x" else self._place(self.span[0], at)
        if axis == "x":
            for step in range(0, 4 * self.rows, 2):
                self._dot(across, step, "dim")
        else:
            for step in range(0, 2 * self.columns, 3):
                self._dot(step, down, "dim")

    def dots(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """Points that stand for themselves."""
        for x, y in points:
            self._dot(*self._place(x, y), style)

    def draw(self, values: Sequence[tuple[float, float]], style: str, stroke: tuple[int, int] = (1, 1)) -> None:
        """A line through points; the stroke says how many dots are drawn of how many."""
        points = [self._place(x, y) for x, y in values]
        for (x0, y0), (x1, y1) in zip(points, points[1:] or points, strict=False):
            steps = max(abs(x1 - x0), abs(y1 - y0), 1)
            for step in range(steps + 1):
                if step % stroke[1] >= stroke[0]:
                    continue
                self._dot(round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps), style)

    def row(self, row: int) -> list[tuple[str, str]]:
        """The styled characters of one row."""
        cells = ((row, column) for column in range(self.columns))
        return [(chr(0x2800 + self.cells.get(cell, 0)), self.styles.get(cell, "")) for cell in cells]


def _bars(chart: Chart, width: int) -> list[Text]:
    names = list(dict.fromkeys(str(x) for series in chart.series for x in series.xs))
    plain = chart.kind in {"bars", "ranges"}
    rows = _plain_rows(chart) if plain else _stacked_rows(chart, names)
    label = min(max(len(name) for name, _ in rows), 28)
    widest = max((sum(part for part, _ in parts) for _, parts in rows), default=0.0) or 1.0
    room = max(width - label - 12, 10)
    lines = [_bar(name[:label], label, parts, room / widest, chart) for name, parts in rows]
    legend = [] if plain and len(chart.series) == 1 else [_legend(chart)]
    return [*lines, Text(chart.y_label or chart.x_label, style="dim"), *legend]


def _as_bars(chart: Chart) -> Chart:
    """Areas as stacked bars at some of their positions; other charts as they are."""
    if chart.kind != "areas":
        return chart
    stacked = [series for series in chart.series if not series.right]
    last = len(stacked[0].xs) - 1
    shown = sorted({round(last * place / (_MOST_ROWS - 1)) for place in range(_MOST_ROWS)})
    points = [(entry, [(short(float(entry.xs[index])), entry.ys[index]) for index in shown]) for entry in stacked]
    series = tuple(Series.of(entry.name, own, entry.role) for entry, own in points)
    return replace(chart, kind="stacked", series=series, y_label=f"{chart.y_label}, by {chart.x_label}")


def _stacked_rows(chart: Chart, names: Sequence[str]) -> list[tuple[str, list[tuple[float, str]]]]:
    coloured = [(series, _COLOURS[index % len(_COLOURS)]) for index, series in enumerate(chart.series)]

    def height(series: Series, name: str) -> float:
        return sum(y for x, y in zip(series.xs, series.ys, strict=True) if str(x) == name)

    return [(name, [(height(series, name), colour) for series, colour in coloured]) for name in names]


def _plain_rows(chart: Chart) -> list[tuple[str, list[tuple[float, str]]]]:
    rows = []
    for index, series in enumerate(chart.series):
        prefix = f"{series.name}: " if len(chart.series) > 1 else ""
        rows += [
            (f"{prefix}{x}", [(y, _COLOURS[index % len(_COLOURS)])]) for x, y in zip(series.xs, series.ys, strict=True)
        ]
    return rows


def _bar(name: str, label: int, parts: list[tuple[float, str]], scale: float, chart: Chart) -> Text:
    lengths = [(divmod(round(value * scale * 8), 8), colour) for value, colour in parts]
    pieces = [("█" * whole + _BLOCKS[eighths].strip(), colour) for (whole, eighths), colour in lengths]
    total = sum(value for value, _ in parts)
    shown = f"{100 * total:.1f} %" if chart.percent else short(total)
    return Text.assemble(f"{name:>{label}} ", *pieces, f" {shown}")


def _span_rows(chart: Gantt, width: int) -> list[Text]:
    """The rows of lanes of bars over time: a letter for each phase, and blocks that are the denser the fuller."""
    bars: dict[str, list[Bar]] = {lane: [] for lane in chart.lanes}
    for bar in chart.spans:
        bars[bar.lane].append(bar)
    rows = _lane_rows(chart.lanes, frozenset(bar.lane for bar in chart.spans if bar.shade is None))
    label = max((len(name) for name, _ in rows), default=0)
    columns = max(min(width, SPAN_WIDTH) - label - 2, 10)
    begin = min((bar.start for bar in chart.spans), default=0.0)
    end = max((bar.end for bar in chart.spans), default=1.0)
    found = []
    for name, lanes in rows:
        own = [bar for lane in lanes for bar in bars[lane]]
        cells = _cells(own, begin, ((end - begin) or 1.0) / columns, columns, len(lanes))
        found.append(Text.assemble(f"{name:>{label}} │", *cells))
    ends = short(begin), f"{short(end)}  {chart.x_label}"
    foot = Text(f"{' ' * (label + 2)}{ends[0]}{ends[1]:>{columns - len(ends[0])}}", style="dim")
    return [*found, foot, *_span_legend(chart)]


def _lane_rows(lanes: Sequence[str], phases: frozenset[str]) -> list[tuple[str, list[str]]]:
    """Each row's name and its lanes: one of phases, or as many of shades as must share it."""
    shades = [lane for lane in lanes if lane not in phases]
    each = ceil(len(shades) / MOST_LANE_ROWS) or 1
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


def _span_legend(chart: Gantt) -> list[Text]:
    signs = {(bar.name, *_SIGNS.get(bar.role, _OTHER)): None for bar in chart.spans if bar.shade is None}
    found = [Text.assemble(*((f"{sign} {name}   ", style) for name, sign, style in signs))] if signs else []
    if any(bar.shade is not None for bar in chart.spans):
        quarters = "  ".join(f"{_SHADES[step]} to {short(chart.full * step / 4)}" for step in (1, 2, 3, 4))
        found.append(Text.assemble((f"{chart.shade_label}: {quarters}", "blue")))
    return found
