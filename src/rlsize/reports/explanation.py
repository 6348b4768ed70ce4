"""Why a result is what it is: formula, numbers, source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.reports.equation_page import page
from rlsize.reports.wording import origin, shown
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.figure import Figure


@dataclass(frozen=True, slots=True)
class Explanation:
    """
    One result, explained.

    Args:
        key: The result's key.
        value: Its value for people.
        lines: Formula, each input with its value and origin, assumptions, source.
    """

    key: str
    value: str
    lines: tuple[str, ...]


def explanations(figures: Iterable[Figure]) -> list[Explanation]:
    """An explanation for each figure that an equation gave, and the origin of each that was said."""
    return [Explanation(figure.key, shown(figure, figure.key), tuple(_lines(figure))) for figure in figures]


def _lines(figure: Figure) -> list[str]:
    if not figure.equation:
        if figure.inputs:
            return [
                "sum of " + " + ".join(f"{part.key} {show(part.value, part.key)}" for part in figure.inputs.values())
            ]
        return [origin(figure) or f"needs {figure.missing}"]
    entry = page(figure.equation)
    lines = [
        *entry.formula.splitlines(),
        *_inputs(figure, {argument.name: argument.unit for argument in entry.arguments}),
    ]
    if not figure.known:
        lines.append(f"not computed: needs {figure.missing}")
    elif figure.source:
        lines.append(f"= {figure.source}: {shown(figure, figure.key)}")
    return [*lines, f"Assumes {entry.assumes}", f"Source: {entry.source}"]


def _inputs(figure: Figure, units: dict[str, str]) -> list[str]:
    width = max((len(name) for name in figure.inputs), default=0)
    return [
        f"{name:<{width}} = {_number(value)} [{units.get(name, '')}]  {origin(value)}".rstrip()
        for name, value in figure.inputs.items()
    ]


def _number(figure: Figure) -> str:
    if not figure.known:
        return "unknown"
    return f"{figure.value:.10g}" if isinstance(figure.value, float) else str(figure.value)
