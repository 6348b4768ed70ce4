"""Unit covariance: change what a second, a byte or a token is, and every answer changes by its own unit and no more."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.reports.equation_page import page, parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.equations.conftest import Case

    Powers = Callable[[str], dict[str, int]]

# A constant with a unit of its own stands in these equations. Its units are scaled so that it stays the same number.
CONSTANTS = {
    "iteration.iterations_per_day": "s/day",
    "matching.generation_flops_per_token": "FLOP/token/param",
    "matching.training_flops_per_token": "FLOP/token/param",
    "money.cost_per_million_trained_tokens": "token/Mtoken",
    "money.cost_per_step": "s/hour",
    "money.gpu_hours": "s/hour",
    "money.idle_cost_per_step": "s/hour",
    "training_flops.attention_flops_per_token": "FLOP/token^2",
}
DRAWS = 5
LARGEST_EXPONENT = 12


def drawn_exponents(bases: Iterable[str], constant: Mapping[str, int], random: Random) -> dict[str, int]:
    """
    A power of two for each base unit.

    Powers of two scale a float without rounding, so that a step (floor, ceil, min) falls where it fell before.
    """
    exponents = {
        base: random.choice([-1, 1]) * random.randint(1, LARGEST_EXPONENT) for base in sorted({*bases, *constant})
    }
    if constant:  # the first unit makes up for the others, so that the constant keeps its number
        first, *others = constant
        exponents[first] = -sum(constant[base] * exponents[base] for base in others) * constant[first]
    return exponents


def scale(powers: Mapping[str, int], exponents: Mapping[str, int]) -> float:
    """How many times larger the number of a quantity becomes."""
    return 2.0 ** sum(power * exponents[base] for base, power in powers.items())


def deviations(
    function: Callable[..., Any],
    units: Mapping[str, str],
    unit: str,
    inputs: Mapping[str, Any],
    constant: str,
    powers: Powers,
) -> list[tuple[float, float]]:
    """Pairs of what came out and what should have, for each draw in which they differ."""
    read = {name: powers(text) for name, text in units.items()}
    result = powers(unit)
    bases = {base for found in [*read.values(), result] for base in found}
    found = []
    plain = function(**inputs)
    for seed in range(DRAWS):
        exponents = drawn_exponents(bases, powers(constant), Random(seed))
        got = function(**{name: value * scale(read[name], exponents) for name, value in inputs.items()})
        expected = plain * scale(result, exponents)
        if got != pytest.approx(expected, rel=1e-9, abs=1e-12 * scale(result, exponents)):
            found.append((got, expected))
    return found


def test_the_answer_scales_by_its_unit(case: Case, powers: Powers) -> None:
    """Inputs in other units give the same answer in other units."""
    entry = page(case.name)
    units = {argument.name: argument.unit for argument in entry.arguments}
    assert deviations(case.result, units, entry.unit, case.inputs, CONSTANTS.get(case.name, "1"), powers) == []


@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_an_exception_is_needed(name: str, powers: Powers, all_cases: tuple[Case, ...]) -> None:
    """Without its constant's unit the equation would fail, so the table of exceptions holds no stale entry."""
    entry = page(name)
    units = {argument.name: argument.unit for argument in entry.arguments}
    case = next(case for case in all_cases if case.name == name)
    assert deviations(case.result, units, entry.unit, case.inputs, "1", powers) != []


def test_integers_stay_integers(case: Case) -> None:
    """A result of unit [1, integer] is a whole number."""
    if page(case.name).unit == "1, integer":
        assert case.result() == round(case.result())


WRONG = """
Time of a thing.

t = S / B + a

Args:
    size: Size, S. [B]
    bandwidth: Bandwidth, B. [B/s]
    latency: Latency, a. [{unit}]

Returns:
    t. [s]

Assumes nothing.
Source: none.

>>> 1
1
"""


@pytest.mark.parametrize(("unit", "right"), [("s", True), ("1", False), ("B", False), ("B/s", False)])
def test_a_wrong_unit_is_found(unit: str, right: bool, powers: Powers) -> None:
    """The check accepts a sum of times and refuses the sum of a time and something else."""
    entry = parsed("x.y", WRONG.strip().format(unit=unit))
    units = {argument.name: argument.unit for argument in entry.arguments}
    found = deviations(lambda size, bandwidth, latency: size / bandwidth + latency, units, entry.unit,
                       {"size": 8.0, "bandwidth": 2.0, "latency": 1.0}, "1", powers)  # fmt: skip
    assert (found == []) is right
