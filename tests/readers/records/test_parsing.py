"""What all classes of record read alike: numbers, words, layouts, number types, stacks."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import BYTES_PER_PARAM
from rlsize.facts.records import Record
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.parsing import (
    common,
    dtypes,
    instances,
    layout,
    needed,
    number,
    says_dtype,
    stack_of,
    text,
    whole,
)

CATALOGUE = Catalogue()
ODD = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.lists(st.integers(), max_size=2)
)
ROW = {
    "id": "a-1", "source_id": "a", "trust": "high", "model": "Qwen3-32B", "gpu": "H100-80GB-SXM", "gpus": 8,
    "engine": "vllm 0.12.0",
}  # fmt: skip
LAYOUTS = {
    "TP4 PP1 ADP MoE-TP1 MoE-EP1": Layout(tensor=4),
    "TP8 PP1 ADP MoE-TP0 MoE-EP0": Layout(tensor=8),
    "TP4 PP1 ADP1 MoE-TP1 MoE-EP4": Layout(tensor=4, expert=4),
    "DEP8": Layout(data=8, expert=8),
    "TEP8": Layout(tensor=8, expert=8),
    "TP4EP4": Layout(tensor=4, expert=4),
    "TP2xDP8": Layout(tensor=2, data=8),
    "vLLM TP4xEP4xDP4": Layout(tensor=4, expert=4, data=4),
    "vLLM TP16, 16 instance(s)": Layout(tensor=16),
    "Megatron TP2xCP2xEP8": Layout(tensor=2, context=2, expert=8),
    "TP4 PP8 EP16 CP1": Layout(tensor=4, pipeline=8, expert=16),
    "tp=8,pp=1": Layout(tensor=8),
    "fsdp=8, tp=8, pp=8, cp=2, recompute=full": Layout(data=8, tensor=8, pipeline=8, context=2),
    "fsdp=8, other_parallel=FSDP + compile + Float8": Layout(data=8),
    "--tensor-parallel-size 4 --pipeline-parallel-size 2": Layout(tensor=4, pipeline=2),
    "8-way tensor parallel": Layout(tensor=8),
    "[TP,PP]=[4,1]": Layout(tensor=4),
    "[TP,CP,EP,PP,VPP]=[2,1,8,1,n/a]": Layout(tensor=2, expert=8),
    "[TP,CP,EP,PP,VPP]=[4,1,16,8,n/a]": Layout(tensor=4, expert=16, pipeline=8),
    "[TP,CP,EP,PP,VPP]=[1,1,1,1,1,2,n/a]": Layout(pipeline=2),
    "vanilla TP": Layout(),
}


@pytest.mark.parametrize("said", LAYOUTS)
def test_a_layout_is_read_from_words(said: str) -> None:
    """Ranks by axis; axes that are not named have one; two values too many belong to no name."""
    assert layout(said, 8) == LAYOUTS[said]


def test_without_words_a_replica_is_tensor_parallel_over_its_gpus() -> None:
    """What engines do with several GPUs unless told otherwise."""
    assert layout(None, 4) == layout("", 4) == Layout(tensor=4)


def test_instances_are_counted_apart() -> None:
    """They are replicas, no axis of one."""
    assert (instances("vLLM TP16, 16 instance(s)"), instances("TP16"), instances(None)) == (16, 1, 1)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("precision=fp8 gemm=fp8 moe=fp8", ("fp8", None)),
        ("precision=fp4 gemm=nvfp4 moe=nvfp4", ("fp4", None)),
        ("precision=unset gemm=unset moe=unset", ("bf16", None)),
        ("NVFP4 weights", ("fp4", None)),
        ("FP8 weights, FP8 KV cache", ("fp8", "fp8")),
        ("bf16, kv_cache_dtype=fp8", ("bf16", "fp8")),
        ("MXFP4", ("fp4", None)),
        ("BF16 generation and training", ("bf16", None)),
        ("amp_bf16", ("bf16", None)),
        ("amp_fp8", ("fp8", None)),
        ("float8 rowwise", ("fp8", None)),
        ("W4A16 AWQ", ("int4", None)),
        (None, ("bf16", None)),
    ],
)
def test_number_types_are_read_from_words(said: object, found: tuple[str, str | None]) -> None:
    """Weights, and the cache where it is said."""
    assert dtypes(said) == found


def test_a_text_may_name_a_type_for_each_part() -> None:
    """The type that stands before the part is meant."""
    said = "FP8 generation, BF16 training"
    assert (dtypes(said, "generation")[0], dtypes(said, "training")[0]) == ("fp8", "bf16")
    assert dtypes("FP8 generation and training", "training")[0] == "fp8"


def test_whether_a_type_is_said_can_be_asked() -> None:
    """So that bf16 is noted as an assumption."""
    assert says_dtype("FP8")
    assert not says_dtype("precision=unset")
    assert not says_dtype(None)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("trtllm 1.0.0rc3", ("trtllm", "1.0.0rc3")),
        ("sglang 0.5.1.post1", ("sglang", "0.5.1.post1")),
        ("TensorRT-LLM (PyTorch backend)", ("trtllm", "")),
        ("NeMo-RL v0.5 (Megatron-Core train, vLLM rollout)", ("nemo-rl", "0.5")),
        ("vLLM 0.8.5 bench throughput", ("vllm", "0.8.5")),
        ("torchtitan compile + Float8", ("torchtitan", "")),
        ("bucket of 0.5B parameters", ("", "")),
    ],
)
def test_the_stack_is_the_first_that_a_text_names(said: str, found: tuple[str, str]) -> None:
    """With its version."""
    assert stack_of(said) == found


def test_numbers_and_words_are_taken_as_they_come() -> None:
    """Text with separators is a number; what is none is none."""
    row = {"a": "1,024.5", "b": True, "c": math.nan, "d": 10**400, "e": " two\n words ", "f": -3, "g": "x"}
    assert [number(row, key) for key in "abcdefgh"] == [1024.5, None, None, None, None, -3, None, None]
    assert (text(row, "e"), text(row, "b"), text(row, "h")) == ("two words", "", "")
    assert (whole(row, "a"), whole(row, "f", 5), whole(row, "h", 5)) == (1024, 5, 5)
    with pytest.raises(Refused, match="states no f"):
        needed(row, "f")


class TestCommon:
    """The fields of every record."""

    def test_a_whole_row_assumes_nothing(self) -> None:
        """All is said."""
        record = Record(**common(ROW, CATALOGUE))
        assert (record.model, record.gpu, record.gpus) == ("qwen3-32b", "h100-sxm", 8)
        assert (record.stack, record.version, record.trust, record.assumed) == ("vllm", "0.12.0", "high", ())

    def test_what_is_missing_is_noted(self) -> None:
        """GPUs and trust have a default, and the record says so."""
        record = Record(**common({"model": "Qwen3-32B", "gpus_train": 8, "gpus_rollout": 24}, CATALOGUE))
        assert (record.gpu, record.gpus, record.id) == ("", 32, "unnamed")
        assert record.assumed == ("medium trust, as the record does not say",)
        assert "one GPU" in common({"model": "Qwen3-32B", "trust": "low"}, CATALOGUE)["assumed"][0]

    def test_a_row_without_a_model_is_refused(self) -> None:
        """There is nothing to predict."""
        with pytest.raises(Refused, match="names no model"):
            common({"gpu": "H100"}, CATALOGUE)

    @given(row=st.dictionaries(st.sampled_from([*ROW, "gpus_total", "framework", "version"]), ODD, max_size=8))
    def test_any_row_is_read_or_refused(self, row: dict[str, Any]) -> None:
        """Never another error."""
        try:
            found = common({**row, "model": "Qwen3-32B"}, CATALOGUE)
        except Refused:
            return
        assert found["gpus"] >= 1


@given(said=st.text(max_size=200) | st.text("tpdecxm=[],-/ 0123456789na", max_size=200))
def test_any_words_are_a_layout_and_a_type(said: str) -> None:
    """Ranks are at least one and types are known, whatever is written."""
    found = layout(said, 8)
    assert min(found.tensor, found.pipeline, found.expert, found.data, found.context) >= 1
    weights, cache = dtypes(said, "training")
    assert {weights, cache or "bf16"} <= set(BYTES_PER_PARAM)
    stack_of(said)
