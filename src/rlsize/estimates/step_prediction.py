"""One optimizer step of an RL loop from model, GPUs, split, lengths and mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations import kernel_time, matching, redundancy, rl_step, rollout_batch
from rlsize.estimates.generation import StepBatch, generation
from rlsize.estimates.model_size import model_size
from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion, sync_time
from rlsize.estimates.train_prediction import train_step
from rlsize.estimates.train_prediction_shape import added
from rlsize.estimates.working import numbers
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.generation import Generation
    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.train_prediction import TrainQuestion, TrainStep

    Work = Callable[..., Any]

Loop = Literal["colocated", "synchronous", "one-step-off", "async"]
OVERLAPPING = frozenset({"one-step-off", "async"})
"""Loops whose fleet and trainer work at the same time."""

_USUAL = {True: "colocated", False: "nccl-broadcast"}  # transport by whether GPUs are shared
_SYNC_GPUS = 8.0  # of the trainers whose weight syncs the rates of handling are of
_BLOCK = 16.0  # tokens of a cache block


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

    engine: Engine
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
class Step:
    """
    What a step takes; numbers, arrays or figures.

    Args:
        seconds: Wall clock. [s]
        generation_seconds: Whole generation. [s]
        generation_exposed_seconds: Of it, what the trainer waits for. [s]
        tail_seconds: Of all of it, what waiting for the longest response adds. [s]
        update_seconds: The update. [s]
        logprob_seconds: Extra forward passes. [s]
        train_seconds: Both. [s]
        sync_seconds: Weight sync. [s]
        sync_exposed_seconds: Of it, what nothing hides. [s]
        overhead_seconds: What belongs to no phase. [s]
    """

    seconds: Any
    generation_seconds: Any
    generation_exposed_seconds: Any
    tail_seconds: Any
    update_seconds: Any
    logprob_seconds: Any
    train_seconds: Any
    sync_seconds: Any
    sync_exposed_seconds: Any
    overhead_seconds: Any


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
        work: `working.apply` for figures that explain themselves, `numbers` for numbers and arrays.
        question: The loop.
        phases: Its stages.
        values: Constants of all stages by name.
    """
    generated = _within_a_loop(work, question, "generation_seconds", phases.generation, values)
    update, forwards, busy = _trained(work, question, phases.train, values)
    overlapping = question.loop in OVERLAPPING
    share = values["step_sync_exposed"] if overlapping else 1.0
    exposed = work("sync_exposed_seconds", rl_step.exposed_part, seconds=phases.sync, share=share)
    if overlapping:
        both = work(
            "phases_seconds",
            rl_step.uneven_overlap,
            rollout_seconds=generated,
            train_seconds=busy,
            variation=values["step_variation"],
        )
    else:
        both = work("phases_seconds", rl_step.trainer_phase, update_seconds=busy, forward_seconds=generated)
    overhead = overhead_of(work, question, values)
    return Step(
        seconds=work(
            "step_seconds",
            rl_step.whole_step,
            phases_seconds=both,
            sync_seconds=exposed,
            overhead_seconds=overhead,
        ),
        generation_seconds=generated,
        generation_exposed_seconds=work("generation_exposed_seconds", rollout_batch.beyond, whole=both, part=busy),
        tail_seconds=_within_a_loop(work, question, "tail_seconds", phases.tail, values),
        update_seconds=update,
        logprob_seconds=forwards,
        train_seconds=busy,
        sync_seconds=phases.sync,
        sync_exposed_seconds=exposed,
        overhead_seconds=overhead,
    )


def _within_a_loop(work: Work, question: StepQuestion, key: str, seconds: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Generation inside a loop, over the engine by itself."""
    slow = [values["step_rollout_slowdown"]]
    slow += [values["step_rollout_moe_slowdown"]] if question.engine.question.model.architecture.moe else []
    for factor in slow:
        seconds = work(key, kernel_time.slowed, seconds=seconds, slowdown=factor)
    return seconds


def _trained(
    work: Work, question: StepQuestion, train: TrainStep, values: Mapping[str, Any]
) -> tuple[Any, Any, Any]:  # (as `work` makes them)
    """Update, extra forward passes, and both."""
    own = values["step_train_colocated" if question.loop == "colocated" else "step_train_disaggregated"]
    extra = added(work, "forward_seconds", list(train.forward_seconds.values()) or [0.0])
    updates = work("update_seconds", rollout_batch.beyond, whole=train.train_seconds, part=extra)
    update = work("update_seconds", kernel_time.slowed, seconds=updates, slowdown=own)
    forwards = work("logprob_seconds", kernel_time.slowed, seconds=extra, slowdown=own)
    busy = work("train_seconds", rl_step.trainer_phase, update_seconds=update, forward_seconds=forwards)
    return update, forwards, busy


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
    cacheable = redundancy.cacheable_prompt_tokens(prompt_tokens=question.prompt_tokens, block_tokens=_BLOCK)
    hit = redundancy.prefix_cache_hit_ratio(
        group_size=question.group_size,
        prompt_tokens=question.prompt_tokens,
        cacheable_prompt_tokens=cacheable,
        cacheable_shared_tokens=0.0,
        instances_per_group=1.0,
    )
    cv = question.response_cv if question.response_cv is not None else values["step_length_cv"]
    refill = question.loop == "async"
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
    colocated = question.loop == "colocated"
    suits = TRANSPORTS[question.transport].colocated == colocated
    gpus = float(question.train.gpus)
    seconds = sync_time(
        work,
        SyncTimeQuestion(
            model=asked.model,
            gpu=asked.gpu,
            transport=question.transport if suits else _USUAL[colocated],
            dtype=question.wire_dtype,
            trainer_gpus=gpus,
            rollout_gpus=float(question.rollout_gpus),
            instance_gpus=question.engine.numbers.gpus,
        ),
        values,
    )
    return work(
        "sync_seconds",
        rl_step.shared_out_sync,
        seconds=seconds,
        gpus=gpus,
        usual_gpus=_SYNC_GPUS,
        exponent=values["step_sync_shared"],
    )


def overhead_of(work: Work, question: StepQuestion, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 (as `work` makes them)
    """What belongs to no phase."""
    fixed = "step_fixed_colocated" if question.loop == "colocated" else "step_fixed_disaggregated"
    return work(
        "overhead_seconds",
        rl_step.step_overhead,
        fixed_seconds=values[fixed],
        sample_seconds=values["step_sample"],
        samples=question.samples,
        param_seconds=values["step_param"],
        params=model_size(question.engine.question.model).params.number,
    )
