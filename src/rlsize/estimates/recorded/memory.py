"""Predictions of published memory readings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import training_peak
from rlsize.equations.engine_memory import in_gib
from rlsize.errors import Refused
from rlsize.estimates.constants_memory import STAGE, TRAINING_NOISE
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import alike, numbers
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.trainer_memory import TrainerLoad, trainer_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.facts.records import MemoryRecord

CLASS = "memory"
STAGES = (STAGE,)
_GRADED = ("kv_cache_tokens", "weights_gib_per_gpu", "kv_cache_gib_per_gpu", "peak_gib_per_gpu")


def predict(record: MemoryRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    """The measured fields: GiB per GPU, and tokens of the cache."""
    if record.kind == "engine":
        found = _engine(record, profiles, values)
    else:
        peak = trainer_memory(numbers, training_load(record, profiles), values).peak
        found = {"peak_gib_per_gpu": in_gib(peak)}
    return {name: value for name, value in found.items() if name in record.measured}


def _engine(record: MemoryRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    question = EngineQuestion(
        model=profiles.model,
        gpu=profiles.gpu,
        engine=record.stack,
        layout=record.layout,
        weights=record.weights,
        kv_dtype=record.kv_dtype,
        memory_fraction=record.memory_fraction or None,
        batched_tokens=record.batched_tokens or None,
        max_sequences=record.max_sequences or None,
        graphs_counted=record.graphs_counted,
        windows_whole=record.windows_whole,
    )
    found = kv_capacity(numbers, question, values, record.sequence_tokens or None)
    if not np.any(found.kv_bytes > 0) and any(name.startswith("kv_cache") for name in record.measured):
        raise Refused("the weights and the profiling run leave no room for a cache, by prediction")
    return {
        "weights_gib_per_gpu": in_gib(found.weight_bytes),
        "activation_peak_gib": in_gib(found.activation_bytes),
        "non_torch_gib": in_gib(found.other_bytes),
        "kv_cache_gib_per_gpu": in_gib(found.kv_bytes),
        "kv_cache_tokens": found.kv_tokens,
    }


def training_load(record: MemoryRecord, profiles: Profiles) -> TrainerLoad:
    """What the GPUs of a recorded training pass had to hold."""
    weight, gradient, optimizer, gathered = record.widths
    layout = record.layout
    tokens = training_peak.micro_batch_tokens(
        sequences=record.sequences,
        sequence_tokens=record.trained_tokens,
        context_parallel=float(layout.context),
        micro_batches=float(layout.pipeline),  # a pipeline divides its batch into as many micro batches as stages
    )
    return TrainerLoad(
        shape=memory_shape(profiles.model, model_size(profiles.model).params),
        tokens=tokens,
        tensor=float(layout.tensor),
        pipeline=float(layout.pipeline),
        context=float(layout.context),
        expert=float(layout.expert),
        shards=float(layout.data),
        gathered=layout.data * layout.context > 1 or "state_offloaded" in record.traits,
        recompute=record.recompute,
        weight_width=weight,
        gradient_width=gradient,
        optimizer_width=optimizer,
        gathered_width=gathered,
        **{"gradients_held": False} | alike(dict.fromkeys(record.traits, True), TrainerLoad),
    )


def graded(record: MemoryRecord) -> str:
    """The measured field that counts: tokens of the cache, else the weights, else the peak."""
    return next((name for name in _GRADED if name in record.measured), _GRADED[-1])


def family(record: MemoryRecord) -> tuple[Any, ...]:
    """Readings of one engine or framework on one kind of GPU."""
    return record.source_id, record.kind, record.model, record.gpu, record.stack, record.version


def noise(record: MemoryRecord) -> float:
    """Scatter of one reading."""
    return STAGE.noise if record.kind == "engine" else TRAINING_NOISE
