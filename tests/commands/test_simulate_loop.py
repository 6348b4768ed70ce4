"""`rlsize simulate` plays the loop that every command asks: the same inputs and refusals, a clock of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
UNMEASURED = str(EXAMPLES / "unmeasured-8b.yaml")
LOOP = ("--mode", "async", "--model", "qwen3-8b", "--gpu", "h100-sxm", "--rollout-gpus", "8", "--trainer-gpus", "8",
        "--prompts", "16", "--group", "4", "--response-tokens", "1000")  # fmt: skip
RUN = ("--steps", "4", "--seeds", "1", "--json")


@pytest.mark.long
@pytest.mark.parametrize("more", [(), ("--set", "trainer.parallelism.fsdp=8")])
def test_its_inputs_are_those_of_predict_step(rlsize: Any, more: tuple[str, ...]) -> None:
    """What nobody said is chosen alike: staleness, spread and cap of lengths, prompts, parallelism."""
    said = [part for part in LOOP if part]
    played = rlsize("simulate", *said, *more, *RUN).document["inputs"]
    asked = rlsize("predict", "step", *said, *more, "--json").document["inputs"]
    shared = set(played) & set(asked)
    assert {"max_staleness", "prompt_tokens", "response_cv", "rollout_tensor_parallel", "instances"} <= shared
    assert {key: played[key] for key in shared} == {key: asked[key] for key in shared}


def test_the_simulated_clock_has_keys_of_its_own(rlsize: Any) -> None:
    """No result of a run has the key of a closed form; the parts that are played have the loop's."""
    results = rlsize("simulate", UNMEASURED, *RUN).results
    parts = {"train_seconds", "sync_seconds", "sync_exposed_seconds", "overhead_seconds", "compiled_fraction"}
    assert {key for key in results if not key.startswith("simulated_")} == parts
    assert results["simulated_step_seconds"] > results["train_seconds"] > 0


def test_a_loop_that_cannot_run_is_the_answer_no(rlsize: Any) -> None:
    """Exit code 1 with the reason that predict step gives; a point of a grid says the same."""
    small = ("--model", "llama3.1-70b", "--rollout-tensor-parallel", "1")
    asked = rlsize("predict", "step", *LOOP, *small)
    played = rlsize("simulate", *LOOP, "--set", "rollout.tensor_parallel=1", "--model", small[1], *RUN)
    assert (asked.code, played.code) == (1, 1)
    reason = played.document["explain"]["loop_runs"]["source"]
    assert reason[1:] in " ".join(asked.stdout.split())
    sweep = ("--sweep", "model=qwen3-8b,llama3.1-70b")
    swept = rlsize("simulate", *LOOP, "--set", "rollout.tensor_parallel=1", *sweep, *RUN)
    assert swept.document["rows"]["grid"][1]["refused"] == reason


@pytest.mark.long
def test_agents_are_played(rlsize: Any) -> None:
    """Turns with tools make a step longer, in a loop whose rates are predicted."""
    agents = ("--set", "agents.turns=4", "--set", "agents.tool_seconds=20")
    alone, tools = (rlsize("simulate", UNMEASURED, "--mode", "sync", *more, *RUN).results for more in ((), agents))
    assert tools["simulated_step_seconds"] > alone["simulated_step_seconds"]


def test_tokens_that_are_thrown_away_are_generated(rlsize: Any) -> None:
    """Twice the tokens for each one that is trained."""
    waste = ("--set", "algorithm.tokens_generated_per_trained_token=2", "--steps", "40")
    results = rlsize("simulate", UNMEASURED, *RUN, *waste).results
    assert results["simulated_tokens_generated_per_trained_token"] == pytest.approx(2, rel=0.1)


def test_a_measured_rate_is_the_loops(rlsize: Any) -> None:
    """Train seconds of another number of GPUs are taken in proportion, as every command takes them."""
    path = str(EXAMPLES / "grpo-32b.yaml")
    found = rlsize("simulate", path, *RUN, "--set", "rates.measured_trainer_gpus=16").results
    assert found["train_seconds"] == pytest.approx(10)


def test_a_wall_clock_is_no_busy_time(rlsize: Any) -> None:
    """It has waiting and sync in it, which the simulator plays itself."""
    ran = rlsize("simulate", UNMEASURED, "--step-seconds", "30", *RUN)
    assert ran.code == 2
    assert "error: --step-seconds: is the wall clock of a step" in " ".join(ran.stderr.split())
    assert "--train-seconds" in ran.stderr


def test_what_is_swept_goes_before_the_scenario_and_is_not_told_as_unused(rlsize: Any) -> None:
    """The scenario's cap gives way to those of the grid, by the key as by the flag's name."""
    path = str(EXAMPLES / "matched-loop.yaml")
    for sweep in ("prompts=8,16", "prompts_per_step=8,16"):
        document = rlsize("simulate", path, "--sweep", sweep, *RUN).document
        assert [row["prompts_per_step"] for row in document["rows"]["grid"]] == ["8", "16"]
        assert not any("Not used here" in note for note in document["notes"])
