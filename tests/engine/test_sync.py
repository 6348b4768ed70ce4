"""Real weight syncs over gloo: what arrives is what was sent, and messages cost something beside their bytes."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.effort import BY_NIGHT, NIGHTLY

from rlsize.facts.measured import SyncMeasured, SyncMethod
from rlsize.measure.child import ChildDiedError
from rlsize.measure.jobs import StageResult
from rlsize.measure.weight_sync import SyncJob, measure_sync
from rlsize.readers.huggingface import read_model

BUCKETS = (65_537, 2**18, 2**40)  # cuts tensors anywhere, a few messages, larger than the model


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def measured(model: Path, python: str, folder: Path, say: Any = None, **changed: Any) -> StageResult[SyncMeasured]:
    """A short measurement on the CPU."""
    options = {"bucket_bytes": BUCKETS, "device": "cpu", **changed}
    seconds = options.pop("seconds", 2.0)
    job = SyncJob(model=str(model), start_seconds=600, **options)
    return measure_sync(job, python, folder, seconds=seconds, say=say or (lambda _what, _share: None))


def per_tensor(result: StageResult[SyncMeasured]) -> SyncMethod:
    """The first way that is measured."""
    return result.measured.methods[0]


def running(folder: Path) -> list[int]:
    """Processes that were started with something in this folder, found by their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode()
            except OSError:
                continue
            if str(folder) in command:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize(("trainers", "receivers"), [(1, 1), *([(2, 2)] if NIGHTLY else ())])
def test_the_receivers_end_with_the_sender_s_bytes(
    trainers: int, receivers: int, engine_python: str, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """All ways arrive byte for byte, with every message counted by hand."""
    found = measured(
        tiny_models["qwen3"], engine_python, tmp_path, trainer_ranks=trainers, receiver_ranks=receivers
    ).measured
    computed = read_model(tiny_models["qwen3"]).computed
    assert computed is not None
    assert found.bytes == 2 * computed.params
    assert found.tensors == 25  # embedding, head, last norm, and 11 in each of two layers
    assert (found.backend, found.trainer_ranks, found.receiver_ranks) == ("gloo", trainers, receivers)
    assert [way.method for way in found.methods] == ["per-tensor", "bucketed", "bucketed", "bucketed"]
    assert [way.bucket_bytes for way in found.methods] == [None, 65_537, 2**18, found.bytes]
    assert [way.messages for way in found.methods] == [25, -(-found.bytes // 65_537), -(-found.bytes // 2**18), 1]
    for way in found.methods:
        assert way.identical
        assert way.scatter is not None
        assert way.scatter.parts >= 5
        assert way.bytes_per_second == pytest.approx(found.bytes / way.seconds)
        assert way.gather_seconds < way.seconds
        if trainers == 1:
            assert way.gather_seconds < 0.05 * way.seconds  # nothing is gathered: what is left is looking at the clock


@BY_NIGHT
def test_many_small_tensors_show_what_a_message_costs(engine_python: str, tmp_path: Path) -> None:
    """Two models of the same bytes: with many tensors the sync takes longer, and buckets take that away again."""
    many = shaped(tmp_path / "many", hidden_size=32, num_hidden_layers=48)
    few = shaped(tmp_path / "few", hidden_size=32, num_hidden_layers=1, target=params(many))
    small = measured(many, engine_python, tmp_path / "a", bucket_bytes=(2**30,))
    large = measured(few, engine_python, tmp_path / "b", bucket_bytes=(2**30,))
    assert small.measured.bytes == pytest.approx(large.measured.bytes, rel=0.01)
    assert small.measured.tensors > 20 * large.measured.tensors
    assert per_tensor(small).seconds > 3 * per_tensor(large).seconds
    assert per_tensor(small).seconds > 3 * small.measured.methods[1].seconds
    cost = small.measured.per_message_seconds
    assert cost is not None
    share = cost * small.measured.tensors / per_tensor(small).seconds
    assert 0.05 < share < 5  # other load on the machine makes one of them longer


def shaped(folder: Path, target: int = 0, **changed: Any) -> Path:
    """A configuration; its vocabulary is chosen so that it comes to a number of parameters."""
    folder.mkdir()
    (folder.parent / "a").mkdir(exist_ok=True)
    (folder.parent / "b").mkdir(exist_ok=True)
    shape = {
        "model_type": "llama", "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "tie_word_embeddings": True, "vocab_size": 64, **changed,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    if target:
        rest = target - params(folder)
        shape["vocab_size"] += round(rest / shape["hidden_size"])
        (folder / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    return folder


def params(folder: Path) -> int:
    """Parameters of a configuration."""
    computed = read_model(folder).computed
    assert computed is not None
    return computed.params


def test_interrupted_it_keeps_what_is_measured(
    engine_python: str, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """Ctrl-C after the first way: that one is kept, the end is named, and no rank lives on."""

    def say(_what: str, share: float) -> None:
        if share > 0.3:  # one way of four is done
            raise KeyboardInterrupt

    result = measured(tiny_models["qwen3"], engine_python, tmp_path, say, seconds=6.0)
    assert result.partial == "interrupted"
    assert 1 <= len(result.measured.methods) < 4
    assert per_tensor(result).identical
    assert not_running(tmp_path)


@BY_NIGHT
def test_interrupted_before_anything_was_measured(
    engine_python: str, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """Nothing to keep: Ctrl-C goes on."""

    def say(_what: str, _share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(tiny_models["qwen3"], engine_python, tmp_path, say, seconds=6.0)
    assert not_running(tmp_path)


def test_a_rank_that_dies_leaves_what_is_measured(
    engine_python: str, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """A rank is killed in the second way: the first is kept, and the end says so."""
    killed: list[int] = []

    def say(_what: str, share: float) -> None:
        if share > 0.3 and not killed:
            killed.append(max(running(tmp_path)))
            os.kill(killed[0], signal.SIGKILL)

    result = measured(tiny_models["qwen3"], engine_python, tmp_path, say, seconds=6.0)
    told = ("exit code", "failed", "was killed")  # by whichever is first to notice
    assert any(words in result.partial for words in told)
    assert 1 <= len(result.measured.methods) < 4
    assert not_running(tmp_path)


def not_running(folder: Path) -> bool:
    """Whether all its processes end within a minute."""
    for _ in range(600):
        if not running(folder):
            return True
        time.sleep(0.1)
    return False


def test_a_model_too_large_for_memory_says_so(engine_python: str, tmp_path: Path) -> None:
    """A model of hundreds of terabytes: no figure, and a sentence that names memory and what to do."""
    model = shaped(tmp_path / "huge", hidden_size=2**20, num_hidden_layers=1, vocab_size=10**8)
    with pytest.raises(ChildDiedError, match="ran out of memory") as caught:
        measured(model, engine_python, tmp_path / "a")
    assert caught.value.memory
    assert "smaller" in caught.value.faults[0].todo


@BY_NIGHT
def test_a_directory_without_a_model_says_so(engine_python: str, tmp_path: Path) -> None:
    """The worker's own words reach the user."""
    (tmp_path / "a").mkdir()
    with pytest.raises(ChildDiedError, match=r"config\.json"):
        measured(tmp_path, engine_python, tmp_path / "a")
