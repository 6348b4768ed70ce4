"""Predictions of recorded rates of inference engines."""

from __future__ import annotations

from dataclasses import field, replace
from functools import lru_cache
from math import hypot
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.engine_memory import check_room, kv_capacity
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import alike, numbers
from rlsize.estimates.rollout_prediction import engine, fixed_lengths, offline, steady
from rlsize.facts.layout import Layout
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.estimates.rollout_prediction import Lengths, Replica, Steady
    from rlsize.facts.records import EngineRecord

_MOE_SCATTER = 1.9  # times that of dense models: routing and kernels differ by load
_REQUESTS = 3000.0  # of an offline run that does not say how many
_ROOMY = 0.55  # of the memory, for weights
_UNSAID_LAYOUT = 0.15  # of the logarithm of a rate: nodes of MLPerf, whose submitters tune what no record says
_KEPT = 512  # compiled replicas


def replica(record: EngineRecord, profiles: Profiles) -> Replica:
    """
    The replica that a record measured.

    Raises:
        Refused: A number type that the GPU lacks.
    """
    question = _question(record, profiles)
    model, gpu = profiles.model, profiles.gpu
    own = (question.layout, record.stack, record.version, record.weights, record.kv_dtype, record.served, record.unseen)
    return _replica(_Key((model.name, id(model), gpu.name, id(gpu), *own), question))


def kind(record: EngineRecord, profiles: Profiles) -> tuple[str, ...]:
    """What records of one kind share, so that one tells of another."""
    return _question(record, profiles).kind


def _question(record: EngineRecord, profiles: Profiles) -> EngineQuestion:
    asked = {**alike(record, EngineQuestion), **alike(profiles, EngineQuestion), "engine": record.stack}
    question = EngineQuestion(**asked)
    return question if record.laid_out else _roomy(question, record.gpus)


def _roomy(question: EngineQuestion, gpus: int) -> EngineQuestion:
    """
    The replica of the fewest tensor-parallel ranks whose weights leave half of the memory to the cache.

    That is what offline runs tuned for throughput come to: each rank more has all-reduces of its own.
    """
    values = prior(MEMORY, ROLLOUT).central()
    for tensor in (2**power for power in range(gpus.bit_length())):
        tried = replace(question, layout=Layout(tensor=tensor))
        held = kv_capacity(numbers, tried, values, 1.0)
        if gpus % tensor == 0 and float(held.weight_bytes) <= _ROOMY * float(held.memory):
            return tried
    return question


@dataclass(frozen=True, slots=True)
class _Key:
    """A question that is told apart by what it asks, with profiles told apart by name and object."""

    parts: tuple[Any, ...]
    question: EngineQuestion = field(compare=False)


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
    # one value of each constant: whether something fits is asked once, not for each draw
    check_room(asked.question, lengths.live, {name: float(np.mean(value)) for name, value in values.items()})
    if record.concurrency is not None:
        return steady(numbers, asked, record.concurrency, lengths, values), lengths
    return offline(numbers, asked, record.requests or _REQUESTS, lengths, values), lengths


def family(record: EngineRecord) -> tuple[Any, ...]:
    """Source, model, GPU, engine and version: what records share that one calibration can serve."""
    return (record.source_id, record.model, record.gpu, record.stack, record.version, record.weights)


def noise(record: EngineRecord) -> float:
    """Standard deviation of the logarithm of one measured rate around a calibrated prediction."""
    return hypot(ROLLOUT.noise * (_MOE_SCATTER if record.experts else 1.0), unstated(record))


def unstated(record: EngineRecord) -> float:
    """What a layout that nobody states adds to that, alike in a family."""
    return 0.0 if record.laid_out else _UNSAID_LAYOUT


def layout_key(record: EngineRecord) -> tuple[Any, ...]:
    """The parallel layout: calibrations are for one."""
    return (record.layout, record.gpus)
