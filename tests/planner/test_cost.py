"""Cost of a step, a sample, a million tokens, a day and a run."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.figure import Figure
from rlsize.planner.cost import costs, pool_rows, price_step


def figure(key: str, value: float, deviation: float = 0.0) -> Figure:
    """A given figure."""
    return Figure(key=key, value=value, deviation=deviation)


def question(**more: Figure) -> dict[str, Figure]:
    """32 + 32 GPUs at 2 and 3 dollars, steps of 36 s."""
    usual = {
        "rollout_gpus": 32,
        "trainer_gpus": 32,
        "step_seconds": 36.0,
        "rollout_gpu_hour_usd": 2.0,
        "trainer_gpu_hour_usd": 3.0,
        "preemptible_fraction": 0.0,
        "lost_fraction": 0.0,
    }
    return {key: figure(key, value) for key, value in usual.items()} | more


def found(asked: dict[str, Figure]) -> dict[str, Figure]:
    """The results by key."""
    return {entry.key: entry for entry in price_step(asked)}


def rows(asked: dict[str, Figure]) -> dict[str, dict[str, Any]]:
    """GPUs, price and cost by pool."""
    return {row["pool"]: row for row in pool_rows(costs(asked))}


def test_a_step_by_hand() -> None:
    """A hundredth of an hour: 0.32 GPU-hours at 2 and 0.32 at 3 dollars."""
    results = found(question())
    assert results["gpu_hours_per_step"].number == pytest.approx(0.64)
    assert results["rollout_cost_per_step_usd"].number == pytest.approx(0.64)
    assert results["trainer_cost_per_step_usd"].number == pytest.approx(0.96)
    assert results["cost_per_step_usd"].number == pytest.approx(1.60)
    assert results["steps_per_day"].value == 2400
    assert results["cost_per_day_usd"].number == pytest.approx(1.60 * 2400)


def test_samples_tokens_and_runs_by_hand() -> None:
    """512 samples of 1536 tokens, 1000 steps."""
    results = found(
        question(
            samples_per_step=figure("samples_per_step", 512),
            batch_tokens=figure("batch_tokens", 786432),
            steps=figure("steps", 1000),
        )
    )
    assert results["cost_per_sample_usd"].number == pytest.approx(0.003125)
    assert results["cost_per_million_trained_tokens_usd"].number == pytest.approx(1.6 / 0.786432)
    assert results["cost_per_run_usd"].number == pytest.approx(1600)
    assert results["run_seconds"].value == 36000
    assert results["gpu_hours_per_run"].number == pytest.approx(640)
    assert results["goodput_tokens_per_gpu_second"].number == pytest.approx(786432 / (36 * 64))


def test_no_price_is_ever_assumed() -> None:
    """Dollars are missing and say which flag, GPU-hours and goodput are there."""
    none = Figure(key="gpu_hour_usd", value=None, missing="--gpu-hour")
    results = found(
        question(rollout_gpu_hour_usd=none, trainer_gpu_hour_usd=none, batch_tokens=figure("batch_tokens", 786432))
    )
    money = {key: entry for key, entry in results.items() if key.endswith("_usd")}
    assert money
    assert all(not entry.known and "--gpu-hour" in entry.missing for key, entry in money.items() if "idle" not in key)
    assert results["gpu_hours_per_step"].known
    assert results["goodput_tokens_per_gpu_second"].known


def test_preemptible_rollouts_are_priced_by_useful_hours() -> None:
    """Three quarters at 0.9 dollars of which a tenth is lost, so 1 dollar: 0.25 x 2 + 0.75 x 1."""
    asked = question(
        preemptible_fraction=figure("preemptible_fraction", 0.75),
        preemptible_gpu_hour_usd=figure("preemptible_gpu_hour_usd", 0.9),
        lost_fraction=figure("lost_fraction", 0.1),
    )
    assert rows(asked)["rollout"]["gpu_hour_usd"].number == pytest.approx(1.25)
    assert rows(asked)["trainer"]["gpu_hour_usd"].value == 3.0
    assert costs(asked)["on_demand_rollout_cost_per_step_usd"].number == pytest.approx(0.64)


def test_a_fleet_all_preemptible_needs_no_other_price() -> None:
    """Its own is enough."""
    asked = question(
        rollout_gpu_hour_usd=Figure(key="rollout_gpu_hour_usd", value=None, missing="--rollout-gpu-hour"),
        preemptible_fraction=figure("preemptible_fraction", 1.0),
        preemptible_gpu_hour_usd=figure("preemptible_gpu_hour_usd", 1.0),
    )
    assert found(asked)["rollout_cost_per_step_usd"].number == pytest.approx(0.32)


def test_a_colocated_loop_has_one_pool() -> None:
    """No rollout GPUs, so no price for them."""
    none = Figure(key="rollout_gpu_hour_usd", value=None, missing="--rollout-gpu-hour")
    results = found(question(rollout_gpus=figure("rollout_gpus", 0), rollout_gpu_hour_usd=none))
    assert results["rollout_cost_per_step_usd"].value == 0
    assert results["cost_per_step_usd"].number == pytest.approx(0.96)


def test_waiting_is_paid_for() -> None:
    """A quarter of the trainer's 0.96 dollars; both pools only where both are known."""
    asked = question(trainer_idle_fraction=figure("trainer_idle_fraction", 0.25))
    assert found(asked)["trainer_idle_cost_per_step_usd"].number == pytest.approx(0.24)
    assert not rows(asked)["both"]["idle_cost_per_step_usd"].known
    asked |= {"rollout_idle_fraction": figure("rollout_idle_fraction", 0.5)}
    assert rows(asked)["both"]["idle_cost_per_step_usd"].number == pytest.approx(0.24 + 0.32)


def test_train_seconds_and_the_trainers_wait_make_the_step() -> None:
    """27 s at a quarter idle are 36 s; an uncertain 27 s gives bands."""
    asked = question(
        step_seconds=Figure(key="step_seconds", value=None, missing="--step-seconds"),
        train_seconds=figure("train_seconds", 27.0, deviation=2.0),
        trainer_idle_fraction=figure("trainer_idle_fraction", 0.25),
    )
    results = {entry.key: entry for entry in price_step(asked, Random(0))}
    assert results["step_seconds"].number == pytest.approx(36)
    band = results["cost_per_step_usd"].band
    assert band is not None
    assert band[0] < 1.6 < band[1]


@given(
    st.integers(0, 4096),
    st.integers(1, 4096),
    st.floats(min_value=0, max_value=100),
    st.floats(min_value=0, max_value=100),
    st.floats(min_value=0.01, max_value=1e5),
)
def test_the_pools_add_up(rollout: int, trainer: int, first: float, second: float, step: float) -> None:
    """Whatever they cost."""
    asked = question(
        rollout_gpus=figure("rollout_gpus", rollout),
        trainer_gpus=figure("trainer_gpus", trainer),
        rollout_gpu_hour_usd=figure("rollout_gpu_hour_usd", first),
        trainer_gpu_hour_usd=figure("trainer_gpu_hour_usd", second),
        step_seconds=figure("step_seconds", step),
    )
    parts = [rows(asked)[pool]["cost_per_step_usd"].number for pool in ("rollout", "trainer")]
    assert rows(asked)["both"]["cost_per_step_usd"].number == pytest.approx(sum(parts))
