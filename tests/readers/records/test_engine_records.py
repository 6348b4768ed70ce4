"""Rates of engines as publications write them."""

from __future__ import annotations

from typing import Any

import pytest

from rlsize.errors import Refused
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import MXFP4_EXPERTS, uniform
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records import engine_latency, rollout

CATALOGUE = Catalogue()

CLOSED: dict[str, Any] = {
    "id": "one",
    "source_id": "somebody",
    "trust": "high",
    "model": "Qwen/Qwen3-32B",
    "engine": "vllm 0.12.0",
    "gpu": "h100_sxm",
    "gpus": 4,
    "parallel": "TP4 PP1 ADP MoE-TP1 MoE-EP1",
    "dtype": "precision=unset gemm=unset moe=unset",
    "input_len": 1024,
    "output_len": 512,
    "concurrency": 16,
    "ttft_ms": 200.0,
    "tpot_ms": 12.0,
}
OFFLINE: dict[str, Any] = {
    "id": "two",
    "source_id": "somebody",
    "trust": "high",
    "model": "Llama-3.3-70B",
    "engine": "TensorRT-LLM (PyTorch backend)",
    "gpu": "H200-141GB-SXM",
    "gpus": 2,
    "parallel": "TP2",
    "dtype": "FP8 weights",
    "input_len": 1000,
    "output_len": 2000,
    "num_requests": 1500,
    "output_tok_s_total": 5000,
}


def test_throughput_follows_from_both_times() -> None:
    """Rate: c out / (TTFT + out TPOT): 16 x 512 tokens in 0.2 + 6.144 s."""
    record = engine_latency.record(CLOSED, CATALOGUE)
    assert record.measured["output_tok_s_total"] == pytest.approx(16 * 512 / 6.344)
    assert record.layout == Layout(tensor=4)
    assert (record.stack, record.version, record.concurrency, record.served) == ("vllm", "0.12.0", 16, True)
    assert any("bf16" in note for note in record.assumed)


def test_quantised_checkpoints_of_tensorrt_llm_have_an_fp8_cache() -> None:
    """It is said among what was assumed."""
    record = rollout.record(OFFLINE, CATALOGUE)
    assert record.kv_dtype == "fp8"
    assert record.weights == uniform("fp8")
    assert record.requests == 1500
    assert "KV cache in fp8" in record.assumed


def test_gpt_oss_keeps_its_experts_whatever_a_table_calls_it() -> None:
    """The checkpoint has mxfp4 experts and bf16 for the rest."""
    assert rollout.record({**OFFLINE, "model": "gpt-oss-120b"}, CATALOGUE).weights == MXFP4_EXPERTS


def test_many_ranks_for_few_kv_heads_mean_attention_in_data_parallel() -> None:
    """A mixture of experts with 4 KV heads on TP8 of TensorRT-LLM; a dense model stays as it is said."""
    row = {**OFFLINE, "parallel": "TP8", "gpus": 8}
    moe = rollout.record({**row, "model": "Qwen3-235B-A22B"}, CATALOGUE)
    assert (moe.layout.tensor, moe.layout.data) == (1, 8)
    assert any("data parallel" in note for note in moe.assumed)
    assert rollout.record(row, CATALOGUE).layout.tensor == 8


@pytest.mark.parametrize(
    ("row", "lacks"),
    [
        ({**CLOSED, "tpot_ms": None}, "tpot_ms"),
        ({**CLOSED, "ttft_ms": None}, "ttft_ms"),
        ({**CLOSED, "gpu": None}, "GPU"),
        ({**CLOSED, "input_len": "long"}, "input_len"),
        ({**CLOSED, "model": "no such model 3T"}, "model"),
    ],
)
def test_a_closed_loop_that_lacks_something_is_refused_with_what_it_lacks(row: dict[str, Any], lacks: str) -> None:
    """In one line."""
    with pytest.raises(Refused, match=lacks):
        engine_latency.record(row, CATALOGUE)


def test_the_rate_of_one_phase_is_no_throughput() -> None:
    """Prefill tokens per second are refused, and so is the speed of a single sequence."""
    row = {key: value for key, value in OFFLINE.items() if key != "output_tok_s_total"}
    with pytest.raises(Refused, match="response tokens"):
        rollout.record({**row, "input_tok_s_total": 16594}, CATALOGUE)
    with pytest.raises(Refused, match="one sequence"):
        rollout.record({**OFFLINE, "metric": "single-sequence decode tok/s"}, CATALOGUE)


def test_classes_tell_rows_apart_by_their_fields() -> None:
    """A closed loop is no offline run, and the other way round."""
    assert engine_latency.matches(CLOSED)
    assert not rollout.matches(CLOSED)
    assert rollout.matches(OFFLINE)
    assert not engine_latency.matches(OFFLINE)


def test_a_table_that_multiplies_ranks_of_the_same_gpus_means_one_node() -> None:
    """TP64 of MoE-TP8 and MoE-EP8 is one node of eight, whose experts lie over all of it; TP8 of MoE-TP8 is itself."""
    for said, tensor, data, expert in (
        ("TP64 PP1 ADP MoE-TP8 MoE-EP8", 8, 1, 8),
        ("TP1 PP1 ADP64 MoE-TP8 MoE-EP8", 1, 8, 8),
        ("TP8 PP1 ADP MoE-TP8 MoE-EP1", 8, 1, 1),
    ):
        row = {**CLOSED, "model": "deepseek-r1", "engine": "trtllm", "gpu": "b200", "gpus": 64, "parallel": said}
        found = engine_latency.record(row, CATALOGUE).layout
        assert (found.tensor, found.data, found.expert) == (tensor, data, expert)


def test_checkpoints_for_fp4_units_have_an_fp8_cache_under_any_engine() -> None:
    """Quantised ones ask for it; 16-bit weights and older GPUs keep 16 bits."""
    for gpu, dtype, cached in (("b200", "fp8", "fp8"), ("b200", "bf16", "bf16"), ("h200", "fp8", "bf16")):
        record = engine_latency.record({**CLOSED, "gpu": gpu, "dtype": dtype}, CATALOGUE)
        assert record.kv_dtype == cached
        assert f"KV cache in {cached}" in record.assumed
