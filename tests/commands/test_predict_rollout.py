"""`rlsize predict rollout` from the outside: rates with bands, what fits, wrong input, tables and picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

Run = Callable[..., Any]
CASE = (
    "predict", "rollout", "--model", "qwen3-32b", "--gpu", "h200-sxm", "--tensor-parallel", "2", "--dtype", "bf16",
    "--prompt-tokens", "1024", "--response-tokens", "4096", "--response-cv", "0",
)  # fmt: skip
STEP = ("--samples", "512", "--instances", "8", "--max-response-tokens", "16k", "--response-cv", "0.8")


def scenario(folder: Path, text: str) -> str:
    """A scenario file of those lines."""
    path = folder / "scenario.yaml"
    path.write_text(f"rlsize: {{kind: scenario, version: 1}}\n{text}", encoding="utf-8")
    return str(path)


def bands(ran: Any) -> dict[str, tuple[float, float]]:
    """Low and high end of each result that has a band."""
    explained = ran.document["explain"]
    return {key: tuple(explained[key]["band"]) for key in ran.results if explained.get(key, {}).get("band")}


@pytest.mark.parametrize("other", [2105.0, 2350.0, 2473.0])
def test_other_models_of_the_engine_lie_inside_the_band(other: float, rlsize: Run) -> None:
    """Qwen3-32B on 2 H200 at 144 samples of 1024 + 4096 tokens: what three other models of engines say of a GPU."""
    ran = rlsize(*CASE, "--concurrency", "144", "--json")
    assert ran.code == 0
    low, high = bands(ran)["rollout_gpu_tokens_per_second"]
    assert low < other < high
    assert low < ran.results["rollout_gpu_tokens_per_second"] < high


def test_every_number_has_a_band_and_says_where_it_comes_from(rlsize: Run) -> None:
    """Rates, times and the cache; what is offered or follows from the question has none."""
    ran = rlsize(*CASE, *STEP, "--json")
    numbers = {key for key, value in ran.results.items() if isinstance(value, float)}
    exact = {"samples_in_flight", "longest_response_tokens", "knee_concurrency"}
    assert numbers - exact <= set(bands(ran))
    for key in numbers:
        explained = ran.document["explain"][key]
        assert explained["provenance"] == "predicted"
        assert explained.get("equation") or explained.get("source"), key


def test_an_engine_that_keeps_room_keeps_a_usual_cap(rlsize: Run) -> None:
    """Four mean lengths where nobody says the cap: not all of a long context, of which a GPU holds a few samples."""
    asked = (*CASE[:-2], "--engine", "tensorrt-llm", "--json")
    unsaid, said = rlsize(*asked), rlsize(*asked, "--max-response-tokens", "16384")
    assert unsaid.results["instance_tokens_per_second"] == said.results["instance_tokens_per_second"]
    assert any("here 16,384 tokens" in note for note in unsaid.document["notes"])


def test_the_affine_step_is_the_step(rlsize: Run) -> None:
    """t0 + t1 b + t2 KV gives the step at the load that was asked about."""
    found = rlsize(*CASE, "--concurrency", "144", "--json").results
    live = 144 * (1024 + 4096 / 2)
    affine = found["fixed_step_seconds"] + 144 * found["sample_step_seconds"] + live * found["kv_token_step_seconds"]
    assert affine == pytest.approx(found["engine_step_seconds"])


def test_the_parts_of_a_step_are_the_step(rlsize: Run) -> None:
    """Shares add up to one, and the step with its prompts is what the rate says."""
    document = rlsize(*CASE, "--concurrency", "144", "--json").document
    parts = document["rows"]["parts"]
    assert sum(row["share_fraction"] for row in parts) == pytest.approx(1.0)
    whole = sum(row["seconds"] for row in parts)
    assert 144 / whole == pytest.approx(document["results"]["instance_tokens_per_second"])


@pytest.mark.parametrize(
    ("flags", "word"),
    [(("--concurrency", "64"), "offered"), ((), "cache"), (("--max-num-seqs", "32"), "engine")],
)
def test_what_limits_the_batch_is_told(flags: tuple[str, ...], word: str, rlsize: Run) -> None:
    """What is offered, what the cache holds, or the engine's own limit."""
    assert rlsize(*CASE, *flags, "--json").results["limited_by"] == word


