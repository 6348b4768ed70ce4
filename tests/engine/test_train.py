"""The train step on real torch: it trains, packs without leaks, counts the FLOPs that the equations say, steps down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.effort import BY_NIGHT, NIGHTLY

from rlsize.estimates.training_flops import training_flops_per_token
from rlsize.measure.child import staged
from rlsize.measure.train import TrainJob, measure_train
from rlsize.readers.huggingface import read_model

if TYPE_CHECKING:
    from rlsize.facts.measured import TrainMeasured
    from rlsize.measure.jobs import StageResult

PROBES = Path(__file__).parent / "train_probes.py"
LENGTHS = ((16, 40), (16, 64), (20, 100), (20, 30), (8, 200), (8, 10), (30, 30), (30, 64))
VM_PEAK = (
    "import torch, transformers.modeling_utils, torch.distributed.fsdp;"
    "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmPeak')][0])"
)
ROOM_KIB = 900 * 1024  # beyond the libraries themselves


@pytest.fixture(autouse=True)
def _one_thread_per_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks share few cores, and nothing may be fetched."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


ENOUGH = 120.0  # seconds in which every micro-batch is run: with less, a slow machine runs some of them and scales


def quiet(_: str, __: float) -> None:
    """Nobody listens."""


def job(model: Path, **changed: Any) -> TrainJob:
    """Eight samples in four groups."""
    fields: dict[str, Any] = {
        "model": str(model),
        "profile": read_model(model),
        "lengths": LENGTHS,
        "group_size": 2,
        "micro_batch_tokens": 300,
        "steps": 4,
        "start_seconds": 120.0,
        "device": "cpu",
    }
    return TrainJob(**{**fields, **changed})


@pytest.fixture(scope="module", params=["qwen3", *(["qwen3_moe"] if NIGHTLY else [])])
def measured(
    request: pytest.FixtureRequest,
    engine_python: str,
    tiny_models: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> StageResult[TrainMeasured]:
    """A dense and a mixture-of-experts model, trained by two ranks."""
    folder = tmp_path_factory.mktemp("train")
    wanted = job(tiny_models[request.param], processes=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("HF_HUB_OFFLINE", "1")
        return measure_train(wanted, engine_python, folder, seconds=ENOUGH, say=quiet)


def test_it_trains(measured: StageResult[TrainMeasured]) -> None:
    """On one batch the loss falls with every step."""
    losses = measured.measured.losses
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    assert losses[0] - losses[-1] > 0.05


def test_figures_agree_with_each_other(measured: StageResult[TrainMeasured]) -> None:
    """Phases add up to the step, and rates to its tokens."""
    found = measured.measured
    assert (found.gpus, found.step_total_tokens, found.micro_batches_timed) == (2, 686, 2)
    assert sum(phase.seconds for phase in found.phases) == pytest.approx(found.train_seconds)
    assert all(phase.seconds > 0 for phase in found.phases)
    assert found.gpu_total_tokens_per_second * found.train_seconds * 2 == pytest.approx(686)
    assert found.peak_memory_bytes is not None
    assert found.peak_memory_bytes > 100e6
    assert found.mfu is None
    assert not [doubt for doubt in measured.doubts if "loss" in doubt or "between" in doubt]
    assert measured.versions["torch"]


def test_parameters_are_those_of_the_profile(
    measured: StageResult[TrainMeasured], tiny_models: dict[str, Path]
) -> None:
    """What was trained is the model that was asked for, the dense one or the other."""
    computed = [read_model(tiny_models[name]).computed for name in ("qwen3", "qwen3_moe")]
    assert measured.measured.params in [one.params for one in computed if one is not None]


@pytest.mark.parametrize("model", ["qwen3", *(["qwen3_moe"] if NIGHTLY else [])])
def test_packing_does_not_leak(model: str, engine_python: str, tiny_models: dict[str, Path], tmp_path: Path) -> None:
    """
    In a pack a sequence has the log-probs that it has alone, and that transformers' own attention gives it; gradients
    do not depend on packs or chunks; torch counts the FLOPs that the equations say, of full squares, which masks leave
    whole there; parameters have no memory before they are sharded, and buffers keep theirs; and
    recomputation really computes again, a third more at most.
    """
    found = probed(engine_python, tiny_models[model], tmp_path)
    for attention in ("packing", "sliding"):
        assert found[attention]["alone"] < 1e-5
        assert found[attention]["reference"] < 1e-5
        assert found[attention]["spread"] > 0.1  # so that a difference would show
    assert found["gradients"]["chunked"] < 1e-5
    assert found["gradients"]["apart"] < 1e-5
    assert found["meta"] == {
        "on_meta": 1, "fp32": 1, "buffers": found["meta"]["buffers"], "buffers_same": 1, "params_same": 1, "layers": 2
    }  # fmt: skip
    assert found["meta"]["buffers"] >= 1
    assert found["masked"] == {"refused": 1}
    lengths = [int(found["counted"].pop(name)) for name in sorted(set(found["counted"]) - {"per_token"})]
    work = training_flops_per_token(read_model(tiny_models[model]), lengths)
    expected = work.flops_per_token.number + 2 * work.attention_flops_per_token.number
    assert found["counted"]["per_token"] == pytest.approx(expected, rel=0.01)
    assert 1.0 == found["recomputed"]["none"] < found["recomputed"]["selective"] < found["recomputed"]["full"] < 4 / 3


def probed(python: str, model: Path, folder: Path) -> dict[str, dict[str, float]]:
    """Answers of the probes."""
    command = [python, str(PROBES), str(model)]
    done = subprocess.run(
        command, env={**os.environ, **staged(folder)}, capture_output=True, check=False, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return answers


@BY_NIGHT
def test_recomputation_changes_no_loss(engine_python: str, tiny_models: dict[str, Path], tmp_path: Path) -> None:
    """None, selective and full are the same training; only time and memory differ."""
    losses = {}
    for recompute in ("none", "selective", "full"):
        folder = tmp_path / recompute
        folder.mkdir()
        wanted = job(tiny_models["qwen3"], recompute=recompute, steps=2)
        losses[recompute] = measure_train(wanted, engine_python, folder, seconds=ENOUGH, say=quiet).measured.losses
    assert len(losses["none"]) == 3
    assert losses["selective"] == pytest.approx(losses["none"], abs=1e-6)
    assert losses["full"] == pytest.approx(losses["none"], abs=1e-6)


@BY_NIGHT
def test_a_rank_without_samples_does_not_stop_the_others(
    engine_python: str, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """One sample over two ranks: the second runs an empty micro-batch, and the loss is that of the one sample."""
    wanted = job(tiny_models["qwen3"], processes=2, lengths=((8, 60),), group_size=1, steps=1)
    losses = measure_train(wanted, engine_python, tmp_path, seconds=ENOUGH, say=quiet).measured.losses
    assert losses[0] == pytest.approx(-1.0, abs=1e-3)  # an advantage of one, at a ratio of one
    assert losses[-1] < losses[0]


def test_ctrl_c_keeps_what_was_timed(engine_python: str, tiny_models: dict[str, Path], tmp_path: Path) -> None:
    """After the second step: two steps, marked partial, and no process left."""

    def interrupt(said: str, _: float) -> None:
        if said.startswith("train step 2"):
            raise KeyboardInterrupt

    found = measure_train(job(tiny_models["qwen3"], steps=1000), engine_python, tmp_path, seconds=60.0, say=interrupt)
    assert found.partial == "interrupted"
    assert found.measured.steps_timed >= 2
    assert ranks(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="finds the ranks in /proc")
@BY_NIGHT
def test_a_killed_rank_keeps_what_was_timed(engine_python: str, tiny_models: dict[str, Path], tmp_path: Path) -> None:
    """One of two ranks is killed after the second step; the other, which waits for it, is ended too."""

    def kill(said: str, _: float) -> None:
        if said.startswith("train step 2"):
            os.kill(ranks(tmp_path)[-1], signal.SIGKILL)

    wanted = job(tiny_models["qwen3"], processes=2, steps=1000)
    found = measure_train(wanted, engine_python, tmp_path, seconds=60.0, say=kill)
    assert "was killed" in found.partial
    assert found.measured.steps_timed >= 2
    assert ranks(tmp_path) == []


def ranks(folder: Path) -> list[int]:
    """Processes that train on a job in that folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = entry.read_text(encoding="utf-8")
            if str(folder) in command and "torch.distributed.run" not in command:
                found.append(int(entry.parent.name))
    return sorted(found)


