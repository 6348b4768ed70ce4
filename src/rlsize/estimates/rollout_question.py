"""What is asked of a rollout prediction: an engine, lengths, load, what waits for it; and whether the engine fits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import rollout_batch
from rlsize.errors import Refused
from rlsize.estimates.belief import drawn_inputs
from rlsize.estimates.engine_memory import check_room
from rlsize.estimates.figures import apply, figures_in, numbers
from rlsize.estimates.generation import StepBatch, lengths_of
from rlsize.estimates.rollout_prediction import cache_capacity, engine, engine_limit
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import WIDTHS, native, uniform
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.generation import Ending
    from rlsize.estimates.rollout_prediction import Lengths

A_FEW = 16
"""Samples that an instance should hold where nobody says how many GPUs it has."""

_NARROW = "fp8"


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
        return figures_in(self)

    @property
    def whole_step(self) -> bool:
        """Whether fleet and batch of an optimizer step are known."""
        return self.instances.known and self.samples_per_step.known


def bare(question: RolloutQuestion) -> dict[str, float | None]:
    """The numbers of a question; None where one lacks a value."""
    return {name: figure.if_known for name, figure in question.stated.items()}


def figures(question: RolloutQuestion) -> dict[str, Figure | None]:
    """The same as figures."""
    return {name: figure if figure.known else None for name, figure in question.stated.items()}


def drawn(question: RolloutQuestion, seed: int) -> dict[str, Any]:
    """The same; those with a standard deviation as arrays of joint draws."""
    return bare(question) | drawn_inputs(question.stated, seed)


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


def mean_lengths(question: RolloutQuestion) -> Lengths:
    """The lengths of its samples in numbers, for an engine at steady load."""
    return lengths_of(numbers, step_batch(question, bare(question)))


def offered(work: Work, question: RolloutQuestion, said: Mapping[str, Any]) -> Worked | None:
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


def most(work: Work, question: RolloutQuestion) -> Worked:
    """Samples that the engine's own limit lets it work on."""
    limit = engine_limit(question.engine)
    if work is not apply:
        return limit
    said = question.engine.max_sequences is not None
    source = "as asked" if said else f"default of {question.engine.engine}, times ranks of attention"
    return Figure(key="engine_limit", value=limit, provenance="given" if said else "default", source=source)


def why_not(question: RolloutQuestion, values: Mapping[str, float]) -> str:
    """
    Why the engine does not fit; empty where it does.

    Args:
        question: What is asked.
        values: Central values of the constants.
    """
    try:
        check_room(engine(question.engine).question, mean_lengths(question).live, values)
    except Refused as reason:
        return str(reason)
    return ""


def first_fit(question: RolloutQuestion, degrees: Iterable[int], values: Mapping[str, float]) -> int | None:
    """
    The smallest degree of tensor parallelism at which the engine fits; None where it fits at none.

    Args:
        question: What is asked; its own degree does not matter.
        degrees: Those that can deal out the model's heads, smallest first.
        values: Central values of the constants.
    """
    return next((degree for degree in degrees if not why_not(_laid_out(question, degree), values)), None)


def usual_degree(question: RolloutQuestion, degrees: Sequence[int], values: Mapping[str, float]) -> int | None:
    """
    The smallest degree whose cache holds a few samples, else one that fits at all; None where none does.

    Args:
        question: What is asked.
        degrees: Those that can deal out the model's heads, smallest first.
        values: Central values of the constants.
    """
    fitting = [degree for degree in degrees if not why_not(_laid_out(question, degree), values)]
    for degree in fitting:
        moved = _laid_out(question, degree)
        if cache_capacity(numbers, engine(moved.engine), mean_lengths(moved), values) >= A_FEW:
            return degree
    return fitting[-1] if fitting else None


def _laid_out(question: RolloutQuestion, degree: int) -> RolloutQuestion:
    layout = replace(question.engine.layout, tensor=degree)
    return replace(question, engine=replace(question.engine, layout=layout))


def fits_narrower(question: RolloutQuestion, values: Mapping[str, float]) -> bool:
    """Whether the engine, which has wider weights, would fit as laid out with those of 8 bits, on a GPU with units."""
    types = question.engine.weights or native(question.engine.model.name)
    wide = max(WIDTHS[name] for name in (types.dense, types.attention, types.experts)) > WIDTHS[_NARROW]
    if not wide or question.engine.gpu.specification.fp8_dense is None:
        return False
    narrow = replace(question.engine, weights=uniform(_NARROW))
    return not why_not(replace(question, engine=narrow), values)