def test_a_fleet_generates_as_its_instances_do(rlsize: Run) -> None:
    """8 instances of 2 GPUs, said as instances or as GPUs."""
    by_count = rlsize(*CASE, "--instances", "8", "--json").results
    by_gpus = rlsize(*CASE, "--rollout-gpus", "16", "--json").results
    assert by_count["fleet_tokens_per_second"] == by_gpus["fleet_tokens_per_second"]
    assert by_count["fleet_tokens_per_second"] == pytest.approx(8 * by_count["instance_tokens_per_second"])


def test_a_barrier_waits_for_the_longest_and_refill_does_not(rlsize: Run) -> None:
    """The same samples: a barrier adds a tail, which is told."""
    barrier, refill = (rlsize(*CASE, *STEP, flag, "--json").results for flag in ("--barrier", "--refill"))
    assert barrier["tail_seconds"] > 0
    assert "tail_seconds" not in refill
    assert refill["generation_seconds"] < barrier["generation_seconds"]


def test_without_the_fleet_the_time_of_a_step_says_what_it_needs(rlsize: Run) -> None:
    """The flag that would fill it."""
    ran = rlsize(*CASE, "--samples", "512", "--json")
    assert ran.results["generation_seconds"] is None
    assert "--instances" in ran.document["explain"]["generation_seconds"]["reason"]


def test_groups_save_prefill(rlsize: Run) -> None:
    """Eight samples of a prompt compute it once where a group stays together, more often where it is dealt out."""

    def rate(*flags: str) -> float:
        ran = rlsize(*CASE, "--prompt-tokens", "8k", "--instances", "8", "--concurrency", "32", *flags, "--json")
        return float(ran.results["instance_tokens_per_second"])

    alone, together = rate("--group", "1"), rate("--group", "8")
    spread = rate("--group", "8", "--routing", "round-robin")
    assert together > 1.02 * alone
    assert spread == pytest.approx(alone)
    assert alone < rate("--group", "8", "--routing", "random") < together
    assert rate("--hit-ratio", "0.5") > alone


def test_a_scenario_says_it_all(rlsize: Run, tmp_path: Path) -> None:
    """Model, GPU, engine, layout, lengths, batch and mode; flags go before it."""
    path = scenario(
        tmp_path,
        "model: qwen3-8b\n"
        "cluster: {gpu: h100-sxm, gpus: 16}\n"
        "workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 500, "
        "response_tokens: {mean: 1000, cv: 0.5, max: 4000}}\n"
        "placement: {mode: colocated}\n"
        "rollout: {engine: sglang 0.5, tensor_parallel: 1, memory_fraction: 0.6, routing: affine}\n",
    )
    ran = rlsize("predict", "rollout", path, "--json")
    assert ran.code == 0
    inputs = ran.document["inputs"]
    assert (inputs["engine"], inputs["instances"], inputs["mode"]) == ("sglang", 16, "colocated")


LOOP = (
    "model: qwen3-14b\n"
    "cluster: {gpu: h100-sxm, gpus: 32}\n"
    "workload: {prompts_per_step: 64, group_size: 16, prompt_tokens: 400, response_tokens: {mean: 3000}}\n"
    "placement: {mode: MODE}\n"
)


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("mode", ["async, trainer_gpus: 16, rollout_gpus: 16", "colocated"])
def test_a_described_loop_has_one_answer(mode: str, rlsize: Run, tmp_path: Path) -> None:
    """What the loop tells of its generation is what `predict step` tells, inputs and bands too."""
    path = scenario(tmp_path, LOOP.replace("MODE", mode))
    stage, step = (rlsize("predict", name, path, "--json") for name in ("rollout", "step"))
    keys = stage.results.keys() & step.results.keys()
    assert keys >= {"generation_seconds", "samples_in_flight", "cache_concurrency", "longest_response_tokens"}
    for key in keys:
        assert stage.results[key] == step.results[key], key
        assert stage.document["explain"][key] == step.document["explain"][key], key
    assert stage.document["inputs"] == step.document["inputs"]


