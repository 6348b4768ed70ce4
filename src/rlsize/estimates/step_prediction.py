"""One optimizer step of an RL loop from model, GPUs, split, lengths and mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.equations import matching, redundancy, rl_step
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import StepBatch, generation
from rlsize.estimates.model_size import model_size
from rlsize.estimates.step_assembly import REFILLING, LoopParts, Step, assembled, trained_in_loop, within_a_loop
from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion, sync_time
from rlsize.estimates.train_prediction import train_step
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.generation import Generation
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion, TrainStep

    Work = Callable[..., Any]

_USUAL = {True: "colocated", False: "nccl-broadcast"}  # transport by whether GPUs are shared
_SYNC_GPUS = 8.0  # of the trainers whose weight syncs the rates of handling are of
BLOCK_TOKENS = 16.0
"""Tokens of a cache block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepQuestion:
    """
    An RL loop whose step is asked for.

    Args:
        engine: One rollout instance.
        train: The trainer and its work.
        loop: colocated (taking turns on the same GPUs), synchronous (taking turns on two pools), one-step-off, or
            async (overlapping with refill).
        rollout_gpus: GPUs that generate. [1]
        samples: Samples that are generated for a step. [1]
        group_size: Samples of one prompt, on one instance. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        response_cv: Its coefficient of variation without the cap; the constant where None. [1]
        max_tokens: Longest response; None for no cap. [token]
        max_staleness: Staleness cap in steps. [1]
        transport: Class of the weight sync.
        wire_dtype: Number type of weights on the wire.
    """

    engine: Replica
    train: TrainQuestion
    loop: Loop
    rollout_gpus: Real
    samples: Real
    group_size: Real
    prompt_tokens: Real
    response_tokens: Real
    response_cv: Real | None = None
    max_tokens: Real | None = None
    max_staleness: Real = 1.0
    transport: str = "nccl-broadcast"
    wire_dtype: str = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """
    The stages of a step, each as if it ran by itself; numbers, arrays or figures.

    Args:
        generation: Time of the fleet. [s]
        tail: Of it, what waiting for the longest response adds. [s]
        train: The trainer's work.
        sync: A weight sync. [s]
    """

    generation: Any
    tail: Any
    train: TrainStep
    sync: Any


def predicted_step(question: StepQuestion, values: Mapping[str, Real]) -> Step:
    """
    The time of an optimizer step.

    Args:
        question: The loop.
        values: Constants of all stages by name: numbers, or arrays of draws.

    Raises:
        Refused: The question has no answer, with the reason.
    """
    fleet = fleet_generation(question, values)
    phases = Phases(
        generation=fleet.seconds,
        tail=fleet.tail_seconds,
        train=train_step(numbers, question.train, values),
        sync=sync_of(numbers, question, values),
    )
    return put_together(numbers, question, phases, values)


def put_together(work: Work, question: StepQuestion, phases: Phases, values: Mapping[str, Any]) -> Step:
    """
    A step from its stages: slower within a loop than alone, one after the other or at once, with what comes on top.

    Args:
        work: `figures.apply` for figures that explain themselves, `numbers` for numbers and arrays.
        question: The loop.
        phases: Its stages.
        values: Constants of all stages by name.
    """
    moe = question.engine.question.model.architecture.moe is not None
    shared = question.loop == "colocated"
    update, forwards = trained_in_loop(work, phases.train, values, shared=shared)
    parts = LoopParts(
        loop=question.loop,
        generation_seconds=within_a_loop(work, "generation_seconds", phases.generation, values, moe=moe),
        tail_seconds=within_a_loop(work, "tail_seconds", phases.tail, values, moe=moe),
        update_seconds=update,
        logprob_seconds=forwards,
        sync_seconds=phases.sync,
        overhead_seconds=overhead_of(work, question, values),
        exposed_share=values["step_sync_exposed"],
        variation=values["step_variation"],
    )
    return assembled(work, parts)


def instances_of(question: StepQuestion) -> float:
    """
    Rollout instances of a loop.

    Raises:
        Refused: Its GPUs do not hold one.
    """
    size = question.engine.numbers.gpus
    found = matching.instances_of(gpus=question.rollout_gpus, gpus_per_instance=size)
    if found < 1:
        raise Refused(f"{question.rollout_gpus:g} rollout GPUs do not hold an instance of {size:g}")
    return float(found)


def fleet_generation(question: StepQuestion, values: Mapping[str, Real]) -> Generation:
    """
    What the fleet makes of a step's samples, the engines by themselves.

    Raises:
        Refused: The GPUs do not hold an instance.
    """
    instances = instances_of(question)
    cacheable = redundancy.cacheable_prompt_tokens(prompt_tokens=question.prompt_tokens, block_tokens=BLOCK_TOKENS)
    hit = redundancy.prefix_cache_hit_ratio(
        group_size=question.group_size,
        prompt_tokens=question.prompt_tokens,
        cacheable_prompt_tokens=cacheable,
        cacheable_shared_tokens=0.0,
        instances_per_group=1.0,
    )
    cv = question.response_cv if question.response_cv is not None else values["step_length_cv"]
    refill = question.loop in REFILLING
    allowed = rl_step.allowed_in_flight(samples_per_step=question.samples, max_staleness=question.max_staleness)
    batch = StepBatch(
        samples=question.samples,
        instances=instances,
        prompt_tokens=question.prompt_tokens,
        response_tokens=question.response_tokens,
        response_cv=cv,
        max_tokens=question.max_tokens,
        hit_ratio=hit,
        in_flight=allowed if refill else None,
        ending="refill" if refill else "barrier",
    )
    return generation(numbers, question.engine, batch, values)


def sync_of(work: Work, question: StepQuestion, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Seconds of a weight sync; a class of transport that does not go with the placement gives way to one that does."""
    asked = question.engine.question
    wanted = SyncTimeQuestion(
        model=asked.model,
        gpu=asked.gpu,
        transport=suiting(question.transport, shared=question.loop == "colocated"),
        dtype=question.wire_dtype,
        trainer_gpus=question.train.gpus,
        rollout_gpus=question.rollout_gpus,
        instance_gpus=question.engine.numbers.gpus,
    )
    return sync_in_loop(work, wanted, values)


def suiting(transport: str, *, shared: bool) -> str:
    """The class of transport, or the usual one where it does not go with the placement."""
    return transport if TRANSPORTS[transport].colocated == shared else _USUAL[shared]


def sync_in_loop(work: Work, wanted: SyncTimeQuestion, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Seconds of a weight sync of a loop, whose trainer's GPUs handle their own shares."""
    return work(
        "sync_seconds",
        rl_step.shared_out_sync,
        seconds=sync_time(work, wanted, values),
        gpus=wanted.trainer_gpus,
        usual_gpus=_SYNC_GPUS,
        exponent=values["step_sync_shared"],
    )


def overhead_of(work: Work, question: StepQuestion, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 (as `work` makes them)
    """What belongs to no phase."""
    params = model_size(question.engine.question.model).params.number
    return overhead_in_loop(work, question.samples, params, values, shared=question.loop == "colocated")


def overhead_in_loop(work: Work, samples: Any, params: Any, values: Mapping[str, Any], *, shared: bool) -> Any:  # noqa: ANN401 (as `work` makes them)
    """What belongs to no phase of a loop's step."""
    return work(
        "overhead_seconds",
        rl_step.step_overhead,
        fixed_seconds=values["step_fixed_colocated" if shared else "step_fixed_disaggregated"],
        sample_seconds=values["step_sample"],
        samples=samples,
        param_seconds=values["step_param"],
        params=params,
    )
