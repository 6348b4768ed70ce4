"""Thresholds and windows: they follow the plan, one way only, and a budget goes before them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.commands.alerts.signals import SIGNALS
from rlsize.commands.alerts.thresholds import PlannedLoop, alert_plan
from rlsize.facts.figure import Figure

PLANNED = {
    "step_seconds": 60.0,
    "trainer_idle_fraction": 0.12,
    "sync_fraction": 0.03,
    "staleness_steps": 4.0,
    "samples_per_step": 256.0,
    "tokens_generated_per_trained_token": 1.1,
    "loop_tokens_per_second": 20480.0,
    "loop_tokens_per_gpu_second": 1280.0,
    "gpus": 16.0,
    "instances": 12.0,
    "group_size": 8.0,
    "prompt_tokens": 500.0,
}


def planned(budget: dict[str, float] | None = None, routing: str = "", **changed: Any) -> Any:
    """The alerts of a plan, some of its numbers changed; None takes one away."""
    numbers = {key: value for key, value in {**PLANNED, **changed}.items() if value is not None}
    figures = {
        key: value if isinstance(value, Figure) else Figure(key=key, value=value) for key, value in numbers.items()
    }
    lines = {key: Figure(key=key, value=value, source=f"budget.yaml:2: {key}") for key, value in (budget or {}).items()}
    loop = PlannedLoop(name="plan.yaml", origin="by hand", figures=figures, budget=lines, routing=routing)
    return alert_plan(loop)


def with_(key: str, value: float | None) -> Any:
    """The alerts of the plan with one number changed."""
    changed: dict[str, Any] = {key: value}
    return planned(**changed)


@pytest.mark.parametrize(
    ("signal", "limit"),
    [
        ("idle", 0.17),
        ("sync", 0.06),
        ("queue", 1024.0),  # 4 x 256
        ("age", 4.0),
        ("waste", 1.32),
        ("goodput", 1024.0),
        ("rollout", 20480 * 1.1 * 0.8),
        ("cache", 0.8 * 7 * 496 / (8 * 500)),  # 31 whole blocks of 16, found by 7 of 8
        ("up", 12.0),
    ],
)
def test_a_threshold_follows_its_rule(signal: str, limit: float) -> None:
    """Worked out by hand from the rules in the reference."""
    assert planned().limits[signal].limit.number == pytest.approx(limit)


@settings(max_examples=25)
@given(
    st.sampled_from(
        [
            ("idle", "trainer_idle_fraction", 0.9),
            ("sync", "sync_fraction", 0.4),
            ("queue", "staleness_steps", 64.0),
            ("age", "staleness_steps", 64.0),
            ("waste", "tokens_generated_per_trained_token", 50.0),
            ("goodput", "loop_tokens_per_gpu_second", 1e5),
            ("rollout", "loop_tokens_per_second", 1e9),
            ("cache", "group_size", 64.0),
        ]
    ),
    st.floats(0.02, 1.0),
    st.floats(0.02, 1.0),
)
def test_more_in_the_plan_is_a_higher_threshold(case: tuple[Any, str, float], one: float, other: float) -> None:
    """A plan with more idle, a higher cap or more tokens has a threshold at least as high, on the right side of it."""
    signal, key, most = case
    least = 1.0 if key in {"staleness_steps", "group_size", "tokens_generated_per_trained_token"} else 0.0
    low, high = sorted(least + share * (most - least) for share in (one, other))
    first, second = (with_(key, value).limits[signal] for value in (low, high))
    assert first.limit.number <= second.limit.number * (1 + 1e-12)
    for found in (first, second):
        if found.expected.known:
            beyond = found.limit.number - found.expected.number
            assert beyond >= 0 if found.above else beyond <= 0


@settings(max_examples=25)
@given(st.floats(1e-3, 86400.0), st.floats(1.0, 10.0))
def test_windows_follow_the_step(step: float, times: float) -> None:
    """A longer step has windows at least as long: ten steps and three, and never less than five minutes."""
    short, long = planned(step_seconds=step), planned(step_seconds=step * times)
    assert short.window_seconds == pytest.approx(max(300.0, 10 * step))
    assert short.hold_seconds == pytest.approx(max(300.0, 3 * step))
    assert short.window_seconds <= long.window_seconds


@pytest.mark.parametrize(
    ("quantity", "signal", "value"),
    [
        ("trainer_idle_fraction", "idle", 0.25),
        ("sync_fraction", "sync", 0.2),
        ("staleness_steps", "age", 6.0),
        ("loop_tokens_per_gpu_second", "goodput", 900.0),
    ],
)
def test_a_budget_goes_first(quantity: str, signal: str, value: float) -> None:
    """Its line is the threshold, with the place where it stands."""
    one = planned({quantity: value}).limits[signal]
    assert one.limit.number == value
    assert one.limit.source == f"budget.yaml:2: {quantity}"


def test_a_limit_that_the_plan_breaks_is_told() -> None:
    """So is one that lies within the plan's own band: neither alert would say much."""
    (broken,) = planned({"trainer_idle_fraction": 0.1}).warnings
    assert "12.0 % is above the limit of 10.0 %" in broken
    unsure = Figure(key="trainer_idle_fraction", value=0.12, band=(0.1, 0.3))
    (told,) = planned(trainer_idle_fraction=unsure).warnings
    assert "80 % bands reach past the limits of trainer_idle_fraction" in told
    assert not planned().warnings


def test_only_what_logs_call_waiting_is_idle() -> None:
    """Of 60 s the trainer works 40; a sync of 3 s and 2 s of overhead are no waiting, and a shared pool has none."""
    parts: dict[str, Any] = {"train_seconds": 40.0, "sync_exposed_seconds": 3.0, "overhead_seconds": 2.0}
    idle = Figure(key="trainer_idle_fraction", value=20 / 60, band=(0.05, 0.4))
    one = planned(trainer_idle_fraction=idle, **parts).limits["idle"]
    assert one.expected.number == pytest.approx(15 / 60)
    assert one.expected.band == pytest.approx((0.0, 0.4 - 5 / 60))
    assert one.limit.number == pytest.approx(15 / 60 + 0.05)
    shared = Figure(key="mode", value="colocated")
    assert "neither side waits" in planned(mode=shared, **parts).left_out["idle"]


@pytest.mark.parametrize("key", [key for key in PLANNED if key != "step_seconds"])
def test_what_a_plan_lacks_is_left_out_with_a_reason(key: str) -> None:
    """Each signal has either a limit or a reason."""
    found = with_(key, None)
    assert not set(found.limits) & set(found.left_out)
    assert set(found.limits) | set(found.left_out) == set(SIGNALS)
    assert found.left_out


def test_other_routing_finds_less_in_the_cache() -> None:
    """A group that is spread over instances finds its prompt less often, and in turn least."""
    limits = [planned(routing=name).limits["cache"].limit.number for name in ("affine", "random")]
    assert limits[0] > limits[1] > 0
    assert "cache" in planned(routing="round-robin").left_out
