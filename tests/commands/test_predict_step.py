"""`rlsize predict step` from the outside: the band, where time goes, the other modes, assumptions, wrong input."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.commands.predict.step import predict_step

Run = Callable[..., Any]
ASK = ("--model", "qwen3-8b", "--gpu", "h100-sxm", "--prompts", "64", "--group", "8", "--response-tokens", "2000")
SPLIT = (*ASK, "--mode", "async", "--rollout-gpus", "8", "--trainer-gpus", "8")
SHARED = (*ASK, "--mode", "colocated", "--gpus", "16")
KEYS = {
    "step_seconds", "generation_seconds", "generation_exposed_seconds", "train_seconds", "update_seconds",
    "logprob_seconds", "sync_seconds", "sync_exposed_seconds", "overhead_seconds", "trainer_idle_fraction",
    "rollout_idle_fraction", "loop_tokens_per_second", "loop_tokens_per_gpu_second", "longest_response_tokens",
    "samples_in_flight", "limited_by", "steps_per_day", "quickest_mode",
}  # fmt: skip


@pytest.fixture
def predicted(alone: Callable[..., Run]) -> Run:
    """Runs the command by itself."""
    return alone("step", predict_step)


def document(result: Any) -> dict[str, Any]:
    """The JSON that a run printed."""
    found: dict[str, Any] = json.loads(result.stdout[result.stdout.index("{") :])
    return found


def scenario(folder: Path, text: str) -> str:
    """A scenario file of those lines."""
    path = folder / "scenario.yaml"
    path.write_text(f"rlsize: {{kind: scenario, version: 1}}\n{text}", encoding="utf-8")
    return str(path)


PLAN = """model: qwen3-8b
cluster: {gpu: h100-sxm, gpus: 32}
algorithm: {name: grpo, reference: false}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 2000, cv: 0.8, max: 8k}}
placement: {mode: async, max_staleness: 2, rollout_gpus: 16, trainer_gpus: 16}
rollout: {engine: vllm, tensor_parallel: 2, dtype: bf16, kv_dtype: bf16, memory_fraction: 0.85}
trainer: {parallelism: {fsdp: 16}, optimizer: adamw, recompute: full, logprob_passes: [old]}
weight_sync: {transport: nccl-broadcast}
"""


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("asked", [SPLIT, SHARED])
def test_a_step_has_a_time_its_parts_and_the_other_modes(predicted: Run, asked: tuple[str, ...]) -> None:
    """A sentence, results with bands, three tables, what does not shrink, what to measure; within 80 columns."""
    ran = predicted(*asked, "--full")
    said = " ".join(ran.stdout.split())
    assert ran.exit_code == 0
    assert said.startswith("A step of qwen3-8b takes ")
    for words in (
        "80 % band", "Where the step goes", "shrinks with", "The same work on the same GPUs in other modes",
        "What nobody said, and what else it could be", "do not shrink with GPUs", "The band comes from",
        "Measure first:",
    ):  # fmt: skip
        assert words in said, words
    assert max(map(len, ran.stdout.splitlines())) <= 80


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("mode", ["colocated", "disaggregated", "one-step-off", "async", "sync", "overlapped"])
def test_every_mode_answers(predicted: Run, mode: str) -> None:
    """Results have bands around them, shares add up, and exactly one mode is the quickest."""
    found = document(predicted(*ASK, "--mode", mode, "--gpus", "16", "--json"))
    assert set(found["results"]) >= KEYS
    assert found["results"]["steps_per_day"] == pytest.approx(86400 / found["results"]["step_seconds"])
    assert sum(row["share_fraction"] for row in found["rows"]["parts"]) == pytest.approx(1.0)
    rows = found["rows"]["modes"]
    assert {row["mode"] for row in rows} == {"colocated", "synchronous", "one-step-off", "async"}
    best = [row for row in rows if row["verdict"] == "quickest"]
    assert [row["step_seconds"] for row in best] == [min(row["step_seconds"] for row in rows)]
    low, high = found["explain"]["step_seconds"]["band"]
    assert low < found["results"]["step_seconds"] < high


@pytest.mark.long
def test_two_pools_are_split_where_nobody_says_how(predicted: Run) -> None:
    """All GPUs are used, and the answer says what it chose."""
    found = document(predicted(*ASK, "--mode", "one-step-off", "--gpus", "16", "--json"))
    assert found["inputs"]["rollout_gpus"] + found["inputs"]["trainer_gpus"] == 16
    said = " ".join(predicted(*ASK, "--mode", "one-step-off", "--gpus", "16", "--full").stdout.split())
    assert "Nobody said how the GPUs are split" in said


def test_one_pool_leaves_the_rest_to_the_other(predicted: Run) -> None:
    """Of 16 GPUs, 6 train."""
    found = document(predicted(*ASK, "--mode", "async", "--gpus", "16", "--trainer-gpus", "6", "--json"))
    assert found["inputs"]["rollout_gpus"] == 10


def test_a_scenario_says_everything(predicted: Run, tmp_path: Path) -> None:
    """Mode, GPUs, lengths, engine, trainer, transport; only kernels and what is seldom said are assumed."""
    found = document(predicted(scenario(tmp_path, PLAN), "--json"))
    inputs = found["inputs"]
    assert (inputs["mode"], inputs["max_staleness"]) == ("async", 2)
    assert (inputs["rollout_tensor_parallel"], inputs["memory_fraction"]) == (2, 0.85)
    assert inputs["response_cv"] == 0.8
    assert {row["key"] for row in found["rows"].get("assumed", [])} <= {
        "compiled", "offload", "micro_batch_tokens", "updates", "sync_every", "tokens_generated_per_trained_token",
    }  # fmt: skip


@pytest.mark.long
def test_flags_go_before_the_scenario(predicted: Run, tmp_path: Path) -> None:
    """Another mode on as many GPUs; the scenario's split is of another loop."""
    path = scenario(tmp_path, PLAN)
    shared = document(predicted(path, "--mode", "colocated", "--json"))
    assert shared["inputs"]["gpus"] == 32
    assert (shared["inputs"]["rollout_gpus"], shared["inputs"]["trainer_gpus"]) == (32, 32)
    larger = document(predicted(path, "--gpus", "64", "--json"))
    row = next(row for row in larger["rows"]["modes"] if row["mode"] == "async")
    assert row["rollout_gpus"] + row["trainer_gpus"] == 64


