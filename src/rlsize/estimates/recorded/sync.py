"""Predictions of published weight updates."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Any

from rlsize.estimates.constants_sync import STAGE
from rlsize.estimates.figures import alike, numbers
from rlsize.estimates.sync_prediction import SyncTimeQuestion, sync_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.facts.records import SyncRecord

_STACKS = frozenset({"nemo-rl", "slime", "checkpoint-engine", "megatron"})  # of the rows that constants are fitted to
_OTHER_STACK = 1.0
"""
Standard deviation of a time's logarithm between stacks: broadcasts of verl's FSDP trainers take 2 to 13 times what is
predicted, those of Miles a fifth (16 rows, 2 publications).
"""
CLASS = "sync"
STAGES = (STAGE,)


def predict(record: SyncRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    """Seconds of the update."""
    gpus = {key: float(getattr(record, key)) for key in ("trainer_gpus", "rollout_gpus", "instance_gpus")}
    asked = {**alike(record, SyncTimeQuestion), **gpus, **alike(profiles, SyncTimeQuestion)}
    return {"sync_time_s": sync_time(numbers, SyncTimeQuestion(**asked), values)}


def graded(_: SyncRecord) -> str:
    """The measured field that counts."""
    return "sync_time_s"


def family(record: SyncRecord) -> tuple[Any, ...]:
    """Updates by one class of transport in one publication; models may differ: the time is affine in bytes."""
    return record.source_id, record.transport, record.stack, record.gpu, record.version


def noise(record: SyncRecord) -> float:
    """Scatter of one measurement, and what a stack adds that no constant was fitted to."""
    return STAGE.noise if record.stack in _STACKS else hypot(STAGE.noise, _OTHER_STACK)


def layout_key(record: SyncRecord) -> tuple[Any, ...]:
    """What makes two updates alike but for their size."""
    return record.model, record.trainer_gpus, record.rollout_gpus, record.instance_gpus, record.dtype
