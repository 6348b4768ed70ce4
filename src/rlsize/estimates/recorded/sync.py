"""Predictions of published weight updates."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Any

from rlsize.estimates.constants_sync import STAGE
from rlsize.estimates.figures import alike, numbers
from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion, sync_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.facts.records import SyncRecord

_UNSAID = 0.8
"""
Standard deviation of a broadcast's logarithm from how the trainer spreads its weights, which nothing here counts: one
stack's broadcasts of one model on the same GPUs take 10 to 65 s (5 rows).
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
    """Scatter of one measurement, and what a broadcast's trainer adds that is not counted."""
    return hypot(STAGE.noise, _UNSAID) if TRANSPORTS[record.transport].fixed == "broadcast" else STAGE.noise


def layout_key(record: SyncRecord) -> tuple[Any, ...]:
    """What runs of one update have alike: model, GPUs, the trainer's sharding, and the method without remarks."""
    placed = (record.trainer_gpus, record.sharding, record.rollout_gpus, record.instance_gpus)
    return record.model, *placed, record.dtype, record.method.partition("(")[0].strip()
