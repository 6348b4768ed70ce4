"""What a loop gives: step, cost, idle shares and memory, with bands; the one answer of all commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.planner.choice import scatter_name
from rlsize.planner.evaluation import Evaluation, evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.figure import Figure
    from rlsize.loop.resolve import Loop


def answer_of(loop: Loop) -> Evaluation:
    """
    What a loop gives; why it cannot run where it cannot.

    Args:
        loop: The loop; one that is placed.
    """
    if loop.place is None:
        return Evaluation(placement={}, results={}, refused=loop.refused)
    return evaluation(loop.outlook, loop.place, scatter_name(loop.place))


def agreed(figures: Iterable[Figure], found: Evaluation) -> tuple[Figure, ...]:
    """Figures of one stage, where the whole loop tells of the same quantity as the loop has them."""
    return tuple(_agreed(figure, found.results.get(figure.key)) for figure in figures)


def _agreed(own: Figure, loops: Figure | None) -> Figure:
    return own if loops is None or not loops.known else loops
