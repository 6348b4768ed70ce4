"""The form of an equation: what its docstring must say, and how units are written."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rlsize.reports.equation_page import equation, equation_names, page, parsed

if TYPE_CHECKING:
    from collections.abc import Callable

BASE_UNITS = {
    "B", "FLOP", "J", "Mtoken", "block", "day", "expert", "gpu", "head", "hour", "instance", "layer", "node", "param",
    "prompt", "s", "sample", "step", "token", "usd", "value", "worker",
}  # fmt: skip


def test_equations_are_found() -> None:
    """The walk finds the equations of every topic, so that no test below runs for nothing."""
    files = {name.partition(".")[0] for name in equation_names()}
    assert {"matching", "imbalance", "weight_sync", "memory", "redundancy", "iteration", "money"} <= files


def test_every_part_is_there(equation_name: str) -> None:
    """A docstring has summary, formula, arguments, result, assumptions, source and example."""
    entry = page(equation_name)
    assert entry.summary.endswith(".")
    assert "=" in entry.formula or "≈" in entry.formula
    assert entry.assumes.endswith((".", ")"))
    assert entry.source
    assert equation_name.partition(".")[2] in entry.example


def test_arguments_are_the_signature(equation_name: str) -> None:
    """The docstring lists the arguments of the signature in its order; none has a default, none is left out."""
    parameters = inspect.signature(equation(equation_name)).parameters
    assert [argument.name for argument in page(equation_name).arguments] == list(parameters)
    assert all(parameter.default is inspect.Parameter.empty for parameter in parameters.values())


def test_units_are_well_formed(equation_name: str, powers: Callable[[str], dict[str, int]]) -> None:
    """Each argument and the result has a unit made of known base units."""
    entry = page(equation_name)
    for unit in [*(argument.unit for argument in entry.arguments), entry.unit]:
        assert set(powers(unit)) <= BASE_UNITS, unit


def test_the_formula_gives_the_result(equation_name: str) -> None:
    """The formula opens with the symbol that Returns names."""
    entry = page(equation_name)
    assert entry.formula.startswith(f"{entry.symbol} ")


def test_a_name_stands_for_one_equation() -> None:
    """No two files have a function of the same name, so `explain` needs no file."""
    counts = Counter(name.partition(".")[2] for name in equation_names())
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("1", {}),
        ("1, integer", {}),
        ("B/s/gpu", {"B": 1, "s": -1, "gpu": -1}),
        ("B/token^2", {"B": 1, "token": -2}),
        ("gpu*hour", {"gpu": 1, "hour": 1}),
        ("1/layer", {"layer": -1}),
        ("B/B", {}),
    ],
)
def test_units_are_read(unit: str, expected: dict[str, int], powers: Callable[[str], dict[str, int]]) -> None:
    """A unit is base units joined by slashes and stars; a slash divides by the one unit behind it."""
    assert powers(unit) == expected


@pytest.mark.parametrize(
    "unit", ["", "B/", "/s", "B s", "B/(s)", "tokens per second", "B^", "s, integer", "B/1", "1^2"]
)
def test_other_units_are_refused(unit: str, powers: Callable[[str], dict[str, int]]) -> None:
    """What is not written in the grammar is refused, not guessed."""
    with pytest.raises(ValueError, match=r"unit|\[1\]|stands"):
        powers(unit)


@pytest.mark.parametrize("part", ["S = b N", "Args:", "Returns:", "Assumes ", "Source:", ">>> "])
def test_a_missing_part_is_noticed(part: str) -> None:
    """A docstring without one of its parts is refused."""
    whole = inspect.cleandoc(equation("weight_bytes").__doc__ or "")
    assert parsed("weight_sync.weight_bytes", whole).formula == "S = b N"
    with pytest.raises(ValueError, match="weight_bytes"):
        parsed("weight_sync.weight_bytes", "\n\n".join(block for block in whole.split("\n\n") if part not in block))
