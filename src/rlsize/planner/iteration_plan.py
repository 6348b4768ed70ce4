"""One iteration and what it takes in whole workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.equations import iteration, matching
from rlsize.estimates.figures import apply, rounded, with_bands
from rlsize.planner.iteration import IterationQuestion, iteration_results, mode_rows, rollout_time, scored_samples
from rlsize.planner.rounding import rounded_up

if TYPE_CHECKING:
    from random import Random

    from rlsize.estimates.figures import Draw
    from rlsize.facts.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationAnswer:
    """
    One iteration, and the other ways to lay it out.

    Args:
        question: What was asked.
        results: Figures of the chosen mode.
        modes: Rows of figures, one for each mode.
        as_prompts_samples: Samples, had the sample count meant prompts of a whole group each.
        as_prompts_rollout_seconds: Rollout time of so many.
    """

    question: IterationQuestion
    results: tuple[Figure, ...]
    modes: tuple[dict[str, Any], ...]
    as_prompts_samples: Figure
    as_prompts_rollout_seconds: Figure


def plan_iteration(question: IterationQuestion, random: Random | tuple[Draw, ...] | None = None) -> IterationAnswer:
    """
    How long one iteration takes, by each mode, and how many verifiers keep up with it.

    Args:
        question: What is known.
        random: Generator for the bands of uncertain inputs; None for central values only.
    """
    more = apply(
        "samples_per_step", matching.samples_per_step, prompts=question.samples, group_size=question.group_size
    )
    return IterationAnswer(
        question=question,
        results=tuple(with_bands(_results, question, random)),
        modes=mode_rows(question),
        as_prompts_samples=more,
        as_prompts_rollout_seconds=rollout_time(question, "", samples=more),
    )


def _results(question: IterationQuestion) -> list[Figure]:
    figures = iteration_results(question)
    if question.verify_seconds.known:
        figures += [verifier_workers(question, prefix) for prefix in question.prefixes]
    return figures


def verifier_workers(question: IterationQuestion, prefix: str) -> Figure:
    """The fewest whole workers that score samples as fast as they come."""
    key = f"{prefix}verifier_workers"
    exact = apply(
        key,
        iteration.verifier_workers,
        samples_per_second=scored_samples(question, prefix),
        verify_seconds=question.verify_seconds,
    )
    return rounded(exact, key, rounded_up(exact.number) if exact.known else 0)
