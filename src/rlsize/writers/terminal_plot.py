"""A chart in the terminal: braille dots for lines, blocks for bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from rlsize.units import short
from rlsize.writers.table import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.reports.chart import Chart, Series

HEIGHT = 14
LEFT = 9
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bit of each dot in a braille cell: 4 rows of 2
_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red", "white")
_BLOCKS = " ▏▎▍▌▋▊▉█"


def print_chart(chart: Chart) -> None:
    """Draw a chart on stdout, as wide as the terminal, at most 100 columns."""
    out = console()
    width = min(out.width, 100)
    out.print()
    out.print(Text(chart.title, style="bold"))
    for line in _lines(chart, width) if chart.kind == "lines" else _bars(chart, width):
        out.print(line)


def _lines(chart: Chart, width: int) -> list[Text]:
    columns = width - LEFT - 1
    xs = [float(x) for series in chart.series for x in series.xs] + [
        mark.at for mark in chart.marks if mark.axis == "x"
    ]
    ys = [y for series in chart.series for y in series.ys] + [mark.at for mark in chart.marks if mark.axis == "y"]
    left, right, top = min(xs), max(xs), max(*ys, 1e-12)
    canvas = _Canvas(columns, HEIGHT, (left, right if right > left else left + 1), top)
    for mark in chart.marks:
        canvas.rule(mark.at, mark.axis)
    for index, series in enumerate(chart.series):
        canvas.draw(series, _COLOURS[index % len(_COLOURS)], dashed=index % 2 == 1)
    rows = [
        Text.assemble(
            _axis(top * (HEIGHT - row) / HEIGHT, chart) if row % 4 == 0 else " " * LEFT, "│", *canvas.row(row)
        )
        for row in range(HEIGHT)
    ]
    first, last = (f"{100 * end:.0f} %" if chart.x_percent else short(end) for end in (left, right))
    ends = f"{first}{last:>{columns - len(first)}}"
    foot = [
        Text(" " * LEFT + "└" + "─" * columns),
        Text(f"{' ' * (LEFT + 1)}{ends}"),
        Text(f"{chart.x_label}  (up: {chart.y_label})", style="dim"),
    ]
    return [*rows, *foot, _legend(chart)]


def _legend(chart: Chart) -> Text:
    named = [
        (f"{'╍' if index % 2 else '━'} {series.name}   ", _COLOURS[index % len(_COLOURS)])
        for index, series in enumerate(chart.series)
    ]
    return Text.assemble(*named, *((f"┈ {mark.label}   ", "dim") for mark in chart.marks))


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

    def draw(self, series: Series, style: str, *, dashed: bool = False) -> None:
        """A line through the points of a series; every second series is dashed, to be told apart without colour."""
        points = [self._place(float(x), y) for x, y in zip(series.xs, series.ys, strict=True)]
        for (x0, y0), (x1, y1) in zip(points, points[1:] or points, strict=False):
            steps = max(abs(x1 - x0), abs(y1 - y0), 1)
            for step in range(steps + 1):
                if dashed and step % 6 > 2:  # noqa: PLR2004 (three dots on, three off)
                    continue
                self._dot(round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps), style)

    def row(self, row: int) -> list[tuple[str, str]]:
        """The styled characters of one row."""
        cells = ((row, column) for column in range(self.columns))
        return [(chr(0x2800 + self.cells.get(cell, 0)), self.styles.get(cell, "")) for cell in cells]


def _bars(chart: Chart, width: int) -> list[Text]:
    names = list(dict.fromkeys(str(x) for series in chart.series for x in series.xs))
    rows = _stacked_rows(chart, names) if chart.kind == "stacked" else _plain_rows(chart)
    label = min(max(len(name) for name, _ in rows), 28)
    widest = max((sum(part for part, _ in parts) for _, parts in rows), default=0.0) or 1.0
    room = max(width - label - 12, 10)
    lines = [_bar(name[:label], label, parts, room / widest, chart) for name, parts in rows]
    legend = [] if chart.kind == "bars" and len(chart.series) == 1 else [_legend(chart)]
    return [*lines, Text(chart.y_label, style="dim"), *legend]


def _stacked_rows(chart: Chart, names: Sequence[str]) -> list[tuple[str, list[tuple[float, str]]]]:
    rows = []
    for name in names:
        parts = []
        for index, series in enumerate(chart.series):
            heights = [y for x, y in zip(series.xs, series.ys, strict=True) if str(x) == name]
            parts.append((sum(heights), _COLOURS[index % len(_COLOURS)]))
        rows.append((name, parts))
    return rows


def _plain_rows(chart: Chart) -> list[tuple[str, list[tuple[float, str]]]]:
    rows = []
    for index, series in enumerate(chart.series):
        prefix = f"{series.name}: " if len(chart.series) > 1 else ""
        rows += [
            (f"{prefix}{x}", [(y, _COLOURS[index % len(_COLOURS)])]) for x, y in zip(series.xs, series.ys, strict=True)
        ]
    return rows


def _bar(name: str, label: int, parts: list[tuple[float, str]], scale: float, chart: Chart) -> Text:
    pieces = [(_blocks(value * scale), colour) for value, colour in parts]
    total = sum(value for value, _ in parts)
    shown = f"{100 * total:.1f} %" if chart.percent else short(total)
    return Text.assemble(f"{name:>{label}} ", *pieces, f" {shown}")


def _blocks(length: float) -> str:
    whole, eighths = divmod(round(length * 8), 8)
    return "█" * whole + (_BLOCKS[eighths] if eighths else "")
