"""`rlsize simulate` from the outside: the worked example, where inputs come from, forms of the answer, wrong input."""

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

from rlsize.commands.simulate.report import beside_first_order, half_shown, number_shown

Run = Callable[..., Any]

WORKED = {
    "--mode": "async", "--max-staleness": "1", "--instances": "8", "--per-instance": "4000", "--concurrency": "64",
    "--prompts": "64", "--group": "8", "--response-tokens": "1536", "--length-distribution": "constant",
    "--train-seconds": "20", "--seeds": "1", "--steps": "10",
}  # fmt: skip
TAIL = {"--length-distribution": "lognormal", "--response-cv": "0.8", "--max-response-tokens": "8k"}
QUICK = ("--seeds", "1", "--steps", "4")
UNITS = ("_seconds", "_fraction", "_steps", "_samples", "_usd", "_tokens_per_second", "_gpu_second", "_per_day",
         "_per_trained_token", "_per_step")  # fmt: skip


def line(*drop: str, **change: str) -> list[str]:
    """The worked example's flags, some of them dropped, changed or added."""
    said = {flag: text for flag, text in WORKED.items() if flag not in drop}
    said |= {f"--{name.replace('_', '-')}": text for name, text in change.items()}
    return [part for pair in said.items() for part in pair]


@pytest.fixture
def simulated(rlsize: Run) -> Run:
    """The results of the worked example with some flags changed; keywords are flags."""

    def run(*drop: str, **change: str) -> Any:
        ran = rlsize("simulate", *line(*drop, **change), "--json")
        assert ran.code == 0, ran.stderr
        return ran.document

    return run


@pytest.fixture
def refused(rlsize: Run) -> Run:
    """What stderr says of a command line that is wrong, in one line; the exit code is 2 and nothing is answered."""

    def run(*args: str) -> str:
        ran = rlsize("simulate", *args)
        assert (ran.code, ran.stdout) == (2, "")
        return " ".join(ran.stderr.split())

    return run


@pytest.mark.parametrize("mode", ["one-step-off", "async"])
def test_the_worked_example_is_the_first_orders(simulated: Run, mode: str) -> None:
    """8 instances x 4,000 tok/s need 24.576 s for 512 x 1,536 tokens; a trainer of 20 s is idle for 18.6 %."""
    found = simulated(mode=mode)
    results = found["results"]
    assert results["simulated_step_seconds"] == pytest.approx(24.576)
    assert results["simulated_trainer_idle_fraction"] == pytest.approx(1 - 20 / 24.576)
    assert results["simulated_trained_tokens_per_second"] == pytest.approx(32000)
    for row in found["rows"]["measures"]:
        if row["first_order"] is not None:
            assert row["value"] == pytest.approx(row["first_order"], abs=1e-9), row["measure"]
        assert row["cause"] == ""


def test_a_synchronous_loop_adds_both_times(simulated: Run) -> None:
    """24.576 s of generation and 20 s of training; no sample is stale."""
    results = simulated("--max-staleness", mode="sync")["results"]
    assert results["simulated_step_seconds"] == pytest.approx(44.576)
    assert results["simulated_staleness_max_steps"] == 0


def test_a_colocated_trainer_never_waits(simulated: Run) -> None:
    """Generation and training follow each other on the same GPUs, and change-overs are paid for."""
    results = simulated("--max-staleness", mode="colocated", swap_seconds="5")["results"]
    assert results["simulated_step_seconds"] == pytest.approx(24.576 + 20 + 5, rel=1e-3)
    assert results["simulated_waiting_for_samples_fraction"] == 0
    assert results["simulated_trainer_idle_fraction"] == pytest.approx(results["simulated_sync_fraction"])


def test_partial_rollouts_shorten_a_long_tail(simulated: Run) -> None:
    """What over-sampling leaves unfinished goes on in the next batch: quicker than waiting for the longest."""
    change = {name.removeprefix("--").replace("-", "_"): text for name, text in TAIL.items()}
    whole = simulated("--max-staleness", **change, mode="sync")["results"]
    partial = simulated("--max-staleness", **change, mode="partial")["results"]
    assert partial["simulated_step_seconds"] < whole["simulated_step_seconds"]
    assert partial["simulated_staleness_mean_steps"] > 0