@pytest.mark.long
def test_colocated_engines_get_less_memory_where_nobody_says(predicted: Run) -> None:
    """0.6 beside a trainer, and 0.9 alone."""
    fractions = [document(predicted(*asked, "--json"))["inputs"]["memory_fraction"] for asked in (SHARED, SPLIT)]
    assert fractions == [0.6, 0.9]


@pytest.mark.long
def test_what_nobody_said_is_told_with_its_effect(predicted: Run) -> None:
    """An input that is given is no assumption any more."""
    keys = {row["key"] for row in document(predicted(*SHARED, "--json"))["rows"]["assumed"]}
    assert {"response_cv", "logprob_passes"} <= keys
    more = (*SHARED, "--response-cv", "0.5", "--old-logprob", "--compiled", "--json")
    assert not {"response_cv", "logprob_passes", "compiled"} & {
        row["key"] for row in document(predicted(*more))["rows"].get("assumed", [])
    }


@pytest.mark.long
def test_a_tight_cap_on_staleness_lengthens_the_step_of_a_long_tail(predicted: Run) -> None:
    """Few samples are under way, so both sides wait for the longest; a loose cap allows them."""
    long = ("--response-cv", "1.2", "--mode", "async", "--gpus", "96", "--trainer-gpus", "32")
    seconds = [
        document(predicted(*ASK, *long, "--max-staleness", cap, "--json"))["results"]["step_seconds"]
        for cap in ("1", "2", "200")
    ]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] > 1.2 * seconds[-1]


@pytest.mark.long
def test_passes_lengthen_the_step(predicted: Run) -> None:
    """None, the usual ones, and those of PPO."""
    seconds = [
        document(predicted(*SHARED, *passes, "--json"))["results"]["step_seconds"]
        for passes in (("--no-old-logprob", "--no-reference"), (), ("--algorithm", "ppo"))
    ]
    assert seconds == sorted(seconds)


