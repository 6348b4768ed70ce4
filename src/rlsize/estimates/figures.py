"""
Working an answer out: equations applied to figures, so that every result knows where it came from.

`apply` calls one equation; `with_bands` repeats an answer's equations on joint draws of its uncertain inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import fields, is_dataclass, replace
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlsize.equations._ops import Real
    from rlsize.facts.figure import Value

DRAWS = 400
LOW, HIGH = 0.1, 0.9  # the ends of an 80 % interval
_TRIES = 50  # draws outside an input's limits before it is clipped

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


def prior(key: str, middle: float, spread: float, why: str, most: float | None = None) -> Figure:
    """
    A quantity that nobody says, as others had it.

    Args:
        key: The quantity.
        middle: The middle of what others had, in its unit.
        spread: Standard deviation of its logarithm. [1]
        why: Who they are.
        most: The largest value that makes sense.
    """
    deviation = middle * math.sqrt(math.expm1(spread**2))
    return Figure(key=key, value=middle, provenance="default", source=why, deviation=deviation, least=1.0, most=most)


def measured(key: str, value: Value, source: str = "", missing: str = "", deviation: float = 0.0) -> Figure:
    """
    A figure that was measured; without a value, it says what would tell it.

    >>> measured("gpus", 8, "the log").provenance, measured("gpus", None, missing="a log that has it").known
    ('measured', False)
    """
    if value is None:
        return absent(key, missing)
    return Figure(key=key, value=value, provenance="measured", source=source, deviation=deviation)


def bare(value: Worked) -> Worked:
    """The value of a figure; what is none as it is."""
    return value.value if isinstance(value, Figure) else value


def generator(seed: float | str) -> Random:
    """A source of draws: the same for the same seed, so that an answer is."""
    return Random(seed)  # noqa: S311 (draws for a band, not for a secret)


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


def rounded(figure: Figure, key: str, whole: Callable[[float], int]) -> Figure:
    """
    A whole-number decision beside the exact figure that it was rounded from.

    Args:
        figure: The exact figure; one that lacks an input stays so.
        key: The decision's name.
        whole: How it is rounded.
    """
    if not figure.known:
        return replace(figure, key=key)
    exact = figure.function
    again = None if exact is None else lambda **inputs: whole(exact(**inputs))
    how = f"{figure.number:.6g}, in whole numbers"
    return replace(figure, key=key, value=whole(figure.number), source=how, function=again)


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

    The same input has the same value wherever it is used, whatever else is asked beside it.
    """

    def __init__(self, random: Random) -> None:
        self.base = random.random()
        self.roots: dict[tuple[str, str, float], float] = {}

    def copied(self) -> Draw:
        """The same draw, to take more values into."""
        other = copy(self)
        other.roots = dict(self.roots)
        return other

    def value(self, figure: Figure) -> float:
        """An uncertain input in this draw."""
        root = (figure.key, figure.source, figure.number)
        if root not in self.roots:
            own = generator(f"{self.base} {figure.key} {figure.deviation / figure.number:.9g}")
            self.roots[root] = _within(figure, own)
        return self.roots[root]


class _Drawn:
    """Figures in joint draws: an input as it is drawn; what was worked out, worked out again by its equation."""

    def __init__(self, joint: Sequence[Draw]) -> None:
        self.joint = joint
        self.found: dict[int, list[Value] | None] = {}

    def of(self, figure: Figure) -> list[Value] | None:
        """The values of a figure, one a draw, None where an equation has none; None for all where it is a point."""
        if id(figure) not in self.found:
            self.found[id(figure)] = self._worked(figure) if figure.known else None
        return self.found[id(figure)]

    def _worked(self, figure: Figure) -> list[Value] | None:
        drawn = {name: self.of(entry) for name, entry in figure.inputs.items()}
        moving = {name: values for name, values in drawn.items() if values is not None}
        if figure.function is None:
            return [draw.value(figure) for draw in self.joint] if moving or figure.deviation else None
        if not moving:
            return None
        fixed = {name: entry.value for name, entry in figure.inputs.items() if name not in moving}
        rows = zip(*moving.values(), strict=True)
        return [_again(figure.function, fixed, dict(zip(moving, row, strict=True))) for row in rows]


def _again(function: Callable[..., Any], fixed: Mapping[str, Value], moving: Mapping[str, Value]) -> Value:
    """What an equation gives in one draw; None where it has no value there: a cap that is never reached."""
    if None in moving.values():
        return None
    try:
        value: Value = function(**fixed, **moving)
    except ZeroDivisionError:
        return None
    return value


def in_draws(figure: Figure, joint: Sequence[Draw]) -> list[Value]:
    """The values of a figure in joint draws: None where an equation has none."""
    return _Drawn(joint).of(figure) or [figure.value] * len(joint)


def entries(question: object) -> Mapping[str, Any]:
    """What a question holds, by name: a mapping as it is, the fields of a dataclass."""
    if isinstance(question, Mapping):
        return question
    kind: Any = type(question)
    return {name: getattr(question, name) for name in _names(kind)}


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a dataclass."""
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is neither a mapping nor a dataclass")
    return tuple(entry.name for entry in fields(kind))


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


def times_off(figure: Figure, deviations: float) -> float:
    """
    What a figure may be over its value, so many deviations of its logarithm from the median. [1]

    A value that somebody gave with a spread is its mean; a default is the middle of what others had, as it was counted.
    """
    spread = math.log1p((figure.deviation / figure.number) ** 2)
    above = 0.0 if figure.provenance == "default" else spread / 2
    return math.exp(math.sqrt(spread) * deviations - above)


def _within(figure: Figure, random: Random) -> float:
    """A draw inside the figure's limits: lognormal, so that no rate and no time turns negative; clipped if need be."""
    value = figure.number
    for _ in range(_TRIES):
        value = figure.number * times_off(figure, random.gauss(0.0, 1.0))
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
    figures: Sequence[Figure], random: Random | tuple[Draw, ...] | None, draws: int = DRAWS
) -> tuple[Figure, ...]:
    """
    An answer's figures, each with its 80 % interval; the uncertain inputs behind them are drawn together.

    Args:
        figures: The answer. A figure follows its inputs by the function that it was worked out with.
        random: The generator; the same seed gives the same draws, so alternatives can be compared. Or the draws
            themselves, where another answer was worked out with them. None: no bands.
        draws: How many.

    Returns:
        The figures, with bands where an uncertain input reaches them. A figure that has no value in more than a tenth
        of the draws (a cap that is never reached) has no band.
    """
    if random is None or not any(map(uncertain, figures)):
        return tuple(figures)
    joint = random if isinstance(random, tuple) else tuple(Draw(random) for _ in range(draws))
    drawn = _Drawn(joint)
    return tuple(_banded(figure, drawn.of(figure) or [], draws) for figure in figures)


def _banded(figure: Figure, values: Sequence[Value], draws: int) -> Figure:
    sample = sorted(float(value) for value in values if isinstance(value, (int, float)) and math.isfinite(value))
    if len(sample) < HIGH * draws or math.isclose(sample[0], sample[-1], rel_tol=1e-9):  # the same but for float noise
        return figure
    return replace(figure, band=(quantile(sample, LOW), quantile(sample, HIGH)))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that a share of the others is below; between two of them a straight line."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
