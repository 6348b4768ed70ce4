"""Predictions of offline runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.recorded import engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.facts.records import EngineRecord

CLASS = "rollout"
STAGES = (ROLLOUT, MEMORY)
family, kind, layout_key = engine.family, engine.kind, engine.layout_key
noise, unstated = engine.noise, engine.unstated
_TOTAL, _EACH = "output_tok_s_total", "output_tok_s_per_gpu"


def predict(record: EngineRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    """
    Response tokens per second, of all GPUs and of each.

    Raises:
        Refused: The engine cannot run so.
    """
    asked = engine.replica(record, profiles)
    found, _ = engine.predicted(record, asked, values)
    each = matching.rate_per_gpu(rate=found.rate, gpus=asked.gpus)
    every = {_TOTAL: matching.pool_rate(gpus=max(record.gpus, asked.gpus), gpu_rate=each), _EACH: each}
    return {key: every[key] for key in record.measured}


def graded(record: EngineRecord) -> str:
    """The total where it is stated, else the rate of a GPU."""
    return _TOTAL if _TOTAL in record.measured else _EACH