def test_a_load_that_flags_ask_for_is_of_the_engine_alone(rlsize: Run, tmp_path: Path) -> None:
    """Another concurrency than the loop's, on the loop's instance."""
    path = scenario(tmp_path, LOOP.replace("MODE", "async, trainer_gpus: 16, rollout_gpus: 16"))
    loop, alone = (rlsize("predict", "rollout", path, *more, "--json") for more in ((), ("--concurrency", "32")))
    assert alone.results["samples_in_flight"] == 32 < loop.results["samples_in_flight"]
    assert loop.results["limited_by"] == "staleness"
    keys = ("rollout_tensor_parallel", "memory_fraction", "response_cv", "instances")
    assert [alone.document["inputs"][key] for key in keys] == [loop.document["inputs"][key] for key in keys]


def test_a_loop_whose_trainer_does_not_fit_still_has_an_engine(rlsize: Run, tmp_path: Path) -> None:
    """The answer about the loop is no, in a warning; the engine answers."""
    path = scenario(
        tmp_path,
        "model: qwen3-32b\ncluster: {gpu: h100-sxm}\n"
        "workload: {prompts_per_step: 64, group_size: 8, response_tokens: {mean: 1000}}\n"
        "placement: {mode: async, trainer_gpus: 2, rollout_gpus: 8}\n",
    )
    ran = rlsize("predict", "rollout", path, "--json")
    assert ran.code == 1
    assert ran.results["instance_tokens_per_second"] > 0
    assert any("The loop cannot run" in text for text in ran.document["warnings"])


def test_what_nobody_says_is_assumed_aloud(rlsize: Run) -> None:
    """Lengths, engine, version and the number of GPUs have defaults that are told."""
    ran = rlsize("predict", "rollout", "--model", "llama3.1-70b", "--gpu", "h100-sxm", "--json")
    assert ran.code == 0
    assert ran.document["inputs"]["rollout_tensor_parallel"] == 4
    notes = " ".join(ran.document["notes"])
    assert "Nobody said prompt_tokens" in notes
    assert "recent version of vllm" in notes


def test_borrowed_kernels_are_told(rlsize: Run) -> None:
    """A GPU without measurements of its own says whose kernels stand in."""
    ran = rlsize("predict", "rollout", "--model", "qwen3-8b", "--gpu", "h20", "--json")
    assert "Kernel times are those of the" in " ".join(ran.document["notes"])


def test_what_does_not_fit_is_a_no_with_a_way_out(rlsize: Run) -> None:
    """Exit code 1; the message has the bytes and what would fit."""
    ran = rlsize(
        "predict", "rollout", "--model", "llama3.1-70b", "--gpu", "h100-sxm", "--tensor-parallel", "1", "--json"
    )
    assert ran.code == 1
    assert ran.results["rollout_fits"] is False
    assert ran.results["rollout_first_fit_gpus"] in {2, 4}
    assert "does not fit on 1 x h100-sxm: weights take" in ran.document["headline"]
    assert "It would fit with --tensor-parallel" in ran.document["headline"]


