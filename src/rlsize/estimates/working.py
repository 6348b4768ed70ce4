"""
Working an answer out: equations applied to figures, so that every result knows where it came from.

`apply` calls one equation; `with_bands` repeats a whole answer on joint draws of its uncertain inputs.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

DRAWS = 400
LOW, HIGH = 0.1, 0.9  # the ends of an 80 % interval

Q = TypeVar("Q")


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
    figures = {
        name: value if isinstance(value, Figure) else Figure(key=name, value=value) for name, value in inputs.items()
    }
    lacking = [figure.missing for figure in figures.values() if not figure.known]
    name = f"{equation.__module__.rpartition('.')[2]}.{equation.__name__}"
    if lacking:
        missing = ", ".join(dict.fromkeys(", ".join(lacking).split(", ")))
        return Figure(key=key, value=None, provenance="predicted", equation=name, inputs=figures, missing=missing)
    value = equation(**{name: figure.value for name, figure in figures.items()})
    return Figure(
        key=key,
        value=value,
        provenance="predicted",
        equation=name,
        inputs=figures,
        deviation=_deviation(equation, figures, value),
        verified=all(figure.verified for figure in figures.values()),
    )


def _deviation(equation: Callable[..., Any], figures: dict[str, Figure], value: float) -> float:
    """
    The standard deviation that uncertain inputs give the result, to first order.

    An input that was itself worked out (a consumption from a batch and a time) so stays uncertain when it is asked on.
    """
    uncertain = {name: figure for name, figure in figures.items() if figure.deviation}
    if not uncertain:
        return 0.0
    plain = {name: figure.value for name, figure in figures.items()}
    shifts = (equation(**plain | {name: entry.number + entry.deviation}) - value for name, entry in uncertain.items())
    return math.sqrt(sum(float(shift) ** 2 for shift in shifts))


def total(key: str, parts: Sequence[Figure]) -> Figure:
    """The sum of figures that are known; missing parts are not counted and not hidden: the caller names them."""
    known = [part for part in parts if part.known]
    inputs = {part.key: part for part in known}
    verified = all(part.verified for part in known)
    return Figure(
        key=key, value=sum(part.number for part in known), provenance="predicted", inputs=inputs, verified=verified
    )


def drawn(figure: Figure, random: Random) -> Figure:
    """
    The same figure with a value drawn from its uncertainty: lognormal, so that no rate and no time turns negative.

    Its mean and its standard deviation are those of the figure; a figure without a deviation stays as it is.
    """
    if not figure.deviation:
        return figure
    mean = figure.number
    spread = math.log1p((figure.deviation / mean) ** 2)
    value = math.exp(math.log(mean) - spread / 2 + math.sqrt(spread) * random.gauss(0.0, 1.0))
    return replace(figure, value=value, deviation=0.0)


def uncertain_inputs(question: object) -> list[str]:
    """The fields of a question (a dataclass) that carry a standard deviation."""
    found = []
    for entry in fields(question):  # type: ignore[arg-type]  # callers pass dataclass instances
        value = getattr(question, entry.name)
        if isinstance(value, Figure) and value.deviation:
            found.append(entry.name)
    return found


def with_bands(
    answer: Callable[[Q], list[Figure]], question: Q, random: Random | None, draws: int = DRAWS
) -> list[Figure]:
    """
    The answer to a question, each number with its 80 % interval.

    Args:
        answer: Works the figures out; called once with the question as it is, then once for each draw.
        question: A dataclass whose fields are figures; those with a deviation are drawn, all in one draw together.
        random: The generator; the same seed gives the same draws, so alternatives can be compared.
        draws: How many.

    Returns:
        The figures for the question as it is, with bands where an uncertain input reaches them.
    """
    figures = answer(question)
    names = uncertain_inputs(question)
    if not names or random is None:
        return figures
    samples: dict[int, list[float]] = {index: [] for index in range(len(figures))}
    for _ in range(draws):
        changed = replace(question, **{name: drawn(getattr(question, name), random) for name in names})  # type: ignore[type-var]  # a dataclass
        for index, figure in enumerate(answer(changed)):
            if isinstance(figure.value, (int, float)) and not isinstance(figure.value, bool):
                samples[index].append(figure.number)
    return [_banded(figure, sorted(samples[index])) for index, figure in enumerate(figures)]


def _banded(figure: Figure, sample: list[float]) -> Figure:
    if not sample or math.isclose(sample[0], sample[-1], rel_tol=1e-9):  # the same but for the last bits of floats
        return figure
    return replace(figure, band=(_quantile(sample, LOW), _quantile(sample, HIGH)))


def _quantile(ordered: list[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
