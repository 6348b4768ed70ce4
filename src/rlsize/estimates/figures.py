"""
Working an answer out: equations applied to figures, so that every result knows where it came from.

`apply` calls one equation; `with_bands` repeats a whole answer on joint draws of its uncertain inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlsize.equations._ops import Real
    from rlsize.facts.figure import Value

DRAWS = 400
LOW, HIGH = 0.1, 0.9  # the ends of an 80 % interval
_TRIES = 50  # draws outside an input's limits before it is clipped

Q = TypeVar("Q")

Worked: TypeAlias = Any
"""What an equation gives to an estimate: a figure, a number, or an array of draws or alternatives."""

Work: TypeAlias = "Callable[..., Worked]"
"""Who works equations out for an estimate: `apply`, or `numbers`."""


def apply(key: str, equation: Callable[..., Any], /, **inputs: Figure | float) -> Figure:
    """
    The result of an equation as a figure; where an input is missing, a figure that says which.

    Args:
        key: The result's name.
        equation: A function of `rlsize.equations`.
        inputs: Its arguments: figures, or plain numbers that need no explanation.

    >>> from rlsize.equations.matching import consumption
    >>> tokens, time = Figure(key="batch_tokens", value=786432), Figure(key="train_seconds", value=20)
    >>> apply("consumption_tokens_per_second", consumption, tokens_per_step=tokens, train_seconds=time).value
    39321.6
    """
    figures = {name: value if isinstance(value, Figure) else _constant(name, value) for name, value in inputs.items()}
    lacking = [figure.missing for figure in figures.values() if not figure.known]
    missing = ", ".join(dict.fromkeys(", ".join(lacking).split(", "))) if lacking else ""
    return Figure(
        key=key,
        value=None if lacking else equation(**{name: figure.value for name, figure in figures.items()}),
        provenance="predicted",
        equation=f"{equation.__module__.rpartition('.')[2]}.{equation.__name__}",
        inputs=figures,
        missing=missing,
        verified=bool(lacking) or all(figure.verified for figure in figures.values()),
        function=equation,
    )


def numbers(_key: str, equation: Callable[..., Any], /, **inputs: Real) -> Real:
    """
    The result of an equation on bare numbers or arrays; takes the place of `apply` where nothing is explained.

    An estimate that takes `apply` or this as an argument is written once: with `apply` it is an answer that can be
    explained, with this it runs on arrays of draws or alternatives.
    """
    return equation(**inputs)


def measured(key: str, value: Value, source: str = "", missing: str = "", deviation: float = 0.0) -> Figure:
    """
    A figure that was measured; without a value, it says what would tell it.

    >>> measured("gpus", 8, "the log").provenance, measured("gpus", None, missing="a log that has it").known
    ('measured', False)
    """
    if value is None:
        return absent(key, missing)
    return Figure(key=key, value=value, provenance="measured", source=source, deviation=deviation)


def predicted(key: str, value: Worked, source: str) -> Figure:
    """A figure that no equation of a few inputs gives; the source says what does."""
    return Figure(key=key, value=float(value), provenance="predicted", source=source)


def known(*figures: Figure, **named: Figure) -> dict[str, Figure]:
    """
    The figures that have a value, by key, or by the name that they are given here.

    >>> list(known(measured("a", 1), measured("b", None), c=measured("a", 2)))
    ['a', 'c']
    """
    pairs = (*((figure.key, figure) for figure in figures), *named.items())
    return {key: figure for key, figure in pairs if figure.known}


def _constant(name: str, value: float) -> Figure:
    return Figure(key=name, value=value, provenance="default", source="fixed by the question")


def rounded(figure: Figure, key: str, value: float) -> Figure:
    """
    A whole-number decision beside the exact figure that it was rounded from.

    Args:
        figure: The exact figure; one that lacks an input stays so.
        key: The decision's name.
        value: The whole number; ignored where the exact figure lacks an input.
    """
    if not figure.known:
        return replace(figure, key=key)
    how = f"{figure.number:.6g}, in whole numbers"
    return replace(figure, key=key, value=value, source=how, function=None)


def total(key: str, parts: Sequence[Figure]) -> Figure:
    """The sum of figures that are known; missing parts are not counted and not hidden: the caller names them."""
    known = [part for part in parts if part.known]
    inputs = {part.key: part for part in known}
    verified = all(part.verified for part in known)
    value = _sum(**{key: part.number for key, part in inputs.items()})
    return Figure(key=key, value=value, provenance="predicted", inputs=inputs, verified=verified, function=_sum)


def _sum(**parts: float) -> float:
    return sum(parts.values())


def added(work: Callable[..., Real], key: str, parts: Sequence[Real]) -> Real:
    """The sum of figures, or of bare numbers."""
    if work is not apply:
        return sum(parts)
    figures = [
        part if isinstance(part, Figure) else Figure(key=key, value=part, provenance="default") for part in parts
    ]
    if len(figures) == 1:
        return replace(figures[0], key=key)
    if len({figure.key for figure in figures}) < len(figures):  # `total` keeps one of each key
        figures = [replace(part, key=f"{part.key}_{place}") for place, part in enumerate(figures, start=1)]
    return total(key, figures)


def ends(figure: Figure) -> tuple[float, float]:
    """Low and high end of the band; the number twice where it is a point."""
    return figure.band or (figure.number, figure.number)


class Draw:
    """
    One joint draw of the uncertain inputs.

    The same input has the same value wherever it is used, whatever else is asked beside it; a figure that was worked
    out is worked out again.
    """

    def __init__(self, random: Random) -> None:
        self.base = random.random()
        self.roots: dict[tuple[str, str, float], float] = {}

    def copied(self) -> Draw:
        """The same draw, to take more values into."""
        other = copy(self)
        other.roots = dict(self.roots)
        return other

    def of(self, figure: Figure) -> Figure:
        """The figure in this draw."""
        if not uncertain(figure):
            return figure
        if figure.function is not None:
            inputs = {name: self.of(entry) for name, entry in figure.inputs.items()}
            value = figure.function(**{name: entry.value for name, entry in inputs.items()})
            return replace(figure, value=value, inputs=inputs)
        root = (figure.key, figure.source, figure.number)
        if root not in self.roots:
            own = Random(f"{self.base} {figure.key} {figure.deviation / figure.number:.9g}")  # noqa: S311 (draws for a band, not for a secret)
            self.roots[root] = _within(figure, own)
        return replace(figure, value=self.roots[root], deviation=0.0)

    def through(self, question: Q) -> Q:
        """A question with every figure in it, nested dataclasses included, as in this draw."""
        changes: dict[str, Any] = {}
        for name, value in entries(question).items():
            if isinstance(value, Figure):
                changes[name] = self.of(value)
            elif is_dataclass(value) and not isinstance(value, type):
                changes[name] = self.through(value)
        if isinstance(question, Mapping):
            return {**question, **changes}  # type: ignore[return-value]  # a mapping again
        return replace(question, **changes)  # type: ignore[type-var]  # a dataclass


def entries(question: object) -> Mapping[str, Any]:
    """What a question holds, by name: a mapping as it is, the fields of a dataclass."""
    if isinstance(question, Mapping):
        return question
    if not is_dataclass(question):
        raise TypeError(f"{type(question).__name__} is neither a mapping nor a dataclass")
    return {entry.name: getattr(question, entry.name) for entry in fields(question)}


def figures_in(question: object) -> dict[str, Figure]:
    """The figures of a question, by name."""
    return {name: value for name, value in entries(question).items() if isinstance(value, Figure)}


def alike(one: object, kind: type) -> dict[str, Any]:
    """What a mapping or a dataclass holds, by name, of what a dataclass of another kind has too."""
    names = {entry.name for entry in fields(kind)}
    return {name: value for name, value in entries(one).items() if name in names}


def uncertain(figure: Figure) -> bool:
    """Whether a figure, or anything that it was worked out from, carries a standard deviation."""
    return figure.known and (bool(figure.deviation) or any(uncertain(entry) for entry in figure.inputs.values()))


def _within(figure: Figure, random: Random) -> float:
    """A draw inside the figure's limits: lognormal, so that no rate and no time turns negative; clipped if need be."""
    mean = figure.number
    spread = math.log1p((figure.deviation / mean) ** 2)
    value = mean
    for _ in range(_TRIES):
        value = mean * math.exp(math.sqrt(spread) * random.gauss(0.0, 1.0) - spread / 2)
        if (figure.least is None or value >= figure.least) and (figure.most is None or value <= figure.most):
            return value
    low = value if figure.least is None else max(value, figure.least)
    return low if figure.most is None else min(low, figure.most)