def test_an_engine_that_does_not_fit_is_a_no(predicted: Run) -> None:
    """Exit code 1, and what would fit."""
    ran = predicted(*SHARED[2:], "--model", "llama3.1-70b", "--rollout-tensor-parallel", "1")
    assert ran.exit_code == 1
    assert "It would fit with --rollout-tensor-parallel" in " ".join(ran.stdout.split())


def test_a_fleet_that_is_smaller_than_an_instance_is_a_no(predicted: Run) -> None:
    """Exit code 1, as for all that a loop cannot be."""
    said = ("--mode", "async", "--rollout-gpus", "2", "--trainer-gpus", "8", "--rollout-tensor-parallel", "4")
    ran = predicted(*ASK, *said)
    assert ran.exit_code == 1
    assert "2 rollout GPUs do not hold an instance of 4" in " ".join(ran.stdout.split())


def test_given_rates_take_the_place_of_predictions(predicted: Run, tmp_path: Path) -> None:
    """In the results, in where the step goes, and in the other modes."""
    path = scenario(tmp_path, PLAN + "rates: {train_seconds: 100, sync_seconds: 7}\n")
    found = document(predicted(path, "--json"))
    results = found["results"]
    assert (results["train_seconds"], results["sync_seconds"]) == (100, 7)
    parts = {row["name"]: row["seconds"] for row in found["rows"]["parts"]}
    assert (parts["update"], parts["sync"]) == (100, 7)
    assert sum(parts.values()) == pytest.approx(results["step_seconds"])
    assert all(row["step_seconds"] > 100 for row in found["rows"]["modes"] if row["step_seconds"])
    assert not {row["key"] for row in found["rows"].get("assumed", [])} & {"offload", "compiled", "logprob_passes"}


def test_what_is_not_in_the_step_makes_it_a_bound(predicted: Run, tmp_path: Path) -> None:
    """Tools of agents are said, and a rate that somebody measured does not tell whether it has them."""
    rate = "rates: {instance_tokens_per_second: 4000}\n"
    ran = predicted(scenario(tmp_path, PLAN + rate + "agents: {turns: 4, tool_seconds: 20}\n"))
    said = " ".join(ran.stdout.split())
    assert "takes at least" in said
    assert "turns, tools not in it" in said


@pytest.mark.long
def test_the_pool_that_binds_is_named(predicted: Run, tmp_path: Path) -> None:
    """As many environments as would do are told, and with them none is a bottleneck any more."""
    agents = "agents: {turns: 4, tool_seconds: 20, verify_seconds: 2, verify_workers: 2000, environments: %d}\n"
    few = document(predicted(scenario(tmp_path, PLAN + agents % 64), "--json"))
    results = few["results"]
    assert (results["binding_pool"], results["binding_places"]) == ("environments", 64)
    assert any("64 environments are the bottleneck" in one for one in few["warnings"])
    enough = document(predicted(scenario(tmp_path, PLAN + agents % results["enough_places"]), "--json"))
    assert "binding_pool" not in enough["results"]
    assert enough["results"]["step_seconds"] == pytest.approx(results["step_with_enough_seconds"], rel=0.01)
    assert enough["results"]["step_seconds"] < results["step_seconds"]


@pytest.mark.parametrize(("agents", "begun"), [("environments: 7", 8), ("environments: 9, redundant_samples: 2", 10)])
def test_fewer_environments_than_a_group_needs_are_refused(
    predicted: Run, tmp_path: Path, agents: str, begun: int
) -> None:
    """None of its samples would ever begin, as the simulator has it."""
    ran = predicted(scenario(tmp_path, f"{PLAN}agents: {{turns: 4, tool_seconds: 20, {agents}}}\n"))
    assert ran.exit_code == 2
    assert f"environments are too few for the {begun} samples of a group" in ran.stderr
    assert f"give {begun} or more" in ran.stderr


