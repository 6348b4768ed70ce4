"""Sliders, and what follows from them: a description that Python and a page's script both work out."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.reports.chart import Role

_STOPS = 96  # places of a logarithmic slider: about 4 % apart over a range of 1 to 64
_PLACES = 9  # decimals that a value keeps, so that 0.1 + 0.2 is 0.3
DIGITS = ((1000.0, 0), (100.0, 1), (1.0, 2), (0.1, 3), (0.01, 4), (0.0, 6))
"""Decimals of a result from each size on, where the result does not say how many it has."""


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
