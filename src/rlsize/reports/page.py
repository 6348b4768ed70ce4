"""A page for a review, in a form that HTML and Markdown understand; its sliders, and what follows from them."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass
from rlsize.reports.chart import Gantt, Panels
from rlsize.reports.report import Column, Table, Unseen
from rlsize.reports.wording import band, origin_word, shown, words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rlsize.reports.chart import Chart, Mark, Picture, Role, Series
    from rlsize.reports.report import Cell

_MOST_ROWS = 40  # of the table of a picture, which somebody reads

_STOPS = 96  # places of a logarithmic slider: about 4 % apart over a range of 1 to 64
_PLACES = 9  # decimals that a value keeps, so that 0.1 + 0.2 is 0.3
DIGITS = ((1000.0, 0), (100.0, 1), (1.0, 2), (0.1, 3), (0.01, 4), (0.0, 6))
"""Decimals of a result from each size on, where the result does not say how many it has."""


class Section(NamedTuple):
    """
    A part of a page.

    Args:
        title: What it is about.
        text: Paragraphs.
        listed: Points, one below the other.
        numbered: Whether the points are steps, whose order matters.
        tables: Named rows; the marked row is the one that was chosen.
        pictures: What is drawn.
        apart: Whether it is of the appendix, which begins on a page of its own where it is printed.
    """

    title: str
    text: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    numbered: bool = False
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    apart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """
    A page that is put before a capacity review.

    Args:
        title: What it is about.
        question: What was asked.
        recommendation: The answer in a sentence.
        facts: The figures that the answer rests on, in the order in which they are read.
        sections: Everything else.
        widget: What a reader may try, after the first section; None for a page that only reads.
        warnings: What the reader must know before trusting the answer.
        command: The command that made it.
        made_with: What made it: program, version, facts.
    """

    title: str
    question: str
    recommendation: str
    facts: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    widget: Widget | None = None
    warnings: tuple[str, ...] = ()
    command: str = ""
    made_with: str = ""


def figures_table(title: str, figures: Iterable[Figure], note: str = "") -> Table:
    """
    Figures with value, band, provenance and source, one in a row.

    Args:
        title: What the table shows.
        figures: In the order in which they are read.
        note: A line below the table.
    """
    found = tuple(figures)
    banded = any(figure.band for figure in found)
    cells: tuple[Column | Unseen, ...] = (
        Column("figure", "figure", "left", of=lambda figure: words(figure.key)),
        Column("value", "value", of=lambda figure: shown(figure, figure.key)),
        Column("band", "80 % band", of=band) if banded else Unseen("band", band),
        Column("from", "from", "left", of=lambda figure: origin_word(figure) if figure.known else ""),
        Column("source", "source", "left", wide=True, of=lambda figure: figure.source or figure.equation),
    )
    return Table.of(title, found, cells, note=note)


def basis(cell: Cell, table: Table) -> str:
    """The band of a figure, after who says so where not all figures of its table have it from the same."""
    if not isinstance(cell, Figure) or not cell.known:
        return ""
    origin = origin_word(cell) if len(_origins(table)) > 1 else ""
    return ", ".join(filter(None, [origin, band(cell)]))


def table_notes(table: Table) -> list[str]:
    """The lines below a table: its own, who says so, and what bands are."""
    origins = _origins(table)
    alike = f"All figures are {origins[0]}." if len(origins) == 1 else ""
    banded = "Beside a value stands its 80 % band." if any(figure.band for figure in _figures(table)) else ""
    return [note for note in (table.note, " ".join(filter(None, [alike, banded]))) if note]


def _figures(table: Table) -> list[Figure]:
    """What a table has in cells that are seen."""
    cells = (row.get(column.key) for row in table.seen for column in table.columns)
    return [cell for cell in cells if isinstance(cell, Figure) and cell.known]


def _origins(table: Table) -> list[str]:
    return list(dict.fromkeys(map(origin_word, _figures(table))))


def picture_tables(picture: Picture) -> tuple[Table, ...]:
    """
    The numbers behind a picture, a table for each of its charts.

    Args:
        picture: What is drawn; lanes of spans and lines of very many points have no table.
    """
    charts = picture.charts if isinstance(picture, Panels) else (picture,)
    return tuple(
        _table(chart, _full_title(chart, picture))
        for chart in charts
        if not isinstance(chart, Gantt) and 0 < len(_places(chart)) <= _MOST_ROWS
    )


def picture_words(picture: Picture) -> str:
    """What a picture shows, in sentences."""
    charts = picture.charts if isinstance(picture, Panels) else (picture,)
    said = [picture.subtitle, *(f"{_full_title(chart, picture)}{_words(chart)}" for chart in charts)]
    return " ".join(f"{sentence.rstrip('.')}." for sentence in said if sentence)


def _places(chart: Chart) -> list[float | str]:
    """Every place along x, in the order in which series have them; numbers from the smallest up."""
    found = list(dict.fromkeys(x for series in chart.series for x in series.xs))
    return sorted(found, key=lambda x: x if isinstance(x, (int, float)) else 0.0)


def _full_title(chart: Chart, picture: Picture) -> str:
    """What a chart is of: its quantity, after its title where it is one of several."""
    kind = "Lanes" if isinstance(chart, Gantt) else chart.y_label
    return ", ".join(filter(None, [chart.title if isinstance(picture, Panels) else "", kind]))


def _table(chart: Chart, title: str) -> Table:
    ending = "_fraction" if chart.percent else ""
    keys = {f"y{place}{ending}": series for place, series in enumerate(chart.series)}
    first = f"x{'_fraction' if chart.x_percent else ''}"
    values = {key: dict(zip(series.xs, series.ys, strict=True)) for key, series in keys.items()}
    rows: tuple[dict[str, Cell], ...] = tuple(
        {first: x, **{key: found.get(x) for key, found in values.items()}} for x in _places(chart)
    )
    columns = (
        Column(first, chart.x_label or "", "left"),
        *(Column(key, series.name or chart.y_label) for key, series in keys.items()),
    )
    note = f"{chart.right_label} against the axis on the right." if chart.right_label else ""
    return Table(title=title or "The numbers", columns=columns, rows=rows, note=note)


def _words(chart: Chart) -> str:
    """What a chart shows, after its title: along what, how far each series reaches, what is marked."""
    across = f" over {chart.x_label}" if chart.x_label else ""
    if isinstance(chart, Gantt):
        return f"{across}: {', '.join(chart.lanes)}"
    said = [_reach(series, chart) for series in chart.series if series.ys]
    marked = [f"{mark.label} at {_at(mark, chart)}" for mark in chart.marks if mark.label]
    return f"{across}: {'; '.join([*said, *marked])}"


def _at(mark: Mark, chart: Chart) -> str:
    percent = chart.x_percent if mark.axis == "x" else chart.percent
    return show(mark.at, "_fraction" if percent else "")


def _reach(series: Series, chart: Chart) -> str:
    """From where to where a series goes."""
    key = "y_fraction" if chart.percent else "y"
    least, most = show(min(series.ys), key), show(max(series.ys), key)
    return f"{series.name} {least}" if least == most else f"{series.name} {least} to {most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """
    A quantity that a reader may change.

    Args:
        key: Its name in formulas.
        label: What it is called.
        unit: What stands behind its value.
        least: Its smallest value, in base units like all values.
        most: Its largest value.
        step: How far apart its values are; of a logarithmic slider, what they are multiples of, 0 for any.
        start: The value that the page opens with; it need not be a multiple.
        log: Whether values are a few percent apart rather than a step.
        factor: How many units that are shown one base unit is, as 100 for percent.
        decimals: Of the value as it is shown, and as it may be typed.
    """

    key: str
    label: str
    unit: str
    least: float
    most: float
    step: float
    start: float
    log: bool = False
    factor: float = 1.0
    decimals: int = 0

    @property
    def stops(self) -> tuple[float, ...]:
        """Every value that it can be moved to, from the smallest to the largest; the start is one of them."""
        count = _STOPS if self.log else round((self.most - self.least) / self.step)
        between = (self._near(n / count) if self.log else self.least + n * self.step for n in range(1, count))
        found = {self.least, self.start, self.most, *(round(value, _PLACES) for value in between)}
        return tuple(sorted(value for value in found if self.least <= value <= self.most))

    def _near(self, share: float) -> float:
        """A round value at a share of the way from the smallest to the largest."""
        value = rounded(exp((1.0 - share) * log(self.least) + share * log(self.most)))
        return round(value / self.step) * self.step if self.step else value

    def said(self, value: float) -> str:
        """A value with its unit."""
        return f"{value * self.factor:,.{self.decimals}f} {self.unit}".rstrip()


class Formula(NamedTuple):
    """
    One equation of a widget.

    Args:
        key: The name of its result.
        equation: The function.
        inputs: For each argument the key of a slider, a constant or an earlier formula.
    """

    key: str
    equation: Callable[..., Any]
    inputs: Mapping[str, str]


class Output(NamedTuple):
    """
    A result that a reader sees.

    Args:
        key: Its name.
        label: What it is called.
        text: What is shown, with `{}` for each number.
        keys: What stands in these places: keys of formulas, or of sliders.
        decimals: Of the numbers; as many as their size needs where None.
        factor: How many units that are shown one base unit is.
    """

    key: str
    label: str
    text: str
    keys: tuple[str, ...]
    decimals: int | None = None
    factor: float = 1.0

    def said(self, values: Mapping[str, float]) -> str:
        """The result in words."""
        return self.text.format(*(number_text(values[key] * self.factor, self.decimals) for key in self.keys))


class Comparison(NamedTuple):
    """
    A result in words: which of two is smaller.

    Args:
        key: Its name.
        label: What it is called.
        first: Key of the one.
        second: Key of the other.
        words: What is said where the first is smaller, where the second is, and where they are even.
        even: The share of the larger one by which they may differ and still be even.
    """

    key: str
    label: str
    first: str
    second: str
    words: tuple[str, str, str]
    even: float = 0.005

    def said(self, values: Mapping[str, float]) -> str:
        """The result in words."""
        first, second = values[self.first], values[self.second]
        if abs(first - second) <= self.even * max(first, second):
            return self.words[2]
        return self.words[0] if first < second else self.words[1]


class StripPart(NamedTuple):
    """
    A part of a strip.

    Args:
        key: Its size.
        label: What it is.
        role: What it stands for, which gives it its colour.
        idle: Key of how much of it does nothing; empty where that is not the question.
    """

    key: str
    label: str
    role: Role
    idle: str = ""


class Strip(NamedTuple):
    """
    A bar that is divided into parts.

    Args:
        label: What the whole is.
        parts: From left to right.
        mark: Key of the place where a line stands; empty for none.
        mark_label: What the line says.
    """

    label: str
    parts: tuple[StripPart, ...]
    mark: str = ""
    mark_label: str = ""


class Widget(NamedTuple):
    """
    Sliders, and what follows from them.

    Args:
        title: What it lets one try.
        text: What it assumes.
        sliders: What may be changed.
        constants: What is held as it is.
        formulas: What follows, each from what stands before it.
        outputs: What is shown of it.
        summary: The answer in a sentence, with `{key}` for the outputs in it.
        strip: A bar that shows it.
    """

    title: str
    text: str
    sliders: tuple[Slider, ...]
    constants: Mapping[str, float]
    formulas: tuple[Formula, ...]
    outputs: tuple[Output | Comparison, ...]
    summary: str
    strip: Strip

    @property
    def start(self) -> dict[str, float]:
        """The value of each slider that the page opens with."""
        return {slider.key: slider.start for slider in self.sliders}

    def worked(self, values: Mapping[str, float]) -> dict[str, float]:
        """Everything that follows from the sliders' values, by key; the values and constants too."""
        found = {**self.constants, **values}
        for formula in self.formulas:
            found[formula.key] = formula.equation(**{name: found[key] for name, key in formula.inputs.items()})
        return found

    def said(self, values: Mapping[str, float]) -> dict[str, str]:
        """Every output in words, by key."""
        found = self.worked(values)
        return {output.key: output.said(found) for output in self.outputs}


def rounded(value: float) -> float:
    """
    A value as somebody would type it, with two digits.

    >>> rounded(762.5), rounded(0.3125), rounded(48800.0)
    (760.0, 0.31, 49000.0)
    """
    return float(f"{value:.2g}")


def number_text(value: float, decimals: int | None = None) -> str:
    """
    A number of a widget.

    >>> number_text(96000.0), number_text(8.192), number_text(0.0364, 1)
    ('96,000', '8.19', '0.0')
    """
    needed = next(places for least, places in DIGITS if abs(value) >= least or not value)
    places = needed if decimals is None else decimals
    return f"{value + 0.0:,.{places}f}"
