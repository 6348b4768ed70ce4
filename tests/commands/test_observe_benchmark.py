"""The report about benchmark results: its headline, its tables, and its warnings."""

from __future__ import annotations

from dataclasses import replace

from rlsize.commands.observe.benchmark import bench_report
from rlsize.estimates.bench_rates import benchmark_rates
from rlsize.facts.benchmark_result import BenchmarkResult
from rlsize.reports.report import Report

RUN = BenchmarkResult(
    source="a.json",
    tool="vllm bench serve",
    requests=640.0,
    duration_seconds=200.0,
    response_tokens=1_280_300.0,
    prompt_tokens=128_000.0,
    response_tokens_per_second=6401.5,
    concurrency=64.0,
    sent_at_once=True,
    holds_ramp=True,
    holds_tail=True,
    seconds_per_token=0.0095,
    keys={"response_tokens_per_second": "output_throughput", "requests": "completed"},
    warnings=("mind this",),
)
TRAINER = BenchmarkResult(
    source="t.json", tool="prime-rl benchmark", trainer_tokens_per_second=65536.0, trainer_gpus=8.0, mfu=0.4
)


def report(*runs: BenchmarkResult) -> Report:
    """The report on these runs."""
    return bench_report(runs, benchmark_rates(runs, None, 4.0, "2026-03-02", "observe"), ())


def test_the_headline_is_the_rate_and_how_it_came_about() -> None:
    """A lower bound says so."""
    assert report(RUN).headline == "6,401.5 tok/s per instance: vllm bench serve, 64 requests in flight."
    assert report(replace(RUN, failed_requests=3.0)).headline.startswith("At least 6,401.5 tok/s per instance")


def test_results_have_the_rate_per_gpu_and_the_headroom_left() -> None:
    """Two of five parts are in the rate: 0.8 to the power of three fifths."""
    values = {figure.key: figure.value for figure in report(RUN).results}
    assert values["instance_tokens_per_second"] == 6401.5
    assert values["rollout_gpu_tokens_per_second"] == 6401.5 / 4
    assert values["headroom"] == 0.8**0.6
    assert "Headroom 0.8747 is left for sync pauses, stragglers and drift." in report(RUN).notes[0]


def test_runs_and_keys_have_their_tables() -> None:
    """The run that counts is marked, and each key says what it counts."""
    slower = replace(RUN, source="b.json", concurrency=32.0, response_tokens_per_second=6000.5, response_tokens=None)
    tables = report(slower, RUN).tables
    assert tables["runs"].marked == 1
    assert [row["used"] for row in tables["runs"].rows] == [False, True]
    assert [(row["key"], row["counts"]) for row in tables["keys"].rows] == [
        ("output_throughput", "response tokens, ramp and tail of the run in it"),
        ("completed", "requests that finished"),
    ]
    assert report(slower, RUN).chart is not None
    assert report(RUN).chart is None


def test_every_warning_is_told_once() -> None:
    """Those of the run that counts as they are, those of others with their file."""
    told = report(RUN, replace(RUN, source="b.json", concurrency=8.0, warnings=("mind this", "and that"))).warnings
    assert told.count("mind this") == 1
    assert "b.json: and that" in told


def test_a_trainer_s_benchmark_is_reported_as_one() -> None:
    """It has no rollout rate, and no table pretends so."""
    found = bench_report([TRAINER], None, ())
    assert found.headline.startswith("The trainer takes 65,536 tok/s of packed tokens on 8 GPUs")
    assert {figure.key: figure.value for figure in found.results} == {
        "trainer_packed_tokens_per_second": 65536.0,
        "trainer_gpus": 8.0,
        "mfu": 0.4,
    }
