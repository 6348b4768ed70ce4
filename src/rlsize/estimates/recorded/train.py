"""Predictions of published training throughput."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations import train_step_kernels
from rlsize.estimates.constants_train import STAGE
from rlsize.estimates.figures import alike, numbers
from rlsize.estimates.train_prediction import TrainQuestion, train_step
from rlsize.estimates.trainer_keeping import Keeping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.facts.records import TrainRecord

CLASS = "train"
STAGES = (STAGE,)


def predict(record: TrainRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    """
    The measured fields, by definition of this program where publications differ: MFU counts causal attention once.

    Raises:
        Refused: The GPU lacks the number type, or degrees do not divide.
    """
    step = train_step(numbers, question_of(record, profiles), values)
    peak = profiles.gpu.specification.bf16_dense.value
    scaled = train_step_kernels.scaled_fraction
    found = {
        "tokens_per_s_per_gpu": step.tokens_per_second_per_gpu,
        "tokens_per_s": step.tokens_per_second,
        "step_time_s": step.update_seconds,
        "mfu_pct": numbers("mfu_pct", scaled, fraction=step.mfu, scale=100.0),
        "model_tflops_per_gpu": numbers("model_tflops_per_gpu", scaled, fraction=step.mfu, scale=peak / 1e12),
    }
    return {key: found[key] for key in _fields(record)}


def question_of(record: TrainRecord, profiles: Profiles) -> TrainQuestion:
    """What a record asks."""
    asked = {**alike(record, TrainQuestion), **alike(record.layout, TrainQuestion), **alike(profiles, TrainQuestion)}
    return TrainQuestion(
        **asked
        | {
            "gpus": float(record.gpus),
            "shards": record.shards or None,
            "lora_rank": record.lora_rank or None,
            "keeps": Keeping(activation_offload=record.activation_offload),
        }
    )


def _fields(record: TrainRecord) -> tuple[str, ...]:
    """Rates and times where there are any: publications define MFU in several ways."""
    plain = tuple(key for key in ("tokens_per_s_per_gpu", "tokens_per_s", "step_time_s") if key in record.measured)
    return plain or tuple(key for key in ("mfu_pct", "model_tflops_per_gpu") if key in record.measured)


def graded(record: TrainRecord) -> str:
    """The measured field that counts."""
    return _fields(record)[0]


def family(record: TrainRecord) -> tuple[Any, ...]:
    """One publication's runs of a model on a GPU."""
    return record.source_id, record.model, record.gpu, record.stack, record.version


def relation(one: TrainRecord, other: TrainRecord) -> str:
    """How two runs of a family differ, by what moves the time most."""
    if one.dtype != other.dtype or one.scaling != other.scaling:
        return "other number type"
    if one.layout != other.layout or one.sharding != other.sharding:
        return "other layout"
    if (one.recompute, one.fused, one.overlapped) != (other.recompute, other.fused, other.overlapped):
        return "other recomputation or kernels"
    if one.tokens != other.tokens:
        return "other length"
    return "other GPU count" if one.gpus != other.gpus else "same layout"


def noise(_: TrainRecord) -> float:
    """Scatter of one measurement."""
    return STAGE.noise
