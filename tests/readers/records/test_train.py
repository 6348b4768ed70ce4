"""Rows of training throughput: what is read, what is assumed in words, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.facts.layout import Layout
from rlsize.facts.records import TrainRecord
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.train import matches, record

CATALOGUE = Catalogue()
ROW: dict[str, Any] = {
    "id": "a-1", "source_id": "a", "trust": "high", "model": "Llama-3.1-70B", "stack": "torchtitan", "gpu": "H100",
    "gpus": 256, "precision": "BF16", "seq_len": 8192, "micro_batch": 16, "global_batch": 512, "tp": 8, "fsdp": 32,
    "recompute": "full", "tokens_per_s_per_gpu": 597.3, "workload": "pre-training",
}  # fmt: skip
ODD = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.lists(st.integers(), max_size=2)
)


def read(**changed: Any) -> TrainRecord:
    """The row with some fields changed; None takes one away."""
    return record({key: value for key, value in (ROW | changed).items() if value is not None}, CATALOGUE)


def test_a_row_is_read_as_it_stands() -> None:
    """Degrees, batch and number type; nothing is assumed."""
    found = read()
    assert found.layout == Layout(tensor=8)
    assert (found.sharding, found.shards) == ("full", 32)
    assert (found.sequences, found.tokens, found.micro_batch_tokens) == (512, 8192, 131072)
    assert (found.dtype, found.recompute, found.fused, found.workload) == ("bf16", "full", True, "pretraining")
    assert found.assumed == ()


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        ({"precision": "float8 rowwise"}, "scaling", "row"),
        ({"precision": "FP8-CS (FP8-MX)"}, "scaling", "tensor"),
        ({"precision": "MXFP8"}, "scaling", "block"),
        ({"pp": 2, "vp": "10 (5)"}, "virtual_stages", 10),
        ({"workload": "RL LoRA(r=32)"}, "lora_rank", 32),
        ({"stack": "prime-rl", "workload": "RL Full"}, "offload", True),
        ({"precision": "amp_fp8"}, "dtype", "fp8"),
        ({"precision": "fp16"}, "dtype", "bf16"),
        ({"other_parallel": "async TP"}, "overlapped", True),
        ({"stack": "llm-foundry FSDP", "fsdp": "SHARD_GRAD_OP"}, "sharding", "gradients"),
        ({"stack": "Megatron-LM", "fsdp": None}, "sharding", "optimizer"),
        ({"stack": "DeepSpeed", "fsdp": "ZeRO-3"}, "sharding", "full"),
        ({"fsdp": "DDP"}, "sharding", "none"),
        ({"recompute": "selective"}, "recompute", "alternate"),
        ({"stack": "Megatron-LM", "recompute": "selective"}, "recompute", "selective"),
        ({"recompute": False}, "recompute", "none"),
        ({"pp": 8, "other_parallel": "Interleaved 1F1B"}, "virtual_stages", 2),
        ({"stack": "verl", "workload": "GRPO"}, "workload", "rl"),
        ({"stack": "llm-foundry", "tp": 1}, "fused", False),
        ({"notes": "with FlashAttention-3"}, "native_attention", True),
        ({"tp": None, "parallel": "TP4 PP2"}, "layout", Layout(tensor=4, pipeline=2)),
    ],
)
def test_words_are_understood(changed: dict[str, Any], field: str, value: object) -> None:
    """What publications write in words of their own."""
    assert getattr(read(**changed), field) == value


def test_a_local_batch_is_cut_into_as_many_micro_batches_as_stages() -> None:
    """In torchtitan; elsewhere the micro-batch is that of the pipeline."""
    assert read(pp=8, micro_batch=32).micro_batch_tokens == 4 * 8192
    assert read(pp=8, micro_batch=2, stack="Megatron-LM").micro_batch_tokens == 2 * 8192


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("seq_len", "sequences of 8192 tokens"),
        ("global_batch", "one micro-batch a step"),
        ("micro_batch", "a micro-batch of one sequence"),
        ("recompute", "alternate recomputation"),
        ("precision", "linear layers in bf16"),
    ],
)
def test_what_is_not_said_is_assumed_in_words(missing: str, words: str) -> None:
    """Never in silence."""
    assert read(**{missing: None}).assumed == (words,)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tokens_per_s_per_gpu": None}, "no tokens per second"),
        ({"tokens_per_s_per_gpu": -3}, "no tokens per second"),
        ({"gpu": None}, "names no GPU"),
        ({"model": "Unheard-of-900B"}, "no model profile"),
    ],
)
def test_what_cannot_be_predicted_is_refused(changed: dict[str, Any], words: str) -> None:
    """In a line."""
    with pytest.raises(Refused, match=words):
        read(**changed)


def test_rows_of_other_classes_are_left_alone() -> None:
    """RL steps, engines, memory and syncs share field names with training."""
    assert matches(ROW)
    for other in ("placement", "concurrency", "metric", "sync_time_s", "what"):
        assert not matches(ROW | {other: 1})
    assert not matches({"tokens_per_s_per_gpu": 3})


@settings(max_examples=200)
@given(changed=st.dictionaries(st.sampled_from(sorted(ROW)), ODD, max_size=4))
def test_odd_rows_are_read_or_refused(changed: dict[str, Any]) -> None:
    """Whatever stands in the fields, there is no other failure."""
    try:
        found = record(ROW | changed, CATALOGUE)
    except Refused:
        return
    assert found.tokens > 0
    assert found.sequences > 0
    assert found.measured
