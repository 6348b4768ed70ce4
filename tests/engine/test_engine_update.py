"""New weights for a real vLLM that generates: the engine answers with them, and its pause is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.effort import BY_NIGHT

from rlsize.facts.measured import EngineUpdate
from rlsize.measure.child import ChildDiedError
from rlsize.measure.jobs import StageResult
from rlsize.measure.weight_sync import EngineUpdateJob, measure_engine_update

ENGINE = {"max_model_len": 512, "max_num_seqs": 16, "enforce_eager": True, "block_size": 32}


@pytest.fixture(autouse=True)
def _offline_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "1")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")


def measured(model: Path, python: str, folder: Path, say: Any = None, **changed: Any) -> StageResult[EngineUpdate]:
    """A short measurement, from disk."""
    job = EngineUpdateJob(model=str(model), **{"engine": ENGINE, "requests": 8, "start_seconds": 600, **changed})
    return measure_engine_update(job, python, folder, seconds=1.0, say=say or (lambda _what, _share: None))


@BY_NIGHT
def test_the_engine_answers_with_the_weights_that_were_loaded(
    engine_python: str, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """After every update the greedy answer is the one of those weights, and the pause is about the call."""
    found = measured(tiny_models["qwen3"], engine_python, tmp_path)
    assert not [doubt for doubt in found.doubts if "did not answer" in doubt]
    update = found.measured
    assert update.interface.startswith("LLM.sleep(0, keep), LLM.collective_rpc('reload_weights'")
    assert update.scatter is not None
    assert update.scatter.parts >= 5
    assert update.pause_seconds == pytest.approx(update.seconds, rel=0.5)
    assert update.bytes_per_second * update.seconds == pytest.approx(1_115_648)  # two bytes for each of 557,824
    assert found.partial == ""
    assert "vllm" in found.versions


def test_a_server_pauses_updates_and_resumes_by_its_own_routes(
    engine_python: str, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """It answers as the new weights do, its streams go on, and the pause holds the update and more."""
    found = measured(tiny_models["qwen3"], engine_python, tmp_path, served=True)
    assert not [doubt for doubt in found.doubts if "did not answer" in doubt]
    assert "/pause?mode=keep" in found.measured.interface
    assert found.measured.pause_seconds > found.measured.seconds


@BY_NIGHT
def test_a_directory_without_a_model_says_so(engine_python: str, tmp_path: Path) -> None:
    """Before the engine starts."""
    (tmp_path / "a").mkdir()
    with pytest.raises(ChildDiedError, match=r"config\.json"):
        measured(tmp_path, engine_python, tmp_path / "a")
