"""Predictions of offline runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations import matching
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.recorded.engine import layout_of, predicted, replica, scatter_of, served_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.named import Profiles
    from rlsize.facts.records.engine import EngineRecord

CLASS = "rollout"
STAGES = (ROLLOUT, MEMORY)
KIND = "rate"
_TOTAL, _EACH = "output_tok_s_total", "output_tok_s_per_gpu"


def predict(record: EngineRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    """
    Response tokens per second, of all GPUs and of each.

    Raises:
        Refused: The engine cannot run so.
    """
    asked = replica(record, profiles)
    found, _ = predicted(record, asked, values)
    each = matching.rate_per_gpu(rate=found.rate, gpus=asked.numbers.gpus)
    every = {_TOTAL: matching.pool_rate(gpus=max(record.gpus, asked.numbers.gpus), gpu_rate=each), _EACH: each}
    return {key: every[key] for key in record.measured}


def graded(record: EngineRecord) -> str:
    """The total where it is stated, else the rate of a GPU."""
    return _TOTAL if _TOTAL in record.measured else _EACH


def family(record: EngineRecord) -> tuple[Any, ...]:
    """What records share that one calibration can serve."""
    return served_by(record)


def layout_key(record: EngineRecord) -> tuple[Any, ...]:
    """The parallel layout: calibrations are for one."""
    return layout_of(record)


def noise(record: EngineRecord) -> float:
    """Scatter of one measured rate around a calibrated prediction."""
    return scatter_of(record)
