"""Memory readings as records: engines' logs and training peaks, in the words of their publications."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import MXFP4_EXPERTS, WIDE_ATTENTION_FP8, uniform
from rlsize.facts.records import MemoryRecord
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records import memory

CATALOGUE = Catalogue()
LOG = {
    "id": "log-1",
    "source_id": "log",
    "model": "Qwen2.5-14B",
    "gpu": "RTX 4090",
    "gpus": 2,
    "parallel": "TP2",
    "gpu_memory_utilization": 0.98,
    "weights_gib_per_gpu": 13.9476,
    "kv_cache_gib_per_gpu": 8.69,
    "kv_cache_tokens": 81536,
    "engine": "vLLM 0.7.2",
    "trust": "low",
}
PEAK = {
    "id": "peak-1",
    "source_id": "torchtitan",
    "model": "Llama-3.1-8B",
    "gpu": "H100-80GB-SXM",
    "gpus": 8,
    "parallel": "fsdp=4, cp=2, other_parallel=compile + Float8, recompute=full",
    "precision": "FP8",
    "seq_len": 65536,
    "micro_batch": 1,
    "peak_gib_per_gpu": 84.2,
    "engine": "torchtitan",
    "trust": "high",
}


def read(row: dict[str, Any], **changed: Any) -> MemoryRecord:
    """A row with some fields changed; None takes one out."""
    fields = {key: value for key, value in {**row, **changed}.items() if value is not None}
    assert memory.matches(fields)
    return memory.record(fields, CATALOGUE)


def test_a_log_of_an_engine() -> None:
    """Sizes, layout, share and version; an old version profiles 256 sequences and counts no graphs."""
    record = read(LOG)
    assert record.kind == "engine"
    assert record.measured == {
        "weights_gib_per_gpu": 13.9476,
        "kv_cache_gib_per_gpu": 8.69,
        "kv_cache_tokens": 81536,
    }
    assert record.layout == Layout(tensor=2)
    assert (record.stack, record.version, record.memory_fraction) == ("vllm", "0.7.2", 0.98)
    assert (record.max_sequences, record.graphs_counted, record.windows_whole) == (256, False, True)
    assert read(LOG, engine="vLLM 0.20.0").graphs_counted


def test_a_training_peak() -> None:
    """Ranks, tokens, recomputation and what the framework keeps."""
    record = read(PEAK)
    assert record.kind == "training"
    assert record.layout == Layout(data=4, context=2)
    assert (record.trained_tokens, record.sequences, record.recompute) == (65536, 1, "full")
    assert record.widths == (4.0, 4.0, 8.0, 2.0)
    assert record.traits == {"compiled"}


@pytest.mark.parametrize(
    ("changed", "weights"),
    [
        ({"precision": "FP8"}, uniform("fp8")),
        ({"model": "Qwen2.5-14B-Instruct-AWQ"}, uniform("int4")),
        ({"model": "Llama-3.1-405B-FP8", "precision": "FP8"}, WIDE_ATTENTION_FP8),
        ({"model": "gpt-oss-20b"}, MXFP4_EXPERTS),
        ({}, None),
    ],
)
def test_number_types_of_weights(changed: dict[str, str], weights: object) -> None:
    """The precision, else the checkpoint's name, else as it is published."""
    assert read(LOG, **changed).weights == weights


def test_a_cache_that_is_a_remainder_is_not_graded() -> None:
    """40 MiB beside 34 GiB of weights is the difference of large numbers."""
    record = read(LOG, weights_gib_per_gpu=34.4, kv_cache_gib_per_gpu=0.04, kv_cache_tokens=None)
    assert set(record.measured) == {"weights_gib_per_gpu"}


@pytest.mark.parametrize(
    ("row", "changed", "why"),
    [
        (LOG, {"model": None}, "model"),
        (LOG, {"model": "Nobody-7X"}, "Nobody"),
        (LOG, {"weights_gib_per_gpu": -1, "kv_cache_gib_per_gpu": 0, "kv_cache_tokens": "none"}, "positive"),
        (PEAK, {"peak_gib_per_gpu": 0}, "peak_gib_per_gpu"),
        (PEAK, {"engine": "ownstack", "seq_len": None}, "sequence length"),
        (PEAK, {"engine": "torchtune", "what": "training peak active, baseline"}, "unpacked"),
        (PEAK, {"engine": "ownstack", "notes": "CPU offload"}, "offloads"),
    ],
)
def test_what_cannot_be_predicted_is_refused(row: dict[str, Any], changed: dict[str, Any], why: str) -> None:
    """A refusal says what is missing."""
    with pytest.raises(Refused, match=why):
        read(row, **changed)


def test_torchtunes_ladder() -> None:
    """Each rung has all before it; the last words decide."""
    rung = {"engine": "torchtune", "model": "Llama-3.2-3B", "parallel": None, "gpus": 1}
    packed = read(PEAK, **rung, what="training peak active, + packed dataset")
    last = read(PEAK, **rung, what="training peak active, + 8-bit AdamW")
    assert packed.traits == frozenset()
    assert packed.recompute == "none"
    assert last.traits == {"compiled", "chunked_loss", "activations_offloaded"}
    assert last.widths == (2.0, 0.0, 2.0, 2.0)


def test_what_is_not_said_is_noted() -> None:
    """Every guess is told."""
    record = read(PEAK, seq_len=None, micro_batch=None, parallel="fsdp=8")
    told = " ".join(record.assumed)
    assert "8192 tokens" in told
    assert "micro batch" in told
    assert "recomputation" in told


@given(row=st.dictionaries(st.sampled_from([*LOG, *PEAK]), st.one_of(st.none(), st.text(), st.floats(), st.booleans())))
def test_any_row_is_read_or_refused(row: dict[str, Any]) -> None:
    """Foreign fields of any type give a record or a refusal, nothing else."""
    mixed = {**LOG, **row, "id": "x"}
    try:
        record = memory.record(mixed, CATALOGUE)
    except Refused:
        return
    assert all(value > 0 for value in record.measured.values())
