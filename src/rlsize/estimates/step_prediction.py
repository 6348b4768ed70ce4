"""One optimizer step of an RL loop from model, GPUs, split, lengths and mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations import kernel_time, redundancy, rl_step
from rlsize.estimates.generation import StepBatch, generation
from rlsize.estimates.model_size import model_size
from rlsize.estimates.sync_prediction import SyncTimeQuestion, sync_time
from rlsize.estimates.train_prediction import train_step
from rlsize.estimates.working import numbers
from rlsize.facts.records.base import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.generation import Generation
    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.train_prediction import TrainQuestion, TrainStep

Loop = Literal["colocated", "synchronous", "one-step-off", "async"]
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
    What a step takes; numbers or arrays.

    Args:
        seconds: Wall clock. [s]
        generation_seconds: Whole generation. [s]
        generation_exposed_seconds: Of it, what the trainer waits for. [s]
        update_seconds: The update. [s]
        logprob_seconds: Extra forward passes. [s]
        train_seconds: Both. [s]
        sync_seconds: Weight sync. [s]
        sync_exposed_seconds: Of it, what nothing hides. [s]
        overhead_seconds: What belongs to no phase. [s]
        generation: The fleet's part.
        train: The trainer's part.
    """

    seconds: Real
    generation_seconds: Real
    generation_exposed_seconds: Real
    update_seconds: Real
    logprob_seconds: Real
    train_seconds: Real
    sync_seconds: Real
    sync_exposed_seconds: Real
    overhead_seconds: Real
    generation: Generation
    train: TrainStep


def predicted_step(question: StepQuestion, values: Mapping[str, Real]) -> Step:
    """
    The time of an optimizer step.

    Args:
        question: The loop.
        values: Constants of all stages by name: numbers, or arrays of draws.

    Raises:
        Refused: The question has no answer, with the reason.
    """
    fleet = _generation(question, values)
    slow = [values["step_rollout_slowdown"]]
    slow += [values["step_rollout_moe_slowdown"]] if question.engine.question.model.architecture.moe else []
    generated = fleet.seconds
    for factor in slow:
        generated = kernel_time.slowed(seconds=generated, slowdown=factor)
    trained = train_step(numbers, question.train, values)
    forwards = sum(trained.forward_seconds.values()) if trained.forward_seconds else 0.0
    own = values["step_train_colocated" if question.loop == "colocated" else "step_train_disaggregated"]
    update = kernel_time.slowed(seconds=trained.train_seconds - forwards, slowdown=own)
    logprobs = kernel_time.slowed(seconds=forwards, slowdown=own)
    busy = rl_step.trainer_phase(update_seconds=update, forward_seconds=logprobs)
    sync = _sync(question, values)
    overhead = _overhead(question, values)
    overlapping = question.loop in {"one-step-off", "async"}
    exposed = rl_step.exposed_part(seconds=sync, share=values["step_sync_exposed"] if overlapping else 1.0)
    if overlapping:
        phases = rl_step.uneven_overlap(
            rollout_seconds=generated, train_seconds=busy, variation=values["step_variation"]
        )
    else:
        phases = rl_step.trainer_phase(update_seconds=busy, forward_seconds=generated)
    seconds = rl_step.whole_step(phases_seconds=phases, sync_seconds=exposed, overhead_seconds=overhead)
    return Step(
        seconds=seconds,
        generation_seconds=generated,
        generation_exposed_seconds=phases - busy,
        update_seconds=update,
        logprob_seconds=logprobs,
        train_seconds=busy,
        sync_seconds=sync,
        sync_exposed_seconds=exposed,
        overhead_seconds=overhead,
        generation=fleet,
        train=trained,
    )


def _generation(question: StepQuestion, values: Mapping[str, Real]) -> Generation:
    instances = question.rollout_gpus / question.engine.numbers.gpus
    if not isinstance(instances, float) or instances < 1:
        raise Refused(
            f"{question.rollout_gpus:g} rollout GPUs do not hold an instance of {question.engine.numbers.gpus:g}"
        )
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


def _sync(question: StepQuestion, values: Mapping[str, Real]) -> Real:
    asked = question.engine.question
    colocated = question.loop == "colocated"
    seconds = sync_time(
        numbers,
        SyncTimeQuestion(
            model=asked.model,
            gpu=asked.gpu,
            transport="colocated" if colocated else question.transport,
            dtype=question.wire_dtype,
            trainer_gpus=float(question.train.gpus),
            rollout_gpus=float(question.rollout_gpus),
            instance_gpus=question.engine.numbers.gpus,
        ),
        values,
    )
    return rl_step.shared_out_sync(
        seconds=seconds,
        gpus=float(question.train.gpus),
        usual_gpus=_SYNC_GPUS,
        exponent=values["step_sync_shared"],
    )


def _overhead(question: StepQuestion, values: Mapping[str, Real]) -> Real:
    asked = question.engine.question
    fixed = "step_fixed_colocated" if question.loop == "colocated" else "step_fixed_disaggregated"
    return rl_step.step_overhead(
        fixed_seconds=values[fixed],
        sample_seconds=values["step_sample"],
        samples=question.samples,
        param_seconds=values["step_param"],
        params=model_size(asked.model).params.number,
    )


def moved(question: StepQuestion, **changes: Any) -> StepQuestion:  # noqa: ANN401 (fields of a question)
    """The same question with other fields."""
    return replace(question, **changes)