def test_a_context_beyond_the_models_own_is_taken_and_told(rlsize: Run) -> None:
    """As by runs that stretch its positions."""
    ran = rlsize(*CASE, "--max-response-tokens", "40k")
    assert ran.code == 0
    assert "more than qwen3-32b's own 40,960" in " ".join(ran.stderr.split())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--gpu", "a100-80-sxm", "--dtype", "fp8"), "has no fp8 matrix units"),
        (("--max-response-tokens", "1000"), "lies above the cap of 1000"),
        (("--response-tokens", "0"), "--response-tokens"),
        (("--tensor-parallel", "3"), "3 ranks cannot share 64 heads"),
        (("--expert-parallel", "2"), "qwen3-32b has no experts to share out"),
        (("--engine", "tgi"), "'tgi' is unknown"),
        (("--dtype", "fp7"), "'fp7' is unknown"),
        (("--instances", "2", "--rollout-gpus", "8"), "2 instances of 2 are not the 8 rollout GPUs"),
        (("--rollout-gpus", "1"), "1 rollout GPUs do not hold an instance of 2"),
        (("--group", "8", "--routing", "random"), "give --instances"),
        (("--seed", "x"), "'x' is not a whole number"),
    ],
)  # fmt: skip
def test_a_question_without_an_answer_is_refused(flags: tuple[str, ...], words: str, rlsize: Run) -> None:
    """Exit code 2, what is wrong, and nothing on stdout."""
    ran = rlsize(*CASE, *flags)
    assert ran.code == 2
    assert ran.stdout == ""
    assert words in " ".join(ran.stderr.split())


def test_model_and_gpu_are_asked_for(rlsize: Run) -> None:
    """Nothing is predicted of nothing."""
    ran = rlsize("predict", "rollout")
    assert ran.code == 2
    assert "--model" in ran.stderr


def test_experts_of_a_model_may_be_spread(rlsize: Run) -> None:
    """Data-parallel attention: experts lie over all ranks, and the exchange takes its time."""
    flags = ("predict", "rollout", "--model", "deepseek-v3", "--gpu", "h200-sxm", "--tensor-parallel", "1")
    ran = rlsize(*flags, "--data-parallel", "16", "--expert-parallel", "16", "--json")
    assert ran.code == 0
    assert any(row["name"] == "exchange" for row in ran.document["rows"]["parts"])


def test_one_token_and_uncertain_lengths_are_answers(rlsize: Run) -> None:
    """A response of one token; a mean with a spread widens the band of the time per step."""
    assert rlsize(*CASE[:-6], "--prompt-tokens", "1", "--response-tokens", "1", *STEP[:4]).code == 0
    sure, unsure = (
        bands(rlsize(*CASE[:-4], "--response-tokens", text, *STEP, "--json"))["generation_seconds"]
        for text in ("4096", "4096 ± 1000")
    )
    assert unsure[1] / unsure[0] > 1.03 * sure[1] / sure[0]


def test_the_same_seed_gives_the_same_bands(rlsize: Run) -> None:
    """And another seed nearly the same."""
    first, again, other = (
        bands(rlsize(*CASE, "--seed", seed, "--json"))["instance_tokens_per_second"] for seed in ("0", "0", "7")
    )
    assert first == again
    assert first != other
    assert first == pytest.approx(other, rel=0.1)


def test_the_answer_reads_at_80_columns(rlsize: Run) -> None:
    """The headline has the rate, the tables stand below it, and nothing is wider than a terminal."""
    ran = rlsize(*CASE, *STEP, "--full")
    assert ran.code == 0
    assert ran.stdout.startswith("qwen3-32b on 2 h200-sxm generates")
    assert "Rates against concurrency" in ran.stdout
    assert "reading the KV cache" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_the_main_table_is_the_curve(rlsize: Run) -> None:
    """CSV has a row for each concurrency, doubling, with rates that rise and latencies."""
    lines = rlsize(*CASE, "--csv").stdout.splitlines()
    header = lines[0].split(",")
    rows = [dict(zip(header, map(float, line.split(",")), strict=True)) for line in lines[1:]]
    assert [row["concurrency"] for row in rows][:4] == [1, 2, 4, 8]
    rates = [row["rollout_gpu_tokens_per_second"] for row in rows]
    assert rates == sorted(rates)
    assert {"ttft_seconds", "tpot_seconds", "attention_part_seconds"} <= set(header)


