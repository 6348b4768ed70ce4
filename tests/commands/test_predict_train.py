"""`rlsize predict train` from the outside: the band, where time goes, the passes, wrong input, a scenario."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlsize.commands.predict.train import predict_train

Run = Callable[..., Any]
ASK = (
    "--model", "qwen3-8b", "--gpu", "h100-sxm", "--trainer-gpus", "16", "--samples", "512", "--prompt-tokens", "300",
    "--response-tokens", "2000",
)  # fmt: skip


@pytest.fixture
def predicted(alone: Callable[..., Run]) -> Run:
    """Runs the command by itself."""
    return alone("train", predict_train)


def document(result: Any) -> dict[str, Any]:
    """The JSON that a run printed."""
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_step_has_a_time_a_band_and_parts(predicted: Run) -> None:
    """Time, rates and MFU; a table of parts; which passes count; what the band comes from."""
    ran = predicted(*ASK, "--full")
    said = " ".join(ran.stdout.split())
    assert ran.exit_code == 0
    assert said.startswith("A step takes ")
    for words in ("on 16 h100-sxm", "80 % band", "Where the time goes", "matrix products", "uneven RL batches"):
        assert words in said
    assert "Passes counted beside the update: log-probabilities of the policy before the update" in said
    assert "The band comes from:" in said
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_json_carries_what_other_commands_take(predicted: Run) -> None:
    """Train seconds and the consumption of response tokens agree."""
    found = document(predicted(*ASK, "--json"))
    results = found["results"]
    assert results["consumption_tokens_per_second"] == pytest.approx(512 * 2000 / results["train_seconds"])
    assert results["tokens_per_second"] == pytest.approx(512 * 2300 / results["train_seconds"])
    shares = [row["share_fraction"] for row in found["rows"]["parts"]]
    assert sum(shares) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ((), {"old_logprob", "reference"}),
        (("--algorithm", "dapo"), {"old_logprob"}),
        (("--algorithm", "ppo"), {"old_logprob", "reference", "critic"}),
        (("--no-old-logprob", "--no-reference"), set()),
        (("--reward-model",), {"old_logprob", "reference", "reward"}),
        (("--algorithm", "sft"), set()),
    ],
)
def test_the_algorithm_decides_the_passes(predicted: Run, said: tuple[str, ...], passes: set[str]) -> None:
    """As published, unless flags say otherwise; supervised training has none."""
    results = document(predicted(*ASK, *said, "--json"))["results"]
    known = ("old_logprob", "reference", "proximal", "reward", "critic")
    assert {name for name in known if f"{name}_seconds" in results} == passes


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (("--gpu", "a100-80-sxm", "--dtype", "fp8"), "a100-80-sxm has no fp8 matrix units"),
        (("--trainer-gpus", "12", "--tensor-parallel", "8"), "12 GPUs cannot be dealt out"),
        (("--expert-parallel", "2"), "the model has no experts"),
        (("--seed", "x"), "not a whole number"),
        (("--recompute", "some"), "'some' is unknown"),
        (("--micro-batch-tokens", "0"), "--micro-batch-tokens"),
    ],
)
def test_what_cannot_be_is_told(predicted: Run, said: tuple[str, ...], words: str) -> None:
    """On stderr, with exit code 2."""
    ran = predicted(*ASK, *said)
    assert ran.exit_code == 2
    assert words in " ".join(ran.stderr.split())


def test_what_is_missing_is_told_at_once(predicted: Run) -> None:
    """Model, lengths and samples in one go."""
    ran = predicted()
    assert ran.exit_code == 2
    assert all(flag in ran.stderr for flag in ("--model", "--response-tokens", "--samples"))


def test_a_scenario_is_read(predicted: Run, tmp_path: Path) -> None:
    """Its model, GPUs, workload, parallelism, algorithm and passes."""
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "rlsize: {kind: scenario, version: 1}\n"
        "model: qwen3-30b-a3b\n"
        "cluster: {gpu: h200-sxm}\n"
        "algorithm: {name: grpo, reward_model: qwen3-0.6b}\n"
        "workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 2000, cv: 0.5}}\n"
        "placement: {trainer_gpus: 16}\n"
        "trainer: {parallelism: {expert: 8}, recompute: full, logprob_passes: [old, proximal]}\n",
        encoding="utf-8",
    )
    found = document(predicted(str(path), "--json"))
    assert found["inputs"]["samples_per_step"] == 512
    names = {row["name"] for row in found["rows"]["parts"]}
    assert {"old_logprob", "proximal", "reward", "exchanged"} <= names
    assert "reference" not in names
    faster = document(predicted(str(path), "--trainer-gpus", "32", "--json"))
    assert faster["results"]["train_seconds"] < found["results"]["train_seconds"]


def test_a_teacher_of_another_size_takes_its_own_time(predicted: Run, tmp_path: Path) -> None:
    """Naming it says that it is kept; its pass grows with its parameters, and the update stays as it was."""
    path = tmp_path / "scenario.yaml"

    def found(more: str) -> dict[str, Any]:
        text = f"rlsize: {{kind: scenario, version: 1}}\nalgorithm: {{name: grpo, {more}}}\n"
        path.write_text(text, encoding="utf-8")
        results: dict[str, Any] = document(predicted(str(path), *ASK, "--json"))["results"]
        return results

    alike, teacher = found("reference: true"), found("reference_model: qwen3-32b")
    assert teacher["update_seconds"] == alike["update_seconds"]
    assert teacher["reference_seconds"] > 3 * alike["reference_seconds"]
    assert "reference_seconds" not in found("reference: false, reference_model: qwen3-32b")
    path.write_text("rlsize: {kind: scenario, version: 1}\nalgorithm: {reference_model: qwen9}\n", encoding="utf-8")
    assert "there is no model profile 'qwen9'" in predicted(str(path), *ASK).stderr


def test_the_picture_shows_where_time_goes(predicted: Run) -> None:
    """Bars of the parts."""
    ran = predicted(*ASK, "--plot")
    assert "take " in ran.stdout
    assert "seconds of a step" in ran.stdout


def test_every_result_explains_itself(predicted: Run) -> None:
    """With its equation, on the page and in JSON."""
    assert "trainer_busy_time" in predicted(*ASK, "--explain").stdout
    assert "trainer_busy_time" in json.dumps(document(predicted(*ASK, "--json"))["explain"])


def test_shared_gpus_of_a_loop_train(predicted: Run, tmp_path: Path) -> None:
    """Colocated with `cluster.gpus`: all of them train, slower or quicker than by themselves, which is a row."""
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "rlsize: {kind: scenario, version: 1}\n"
        "model: qwen3-8b\ncluster: {gpu: h100-sxm, gpus: 16}\n"
        "workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 2000}}\n"
        "placement: {mode: colocated}\n",
        encoding="utf-8",
    )
    found, alone = document(predicted(str(path), "--json")), document(predicted(*ASK, "--json"))
    assert found["inputs"]["trainer_gpus"] == 16
    results, parts = found["results"], {row["name"]: row["seconds"] for row in found["rows"]["parts"]}
    assert sum(parts.values()) == pytest.approx(results["train_seconds"])
    assert parts["loop"] == pytest.approx(results["train_seconds"] - alone["results"]["train_seconds"])
    assert results["tokens_per_second"] == pytest.approx(512 * 2300 / results["train_seconds"])
    passes = results["old_logprob_seconds"] + results["reference_seconds"]
    assert results["update_seconds"] + passes == pytest.approx(results["train_seconds"])
    given = document(predicted(str(path), "--set", "rates.train_seconds=20", "--json"))["results"]
    assert (given["train_seconds"], given["predicted_train_seconds"]) == (20, pytest.approx(results["train_seconds"]))
