"""`rlsize predict sync` from the outside: the band, the classes, wrong input, a scenario."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlsize.commands.predict.sync import predict_sync

Run = Callable[..., Any]
ASK = ("--model", "qwen3-8b", "--gpu", "h100-sxm")


@pytest.fixture
def predicted(alone: Callable[..., Run]) -> Run:
    """Runs the command by itself."""
    return alone("sync", predict_sync)


def document(result: Any) -> dict[str, Any]:
    """The JSON that a run printed."""
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def scenario(folder: Path, text: str) -> str:
    """A scenario file of those lines."""
    path = folder / "scenario.yaml"
    path.write_text(f"rlsize: {{kind: scenario, version: 1}}\n{text}", encoding="utf-8")
    return str(path)


def test_seconds_come_with_a_band(predicted: Run) -> None:
    """Bytes, seconds, the band, and what makes it wide."""
    ran = predicted(*ASK, "--transport", "colocated", "--trainer-gpus", "8")
    said = " ".join(ran.stdout.split())
    assert ran.exit_code == 0
    assert said.startswith("16.38 GB of qwen3-8b in bf16 take")
    assert "Most of the band is" in said
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_every_class_has_a_row(predicted: Run) -> None:
    """The asked class first."""
    rows = document(predicted(*ASK, "--transport", "store", "--json"))["rows"]["transports"]
    assert rows[0]["transport"] == "store"
    assert len(rows) == 9
    assert all(row["low_seconds"] < row["sync_seconds"] < row["high_seconds"] for row in rows)


@pytest.mark.parametrize(
    ("said", "trainer", "rollout"),
    [
        ((), 8, 8),
        (("--gpus", "64"), 32, 32),
        (("--gpus", "64", "--trainer-gpus", "48"), 48, 16),
        (("--gpus", "64", "--rollout-gpus", "48"), 16, 48),
        (("--gpus", "1"), 1, 1),
    ],
)
def test_what_is_not_said_of_two_pools_is_what_the_other_leaves(
    predicted: Run, said: tuple[str, ...], trainer: int, rollout: int
) -> None:
    """A node each where nobody says anything; half of all each where only all are said."""
    told = document(predicted(*ASK, *said, "--json"))["inputs"]
    assert (told["trainer_gpus"], told["rollout_gpus"]) == (trainer, rollout)


def test_more_trainer_gpus_than_there_are_is_wrong_input(predicted: Run) -> None:
    """No GPU is left for the fleet."""
    ran = predicted(*ASK, "--gpus", "8", "--trainer-gpus", "99")
    assert ran.exit_code == 2
    assert "99 of 8 GPUs leave none" in ran.stderr


def test_the_same_seed_gives_the_same_band(predicted: Run) -> None:
    """Bands are drawn, and repeatable."""
    one, same, other = (predicted(*ASK, "--seed", seed, "--json").stdout for seed in ("1", "1", "2"))
    assert one == same != other


def test_a_scenario_says_the_rest(predicted: Run, tmp_path: Path) -> None:
    """Method, type and GPUs of a scenario; its methods are read as the class that is like them."""
    lines = (
        "model: qwen3-8b\ncluster: {gpu: h100-sxm}\n"
        "placement: {mode: disaggregated, trainer_gpus: 16, rollout_gpus: 8}\n"
        "rollout: {tensor_parallel: 2}\nweight_sync: {transport: rdma, dtype: fp8}\n"
    )
    found = document(predicted(scenario(tmp_path, lines), "--json"))
    used = found["inputs"]
    assert used["transport"] == "nccl-reshard"
    assert used["wire_dtype"] == "fp8"
    assert (used["trainer_gpus"], used["rollout_gpus"]) == (16, 8)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "model is missing"),
        (("--model", "qwen3-8b"), "gpu is missing"),
        (("--model", "nobody", "--gpu", "h100"), "nobody"),
        ((*ASK, "--transport", "pigeon"), "pigeon"),
        ((*ASK, "--dtype", "bf17"), "bf17"),
        ((*ASK, "--trainer-gpus", "0"), "--trainer-gpus"),
        ((*ASK, "--seed", "x"), "whole number"),
    ],
)
def test_wrong_input_is_told(predicted: Run, args: tuple[str, ...], said: str) -> None:
    """One line that says what is wrong, and exit code 2."""
    ran = predicted(*args)
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())


@pytest.mark.parametrize(("model", "gpus"), [("qwen3-8b", 1), ("qwen3-235b-a22b", 8), ("deepseek-v3", 32)])
def test_an_instance_that_nobody_sized_holds_its_weights(predicted: Run, model: str, gpus: int) -> None:
    """Of 80 GB each, so that no adapter receives more of a model than its GPU has room for."""
    ask = ("--model", model, "--gpu", "h100", "--transport", "rdma", "--trainer-gpus", "64", "--rollout-gpus", "64")
    found = document(predicted(*ask, "--json"))
    assert found["inputs"]["gpus_per_instance"] == gpus
    one_each = document(predicted(*ask, "--gpus-per-instance", "1", "--json"))["results"]["sync_seconds"]
    assert found["results"]["sync_seconds"] <= one_each


def test_a_delta_is_handled_as_a_broadcast_without_its_buckets(predicted: Run, tmp_path: Path) -> None:
    """All weights are compared, few cross the network."""
    rows = document(predicted(scenario(tmp_path, "weight_sync: {transport: delta}\n"), *ASK, "--json"))["rows"]
    seconds = {row["transport"]: row["sync_seconds"] for row in rows["transports"]}
    assert 2.0 + 16.38e9 / 14e9 < seconds["delta"] < seconds["nccl-broadcast"]