def test_a_trainer_that_does_not_fit_is_a_no(predicted: Run) -> None:
    """A 70 B trainer on eight GPUs of 80 GB; the answer says where it dies, and on how many it does not."""
    ran = predicted(*ASK[2:], "--model", "llama3.1-70b", "--mode", "colocated", "--gpus", "8")
    said = " ".join(ran.stdout.split())
    assert ran.exit_code == 1
    assert "it dies at update: needs 87.1 of 79.0 GiB" in said
    assert "It fits with cluster.gpus=64 (training unchanged)" in said


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((), "gpus is missing"),
        (("--mode", "fused", "--gpus", "16"), "'fused' is unknown"),
        (("--gpus", "0"), "more than 0"),
        (("--mode", "async", "--gpus", "8", "--rollout-gpus", "8", "--trainer-gpus", "8"), "more than 8"),
        (("--mode", "async", "--rollout-gpus", "8"), "give --gpus"),
        (("--gpus", "16", "--rollout-tensor-parallel", "3"), "--rollout-tensor-parallel"),
        (("--gpus", "16", "--rollout-dtype", "fp9"), "--rollout-dtype"),
        (("--gpus", "16", "--transport", "pigeon"), "no class of transport predicts 'pigeon'"),
        (("--gpus", "15", "--tensor-parallel", "2"), "cannot be dealt out"),
        (("--gpus", "16", "--seed", "x"), "whole number"),
        (("--gpus", "16", "--calibration", "no-such-file.yaml"), "no-such-file.yaml"),
        (("--gpus", "16", "--max-response-tokens", "100"), "above the cap"),
    ],
)
def test_wrong_input_is_named_with_its_flag(predicted: Run, args: tuple[str, ...], says: str) -> None:
    """What is wrong and where; exit code 2."""
    ran = predicted(*ASK, *args)
    assert ran.exit_code == 2
    assert says in " ".join((ran.stdout + ran.stderr).split())


def test_a_number_type_that_the_gpu_lacks_is_refused(predicted: Run) -> None:
    """A100 has no fp8 units."""
    said = (
        "--model",
        "qwen3-8b",
        "--gpu",
        "a100-80-sxm",
        "--gpus",
        "16",
        "--samples",
        "512",
        "--response-tokens",
        "2k",
    )
    assert predicted(*said, "--dtype", "fp8").exit_code == 2


def test_faults_of_all_stages_are_told_at_once_and_once(predicted: Run) -> None:
    """The model is asked for by each stage, and missing once."""
    ran = predicted("--gpus", "16")
    text = ran.stderr
    assert text.count("--model") <= 2
    for flag in ("--model", "--response-tokens", "--samples"):
        assert flag in text


VALUES = {
    "--gpus": ("1", "2", "16", "1000"),
    "--mode": ("colocated", "async", "one-step-off", "disaggregated"),
    "--response-tokens": ("1", "2000 ± 300", "40000", "-1", "x"),
    "--response-cv": ("0", "0.5", "5", "1e9"),
    "--prompt-tokens": ("1", "30000"),
    "--max-staleness": ("0", "1", "1000"),
    "--samples": ("1", "7", "1e6", "0"),
    "--group": ("1", "64", "0.5"),
    "--rollout-tensor-parallel": ("1", "2", "8", "64"),
    "--tensor-parallel": ("1", "2", "8"),
    "--memory-fraction": ("0.01", "0.3", "1", "2"),
    "--gpu": ("h100-sxm", "l4", "mi300x", "b200-sxm"),
    "--model": ("qwen3-8b", "qwen3-30b-a3b", "deepseek-v3"),
    "--rollout-dtype": ("fp8", "int4", "bf16"),
    "--transport": ("store", "colocated", "nccl-reshard"),
    "--max-response-tokens": ("1", "3000", "1e9"),
}