def test_prices_make_a_cost_and_none_is_assumed(simulated: Run) -> None:
    """32 GPUs at $2 for 24.576 s; without a price, or without GPUs, there is no cost."""
    change = {"rollout_gpus": "16", "trainer_gpus": "16"}
    assert "simulated_cost_per_step_usd" not in simulated(**change)["results"]
    assert "simulated_cost_per_step_usd" not in simulated(gpu_hour="2")["results"]
    priced = simulated("--instances", **change, gpu_hour="2", gpus_per_instance="2")["results"]
    assert priced["simulated_cost_per_step_usd"] == pytest.approx(32 * 2 * 24.576 / 3600)
    assert priced["simulated_goodput_tokens_per_gpu_second"] == pytest.approx(32000 / 32)


def test_a_scenario_says_the_loop(rlsize: Run, checkout: Path) -> None:
    """Mode, cap, lengths, pools and rates are the file's; one side gets what the other leaves."""
    found = rlsize("simulate", str(checkout / "examples" / "grpo-32b.yaml"), *QUICK, "--json").document
    inputs = found["inputs"]
    assert (inputs["mode"], inputs["max_staleness"], inputs["concurrency"]) == ("async", 2, 128)
    assert (inputs["rollout_gpus"], inputs["instances"], inputs["response_cv"]) == (32, 16, 0.8)
    assert "simulated_cost_per_step_usd" not in found["results"]


def test_flags_go_before_the_scenario(rlsize: Run, checkout: Path) -> None:
    """Another cap and a smaller fleet; GPUs that are in neither pool then are told, as by every command."""
    path = str(checkout / "examples" / "grpo-32b.yaml")
    found = rlsize("simulate", path, *QUICK, "--max-staleness", "0", "--rollout-gpus", "16", "--json").document
    assert (found["inputs"]["max_staleness"], found["inputs"]["instances"]) == (0, 8)
    assert any("16 of 64 GPUs are in neither pool" in warning for warning in found["warnings"])
    assert found["results"]["simulated_staleness_max_steps"] == 0


def test_a_fitted_step_time_is_used(rlsize: Run, checkout: Path) -> None:
    """A rates file of `rlsize measure` says how an engine step grows with its batch; the rate is not asked for."""
    rates = str(checkout / "examples" / "measured-cpu.yaml")
    change = {"per_instance": rates, "instances": "1", "prompts": "2", "max_response_tokens": "2000"}
    inputs = rlsize("simulate", *line("--concurrency", **change), "--json").document["inputs"]
    assert inputs["step_sample"] > 0
    assert "instance_tokens_per_second" not in inputs
    assert "(measured)" in " ".join(rlsize("simulate", *line("--concurrency", **change), "--full").stdout.split())


@pytest.mark.long
def test_model_and_gpu_are_enough(rlsize: Run, checkout: Path) -> None:
    """Without any rate, engine step, train seconds and sync are predicted, and the answer says so."""
    path = str(checkout / "examples" / "unmeasured-8b.yaml")
    ran = rlsize("simulate", path, *QUICK, "--full")
    said = " ".join(ran.stdout.split())
    assert ran.code == 0
    assert "The engine step is predicted" in said
    inputs = rlsize("simulate", path, *QUICK, "--json").document["inputs"]
    assert min(inputs[f"step_{part}"] for part in ("fixed", "sample", "kv_token")) > 0


def test_a_rate_scales_the_predicted_step(rlsize: Run, checkout: Path) -> None:
    """With twice the rate each part of an engine step takes half as long; its shape stays."""
    path = str(checkout / "examples" / "grpo-32b.yaml")
    one, two = (
        rlsize("simulate", path, *QUICK, "--per-instance", rate, "--json").document["inputs"] for rate in ("2k", "4k")
    )
    for part in ("fixed", "sample", "kv_token"):
        assert two[f"step_{part}"] == pytest.approx(one[f"step_{part}"] / 2)


