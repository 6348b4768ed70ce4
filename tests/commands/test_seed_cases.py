"""The worked examples that the project started from, through the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlsize.units import SECONDS_PER_DAY

Run = Callable[..., Any]
FLEET = ("fleet", "--consume", "39321.6", "--per-instance", "4000", "--batch-tokens", "786432", "--json")


def test_the_matched_fleet(rlsize: Run) -> None:
    """13 instances cover 39,321 tok/s at headroom 0.8; with half as much again generated, 19."""
    base = ("fleet", "--consume", "39321", "--per-instance", "4000", "--json")
    assert rlsize(*base).results["matched_instances"] == 13
    assert rlsize(*base, "--tokens-per-trained-token", "1.5").results["matched_instances"] == 19


def test_eight_instances_leave_the_trainer_idle(rlsize: Run) -> None:
    """Nameplate idle is 1 - 20/24.576, expected idle 34.896 %."""
    results = rlsize(*FLEET, "--instances", "8").results
    assert results["trainer_idle_fraction"] == pytest.approx(1 - 20 / 24.576, abs=1e-12)
    assert results["expected_trainer_idle_fraction"] == pytest.approx(0.34896, abs=1e-5)
    assert results["step_seconds"] == pytest.approx(24.576)


@pytest.mark.parametrize(
    ("instances", "growth", "expected_idle", "expected_growth"),
    [("10", 678.4, 0.18620, 0), ("12", 8678.4, 0.02344, 0), ("13", 12678.4, 0, 2278.4)],
)
def test_idle_and_growth_around_the_match(
    rlsize: Run, instances: str, growth: float, expected_idle: float, expected_growth: float
) -> None:
    """Nameplate and expected imbalance at 10, 12 and 13 instances."""
    results = rlsize(*FLEET, "--instances", instances).results
    assert results["trainer_idle_fraction"] == 0
    assert results["backlog_tokens_per_second"] == pytest.approx(growth)
    assert results["expected_trainer_idle_fraction"] == pytest.approx(expected_idle, abs=1e-5)
    assert results["expected_backlog_tokens_per_second"] == pytest.approx(expected_growth)


def test_a_backlog_without_backpressure(rlsize: Run) -> None:
    """15 instances: 12.4 M tokens after 10 minutes, and two staleness numbers that are not the same."""
    results = rlsize(
        "backlog",
        "--instances",
        "15",
        "--per-instance",
        "4000",
        "--consume",
        "39321.6",
        "--batch-tokens",
        "786432",
        "--seconds",
        "600",
        "--json",
    ).results
    assert results["backlog_tokens_per_second"] == pytest.approx(20678.4)
    assert results["backlog_tokens"] == pytest.approx(12407040)
    assert results["new_sample_staleness_steps"] == pytest.approx(15.78, abs=0.005)
    assert results["oldest_sample_age_steps"] == pytest.approx(10.34, abs=0.005)
    assert results["new_sample_reaches_cap_seconds"] == pytest.approx(38.0, abs=0.05)
    assert results["oldest_sample_reaches_cap_seconds"] == pytest.approx(58.0, abs=0.05)


def test_a_cap_of_k_steps_is_reached_k_times_as_late(rlsize: Run) -> None:
    """38.0 k s and 58.0 k s."""
    results = rlsize(
        "backlog",
        "--instances",
        "15",
        "--per-instance",
        "4000",
        "--consume",
        "39321.6",
        "--batch-tokens",
        "786432",
        "--max-staleness",
        "5",
        "--json",
    ).results
    assert results["new_sample_reaches_cap_seconds"] == pytest.approx(5 * 38.03157, rel=1e-6)
    assert results["oldest_sample_reaches_cap_seconds"] == pytest.approx(5 * 58.03157, rel=1e-6)


def test_the_balanced_split_of_64_gpus(rlsize: Run) -> None:
    """48 rollout and 16 trainer GPUs; all names of the rates work."""
    for rollout, trainer in (
        ("--rollout-tokens-per-second", "--trainer-tokens-per-second"),
        ("--rollout-tps", "--learn-tps"),
    ):
        results = rlsize("split", "--gpus", "64", rollout, "2000", trainer, "6000", "--json").results
        assert (results["rollout_gpus"], results["trainer_gpus"]) == (48, 16)
        assert results["idle_fraction"] == 0
        assert results["bottleneck"] == "balanced"
        assert results["idle_gpus"] == 0
        assert results["rollout_tokens_per_second"] == results["trainer_tokens_per_second"] == 96_000


def test_a_queue_that_the_staleness_budget_allows(rlsize: Run) -> None:
    """(k + 1) B less what is in flight; it absorbs a stall of as many steps."""
    results = rlsize(
        "backlog",
        "--instances",
        "15",
        "--per-instance",
        "4000",
        "--consume",
        "39321.6",
        "--batch-tokens",
        "786432",
        "--max-staleness",
        "2",
        "--samples",
        "512",
        "--in-flight",
        "800",
        "--json",
    ).results
    assert results["queue_allowed_samples"] == 736
    assert results["stall_absorbed_seconds"] == pytest.approx(28.75)


@pytest.mark.parametrize(
    "flags",
    [
        ("--batch-tokens", "786432", "--train-seconds", "20"),
        ("--prompts", "64", "--group", "8", "--response-tokens", "1536", "--train-seconds", "20"),
        ("--consume", "39321.6"),
        ("--consume", f"{39321.6 * SECONDS_PER_DAY} tok/day"),
    ],
)
def test_consumption_composes(rlsize: Run, flags: tuple[str, ...]) -> None:
    """A rate, a batch and a time, or the workload that makes the batch: the same fleet."""
    assert rlsize("fleet", "--per-instance", "4000", *flags, "--json").results["matched_instances"] == 13


@pytest.mark.parametrize(
    "line",
    [
        ("fleet", "--batch-tokens", "786432", "--per-instance", "4000"),
        ("backlog", "--batch-tokens", "786432", "--per-instance", "4000", "--instances", "15"),
        ("split", "--gpus", "64", "--rollout-tps", "2000", "--trainer-tps", "6000"),
        ("iteration", "--rollout-seconds", "12", "--train-seconds", "5"),
    ],
    ids=lambda line: line[0],
)
def test_a_wall_clock_is_not_taken_for_busy_time(rlsize: Run, line: tuple[str, ...]) -> None:
    """--step-seconds is refused, with the flag that says busy time; the help does not offer it."""
    ran = rlsize(*line, "--step-seconds", "24.6")
    assert ran.code == 2
    assert "--train-seconds" in ran.stderr
    assert "--step-seconds" not in rlsize(line[0], "--help").stdout


def test_a_split_that_was_said_is_judged_beside_the_best(rlsize: Run) -> None:
    """32 + 32 GPUs of 2000 and 6000 tok/s run at 64,000 tok/s, the best split at 96,000."""
    base = ("split", "--rollout-tps", "2000", "--trainer-tps", "6000", "--rollout-gpus", "32", "--trainer-gpus", "32")
    ran = rlsize(*base, "--json")
    assert ran.results["loop_tokens_per_second"] == 64_000
    assert (ran.results["best_split_rollout_gpus"], ran.results["best_split_loop_tokens_per_second"]) == (48, 96_000)
    assert 32 in [row["rollout_gpus"] for row in ran.document["rows"]["neighbours"]]
    assert rlsize(*base, "--gpus", "60").code == 2


def test_two_rates_alone_give_the_share_of_gpus(rlsize: Run) -> None:
    """Three rollout GPUs of 2000 tok/s feed a trainer GPU of 6000."""
    results = rlsize("split", "--rollout-tps", "2000", "--trainer-tps", "6000", "--json").results
    assert results["rollout_gpus_fraction"] == 0.75
