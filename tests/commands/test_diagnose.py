"""`rlsize diagnose`, and `observe` on training logs: verdicts, records, comparisons and exit codes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.shell.inputs import Inputs
from rlsize.shell.named_inputs import named_inputs

POOLS = ("--instances", "8", "--gpus-per-instance", "2", "--trainer-gpus", "16", "--gpu-hour", "2.50")
TOKENS, TRAIN = 512 * 1536, 19.6


def write_log(
    path: Path, wait: float, *, steps: int = 60, seed: int = 1, train: float = TRAIN, dropped: int = 0
) -> str:
    """A fully asynchronous run of verl, as its file logger writes it."""
    draws = random.Random(seed)
    lines = []
    for step in range(1, steps + 1):
        busy, waited = train * draws.gauss(1.0, 0.02), max(0.0, draws.gauss(wait, 0.05 * wait))
        data = {
            "training/global_step": step, "perf/total_num_tokens": 512 * (1536 + 400), "response_length/mean": 1536.0,
            "prompt_length/mean": 400.0, "timing_s/gen": waited, "timing_s/old_log_prob": 0.2 * busy,
            "timing_s/update_actor": 0.8 * busy, "timing_s/param_sync": 0.7, "timing_s/step": busy + waited + 1.0,
            "fully_async/trainer/idle_ratio": waited / (busy + waited + 1.0),
            "fully_async/count/dropped_stale_samples": dropped * step, "fully_async/count/current_param_version": step,
        }  # fmt: skip
        lines.append(json.dumps({"step": step, "data": data}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def starving(tmp_path: Path) -> str:
    """A trainer that waits a third of each step."""
    return write_log(tmp_path / "starving.jsonl", 10.6)


def test_a_log_and_a_nameplate_give_the_matched_count(rlsize: Any, starving: str) -> None:
    """786,432 tokens in 19.6 s, instances of 4000 tok/s at a headroom of 0.8: 13, as in the runbook."""
    told = rlsize("diagnose", starving, "--per-instance", "4000", "--instances", "8", "--json")
    assert told.code == 0
    assert told.results["verdict"] == "starving trainer"
    assert told.results["matched_instances"] == 13
    assert told.results["consumption_tokens_per_second"] == pytest.approx(TOKENS / TRAIN, rel=0.01)
    step = told.document["rows"]["steps"][0]
    assert (step["check"], step["action"]) == ("fleet_size", "Add 5 rollout instances, to 13")


def test_a_log_alone_bounds_the_count(rlsize: Any, starving: str) -> None:
    """A third of the step waits: half as many instances again would match, if those that there are do all they can."""
    told = rlsize("diagnose", starving, "--instances", "8", "--json")
    assert told.document["rows"]["steps"][0]["action"].startswith(
        "Add rollout instances, 5 at most, to 13; how many needs"
    )


def test_both_rates_in_one_command_size_a_fleet(rlsize: Any, starving: str, checkout: Path, tmp_path: Path) -> None:
    """Engines and a log are observed together; the file that is saved is all that `fleet` needs."""
    pages = [str(checkout / "tests/readers/data/vllm_metrics" / f"engine_{name}.prom") for name in ("first", "second")]
    saved = str(tmp_path / "rates.yaml")
    seen = rlsize("observe", starving, "--pages", *pages, "--seconds", "60", "--save", saved, "--json")
    assert seen.code == 0
    assert {"instance_tokens_per_second", "train_seconds", "consumption_tokens_per_second"} <= set(seen.results)
    sized = rlsize("fleet", "--per-instance", saved, "--accept-lower-bound", "--json")
    assert sized.code == 0
    assert sized.results["required_tokens_per_second"] == pytest.approx(TOKENS / TRAIN, rel=0.01)


def test_a_record_is_the_baseline_of_a_comparison(rlsize: Any, starving: str, tmp_path: Path) -> None:
    """Recorded before, resized, compared after: better, with the way back."""
    before = str(tmp_path / "before.yaml")
    assert rlsize("observe", starving, *POOLS, "--record", before).code == 0
    after = write_log(tmp_path / "after.jsonl", 0.5, seed=2)
    grown = ("--instances", "13", *POOLS[2:])
    told = rlsize("diagnose", after, *grown, "--before", before, "--fail-on", "worse", "--json")
    assert told.code == 0
    rows = {row["quantity"]: row for row in told.document["rows"]["before_after"]}
    assert {key: row["outcome"] for key, row in rows.items()} == {
        "step_seconds": "better", "trainer_idle_fraction": "better", "cost_per_step_usd": "better",
    }  # fmt: skip
    assert rows["cost_per_step_usd"]["before"] == pytest.approx(32 * 2.5 * 31.2 / 3600, rel=0.02)
    shown = rlsize("diagnose", after, *grown, "--before", before).stdout
    assert "8 rollout instances of 2 GPUs each" in " ".join(shown.split())
    assert "Do not roll back with it" in shown


def test_instances_by_flag_go_before_the_scenario_s_fleet(rlsize: Any, starving: str, tmp_path: Path) -> None:
    """Thirteen instances of 2 GPUs are 26 GPUs, whatever the scenario that the fleet was planned with says."""
    scenario = tmp_path / "s.yaml"
    text = "rlsize: {kind: scenario, version: 1}\nplacement: {rollout_gpus: 16, trainer_gpus: 16}\n"
    scenario.write_text(text, encoding="utf-8")
    record = tmp_path / "record.yaml"
    flags = ("--instances", "13", "--gpus-per-instance", "2", "--record", str(record))
    assert rlsize("diagnose", starving, str(scenario), *flags).code == 0
    allocation = yaml.safe_load(record.read_text(encoding="utf-8"))["allocation"]
    assert (allocation["rollout_gpus"], allocation["trainer_gpus"]) == (26, 16)


@pytest.mark.long
def test_what_got_worse_fails_where_it_is_asked_to(rlsize: Any, starving: str, tmp_path: Path) -> None:
    """The other way round: exit code 1."""
    good = write_log(tmp_path / "good.jsonl", 0.5, seed=2)
    before = str(tmp_path / "before.yaml")
    assert rlsize("observe", good, *POOLS, "--record", before).code == 0
    assert rlsize("diagnose", starving, *POOLS, "--before", before).code == 0
    assert rlsize("diagnose", starving, *POOLS, "--before", before, "--fail-on", "worse").code == 1
    assert rlsize("diagnose", starving, "--fail-on", "starving").code == 1
    assert rlsize("diagnose", starving, "--fail-on", "sync,regressed").code == 0
    assert rlsize("diagnose", good, "--fail-on", "any").code == 0


def test_like_runs_are_within_noise(rlsize: Any, starving: str, tmp_path: Path) -> None:
    """A run against another of the same kind."""
    before = str(tmp_path / "before.yaml")
    assert rlsize("observe", starving, *POOLS, "--record", before).code == 0
    again = write_log(tmp_path / "again.jsonl", 10.6, seed=5)
    told = rlsize("diagnose", again, *POOLS, "--before", before, "--json")
    assert {row["outcome"] for row in told.document["rows"]["before_after"]} == {"within noise"}


def test_samples_that_are_dropped_are_a_backlog(rlsize: Any, tmp_path: Path) -> None:
    """The trainer does not wait, and stale samples are thrown away."""
    told = rlsize("diagnose", write_log(tmp_path / "stale.jsonl", 0.2, dropped=30), "--json")
    assert told.results["verdict"] == "growing backlog"


def test_a_trainer_slower_than_the_scenario_says_is_looked_at_first(rlsize: Any, tmp_path: Path, starving: str) -> None:
    """Whatever else there is."""
    told = rlsize("diagnose", starving, "--train-seconds", "15", "--per-instance", "4000", "--json")
    assert told.document["rows"]["steps"][0]["check"] == "trainer_health"
    slow = rlsize("diagnose", write_log(tmp_path / "ok.jsonl", 0.2), "--train-seconds", "20", "--json")
    assert slow.results["verdict"] == "matched"


def test_a_picture_has_the_parts_of_a_step(rlsize: Any, starving: str, tmp_path: Path) -> None:
    """In a file and in the terminal, after a restart too."""
    text = Path(starving).read_text(encoding="utf-8")
    again = tmp_path / "again.jsonl"
    again.write_text(text + text, encoding="utf-8")
    for log in (starving, str(again)):
        assert rlsize("observe", log, "--plot", str(tmp_path / f"{Path(log).stem}.svg")).code == 0
        drawn = (tmp_path / f"{Path(log).stem}.svg").read_text(encoding="utf-8")
        assert "waiting for samples" in drawn
        assert "of which the trainer waits 3" in drawn
    assert "waiting for samples" in rlsize("observe", starving, "--plot").stdout


def test_every_line_fits_80_columns(rlsize: Any, starving: str, tmp_path: Path) -> None:
    """Of observe and of diagnose."""
    before = str(tmp_path / "b.yaml")
    shown = [rlsize("observe", starving, *POOLS, "--record", before).stdout]
    shown.append(rlsize("diagnose", starving, *POOLS, "--before", before, "--per-instance", "4000").stdout)
    assert max(len(line.rstrip()) for text in shown for line in text.splitlines()) <= 80


def test_a_record_is_not_overwritten_unless_forced(rlsize: Any, starving: str, tmp_path: Path) -> None:
    """Found out before anything is read."""
    target = tmp_path / "b.yaml"
    target.write_text("mine\n", encoding="utf-8")
    assert rlsize("observe", starving, "--record", str(target)).code == 2
    assert target.read_text(encoding="utf-8") == "mine\n"
    assert rlsize("observe", starving, "--record", str(target), "--force").code == 0


def test_stdin_that_gives_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed, as under some schedulers: a fault with a way out, not an error of Python's."""
    monkeypatch.setattr("sys.stdin", None)
    inputs = Inputs()
    named_inputs(inputs, ["-"], None)
    assert [fault.what for fault in inputs.faults] == ["stdin is closed"]


