"""Commands that size ask the loop where a scenario describes one: the same step, rates and verdict in all of them."""

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
COMMANDS = ("fleet", "backlog", "split", "iteration", "cost")


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """A plan without a single rate."""
    path = tmp_path / "plan.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_plan_without_rates_is_answered_with_bands(rlsize: Any, scenario: str, command: str) -> None:
    """What is predicted says so, and reaches the answer as a band; only money has no bearing where none is told."""
    ran = rlsize(command, scenario, "--json")
    assert ran.code == 0, ran.stderr
    explained = ran.document["explain"]
    assert any(entry.get("band") for key, entry in explained.items() if not key.startswith("inputs."))
    assert any("are predicted, uncalibrated" in note for note in ran.document["notes"])
    unused = [note for note in ran.document["notes"] if "Not used here" in note]
    assert unused == ([] if command in {"fleet", "cost"} else ["Not used here: prices.gpu_hour"])


@pytest.mark.long
@pytest.mark.parametrize("mode", ["async", "sync", "colocated"])
def test_one_loop_has_one_answer(rlsize: Any, scenario: str, mode: str) -> None:
    """Whatever is told under one key, such as step, train time and idle shares, is the same in every command."""
    seen: dict[str, dict[str, Any]] = {}
    changes = ["--set", f"placement.mode={mode}"]
    changes += ["--set", "placement.trainer_gpus=null"] if mode == "colocated" else []  # all 16, for both sides
    for command in ("predict step", "cost", "iteration", "backlog", "fleet", "split"):
        document = rlsize(*command.split(), scenario, *changes, "--json").document
        for part in ("inputs", "results"):
            for key, value in document[part].items():
                shared = key == "rollout_gpus" and mode == "colocated"  # shown as the fleet's own, none, in a cost
                if isinstance(value, (int, float)) and not shared:
                    seen.setdefault(key, {})[f"{command} {part}"] = value
    told = {key: values for key, values in seen.items() if len(values) > 1}
    assert {"step_seconds", "trainer_idle_fraction", "rollout_idle_fraction"} <= told.keys()
    for key, values in told.items():
        numbers = [*values.values()]
        assert numbers == pytest.approx([numbers[0]] * len(numbers)), (key, values)


def test_an_iteration_is_the_step_of_its_loop(rlsize: Any, scenario: str) -> None:
    """The closed form's keys carry the loop's step where one is described."""
    ran = rlsize("iteration", scenario, "--json")
    explained = ran.document["explain"]
    assert ran.results["iteration_seconds"] == ran.results["step_seconds"]
    assert explained["iteration_seconds"]["band"] == explained["step_seconds"]["band"]


@pytest.mark.parametrize("command", ["cost", "iteration"])
def test_shared_gpus_need_no_pools(rlsize: Any, tmp_path: Path, command: str) -> None:
    """A colocated loop whose GPUs are said once is answered."""
    path = tmp_path / "plan.yaml"
    text = SCENARIO.replace("placement: {mode: async, trainer_gpus: 8}", "placement: {mode: colocated}")
    path.write_text(text.replace("fsdp: 8", "fsdp: 16"), encoding="utf-8")
    ran = rlsize(command, str(path), "--json")
    assert ran.code == 0, ran.stderr
    assert ran.results["step_seconds"] > 0


def test_what_is_given_is_never_predicted(rlsize: Any, scenario: str) -> None:
    """Flags say all rates: the match is the one without model and GPU."""
    said = ("--consume", "39321", "--per-instance", "4000")
    known, bare = rlsize("fleet", scenario, *said, "--json"), rlsize("fleet", *said, "--json")
    assert known.results["matched_instances"] == bare.results["matched_instances"]
    assert not any("are predicted" in note for note in known.document["notes"])


def test_the_match_is_not_the_loop(rlsize: Any, scenario: str) -> None:
    """Inputs have the instances of the loop, results the match under a key of its own."""
    document = rlsize("fleet", scenario, "--json").document
    assert document["inputs"]["instances"] == 8
    assert "instances" not in document["results"]
    assert document["results"]["matched_instances"] > 0


def test_a_sync_that_nobody_says_is_not_counted_beside_given_rates(rlsize: Any, scenario: str) -> None:
    """It is predicted with the rest or not at all."""
    said = ("--instances", "8", "--group-seconds", "3", "--train-seconds", "5")
    ran = rlsize("iteration", scenario, *said, "--json")
    assert ran.document["inputs"]["sync_seconds"] == 0.0


def test_flags_can_name_model_and_gpu(rlsize: Any) -> None:
    """Without GPUs there is no loop: the rate is that of an instance by itself, at lengths that are told."""
    said = ("--consume", "20000", "--model", "qwen3-8b", "--gpu", "h100-sxm", "--gpus-per-instance", "1")
    assumed = rlsize("fleet", *said)
    assert assumed.code == 0
    assert "Nobody said prompt_tokens 1024 and response_tokens 1024" in " ".join(assumed.stdout.split())
    ran = rlsize("fleet", *said, "--prompts", "64", "--group", "8", "--response-tokens", "1536", "--json")
    assert ran.document["explain"]["instance_tokens_per_second"]["provenance"] == "predicted"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_loop_that_cannot_run_is_said_by_every_command(rlsize: Any, tmp_path: Path, command: str) -> None:
    """Exit code 1, with the reason in the first line."""
    path = tmp_path / "plan.yaml"
    path.write_text(SCENARIO.replace("qwen3-8b", "llama3.1-70b"), encoding="utf-8")
    ran = rlsize(command, str(path))
    assert ran.code == 1
    assert "llama3.1-70b does not fit on 1 x h100-sxm" in " ".join(ran.stdout.split())


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_modelled_makes_the_answer_a_bound(rlsize: Any, scenario: str, command: str) -> None:
    """Turns with tools lengthen a step, and a known rate does not tell whether it has them."""
    said = ("agents.turns=4", "agents.tool_seconds=20", "rates.instance_tokens_per_second=4000")
    agents = [word for value in said for word in ("--set", value)]
    assert "at least: turns, tools not in it" in " ".join(rlsize(command, scenario, *agents).stdout.split())


def test_nothing_named_says_what_a_prediction_needs(rlsize: Any) -> None:
    """The way to a prediction stands behind the way to a rate."""
    ran = rlsize("fleet", "--consume", "20000")
    assert ran.code == 2
    assert "give --per-instance" in ran.stderr
    assert "for a prediction" in ran.stderr


def test_an_instance_counts_its_data_parallel_ranks_beside_a_known_rate(rlsize: Any, scenario: str) -> None:
    """Eight GPUs hold two engines of two ranks of tensor and of data parallelism each, not four."""
    known = ("--set", "rates.instance_tokens_per_second=8000", "--set", "rates.train_seconds=40")
    spread = ("--set", "rollout.tensor_parallel=2", "--set", "rollout.data_parallel=2")
    assert rlsize("fleet", scenario, *known, *spread, "--json").results["judged_instances"] == 2
