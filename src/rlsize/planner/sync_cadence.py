"""How often to sync, so that the pause stays under its target share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.estimates.figures import rounded, with_bands
from rlsize.estimates.sync import SyncQuestion, link_rows, method_rows, sync_results
from rlsize.planner.rounding import rounded_up

if TYPE_CHECKING:
    from random import Random

    from rlsize.estimates.sync import LinkFigures
    from rlsize.facts.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAnswer:
    """
    What a weight sync costs, and the alternatives.

    Args:
        question: What was asked.
        results: Bytes, seconds, pause and cadence of the chosen method.
        methods: Rows of figures, one for each method.
        links: Rows of figures, one for each link that was compared.
    """

    question: SyncQuestion
    results: tuple[Figure, ...]
    methods: tuple[dict[str, Any], ...]
    links: tuple[dict[str, Any], ...]


def plan_sync(question: SyncQuestion, links: tuple[LinkFigures, ...] = (), random: Random | None = None) -> SyncAnswer:
    """
    What a weight sync costs by the chosen method, by the others, and over other links.

    Args:
        question: What is known.
        links: Links to compare.
        random: Generator for the bands of uncertain inputs; None for central values only.
    """
    results = [
        rounded(figure, figure.key, rounded_up) if figure.key.endswith("sync_every_steps") else figure
        for figure in sync_results(question)
    ]
    return SyncAnswer(
        question=question,
        results=with_bands(results, random),
        methods=method_rows(question),
        links=link_rows(question, links),
    )