def test_a_rate_alone_is_the_same_at_every_batch(rlsize: Run) -> None:
    """64 slots at 4,000 tok/s make steps of 16 ms, and a note says what would know better."""
    said = " ".join(rlsize("simulate", *line(), "--full").stdout.split())
    assert "An engine step takes 16 ms at every batch" in said


def test_a_file_of_lengths_is_drawn_from(rlsize: Run, tmp_path: Path) -> None:
    """Its mean is the workload's."""
    path = tmp_path / "lengths.txt"
    path.write_text("tokens\n1000\n1000\n2608\n", encoding="utf-8")
    ran = rlsize("simulate", *line("--response-tokens", "--length-distribution", lengths=str(path)), "--json")
    assert ran.document["inputs"]["response_tokens"] == pytest.approx(1536)
    assert ran.results["simulated_staleness_mean_steps"] > 0


def test_the_answer_is_made_as_every_commands(simulated: Run) -> None:
    """Finite numbers, keys that end in their unit, and tables of measures, causes and staleness."""

    def finite(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                finite(inner)
        elif isinstance(value, list):
            for inner in value:
                finite(inner)
        elif isinstance(value, float):
            assert math.isfinite(value)

    found = simulated("--length-distribution", response_cv="0.8", seeds="2")
    finite(found)
    assert {"schema_version", "command", "rlsize_version", "facts_digest", "inputs", "results", "rows", "explain"} <= {
        *found
    }
    assert all(key.endswith(UNITS) for key in found["results"])
    assert {"measures", "causes", "staleness"} <= set(found["rows"])
    assert sum(row["samples_fraction"] for row in found["rows"]["staleness"]) == pytest.approx(1)
    for row in found["rows"]["measures"]:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["value"] == found["results"][row["measure"]]


def test_causes_lead_from_the_first_order_to_the_simulation(simulated: Run) -> None:
    """Each row adds what its cause changes; the rows add up."""
    change = {name.removeprefix("--").replace("-", "_"): text for name, text in TAIL.items()}
    rows = simulated(**change)["rows"]["causes"]
    assert [row["cause"] for row in rows] == ["first order", "granularity", "long tail", "simulated, first seed"]
    assert sum(row["simulated_step_seconds"] for row in rows[:-1]) == pytest.approx(rows[-1]["simulated_step_seconds"])


def test_a_row_of_the_table_has_one_unit() -> None:
    """Interval and first order of a time are in the unit of its mean, however small they are."""
    mean, half, first = 668.4, 110.0, 250.0
    assert number_shown(mean, "step_seconds") == "11.14 min"
    assert half_shown(half, "step_seconds", mean) == "± 1.8 min"
    assert number_shown(first, "step_seconds", mean) == "4.167 min"


def test_all_forms_have_the_same_numbers(rlsize: Run) -> None:
    """Table, Markdown, CSV and JSON; the table fits 80 columns."""
    args = line("--length-distribution", response_cv="0.8", seeds="2")
    document = rlsize("simulate", *args, "--json").document
    table, markdown, csv = (rlsize("simulate", *args, *form).stdout for form in ((), ("--markdown",), ("--csv",)))
    assert max(map(len, table.splitlines())) <= 80
    shown = f"{document['results']['simulated_trainer_idle_fraction']:.1%}".replace("%", " %")
    assert f"trainer idle {shown}" in " ".join(table.split())
    assert f"| trainer idle | {shown} |" in markdown
    assert "#### \n" not in markdown
    rows = {row.split(",")[0]: row.split(",")[2] for row in csv.splitlines()}
    assert float(rows["simulated_step_seconds"]) == document["results"]["simulated_step_seconds"]


def test_the_same_seed_gives_the_same_bytes(rlsize: Run) -> None:
    """And another seed gives other numbers."""
    args = line("--length-distribution", response_cv="0.8")
    first, again, other = (rlsize("simulate", *args, "--json", "--seed", seed).stdout for seed in ("0", "0", "7"))
    assert first == again
    assert json.loads(other)["results"] != json.loads(first)["results"]


def test_flags_without_effect_are_told(rlsize: Run) -> None:
    """A staleness cap says nothing of a synchronous loop."""
    said = " ".join(rlsize("simulate", *line(mode="sync", queue_steps="2")).stdout.split())
    assert "Without effect where the mode is sync: --max-staleness, --queue-steps." in said


def test_a_backlog_that_grows_is_a_warning(rlsize: Run) -> None:
    """With a cap that is never reached, a fleet that is too large piles samples up."""
    ran = rlsize("simulate", *line(max_staleness="100", instances="16", steps="60"))
    assert ran.code == 0
    assert "never settles" in " ".join(ran.stderr.split())


def test_a_loop_that_stands_still_is_unfinished(rlsize: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances that are lost before any sample is finished: exit code 3 and why; a lucky point of a grid counts."""
    monkeypatch.setattr("rlsize.simulator.setting._PATIENCE", 2000)
    lost = {"prompts": "1", "group": "1", "instances": "1", "restart_seconds": "100", "per_instance": "10"}
    ran = rlsize("simulate", *line(**lost, losses_per_hour="3600"))
    assert (ran.code, ran.stdout) == (3, "")
    assert "stands still after 0 optimizer steps" in ran.stderr
    ran = rlsize("simulate", *line(**lost), "--sweep", "losses_per_hour=0,3600")
    assert ran.code == 0
    assert "losses per hour 3600: the loop stands still after 0" in " ".join(ran.stderr.split())


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"mode": "sync", "max_staleness": ""}, "The sides take turns"),
        ({"max_staleness": "0"}, "The sides take turns"),
        ({"max_staleness": "4", "per_instance": "1000"}, "The fleet is short"),
        ({"max_staleness": "4", "per_instance": "16000"}, "The trainer is short"),
        ({"max_staleness": "1", "response_cv": "2", "length_distribution": "lognormal"}, "Both sides wait"),
    ],
)
def test_what_would_shorten_a_step_depends_on_who_waits(rlsize: Run, said: dict[str, str], told: str) -> None:
    """No side that waits long is called short."""
    drop = [f"--{name.replace('_', '-')}" for name, text in said.items() if not text]
    ran = rlsize("simulate", *line(*drop, **({"steps": "40"} | {name: text for name, text in said.items() if text})))
    assert f"change:   {told}" in ran.stdout, ran.stdout


def test_large_batches_need_fewer_steps_where_nothing_is_rare(rlsize: Run) -> None:
    """Half a million samples tell the step; what fails by the hour, or changes over the run, has a thousand steps."""
    large = {"prompts": "1024", "group": "2", "response_tokens": "8", "seeds": "1"}

    def steps(*more: str, **change: str) -> float:
        ran = rlsize("simulate", *line("--steps", **(large | change)), *more, "--json")
        return float(ran.document["inputs"]["simulated_steps"])

    assert steps() == 500_000 // 2048
    assert steps(prompts="4096") == 100
    assert steps(prompts="8") == steps(losses_per_hour="0.01") == steps(length_drift="0.1") == 1000
    assert steps("--sweep", "prompts=8,1024") == 1000


def test_ten_thousand_instances_are_refused_with_what_would_fit(rlsize: Run, refused: Run) -> None:
    """100,000 samples a step for 1,000 steps and five seeds are too many; a few steps are answered."""
    large = {"instances": "10000", "prompts": "12500", "max_staleness": "0", "response_tokens": "64"}
    said = refused(*line("--seeds", **large, steps="1000"))
    assert "5 runs of 1,000 steps generate 500,000,000 samples, more than 200,000,000" in said
    assert "give --steps 400, or fewer seeds or points" in said
    assert rlsize("simulate", *line(**large, steps="2")).code == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"instances": "0"}, "--instances: 0 must be more than 0"),
        ({"instances": "-1"}, "--instances"),
        ({"instances": "8.5"}, "whole number"),
        ({"instances": "1e30"}, "beyond anything built"),
        ({"instances": "1e9"}, "1,000,000,000 instances are more than"),
        ({"per_instance": "4000 s"}, "is not a token rate: 's' is not one of its units"),
        ({"train_seconds": "nan"}, "not a finite number"),
        ({"train_seconds": "5 GB"}, "is not a time: 'GB' is not one of its units"),
        ({"response_tokens": "0.5"}, "no response"),
        ({"response_cv": "0.5"}, "constant lengths take no spread"),
        ({"response_cv": "21", "length_distribution": "gamma"}, "at most 20"),
        ({"max_response_tokens": "100"}, "lies above the cap of 100"),
        ({"length_distribution": "normal"}, "did you mean lognormal?"),
        ({"length_distribution": "empirical"}, "--lengths"),
        ({"length_drift": "-1"}, "at least -0.99"),
        ({"group_correlation": "2"}, "at most 1"),
        ({"mode": "asink"}, "did you mean async?"),
        ({"routing": "afine"}, "did you mean affine?"),
        ({"late_samples": "contniue"}, "did you mean continue?"),
        ({"queue_order": "newest"}, "known: completion, admission, freshest"),
        ({"sync_way": "in-fligth"}, "did you mean in-flight?"),
        ({"late_samples": "lose"}, "known: continue, wait, drop"),
        ({"max_staleness": "1", "sync_every": "5"}, "raise it to 4"),
        ({"max_staleness": "1e6"}, "GB"),
        ({"queue_steps": "0.5"}, "never holds a whole one"),
        ({"kept_fraction": "0"}, "--kept-fraction"),
        ({"oversampling": "0.5"}, "at least 1"),
        ({"micro_batches": "65"}, "do not fit into a batch of 64 prompts"),
        ({"kv_cache_tokens": "100", "max_response_tokens": "2000"}, "does not fit into a KV cache of 100"),
        ({"kv_cache_tokens": "100000"}, "nothing caps the response length"),
        ({"step_fixed": "0"}, "takes no time"),
        ({"mode": "colocated", "lent_instances": "2"}, "nothing to lend"),
        ({"lent_instances": "1e5"}, "more than 100,000"),
        ({"turns": "0"}, "--turns"),
        ({"turns": "1e9"}, "turns, more than"),
        ({"verify_workers": "0"}, "--verify-workers"),
        ({"straggler_slowdown": "0.5"}, "at least 1"),
        ({"losses_per_hour": "3601"}, "at most 3600"),
        ({"model": "qwn3-8b"}, "did you mean qwen3-8b"),
        ({"gpu": "h101"}, "no gpu profile 'h101'"),
        ({"steps": "0"}, "--steps: 0 is too small"),
        ({"steps": "nan"}, "--steps"),
        ({"steps": "1000000"}, "give --steps 390625"),
        ({"seeds": "1001"}, "at most 1000"),
        ({"seed": "-1"}, "not a whole number"),
        ({"seed": "9" * 5000}, "not a whole number"),
        ({"seed": "٣"}, "not a whole number"),
        ({"jobs": "0"}, "--jobs"),
        ({"most_samples": "0"}, "--most-samples"),
        ({"backend": "thread"}, "did you mean threads?"),
        ({"backend": ""}, "'' is unknown"),
    ],
    ids=lambda value: " ".join(f"{k}={v[:12]}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_wrong_input_is_named_with_its_flag(refused: Run, change: dict[str, str], says: str) -> None:
    """What is wrong, where, and what to do."""
    assert says in refused(*line(**change))


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_a_cluster_that_is_not_installed_is_refused_at_once(
    refused: Run, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything runs, with what to install."""
    monkeypatch.setattr("rlsize.commands.simulate.runs.find_spec", lambda _: None)
    said = refused(*line(backend=backend))
    assert f"{backend} is not installed" in said
    assert "pip install" in said
    assert "runs" not in said


def test_instances_must_fit_on_their_gpus(refused: Run) -> None:
    """Two GPUs hold no instance of four; it is told once."""
    said = refused(*line("--instances", rollout_gpus="2", gpus_per_instance="4"))
    assert "2 rollout GPUs do not hold an instance of 4" in said
    assert said.count("error:") == 1


def test_a_pool_that_leaves_nothing_is_refused(rlsize: Run, checkout: Path) -> None:
    """64 GPUs of 64 for the fleet leave none to the trainer's 32."""
    ran = rlsize("simulate", str(checkout / "examples" / "grpo-32b.yaml"), *QUICK, "--rollout-gpus", "64")
    assert ran.code == 2
    assert "64 + 32 GPUs are more than 64" in ran.stderr


def test_faults_are_told_all_at_once(refused: Run) -> None:
    """What is missing, what is wrong, and how it is to be run."""
    said = refused("--steps", "0", "--mode", "asink", "--jobs", "x", "--json", "--csv", "--plot", "x.xyz")
    for flag in ("--steps", "--mode", "--jobs", "--json --csv", "--plot", "--prompts", "--response-tokens",
                 "--instances", "--per-instance", "--train-seconds"):  # fmt: skip
        assert f"error: {flag}: " in said, flag


def test_help_has_a_command_to_paste(rlsize: Run) -> None:
    """The example in the help is a command that runs."""
    ran = rlsize("simulate", "--help")
    text = " ".join(ran.stdout.split())
    example = text.partition("Example: rlsize simulate ")[2].partition("╭")[0].split()
    example[example.index("--steps") + 1] = "5"
    assert rlsize("simulate", *example, "--seeds", "1").code == 0


NUMERIC = {
    "--max-staleness": "3", "--queue-steps": "2", "--oversampling": "1.5", "--kept-fraction": "0.5",
    "--micro-batches": "2", "--instances": "2", "--per-instance": "4000 tok/s", "--concurrency": "8",
    "--step-fixed": "9 ms", "--step-sample": "0.1 ms", "--step-kv-token": "1 us", "--step-prompt-token": "1 us",
    "--kv-cache-tokens": "5000", "--max-response-tokens": "500", "--response-tokens": "100", "--response-cv": "0.5",
    "--prompt-tokens": "50", "--prompts": "4", "--group": "2", "--train-seconds": "5 s", "--sync-seconds": "1 s",
    "--sync-every": "2", "--turns": "2", "--tool-seconds": "1 s", "--tool-cv": "0.5", "--tool-tokens": "5",
    "--verify-seconds": "1 s", "--verify-workers": "2", "--straggler-fraction": "0.5", "--straggler-slowdown": "2",
    "--restart-seconds": "5 s", "--notice-seconds": "1 s", "--lent-instances": "1",
    "--lend-seconds": "1 s", "--gpu-hour": "2", "--rollout-gpus": "4", "--trainer-gpus": "4", "--steps": "3",
    "--seed": "3", "--jobs": "1", "--group-correlation": "0.5", "--length-drift": "0.5", "--swap-seconds": "1 s",
    "--mode": "async",
}  # fmt: skip
SMALL = {
    "--instances": "2", "--per-instance": "4000", "--concurrency": "4", "--prompts": "2", "--group": "2",
    "--response-tokens": "50", "--train-seconds": "1", "--seeds": "1", "--steps": "2", "--most-samples": "2000",
}  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(["0", "-1", "nan", "inf", "1e30", "1e-13", "1e-300", "", "x", "10 %", "50 GB/s", "2 ± 1", "1e308"]),
    st.text(max_size=8).filter(lambda text: "\x00" not in text),
    st.floats().map(str),
    st.integers(-3, 10**12).map(str),
)


@settings(max_examples=tries(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(sorted(NUMERIC)), st.booleans(), min_size=1, max_size=5),
    st.lists(TEXTS, min_size=5, max_size=5),
    st.sampled_from(["async", "sync", "colocated", "one-step-off", "partial"]),
)
def test_any_text_is_answered_or_refused(rlsize: Run, drawn: dict[str, bool], texts: list[str], mode: str) -> None:
    """Exit code 0 to 3, never a traceback; what is answered has finite numbers only."""
    said = {**SMALL, "--mode": mode}
    said |= {flag: NUMERIC[flag] if good else text for (flag, good), text in zip(drawn.items(), texts, strict=False)}
    ran = rlsize("simulate", *(f"{flag}={text}" for flag, text in said.items()), "--json")
    assert ran.code in {0, 1, 2, 3}
    if ran.code:
        assert "error:" in ran.stderr
        return
    assert all(math.isfinite(value) for value in ran.results.values())


def test_the_first_order_is_told_in_the_unit_of_the_step() -> None:
    """Seconds beside minutes are hard to compare."""
    assert beside_first_order(305.0, 270.0) == ", 13.0 % above the first-order 4.5 min"
