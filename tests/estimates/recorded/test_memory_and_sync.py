"""Predictions of memory readings and weight updates: their own fields, families, arrays of draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.constants_sync import STAGE
from rlsize.estimates.recorded import engine, memory, sync
from rlsize.estimates.recorded.registry import Profiles, predictors, relation
from rlsize.facts.layout import Layout
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records import memory as memory_reader
from rlsize.readers.records import rollout as rollout_reader
from rlsize.readers.records import sync as sync_reader

CATALOGUE = Catalogue()
LOG = {
    "id": "log",
    "source_id": "log",
    "model": "Qwen2.5-14B",
    "gpu": "RTX 4090",
    "gpus": 2,
    "parallel": "TP2",
    "gpu_memory_utilization": 0.98,
    "weights_gib_per_gpu": 13.9476,
    "kv_cache_tokens": 81536,
    "engine": "vLLM 0.7.2",
}
PEAK = {
    "id": "peak",
    "source_id": "torchtitan",
    "model": "Llama-3.1-405B",
    "gpu": "H100-80GB-SXM",
    "gpus": 512,
    "parallel": "fsdp=8, tp=8, pp=8, cp=1, recompute=full",
    "seq_len": 32768,
    "micro_batch": 8,
    "peak_gib_per_gpu": 75.3,
    "engine": "torchtitan",
}
UPDATE = {
    "id": "update",
    "source_id": "checkpoint_engine",
    "model": "DeepSeek-V3.1",
    "method": "checkpoint-engine broadcast",
    "gpu": "H20",
    "gpus_rollout": 16,
    "rollout_parallel": "vLLM TP16, 1 instance(s)",
    "dtype": "FP8",
    "sync_time_s": 10.19,
}
CASES = [(memory, memory_reader, LOG), (memory, memory_reader, PEAK), (sync, sync_reader, UPDATE)]


@pytest.mark.parametrize(("module", "reader", "row"), CASES)
def test_predictions_have_the_measured_fields(module: Any, reader: Any, row: dict[str, Any]) -> None:
    """Under the record's own names, near what was measured, as numbers and as arrays of draws."""
    record = reader.record(row, CATALOGUE)
    profiles = Profiles(model=CATALOGUE.get("model", record.model), gpu=CATALOGUE.get("gpu", record.gpu))
    belief = prior(*module.STAGES)
    centre = module.predict(record, profiles, belief.central())
    draws = module.predict(record, profiles, belief.drawn(0, 50))
    assert set(centre) == set(record.measured)
    headline = module.graded(record)
    assert centre[headline] == pytest.approx(record.measured[headline], rel=0.3)
    assert np.shape(draws[headline]) == (50,)


def test_tokens_count_before_weights() -> None:
    """The cache in tokens is the headline of an engine, the weights where it is missing."""
    record = memory_reader.record(LOG, CATALOGUE)
    assert memory.graded(record) == "kv_cache_tokens"
    alone = {key: value for key, value in LOG.items() if key != "kv_cache_tokens"}
    assert memory.graded(memory_reader.record(alone, CATALOGUE)) == "weights_gib_per_gpu"


def test_updates_of_one_transport_are_a_family() -> None:
    """Models may differ, since the time is affine in bytes; what makes two alike but for size is told apart."""
    one = sync_reader.record(UPDATE, CATALOGUE)
    other = sync_reader.record({**UPDATE, "id": "b", "model": "Kimi-K2"}, CATALOGUE)
    assert sync.family(one) == sync.family(other)
    assert sync.layout_key(one) != sync.layout_key(other)


def test_noise_differs_by_kind() -> None:
    """A start-up is read to a per cent, a training peak depends on the framework's version."""
    log, peak = (memory_reader.record(row, CATALOGUE) for row in (LOG, PEAK))
    assert memory.noise(log) < memory.noise(peak)


def test_what_is_predicted_not_to_start_is_refused() -> None:
    """A cache was measured, and the prediction leaves none: said, not graded as zero."""
    row = {**LOG, "model": "Llama-3.1-70B", "gpu_memory_utilization": 0.9}
    record = memory_reader.record(row, CATALOGUE)
    profiles = Profiles(model=CATALOGUE.get("model", record.model), gpu=CATALOGUE.get("gpu", record.gpu))
    with pytest.raises(Refused, match="no room"):
        memory.predict(record, profiles, prior(*memory.STAGES).central())


def test_broadcasts_scatter_more_whichever_stack_sends() -> None:
    """How a trainer gathers is not counted, and moves broadcasts and what is compared as they are; nothing else."""
    methods = ("NeMo-RL broadcast", "verl nccl broadcast", "NCCL broadcast (Miles)", "checkpoint-engine")
    said = [sync_reader.record(UPDATE | {"method": method, "source_id": "x"}, CATALOGUE) for method in methods]
    noises = [sync.noise(record) for record in said]
    assert noises[0] == noises[1] == noises[2] > noises[3] == STAGE.noise


def test_another_sharding_is_another_layout() -> None:
    """The same GPUs with weights spread otherwise are no rerun; a remark in brackets makes nothing of its own."""
    first = UPDATE | {"method": "nccl broadcast", "train_parallel": "FSDP2 16"}
    others = (
        {"method": "nccl broadcast (user rerun)"},
        {"train_parallel": "HSDP 2 x 8"},
        {"method": "nccl per tensor"},
    )
    one, *rest = (sync_reader.record(first | change, CATALOGUE) for change in ({}, *others))
    said = [relation(predictors()["sync"], one, other) for other in rest]
    assert said == ["same layout", "other layout", "other layout"]


@pytest.mark.parametrize(("gpu", "tensor"), [("h200-sxm", 1), ("h100-sxm", 2)])
def test_a_node_without_a_layout_runs_as_many_replicas_as_have_room(gpu: str, tensor: int) -> None:
    """A 70B model in fp8 leaves half of 141 GB to its cache, and not half of 80 GB."""
    row = {"id": "node", "model": "llama2-70b", "engine": "TensorRT", "gpu": gpu, "gpus": 8, "dtype": "fp8",
           "input_len": 294, "output_len": 294, "output_tok_s_total": 34988}  # fmt: skip
    record = rollout_reader.record(row, CATALOGUE)
    profiles = Profiles(model=CATALOGUE.get("model", "llama2-70b"), gpu=CATALOGUE.get("gpu", gpu))
    found = engine.replica(record, profiles)
    assert found.question.layout == Layout(tensor=tensor)
    stated = rollout_reader.record(row | {"parallel": "TP8"}, CATALOGUE)
    assert engine.replica(stated, profiles).question.layout == Layout(tensor=8)
    assert engine.noise(stated) < engine.noise(record)
