"""Weight updates as records, in the words of their publications."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.facts.records import SyncRecord
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records import sync

CATALOGUE = Catalogue()
ROW = {
    "id": "update-1",
    "source_id": "engine",
    "model": "Kimi-K2-Instruct",
    "method": "checkpoint-engine broadcast",
    "mode": "weights in host memory to inference engines",
    "gpu": "H20",
    "gpus_rollout": 256,
    "rollout_parallel": "vLLM TP16, 16 instance(s)",
    "dtype": "FP8",
    "payload": "full weights",
    "sync_time_s": 16.04,
    "trust": "high",
}


ODD = st.one_of(st.none(), st.text(), st.floats(), st.integers(), st.booleans())


def read(**changed: Any) -> SyncRecord:
    """The row with some fields changed; None takes one out."""
    fields = {key: value for key, value in {**ROW, **changed}.items() if value is not None}
    assert sync.matches(fields)
    return sync.record(fields, CATALOGUE)


def test_a_row_that_says_everything() -> None:
    """Class, type, GPUs and instances; nothing is guessed."""
    record = read()
    assert (record.transport, record.dtype) == ("checkpoint-engine", "fp8")
    assert (record.rollout_gpus, record.instance_gpus) == (256, 16)
    assert record.measured == {"sync_time_s": 16.04}
    assert record.assumed == ()


@pytest.mark.parametrize(
    ("method", "mode", "transport"),
    [
        ("checkpoint-engine P2P (at most 16 GPUs updated)", "", "checkpoint-engine-p2p"),
        ("NCCL-Reshard refit", "disaggregated", "nccl-reshard"),
        ("own framework, RDMA writes", "disaggregated", "nccl-reshard"),
        ("slime colocated, naive CUDA IPC", "colocated (CUDA IPC)", "colocated-per-tensor"),
        ("slime colocated, flattened tensors", "colocated (CUDA IPC)", "colocated"),
        ("NeMo-RL v0.3 refit, Megatron", "colocated", "colocated"),
        ("per-tensor broadcast", "disaggregated", "nccl-per-tensor"),
        ("bucket of 2B parameters", "disaggregated", "nccl-broadcast"),
        ("checkpoints on an object store", "disaggregated", "store"),
    ],
)
def test_classes_of_transport(method: str, mode: str, transport: str) -> None:
    """The words of a method name its class."""
    assert read(method=method, mode=mode).transport == transport


def test_the_middle_of_a_range() -> None:
    """A published range is measured at its middle, and says so."""
    record = read(sync_time_s=0.74, sync_time_max_s=1.0)
    assert record.measured["sync_time_s"] == pytest.approx(0.87)
    assert any("middle" in note for note in record.assumed)


def test_what_is_not_said_is_noted() -> None:
    """GPU, GPUs, type and placement."""
    told = " ".join(read(method="update", mode=None, gpu=None, gpus_rollout=None, dtype=None).assumed)
    assert "no GPU" in told
    assert "GPUs on each side" in told
    assert "bf16 on the wire" in told
    assert "no placement" in told


@pytest.mark.parametrize("payload", ["delta", "changed elements only", "sparse diff"])
def test_changed_weights_are_a_delta(payload: str) -> None:
    """Whatever sends them."""
    assert read(payload=payload, method="nccl full broadcast").transport == "delta"


def test_buckets_and_ready_weights() -> None:
    """Buckets of parameters count in the type on the wire; weights quantised before are not converted."""
    assert read(method="bucket of 0.5B parameters").bucket_bytes == pytest.approx(0.5e9, rel=1e-3)
    assert read(method="MXFP8 refit after (pre-quantised)").converted is False


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"payload": "LoRA adapters"}, "not the model's weights"),
        ({"sync_time_s": -1}, "sync_time_s"),
        ({"sync_time_s": "soon"}, "sync_time_s"),
        ({"model": None}, "model"),
        ({"model": "something"}, "something"),
    ],
)
def test_what_cannot_be_compared_is_refused(changed: dict[str, Any], why: str) -> None:
    """Adapters, no time, an unknown model."""
    with pytest.raises(Refused, match=why):
        read(**changed)


def test_a_step_is_no_update() -> None:
    """A row with phases of a step belongs to another class."""
    assert not sync.matches({**ROW, "step_time_s": 100})


@given(row=st.dictionaries(st.sampled_from([*ROW, "gpus_train", "sync_time_max_s"]), ODD))
def test_any_row_is_read_or_refused(row: dict[str, Any]) -> None:
    """Foreign fields of any type give a record or a refusal, nothing else."""
    try:
        record = sync.record({**ROW, **row, "id": "x"}, CATALOGUE)
    except Refused:
        return
    assert record.measured["sync_time_s"] > 0
    assert record.trainer_gpus >= 1
