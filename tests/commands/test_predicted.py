"""Commands that size fall back to predictions where a rate is neither given nor measured, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SCENARIO = """\
rlsize: {kind: scenario, version: 1}
model: qwen3-8b
cluster: {gpu: h100-sxm, gpus: 16}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 1536, cv: 0.8, max: 8k}}
placement: {mode: async, trainer_gpus: 8}
rollout: {engine: vllm, tensor_parallel: 1}
trainer: {parallelism: {fsdp: 8}}
prices: {gpu_hour: 2}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """A plan without a single rate."""
    path = tmp_path / "plan.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("fleet", {"instance_tokens_per_second", "train_seconds"}),
        ("backlog", {"instance_tokens_per_second", "train_seconds"}),
        ("split", {"instance_tokens_per_second", "train_seconds"}),
        ("iteration", {"instance_tokens_per_second", "train_seconds", "sync_seconds"}),
        ("cost", {"step_seconds"}),
    ],
)
def test_a_plan_without_rates_is_answered_with_bands(rlsize: Any, scenario: str, command: str, keys: set[str]) -> None:
    """What is predicted says so, with its spread, and reaches the answer as a band."""
    ran = rlsize(command, scenario, "--json")
    assert ran.code == 0, ran.stderr
    explained = ran.document["explain"]
    for key in keys:
        said = explained.get(f"inputs.{key}", explained[key])
        assert said["provenance"] == "predicted"
        assert said["deviation"] > 0
        assert "qwen3-8b on h100-sxm; uncalibrated" in said["source"]
    assert any(entry.get("band") for entry in explained.values())
    assert any("are predicted, uncalibrated" in note for note in ran.document["notes"])


def test_what_is_given_is_never_predicted(rlsize: Any, scenario: str) -> None:
    """Flags say all rates: the answer is the one without model and GPU."""
    said = ("--consume", "39321", "--per-instance", "4000")
    known, bare = rlsize("fleet", scenario, *said, "--json"), rlsize("fleet", *said, "--json")
    assert known.results["matched_instances"] == bare.results["matched_instances"]
    assert "train_seconds" not in known.document["inputs"]
    assert not any("predicted" in note for note in known.document["notes"])


def test_a_sync_that_nobody_says_is_not_counted_beside_given_rates(rlsize: Any, scenario: str) -> None:
    """It is predicted with the rest or not at all."""
    said = ("--instances", "8", "--group-seconds", "3", "--train-seconds", "5")
    ran = rlsize("iteration", scenario, *said, "--json")
    assert ran.document["inputs"]["sync_seconds"] == 0.0


def test_flags_can_name_model_and_gpu(rlsize: Any) -> None:
    """Without a scenario: lengths and layout are flags too."""
    said = ("--consume", "20000", "--model", "qwen3-8b", "--gpu", "h100-sxm", "--gpus-per-instance", "1")
    lacking = rlsize("fleet", *said)
    assert lacking.code == 2
    assert "not predicted, as the mean prompt length is not known (--prompt-tokens)" in " ".join(lacking.stderr.split())
    lengths = ("--prompts", "64", "--group", "8", "--response-tokens", "1536", "--prompt-tokens", "300")
    assert rlsize("fleet", *said, *lengths).code == 0


def test_what_does_not_fit_is_not_predicted(rlsize: Any, tmp_path: Path) -> None:
    """The message of today, with the reason."""
    path = tmp_path / "plan.yaml"
    path.write_text(SCENARIO.replace("qwen3-8b", "llama3.1-70b"), encoding="utf-8")
    ran = rlsize("fleet", str(path), "--consume", "20000")
    assert ran.code == 2
    assert "instance_tokens_per_second is missing" in ran.stderr
    assert "does not fit" in ran.stderr


def test_nothing_named_says_what_a_prediction_needs(rlsize: Any) -> None:
    """The way to a prediction stands behind the way to a rate."""
    ran = rlsize("fleet", "--consume", "20000")
    assert ran.code == 2
    assert "give --per-instance" in ran.stderr
    assert "for a prediction" in ran.stderr