def uncertain_inputs(question: object) -> list[str]:
    """The entries of a question that carry a standard deviation, in themselves or in what they hold."""
    found = []
    for name, value in entries(question).items():
        if isinstance(value, Figure):
            found += [name] if uncertain(value) else []
        elif is_dataclass(value) and not isinstance(value, type) and uncertain_inputs(value):
            found.append(name)
    return found


def with_bands(
    answer: Callable[[Q], list[Figure]], question: Q, random: Random | tuple[Draw, ...] | None, draws: int = DRAWS
) -> list[Figure]:
    """
    The answer to a question, each number with its 80 % interval.

    Args:
        answer: Works the figures out; called once with the question as it is, then once for each draw.
        question: Figures by key, or a dataclass of figures and of dataclasses of them; the uncertain ones are drawn
            together.
        random: The generator; the same seed gives the same draws, so alternatives can be compared. Or the draws
            themselves, where another answer was worked out with them.
        draws: How many.

    Returns:
        The figures for the question as it is, with bands where an uncertain input reaches them. A figure that has no
        value in more than a tenth of the draws (a cap that is never reached) has no band.
    """
    figures = answer(question)
    if random is None or not uncertain_inputs(question):
        return figures
    samples: dict[int, list[float]] = {index: [] for index in range(len(figures))}
    joint = random if isinstance(random, tuple) else (Draw(random) for _ in range(draws))
    for draw in joint:
        for index, figure in enumerate(answer(draw.through(question))):
            if isinstance(figure.value, (int, float)) and not isinstance(figure.value, bool):
                samples[index].append(figure.number)
    return [_banded(figure, sorted(samples[index]), draws) for index, figure in enumerate(figures)]


def _banded(figure: Figure, sample: list[float], draws: int) -> Figure:
    if len(sample) < HIGH * draws or math.isclose(sample[0], sample[-1], rel_tol=1e-9):  # the same but for float noise
        return figure
    return replace(figure, band=(_quantile(sample, LOW), _quantile(sample, HIGH)))


def _quantile(ordered: list[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
