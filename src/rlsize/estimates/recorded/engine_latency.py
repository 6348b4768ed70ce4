"""Predictions of closed loops: throughput first, then its split between first and later tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.recorded.engine import layout_of, predicted, replica, served_by
from rlsize.estimates.rollout_prediction import first_and_later
from rlsize.estimates.working import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.base import Profiles
    from rlsize.facts.records.engine import EngineRecord

CLASS = "engine_latency"
STAGES = (ROLLOUT, MEMORY)
KIND = "rate"
_RATE, _MILLI = "output_tok_s_total", 1e3


def predict(record: EngineRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    """
    Throughput, time to first token and time per output token of a closed loop.

    Raises:
        Refused: The engine cannot run so.
    """
    found, lengths = predicted(record, replica(record, profiles), values)
    first, later = first_and_later(numbers, found, record.concurrency, lengths, values)
    return {_RATE: found.rate, "ttft_ms": _MILLI * first, "tpot_ms": _MILLI * later}


def graded(_record: EngineRecord) -> str:
    """Throughput: how requests arrive splits it into both times, and records do not say how they arrived."""
    return _RATE


def family(record: EngineRecord) -> tuple[Any, ...]:
    """What records share that one calibration can serve."""
    return served_by(record)


def layout_key(record: EngineRecord) -> tuple[Any, ...]:
    """The parallel layout: calibrations are for one."""
    return layout_of(record)


def noise(_record: EngineRecord) -> float:
    """Scatter of one measured rate around a calibrated prediction."""
    return ROLLOUT.noise
