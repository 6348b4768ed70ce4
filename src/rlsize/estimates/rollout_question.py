"""What is asked of a rollout prediction: an engine, the lengths of its samples, its load, and what waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import rollout_batch
from rlsize.estimates.figures import DRAWS, Draw, apply, uncertain
from rlsize.estimates.generation import StepBatch
from rlsize.estimates.rollout_prediction import engine_limit
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.generation import Ending

    Work = Callable[..., Any]

_NUMBERS = (
    "prompt_tokens",
    "response_tokens",
    "response_cv",
    "max_response_tokens",
    "hit_fraction",
    "concurrency",
    "instances",
    "samples_per_step",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutQuestion:
    """
    An engine and its load; the last three figures may lack a value.

    Args:
        engine: One instance.
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length, samples cut at the cap included. [token]
        response_cv: Coefficient of variation of response lengths without the cap. [1]
        max_response_tokens: The cap. [token]
        hit_fraction: Share of prompt tokens found in the prefix cache. [1]
        concurrency: Samples offered to one instance. [1]
        instances: Rollout instances. [1]
        samples_per_step: Samples generated for one optimizer step. [1]
        ending: barrier (a step waits for its last sample) or refill (finished samples are replaced at once).
    """

    engine: EngineQuestion
    prompt_tokens: Figure
    response_tokens: Figure
    response_cv: Figure
    max_response_tokens: Figure
    hit_fraction: Figure
    concurrency: Figure
    instances: Figure
    samples_per_step: Figure
    ending: Ending = "barrier"

    @property
    def stated(self) -> dict[str, Figure]:
        """Its numbers as figures."""
        return {name: getattr(self, name) for name in _NUMBERS}

    @property
    def whole_step(self) -> bool:
        """Whether fleet and batch of an optimizer step are known."""
        return self.instances.known and self.samples_per_step.known


def bare(question: RolloutQuestion) -> dict[str, float | None]:
    """The numbers of a question; None where one lacks a value."""
    return {name: figure.number if figure.known else None for name, figure in question.stated.items()}


def figures(question: RolloutQuestion) -> dict[str, Figure | None]:
    """The same as figures."""
    return {name: figure if figure.known else None for name, figure in question.stated.items()}


def drawn(question: RolloutQuestion, seed: int) -> dict[str, Any]:
    """The same; those with a standard deviation as arrays of joint draws."""
    random = Random(seed)  # noqa: S311 (draws for a band, not for a secret)
    moving = {name: figure for name, figure in question.stated.items() if figure.known and uncertain(figure)}
    joint = [Draw(random) for _ in range(DRAWS if moving else 0)]
    return bare(question) | {
        name: np.array([draw.of(figure).number for draw in joint]) for name, figure in moving.items()
    }


def step_batch(question: RolloutQuestion, said: Mapping[str, Any]) -> StepBatch:
    """The batch of a step; one sample and one instance where nobody says, as lengths do not depend on them."""
    return StepBatch(
        samples=1.0 if said["samples_per_step"] is None else said["samples_per_step"],
        instances=1.0 if said["instances"] is None else said["instances"],
        prompt_tokens=said["prompt_tokens"],
        response_tokens=said["response_tokens"],
        response_cv=said["response_cv"],
        max_tokens=said["max_response_tokens"],
        hit_ratio=said["hit_fraction"],
        ending=question.ending,
    )


def offered(work: Work, question: RolloutQuestion, said: Mapping[str, Any]) -> Any | None:  # noqa: ANN401 (as `work` makes them)
    """Samples offered to one instance: as asked, else its part of a step that waits for its last sample; else None."""
    if said["concurrency"] is not None:
        return said["concurrency"]
    if question.ending == "barrier" and question.whole_step:
        return work(
            "samples_per_instance",
            rollout_batch.per_instance,
            amount=said["samples_per_step"],
            instances=said["instances"],
        )
    return None


def most(work: Work, question: RolloutQuestion) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Samples that the engine's own limit lets it work on."""
    limit = engine_limit(question.engine)
    if work is not apply:
        return limit
    said = question.engine.max_sequences is not None
    source = "as asked" if said else f"default of {question.engine.engine}, times ranks of attention"
    return Figure(key="engine_limit", value=limit, provenance="given" if said else "default", source=source)