@pytest.mark.long
@settings(max_examples=tries(20), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(VALUES)), st.integers(0, 9), max_size=5))
def test_any_question_is_answered_or_refused(predicted: Run, drawn: dict[str, int]) -> None:
    """Exit code 0, 1 or 2, never a traceback, and every number of an answer is finite."""
    said = {**dict(zip(SHARED[::2], SHARED[1::2], strict=True))}
    said |= {flag: VALUES[flag][index % len(VALUES[flag])] for flag, index in drawn.items()}
    ran = predicted(*(text for pair in said.items() for text in pair), "--json")
    assert ran.exit_code in {0, 1, 2}
    if ran.exit_code == 2:
        assert "error:" in ran.stderr
        return
    for key, value in document(ran)["results"].items():
        assert not isinstance(value, float) or math.isfinite(value), key


@pytest.mark.long
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_modes_can_be_drawn(predicted: Run, tmp_path: Path, ending: str) -> None:
    """Stacked bars, one for each mode."""
    path = tmp_path / f"step.{ending}"
    assert predicted(*SPLIT, "--plot", str(path)).exit_code == 0
    assert path.stat().st_size > 1000


@pytest.mark.long
def test_results_are_explained_down_to_their_constants(predicted: Run) -> None:
    """Formula, inputs and where a constant comes from."""
    said = " ".join(predicted(*SHARED, "--explain").stdout.split())
    assert "T = t_p + t_s + t_o" in said
    assert "generation inside a loop, over the engine" in said
    found = document(predicted(*SPLIT, "--json"))["explain"]["step_seconds"]
    assert found["equation"] == "rl_step.whole_step"


def test_a_calibration_moves_the_step_and_narrows_its_band(rlsize: Run, tmp_path: Path) -> None:
    """A measured step of the same loop, half as long again as predicted."""
    plan = scenario(tmp_path, PLAN)
    before = rlsize("predict", "step", plan, "--json").document
    saved = str(tmp_path / "calibration.yaml")
    measured = 1.5 * before["results"]["step_seconds"]
    assert rlsize("calibrate", plan, "--step-seconds", f"{measured:.3f}", "--save", saved).code == 0
    after = rlsize("predict", "step", plan, "--calibration", saved, "--json").document
    assert before["results"]["step_seconds"] < after["results"]["step_seconds"] <= 1.1 * measured
    ends = [found["explain"]["step_seconds"]["band"] for found in (before, after)]
    assert ends[1][1] / ends[1][0] < ends[0][1] / ends[0][0]


def test_lengths_and_samples_that_nobody_says_have_a_prior_with_a_band(predicted: Run) -> None:
    """The answer is that of the middle of published runs, says so by the flags, and its band is wide for it."""
    told = document(predicted("--model", "qwen3-8b", "--gpu", "h100-sxm", "--gpus", "16", "--json"))
    said = document(predicted(*SHARED[:4], "--gpus", "16", "--response-tokens", "1024", "--samples", "1024", "--json"))
    assert told["results"]["step_seconds"] == pytest.approx(said["results"]["step_seconds"])
    band, known = (one["explain"]["step_seconds"]["band"] for one in (told, said))
    assert band[0] < known[0] / 1.5
    assert band[1] > known[1] * 3
    brief = " ".join(predicted("--model", "qwen3-8b", "--gpu", "h100-sxm", "--gpus", "16").stdout.split())
    assert "--samples 1,024 (256: x " in brief
    assert "--response-tokens 1,024 (512: x " in brief


def test_a_published_model_without_a_profile_is_taken_by_its_size_with_a_wider_band(predicted: Run) -> None:
    """As launches take it; a bare name may be a slip, and is told how it is scaled."""
    rest = ("--gpu", "h100-sxm", "--gpus", "16", "--samples", "512", "--response-tokens", "1024")
    guessed = predicted("--model", "acme/secret-14B", *rest, "--json")
    band, known = (
        document(ran)["explain"]["step_seconds"]["band"]
        for ran in (guessed, predicted("--model", "qwen3-14b", *rest, "--json"))
    )
    assert band[1] / band[0] > known[1] / known[0]
    assert "Nobody has read the dimensions of acme/secret-14B" in document(guessed)["warnings"][1]
    slip = predicted("--model", "secret-14B", *rest)
    assert slip.exit_code == 2
    assert "scaled to its parameters: qwen3-14b@14B" in " ".join(slip.stderr.split())
