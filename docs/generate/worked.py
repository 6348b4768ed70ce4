"""Equations with numbers in them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from generate.files import fenced
from rlsize.reports.equation_page import equation, page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.reports.equation_page import EquationPage

_POWERS_FROM = 1e5


def worked(name: str, **inputs: float) -> str:
    """
    The formula of an equation, and at once a number.

    Args:
        name: The equation.
        inputs: Its arguments.
    """
    entry = page(name)
    return fenced(calculation(entry, inputs, equation(name)(**inputs)), "text")


def calculation(entry: EquationPage, inputs: Mapping[str, float], answer: float) -> str:
    """
    The formula of an equation, the call and its answer.

    Args:
        entry: The page of the equation.
        inputs: Its arguments.
        answer: What it returned.
    """
    function = entry.name.partition(".")[2]
    call = ", ".join(f"{key}={_shown(value)}" for key, value in inputs.items())
    unit = "" if entry.unit == "1" else f" {entry.unit}"
    return f"{entry.formula}\n\n{function}({call})\n  = {_shown(answer)}{unit}"


def answers(name: str, *cases: Mapping[str, float]) -> str:
    """
    An equation at several points, as a list of calls.

    Args:
        name: The equation.
        cases: Its arguments, one mapping for each point.
    """
    entry = page(name)
    unit = "" if entry.unit == "1" else f" {entry.unit}"
    function = entry.name.partition(".")[2]
    lines = []
    for inputs in cases:
        call = ", ".join(f"{key}={_shown(value)}" for key, value in inputs.items())
        lines.append(f"{function}({call}) = {_shown(equation(name)(**inputs))}{unit}")
    return fenced("\n".join(lines), "text")


def _shown(value: float) -> str:
    """A number as one would type it: `70e9`, not `7e+10`."""
    if isinstance(value, int) or abs(value) < _POWERS_FROM:
        return str(value) if isinstance(value, int) else f"{value:.6g}"
    exponent = 3 * (math.floor(math.log10(abs(value))) // 3)
    return f"{value / 10**exponent:.7g}e{exponent}"
