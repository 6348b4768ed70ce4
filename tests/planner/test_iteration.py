"""One iteration, laid out as sync, overlapped or colocated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.figure import Figure
from rlsize.planner.iteration import IterationQuestion, break_even_swap, iteration_results, mode_rows

seconds = st.floats(min_value=1e-3, max_value=1e5)


def figure(key: str, value: float) -> Figure:
    """A given figure."""
    return Figure(key=key, value=value)


def said(mode: str, rollout: float, train: float, sync: float = 0.0, **more: Any) -> IterationQuestion:
    """An iteration whose times were said."""
    asked = IterationQuestion(
        mode=mode,
        source="said",
        samples=figure("samples_per_step", 256),
        rollout_seconds=figure("rollout_seconds", rollout),
        train_seconds=figure("train_seconds", train),
        sync_seconds=figure("sync_seconds", sync),
    )
    return replace(asked, **more)


def on(rollout: int, trainer: int) -> dict[str, Any]:
    """Pools of so many GPUs."""
    return {"rollout_gpus": figure("rollout_gpus", rollout), "trainer_gpus": figure("trainer_gpus", trainer)}


def found(asked: IterationQuestion) -> dict[str, Figure]:
    """The results by key."""
    return {entry.key: entry for entry in iteration_results(asked)}


def rows(asked: IterationQuestion) -> dict[str, dict[str, Any]]:
    """The rows by mode."""
    return {row["mode"]: row for row in mode_rows(asked)}


def test_the_lessons_groups() -> None:
    """8 instances make a group of 8 in 3 s: 21.33 samples a second, 256 in 12 s, 17 s with the training."""
    asked = IterationQuestion(
        mode="sync",
        source="groups",
        samples=figure("samples_per_step", 256),
        instances=figure("instances", 8),
        group_size=figure("group_size", 8),
        group_seconds=figure("group_seconds", 3),
        train_seconds=figure("train_seconds", 5),
        sync_seconds=figure("sync_seconds", 0.0),
    )
    results = found(asked)
    assert results["completions_per_second"].number == pytest.approx(64 / 3)
    assert results["rollout_seconds"].number == pytest.approx(12)
    assert results["iteration_seconds"].number == pytest.approx(17)
    assert results["iterations_per_day"].number == pytest.approx(86400 / 17)
    assert results["rollout_fraction"].number == pytest.approx(12 / 17)


def test_a_token_rate_is_shown_as_it_is_and_derated() -> None:
    """8 x 4000 tok/s and 1500 tokens a sample: 512 samples in 24 s, in 30 s at headroom 0.8."""
    asked = IterationQuestion(
        mode="overlapped",
        source="rate",
        samples=figure("samples_per_step", 512),
        instances=figure("instances", 8),
        instance_rate=figure("instance_tokens_per_second", 4000),
        headroom=figure("headroom", 0.8),
        response_tokens=figure("response_tokens", 1500),
        train_seconds=figure("train_seconds", 20),
        sync_seconds=figure("sync_seconds", 3),
    )
    results = found(asked)
    assert (results["rollout_seconds"].number, results["expected_rollout_seconds"].number) == pytest.approx((24, 30))
    assert (results["iteration_seconds"].number, results["expected_iteration_seconds"].number) == pytest.approx(
        (27, 33)
    )


def test_who_waits_in_each_mode() -> None:
    """12 s, 5 s and a sync of 1 s: in turn each waits for the other and the sync, overlapped one for the sync only."""
    found_rows = rows(said("sync", 12.0, 5.0, 1.0))
    sync, overlapped = found_rows["sync"], found_rows["overlapped"]
    assert sync["iteration_seconds"].value == 18
    assert sync["rollout_idle_fraction"].number == pytest.approx(6 / 18)
    assert sync["trainer_idle_fraction"].number == pytest.approx(13 / 18)
    assert overlapped["iteration_seconds"].value == 13
    assert overlapped["rollout_idle_fraction"].number == pytest.approx(1 / 13)
    assert overlapped["trainer_idle_fraction"].number == pytest.approx(8 / 13)


def test_a_colocated_loop_runs_both_phases_on_all_gpus() -> None:
    """32 and 32 GPUs: 12 s become 6, 5 become 2.5; a swap of 3 s both ways makes 11.5, in which all GPUs wait 3 s."""
    row = rows(said("sync", 12.0, 5.0, swap_seconds=figure("swap_seconds", 3.0), **on(32, 32)))["colocated"]
    assert row["iteration_seconds"].number == pytest.approx(11.5)
    assert row["rollout_idle_fraction"].number == row["trainer_idle_fraction"].number == pytest.approx(3 / 11.5)


def test_without_the_pools_sizes_the_other_kind_of_mode_is_unknown() -> None:
    """Times of shared GPUs say nothing about pools, and the other way round."""
    swap = figure("swap_seconds", 3.0)
    apart = rows(said("sync", 12.0, 5.0, swap_seconds=swap))
    assert apart["colocated"]["needs"] == "--rollout-gpus, --trainer-gpus"
    shared = rows(said("colocated", 12.0, 5.0, swap_seconds=swap))
    assert shared["colocated"]["iteration_seconds"].value == 20
    assert shared["sync"]["needs"] == shared["overlapped"]["needs"] == "--rollout-gpus, --trainer-gpus"


def test_a_colocated_loop_without_a_swap_time_is_not_told() -> None:
    """No swap time is ever assumed."""
    assert rows(said("colocated", 12.0, 5.0))["colocated"]["needs"] == "--swap-seconds"


@given(seconds, seconds, seconds, st.integers(1, 512), st.integers(1, 512))
def test_at_the_break_even_swap_colocated_and_overlapped_take_as_long(
    rollout: float, train: float, sync: float, rollout_gpus: int, trainer_gpus: int
) -> None:
    """Whatever the pools; a negative one says that no swap is quick enough."""
    asked = said("overlapped", rollout, train, sync, **on(rollout_gpus, trainer_gpus))
    swap = break_even_swap(asked)
    found_rows = rows(replace(asked, swap_seconds=swap))
    assert found_rows["colocated"]["iteration_seconds"].number == pytest.approx(
        found_rows["overlapped"]["iteration_seconds"].number
    )


@given(seconds, seconds, seconds)
def test_overlap_never_hurts_and_at_best_halves(rollout: float, train: float, sync: float) -> None:
    """The longer phase lies between half of the sum and the sum."""
    found_rows = rows(said("sync", rollout, train, sync))
    in_turn, overlapped = (found_rows[mode]["iteration_seconds"].number for mode in ("sync", "overlapped"))
    assert in_turn / 2 * (1 - 1e-9) <= overlapped <= in_turn * (1 + 1e-9)


def test_doubling_the_trainer_of_a_rollout_bound_loop_barely_helps() -> None:
    """In turn 80 s and 20 s: 1.11 times; overlapped not at all."""
    assert found(said("sync", 80.0, 20.0))["speedup_from_doubling_trainer"].number == pytest.approx(100 / 90)
    assert found(said("sync", 80.0, 20.0))["speedup_from_doubling_rollout"].number == pytest.approx(100 / 60)
    assert found(said("overlapped", 80.0, 20.0))["speedup_from_doubling_trainer"].number == pytest.approx(1)
    assert found(said("overlapped", 80.0, 20.0))["speedup_from_doubling_rollout"].number == pytest.approx(2)


def test_a_colocated_loop_has_no_pool_to_double() -> None:
    """The reason says so."""
    speedup = found(said("colocated", 12.0, 5.0, swap_seconds=figure("swap_seconds", 3.0)))[
        "speedup_from_doubling_trainer"
    ]
    assert not speedup.known
    assert "share" in speedup.missing