@pytest.mark.long
def test_the_picture_stacks_the_step_and_has_the_rate_on_it(rlsize: Run, tmp_path: Path) -> None:
    """A file in each form, and blocks in the terminal."""
    pytest.importorskip("matplotlib")
    for ending in ("png", "svg"):
        target = tmp_path / f"step.{ending}"
        assert rlsize(*CASE, "--plot", str(target)).code == 0
        assert target.stat().st_size > 10_000
    shown = rlsize(*CASE, "--plot").stdout
    assert "milliseconds of a step, by samples at once" in shown
    assert "█" in shown


def test_a_calibration_narrows_the_band(rlsize: Run) -> None:
    """A file that is none is refused, not ignored."""
    ran = rlsize(*CASE, "--calibration", "nowhere.yaml")
    assert ran.code == 2
    assert "nowhere.yaml" in ran.stderr


GOOD = (
    {"--model": "qwen3-8b", "--gpu": "h100-sxm", "--tensor-parallel": "1", "--response-tokens": "1000"},
    {"--model": "qwen3-30b-a3b", "--gpu": "h200-sxm", "--samples": "64", "--instances": "2", "--group": "8"},
)
SPOILABLE = {
    "--engine": "vllm|sglang|tensorrt-llm", "--dtype": "bf16|fp8|int4|mxfp4", "--kv-dtype": "bf16|fp8",
    "--memory-fraction": "0.8", "--max-num-seqs": "64", "--tensor-parallel": "2", "--pipeline-parallel": "2",
    "--data-parallel": "2", "--expert-parallel": "2", "--prompt-tokens": "1000", "--response-tokens": "1000",
    "--response-cv": "0.5", "--max-response-tokens": "4000", "--prompts": "8", "--group": "8", "--samples": "64",
    "--routing": "affine|random|round-robin", "--block-size": "16", "--hit-ratio": "0.5", "--concurrency": "64",
    "--instances": "4", "--rollout-gpus": "8", "--seed": "3", "--model": "qwen3-8b|gpt-oss-20b", "--gpu": "l4|mi300x",
}  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=tries(30))
@given(data=st.data())
def test_junk_is_answered_or_refused(data: Any, rlsize: Run, spoilt: Any, checked: Any) -> None:
    """No traceback, no NaN, no infinity, whatever the flags say."""
    line = data.draw(spoilt(GOOD, SPOILABLE, {"--instances", "--rollout-gpus"}))
    ran = rlsize("predict", "rollout", *(word for pair in line.items() for word in pair), "--json")
    checked(ran, "predict rollout", "--json")
    if ran.code == 0:
        assert json.loads(ran.stdout)["results"]["instance_tokens_per_second"] > 0


@pytest.mark.parametrize(("cap", "warned"), [("32k", True), ("8k", False)])
def test_an_engine_without_room_for_the_longest_sample_is_warned_of(rlsize: Run, cap: str, warned: bool) -> None:
    """On one H100 a 32B leaves about 4 GiB of cache: samples of 2,000 tokens have room, one of 32,000 has none."""
    ran = rlsize(
        "predict", "rollout", "--model", "qwen3-32b", "--gpu", "h100-sxm", "--tensor-parallel", "1",
        "--response-tokens", "2k", "--max-response-tokens", cap, "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.stderr
    assert any("the longest sample" in warning for warning in ran.document["warnings"]) == warned


@pytest.mark.parametrize("gpu", ["mi300x", "gaudi3", "tpu-v6e", "h20"])
def test_tensorrt_llm_is_refused_on_gpus_that_it_does_not_run_on(rlsize: Run, gpu: str) -> None:
    """With what it runs on, by a fault that blames the engine; other engines run there."""
    asked = ("predict", "rollout", "--model", "qwen3-8b", "--gpu", gpu, "--response-tokens", "1k")
    ran = rlsize(*asked, "--engine", "tensorrt-llm")
    assert (ran.code == 0) == (gpu == "h20")
    assert gpu == "h20" or "--engine: tensorrt-llm runs on GPUs of nvidia alone, not on" in ran.stderr
    assert rlsize(*asked, "--engine", "vllm").code == 0
