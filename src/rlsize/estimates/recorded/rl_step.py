"""Predictions of recorded RL steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rlsize.equations.rl_step import step_tokens_per_gpu
from rlsize.errors import Refused
from rlsize.estimates import step_prediction
from rlsize.estimates.constants_step import STAGE as STEP
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import alike
from rlsize.estimates.remembered import remembered
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.step_prediction import StepQuestion, predicted_step
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.estimates.trainer_keeping import Keeping
from rlsize.facts.quantisation import uniform
from rlsize.quantities.rollout import SHARED_MEMORY_FRACTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.facts.records import StepRecord

CLASS = "rl_step"
STAGES = step_prediction.STAGES
_RANK = 16  # of adapters; times hardly depend on it
_PACKED = 4096.0  # tokens of a packed micro-batch where nobody says
_ALIKE = 0.7  # of what was assumed of a run, in deviations: half of its variance is that of the whole family
_TOLERANCE = 0.15  # of a step time: reruns differ by 4 to 21 %
_LONGER = 0.5


def question(record: StepRecord, profiles: Profiles) -> StepQuestion:
    """
    The loop that a record measured.

    Raises:
        Refused: A layout that does not divide, or a number type that the GPU lacks.
    """
    return _question(record, profiles.model, profiles.gpu, profiles.reference)


@remembered
def _question(record: StepRecord, model: Model, gpu: Gpu, reference: Model | None = None) -> StepQuestion:
    colocated = record.placement == "colocated"
    fraction = record.memory_fraction
    if fraction is None and colocated:
        fraction = SHARED_MEMORY_FRACTION
    asked = engine(
        EngineQuestion(
            model=model,
            gpu=gpu,
            layout=record.rollout,
            engine=record.engine,
            weights=uniform(record.rollout_dtype),
            memory_fraction=fraction,
            graphs=record.graphs,
        )
    )
    longest = record.max_tokens
    own = {
        "loop": "colocated" if colocated else record.loop,
        "engine": asked,
        "rollout_gpus": float(record.rollout_gpus),
        "max_tokens": max(longest - record.prompt_tokens, 1.05 * record.response_tokens) if longest else None,
        "max_staleness": max(1.0, record.max_staleness),
    }
    return StepQuestion(
        **alike(record, StepQuestion) | own,
        train=_train(record, model, gpu, reference),
        wire_dtype=record.rollout_dtype,
    )


def _train(record: StepRecord, model: Model, gpu: Gpu, reference: Model | None) -> TrainQuestion:
    layout, shared = record.trainer, record.placement == "colocated"
    replica = layout.tensor * layout.pipeline * layout.context
    if record.trainer_gpus % replica:
        raise Refused(f"{record.trainer_gpus} GPUs cannot be dealt out to model replicas of {replica}")
    tokens = record.prompt_tokens + record.response_tokens
    return TrainQuestion(
        model=model,
        gpu=gpu,
        gpus=float(record.trainer_gpus),
        sequences=record.trained_samples or record.samples,
        tokens=tokens,
        micro_batch_tokens=max(tokens, record.micro_batch_tokens or record.max_tokens or _PACKED),
        longest_tokens=record.max_tokens,
        forward_micro_batch_tokens=max(tokens, forward) if (forward := record.forward_micro_batch_tokens) else None,
        **alike(layout, TrainQuestion),
        sharding="optimizer" if record.megatron else "full",
        dtype=record.train_dtype,
        optimizer_steps=max(1.0, record.samples / record.train_batch) if record.train_batch else 1.0,
        passes=record.passes,
        pass_models={"reference": reference} if reference is not None else {},
        recompute=record.recompute,
        returning=shared and ("optimizer" in record.offload or "nemo" in record.stack.lower()),
        weights_returning=shared and "params" in record.offload,
        keeps=Keeping(backend="megatron" if record.megatron else "fsdp"),
        lora_rank=_RANK if record.lora else None,
    )


def predict(record: StepRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    """
    Step and phases of a loop, under the record's own names.

    Raises:
        Refused: The loop cannot run so.
    """
    asked = question(record, profiles)
    step = predicted_step(asked, values)
    tokens = record.prompt_tokens + record.response_tokens
    rate = {"samples": record.samples, "sample_tokens": tokens}
    found = {
        "step_time_s": step.seconds,
        "generation_time_s": step.generation_seconds,
        "train_time_s": step.update_seconds,
        "logprob_time_s": step.logprob_seconds,
        "weight_sync_time_s": step.sync_seconds,
        "generation_exposed_s": step.generation_exposed_seconds,
        "tokens_per_s_per_gpu": step_tokens_per_gpu(step_seconds=step.seconds, gpus=record.gpus, **rate),
        "rollout_tokens_per_s_per_gpu": step_tokens_per_gpu(
            step_seconds=step.generation_seconds, gpus=record.rollout_gpus, **rate
        ),
    }
    return {key: found[key] for key in record.measured}


def graded(record: StepRecord) -> str:
    """The step where it is stated, else the first phase that is."""
    return next(iter(record.measured))


def family(record: StepRecord) -> tuple[Any, ...]:
    """Source, model, GPU, framework and version: a loop is calibrated across modes and splits."""
    return (record.source_id, record.model, record.gpu, record.stack, record.version)


def cell(record: StepRecord, profiles: Profiles) -> str:
    """Dense or MoE, and whether nobody states the samples of a step or how long they are."""
    shape = "MoE" if profiles.model.architecture.moe else "dense"
    return shape if record.sized else f"{shape}, sizes not stated"


def layout_key(record: StepRecord) -> tuple[Any, ...]:
    """What makes two loops alike: mode, GPUs of both sides, layouts."""
    return (record.placement, record.loop, record.rollout_gpus, record.trainer_gpus, record.rollout, record.trainer)


def relation(one: StepRecord, other: StepRecord) -> str:
    """How two loops of a family differ."""
    if (one.placement, one.loop) != (other.placement, other.loop):
        return "other mode"
    if (one.rollout_gpus, one.trainer_gpus) != (other.rollout_gpus, other.trainer_gpus):
        return "same mode, other GPUs"
    return "same mode and GPUs"


def rivals(one: StepRecord, other: StepRecord) -> bool:
    """Whether two loops do the same step on as many GPUs, one colocated and one split."""
    alike = (one.source_id, one.model, one.gpu, one.gpus, one.samples, one.version)
    same = alike == (other.source_id, other.model, other.gpu, other.gpus, other.samples, other.version)
    return same and one.placement != other.placement


def contradictions(records: Sequence[StepRecord]) -> dict[int, str]:
    """Loops that take longer on more GPUs than the same loop on fewer, by more than a tolerance."""
    found = {}
    for place, record in enumerate(records):
        if "step_time_s" not in record.measured:
            continue
        for other in records:
            fewer = other.gpus < record.gpus and _alike(record, other) and "step_time_s" in other.measured
            if fewer and record.measured["step_time_s"] > (1 + _TOLERANCE) * other.measured["step_time_s"]:
                found[place] = (
                    f"step_time_s {record.measured['step_time_s']:g} on {record.gpus} GPUs is out of order: {other.id} "
                    f"took {other.measured['step_time_s']:g} on {other.gpus}"
                )
    return found


def _alike(one: StepRecord, other: StepRecord) -> bool:
    """Whether two records are of the same loop but for GPUs and version; longer samples do not count against it."""
    same = (one.source_id, one.model, one.gpu, one.placement, one.loop, one.samples)
    longer = one.response_tokens <= (1 + _LONGER) * other.response_tokens
    return longer and same == (other.source_id, other.model, other.gpu, other.placement, other.loop, other.samples)


def noise(record: StepRecord) -> float:
    """Scatter of one measured step around a calibrated prediction, and what was assumed of it."""
    return math.hypot(STEP.noise, record.unsure)


def unstated(record: StepRecord) -> float:
    """What of that the runs of a family have alike: their batches and lengths are of one set-up, and not the same."""
    return _ALIKE * record.unsure
