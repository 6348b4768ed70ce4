"""How often to sync, so that the pause stays under its target share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations import sync_pause
from rlsize.estimates.figures import apply, rounded, with_bands
from rlsize.estimates.sync import SyncQuestion, link_rows, method_rows, sync_results
from rlsize.frozen import dataclass
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
    return SyncAnswer(
        question=question,
        results=with_bands(_results(question), random),
        methods=method_rows(question),
        links=link_rows(question, links),
    )


def _results(question: SyncQuestion) -> list[Figure]:
    figures = sync_results(question)
    found = {figure.key: figure for figure in figures}
    for prefix in ("", "expected_"):
        figures.append(sync_cadence(f"{prefix}sync_every_steps", question, found[f"{prefix}exposed_sync_seconds"]))
    return figures


def sync_cadence(key: str, question: SyncQuestion, exposed: Figure) -> Figure:
    """The fewest whole steps between syncs that keep the pause under its target share."""
    exact = apply(
        key,
        sync_pause.sync_cadence,
        exposed_sync_seconds=exposed,
        step_seconds_without_sync=question.step_seconds,
        target_fraction=question.target_fraction,
    )
    return rounded(exact, key, rounded_up)