def test_a_model_that_is_none_says_so(engine_python: str, tmp_path: Path) -> None:
    """The rank's own error arrives, not torchrun's about the rank."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "no-such-type"}', encoding="utf-8")
    wanted = TrainJob(model=str(tmp_path / "model"), lengths=LENGTHS, group_size=2, micro_batch_tokens=300)
    with pytest.raises(Exception, match="no-such-type"):
        measure_train(wanted, engine_python, tmp_path, seconds=5.0, say=quiet)


@pytest.fixture
def short_of_memory(engine_python: str, tmp_path: Path) -> str:
    """The same Python, which may have little more memory than its libraries take."""
    needed = int(subprocess.run([engine_python, "-c", VM_PEAK], check=True, capture_output=True, text=True).stdout)
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nulimit -v {needed + ROOM_KIB}\nexec "{engine_python}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(script)


@BY_NIGHT
@pytest.mark.skipif(sys.platform != "linux", reason="macOS sets no limit on memory")
def test_out_of_memory_steps_down(
    short_of_memory: str, tiny_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real limit that the allocator runs into: smaller micro-batches fit, and the result says so."""
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    told: list[str] = []
    wanted = job(
        tiny_models["qwen3"], lengths=((64, 192),) * 256, group_size=8, micro_batch_tokens=65536, warm_up=0, steps=1
    )
    found = measure_train(wanted, short_of_memory, tmp_path, seconds=4.0, say=lambda words, _: told.append(words))
    assert found.measured.micro_batch_tokens < 65536
    assert "memory ran out with micro-batches of 65536 tokens" in " ".join(found.doubts)
    assert any("out of memory" in words for words in told)
