"""Predictions of recorded rates of inference engines."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import numbers
from rlsize.estimates.rollout_prediction import check_fits, engine, fixed_lengths, offline, steady

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.named import Profiles
    from rlsize.estimates.rollout_prediction import Lengths, Replica, Steady
    from rlsize.facts.records.engine import EngineRecord

_MOE_SCATTER = 2.2  # times that of dense models: routing and kernels differ by load
_REQUESTS = 3000.0  # of an offline run that does not say how many
_KEPT = 512  # compiled replicas


def replica(record: EngineRecord, profiles: Profiles) -> Replica:
    """
    The replica that a record measured.

    Raises:
        Refused: A number type that the GPU lacks.
    """
    question = EngineQuestion(
        model=profiles.model,
        gpu=profiles.gpu,
        layout=record.layout,
        engine=record.stack,
        version=record.version,
        weights=record.weights,
        kv_dtype=record.kv_dtype,
        served=record.served,
    )
    return _replica(_Key(question))


class _Key:
    """A question that is told apart by what it asks, with profiles told apart by name."""

    def __init__(self, question: EngineQuestion) -> None:
        self.question = question
        asked = question
        self.parts = (
            asked.model.name, id(asked.model), asked.gpu.name, id(asked.gpu), asked.layout, asked.engine,
            asked.version, asked.weights, asked.kv_dtype, asked.served,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.parts == other.parts


@lru_cache(maxsize=_KEPT)
def _replica(key: _Key) -> Replica:
    return engine(key.question)


def predicted(record: EngineRecord, asked: Replica, values: Mapping[str, Real]) -> tuple[Steady, Lengths]:
    """
    The engine at the record's load.

    Raises:
        Refused: Weights and one sample do not fit.
    """
    lengths = fixed_lengths(record.prompt_tokens, record.response_tokens)
    check_fits(asked, lengths, _central(values))
    if record.concurrency is not None:
        return steady(numbers, asked, record.concurrency, lengths, values), lengths
    return offline(numbers, asked, record.requests or _REQUESTS, lengths, values), lengths


def _central(values: Mapping[str, Any]) -> dict[str, float]:
    """One value of each constant: whether something fits is asked once, not for each draw."""
    return {name: float(value if isinstance(value, float) else value.mean()) for name, value in values.items()}


def served_by(record: EngineRecord) -> tuple[Any, ...]:
    """Source, model, GPU, engine and version: what records share that one calibration can serve."""
    return (record.source_id, record.model, record.gpu, record.stack, record.version, record.weights)


def scatter_of(record: EngineRecord) -> float:
    """Standard deviation of the logarithm of one measured rate around a calibrated prediction."""
    return ROLLOUT.noise * (_MOE_SCATTER if record.experts else 1.0)


def layout_of(record: EngineRecord) -> tuple[Any, ...]:
    """The parallel layout of a record."""
    return (record.layout, record.gpus)