def test_two_files_of_one_name_are_refused_before_either(rlsize: Any, starving: str, tmp_path: Path) -> None:
    """What is saved would be overwritten by what is recorded."""
    target = tmp_path / "both.yaml"
    assert rlsize("observe", starving, "--save", str(target), "--record", str(target), "--force").code == 2
    assert not target.exists()


WRONG = {
    "no source": ([], ["nothing that runs is named"]),
    "a file that is none": (["missing.log"], ["missing.log", "no such file"]),
    "text without steps": (["@words.txt"], ["words.txt", "--format"]),
    "one metrics page": (["@page.prom"], ["one metrics page", "--pages"]),
    "a plan": (["@plan.yaml"], ["plan"]),
    "two logs": (["@a.jsonl", "@a.jsonl"], ["2 training logs"]),
    "several at once": (
        ["@a.jsonl", "--consume", "much", "--fail-on", "wrose", "--max-idle", "7", "--before", "gone.yaml"],
        ["--consume", "worse", "--max-idle", "gone.yaml"],
    ),
    "an unknown format": (["@a.jsonl", "--format", "vrel"], ["verl"]),
    "everything skipped from nothing": (["@empty.log"], ["empty"]),
    "a baseline that is a scenario": (["@a.jsonl", "--before", "@s.yaml"], ["scenario"]),
    "a baseline with a column cut short": (["@a.jsonl", "--before", "@cut.yaml"], ["2 values for 3 steps"]),
    "nothing to fail on": (["@a.jsonl", "--fail-on", ""], ["names nothing"]),
    "worse than nothing": (["@a.jsonl", "--fail-on", "worse"], ["--before"]),
    "a window for a log": (["@a.jsonl", "--window", "5m"], ["none is named"]),
    "an empty name": (["@a.jsonl", ""], ["an empty name"]),
    "an engine's log": (["@engine.log"], ["two whole lines", "http://"]),
    "a baseline that would be lost": (["@a.jsonl", "--before", "x", "--record", "x"], ["is the baseline"]),
    "a baseline of numbers that nobody measured": (["@a.jsonl", "--before", "@big.yaml"], ["beyond anything"]),
    "selector without a Prometheus": (["@a.jsonl", "--selector", "job='x'"], ["--prometheus"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_told_with_its_way_out(rlsize: Any, tmp_path: Path, name: str) -> None:
    """All at once, exit code 2, and no answer."""
    write_log(tmp_path / "a.jsonl", 1.0, steps=12)
    for file, text in {
        "words.txt": "hello\n" * 50, "page.prom": "# TYPE vllm:x counter\nvllm:x 1\n", "empty.log": "",
        "plan.yaml": "rlsize: {kind: plan, version: 1}\n",
        "engine.log": "INFO [loggers.py:1] Engine 000: Avg generation throughput: 9.9 tokens/s, Running: 1 reqs\n",
        "big.yaml": "rlsize: {kind: observation, version: 1}\nobserved_at: now\nrlsize_version: '1'\nsources: []\n"
        "steps: [1, 2]\ncolumns: {step_seconds: [1, 1.0e+300]}\n",
        "s.yaml": "rlsize: {kind: scenario, version: 1}\n",
        "cut.yaml": "rlsize: {kind: observation, version: 1}\nobserved_at: now\nrlsize_version: '1'\nsources: []\n"
        "steps: [1, 2, 3]\ncolumns: {step_seconds: [1, 2]}\n",
    }.items():  # fmt: skip
        (tmp_path / file).write_text(text, encoding="utf-8")
    arguments, parts = WRONG[name]
    told = rlsize("diagnose", *[str(tmp_path / text[1:]) if text.startswith("@") else text for text in arguments])
    assert told.code == 2
    assert told.stdout == ""
    assert "Traceback" not in told.stderr
    for part in parts:
        assert part in told.stderr


@settings(max_examples=tries(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 9000), junk=st.binary(max_size=12))
def test_a_log_cut_or_spoilt_anywhere_is_read_or_refused(rlsize: Any, starving: str, cut: int, junk: bytes) -> None:
    """And what is read are whole steps: no verdict from half a record."""
    content = Path(starving).read_bytes()
    spoilt = Path(starving).with_name("spoilt.jsonl")
    spoilt.write_bytes(content[:cut] + junk)
    told = rlsize("diagnose", str(spoilt), "--json")
    assert told.code in {0, 2}
    assert "Traceback" not in told.stderr
    if told.code == 0:
        assert told.results["train_seconds"] == pytest.approx(TRAIN, rel=0.2)


def write_colocated(path: Path, **seconds: float) -> str:
    """A colocated run of verl of 512 samples a step, with the seconds of its phases; 'update' may be 90 of 100."""
    phases = {"gen": 40.0, "old_log_prob": 7.0, "update_actor": 20.0, **seconds}
    data = {
        "perf/total_num_tokens": 512 * 1440, "response_length/mean": 1040.0, "prompt_length/mean": 400.0,
        **{f"timing_s/{name}": value for name, value in phases.items()}, "timing_s/step": sum(phases.values()),
    }  # fmt: skip
    rows = [{"step": step, "data": {**data, "training/global_step": step}} for step in range(1, 13)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return str(path)


LOOP = (
    "--set=model=qwen2.5-3b", "--set=cluster.gpu=a800-sxm", "--set=cluster.gpus=4", "--set=placement.mode=colocated",
    "--set=workload.prompts_per_step=64", "--set=workload.group_size=8",
)  # fmt: skip


def test_a_phase_far_beyond_what_its_model_needs_is_not_normal(rlsize: Any, tmp_path: Path) -> None:
    """An update of 150 s where 30 s do: said first, with the key that makes it so and what a step would cost."""
    log = write_colocated(tmp_path / "slow.jsonl", update_actor=150.0)
    told = rlsize("diagnose", log, *LOOP, "--set=trainer.micro_batch_samples=1", "--gpu-hour", "2", "--json")
    assert told.code == 0
    assert told.results["verdict"] == "slow phase"
    first, *others = told.document["rows"]["phases"]
    assert (first["phase"], first["verdict"]) == ("update", "not normal")
    assert first["took_seconds"] > first["usual_to_seconds"] > first["usual_seconds"] > first["usual_from_seconds"]
    assert {row["verdict"] for row in others if row["phase"] != "step"} == {"usual"}
    cause = told.document["rows"]["causes"][0]
    assert (cause["kind"], cause["change"]) == (
        "micro_batch", "trainer.micro_batch_tokens=16384, no trainer.micro_batch_samples",
    )  # fmt: skip
    assert told.results["cost_per_step_after_usd"] < told.results["cost_per_step_usd"]


def test_a_run_as_its_model_needs_it_is_usual(rlsize: Any, tmp_path: Path) -> None:
    """Every phase; and the lengths of the log go before those that a scenario expected."""
    log = write_colocated(tmp_path / "usual.jsonl")
    told = rlsize("diagnose", log, *LOOP, "--set=workload.response_tokens.mean=8000", "--json")
    assert told.results["verdict"] == "in turn"
    assert {row["verdict"] for row in told.document["rows"]["phases"]} == {"usual"}


@pytest.mark.long
def test_a_launch_beside_a_log_says_the_loop_in_its_own_keys(rlsize: Any, tmp_path: Path, checkout: Path) -> None:
    """In either order; what is to be set is told as the framework calls it."""
    log = write_colocated(tmp_path / "slow.jsonl", update_actor=3000.0)
    script = (checkout / "examples" / "launch" / "verl-14b.sh").read_text(encoding="utf-8")
    launch = tmp_path / "train.sh"
    launch.write_text(script.replace("$((BUDGET * 4))", "4096"), encoding="utf-8")
    found = [
        rlsize("diagnose", *names, "--set=cluster.gpu=h100-sxm", "--json").document["rows"]
        for names in ((log, str(launch)), (str(launch), log))
    ]
    assert found[0] == found[1]
    assert found[0]["phases"][0]["verdict"] == "not normal"
    cause = found[0]["causes"][0]
    assert (cause["kind"], cause["change"]) == (
        "micro_batch", "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384",
    )  # fmt: skip


def test_why_nothing_is_usual_is_said(rlsize: Any, tmp_path: Path) -> None:
    """A scenario that names a model and no GPUs tells no times."""
    log = write_colocated(tmp_path / "run.jsonl")
    told = rlsize("diagnose", log, "--set=model=qwen2.5-3b")
    said = " ".join((told.stdout + told.stderr).split())
    assert "What is usual for this loop is not known: gpus is missing; the gpu is missing." in said


def test_lengths_that_other_runs_have_are_no_measure_of_this_one(rlsize: Any, tmp_path: Path) -> None:
    """A log that tells times alone, beside a model and its GPUs: what is usual waits for lengths and samples."""
    log = tmp_path / "run.jsonl"
    log.write_text("".join(f'{{"step": {step}, "data": {{"timing_s/step": 60.0}}}}\n' for step in range(8)))
    told = rlsize("diagnose", str(log), "--set=model=qwen2.5-3b", "--set=cluster.gpu=h100-sxm", "--set=cluster.gpus=8")
    said = " ".join((told.stdout + told.stderr).split())
    assert "What is usual for this loop is not known: response_tokens is missing" in said
    assert "--response-tokens" in said


PRINTED = {
    "actor_rollout_ref": {
        "actor": {"ppo_mini_batch_size": 64, "use_dynamic_bsz": True},
        "model": {"path": "Qwen/Qwen2.5-3B-Instruct"},
        "rollout": {"name": "vllm", "n": 8, "tensor_model_parallel_size": 2},
    },
    "algorithm": {"adv_estimator": "grpo"},
    "data": {"max_prompt_length": 1024, "max_response_length": 4096, "train_batch_size": 64},
    "trainer": {"n_gpus_per_node": 4, "nnodes": 1},
}


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("steps", [12, 20_000])
def test_a_configuration_that_a_log_prints_is_its_launch(rlsize: Any, tmp_path: Path, steps: int) -> None:
    """Phases are judged without a script, however long the log is; what it does not say is asked for by its flag."""
    timed = "timing_s/gen:40.0 - timing_s/old_log_prob:7.0 - timing_s/update_actor:20.0 - timing_s/step:68.0"
    sizes = "response_length/mean:1040.0 - prompt_length/mean:400.0 - perf/total_num_tokens:737280"
    rows = [f"(TaskRunner pid=7) step:{step} - {timed} - {sizes} - {'padding' * 20}:1\n" for step in range(steps)]
    log = tmp_path / "driver.log"
    log.write_text(f"(TaskRunner pid=7) {PRINTED}\n{''.join(rows)}", encoding="utf-8")
    told = rlsize("diagnose", str(log), "--gpu", "a800-sxm", "--json")
    assert {"update", "generation", "logprob"} <= {row["phase"] for row in told.document["rows"]["phases"]}
    if steps == 12:
        assert "give --gpu" in rlsize("diagnose", str(log), "--json").document["headline"]
