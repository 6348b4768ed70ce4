"""One iteration, laid out as sync, overlapped or colocated."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.figure import Figure, absent
from rlsize.planner.iteration import IterationQuestion, Source, break_even_swap, mode_rows, plan_iteration

seconds = st.floats(min_value=1e-3, max_value=1e5)
GROUPS = {
    "samples_per_step": 256.0,
    "instances": 8.0,
    "group_size": 8.0,
    "group_seconds": 3.0,
    "train_seconds": 15.0,
    "sync_seconds": 1.0,
}


def asked(mode: str, source: Source, **values: float) -> IterationQuestion:
    """An iteration of which so much is known; the sizes of its pools by the flags that give them."""
    usual = {"tokens_generated_per_trained_token": 1.0, "sync_seconds": 0.0} | values
    lacking = {
        key: absent(key, flag)
        for key, flag in (
            ("rollout_gpus", "--rollout-gpus"),
            ("trainer_gpus", "--trainer-gpus"),
            ("swap_seconds", "--swap-seconds"),
        )
    }
    known = lacking | {key: Figure(key=key, value=value) for key, value in usual.items()}
    return IterationQuestion(mode=mode, source=source, known=known)


def said(mode: str, rollout: float, train: float, sync: float = 0.0, **more: float) -> IterationQuestion:
    """An iteration whose times were said."""
    times = {"rollout_seconds": rollout, "train_seconds": train, "sync_seconds": sync}
    return asked(mode, "said", samples_per_step=256, **times, **more)


def on(rollout: int, trainer: int) -> dict[str, float]:
    """Pools of so many GPUs."""
    return {"rollout_gpus": rollout, "trainer_gpus": trainer}


def found(question: IterationQuestion) -> dict[str, Figure]:
    """The results by key."""
    return {entry.key: entry for entry in plan_iteration(question)}


def rows(question: IterationQuestion) -> dict[str, dict[str, Any]]:
    """The rows by mode."""
    return {row["mode"]: row for row in mode_rows(question)}


def test_the_lessons_groups() -> None:
    """8 instances make a group of 8 in 3 s: 21.33 samples a second, 256 in 12 s, 17 s with the training."""
    groups = {"samples_per_step": 256, "instances": 8, "group_size": 8, "group_seconds": 3}
    results = found(asked("sync", "groups", **groups, train_seconds=5))
    assert results["completions_per_second"].number == pytest.approx(64 / 3)
    assert results["rollout_seconds"].number == pytest.approx(12)
    assert results["iteration_seconds"].number == pytest.approx(17)
    assert results["iterations_per_day"].number == pytest.approx(86400 / 17)
    assert results["rollout_fraction"].number == pytest.approx(12 / 17)


def test_a_token_rate_is_shown_as_it_is_and_derated() -> None:
    """8 x 4000 tok/s and 1500 tokens a sample: 512 samples in 24 s, in 30 s at headroom 0.8."""
    rate = {"instances": 8, "instance_tokens_per_second": 4000, "headroom": 0.8, "response_tokens": 1500}
    results = found(asked("overlapped", "rate", samples_per_step=512, **rate, train_seconds=20, sync_seconds=3))
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
    row = rows(said("sync", 12.0, 5.0, swap_seconds=3.0, **on(32, 32)))["colocated"]
    assert row["iteration_seconds"].number == pytest.approx(11.5)
    assert row["rollout_idle_fraction"].number == row["trainer_idle_fraction"].number == pytest.approx(3 / 11.5)


def test_without_the_pools_sizes_the_other_kind_of_mode_is_unknown() -> None:
    """Times of shared GPUs say nothing about pools, and the other way round."""
    swap = 3.0
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
    pools = on(rollout_gpus, trainer_gpus)
    swap = break_even_swap(said("overlapped", rollout, train, sync, **pools))
    found_rows = rows(said("overlapped", rollout, train, sync, swap_seconds=swap.number, **pools))
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
    speedup = found(said("colocated", 12.0, 5.0, swap_seconds=3.0))["speedup_from_doubling_trainer"]
    assert not speedup.known
    assert "share" in speedup.missing


@pytest.mark.parametrize(
    ("mode", "verify", "workers"),
    [
        ("sync", 2.0, 43),  # 21.33 samples a second while they come, 42.7 workers
        ("overlapped", 2.0, 32),  # the trainer takes 256 samples every 16 s
        ("overlapped", 2.05, 33),
        ("sync", 0.001, 1),
    ],
)
def test_verifiers_keep_up_with_the_samples(mode: str, verify: float, workers: int) -> None:
    """In whole workers, rounded up; a worker at least."""
    results = found(asked(mode, "groups", **GROUPS, verify_seconds=verify))
    assert results["verifier_workers"].value == workers
    assert isinstance(results["verifier_workers"].value, int)


def test_without_a_verify_time_no_worker_is_counted() -> None:
    """Not even zero of them."""
    assert "verifier_workers" not in found(asked("sync", "groups", **GROUPS))


def test_samples_meant_as_prompts_take_a_group_each() -> None:
    """256 prompts of 8 are 2048 samples and 96 s."""
    flow = asked("sync", "groups", **GROUPS).flow()
    assert flow["as_prompts_samples"].value == 2048
    assert flow["as_prompts_rollout_seconds"].number == pytest.approx(96)


def test_uncertain_train_seconds_give_bands() -> None:
    """Of the iteration, not of the rollout."""
    question = asked("sync", "groups", **GROUPS)
    known = {**question.known, "train_seconds": Figure(key="train_seconds", value=15, deviation=2)}
    results = {figure.key: figure for figure in plan_iteration(replace(question, known=known), Random(0))}
    band = results["iteration_seconds"].band
    assert band is not None
    assert band[0] < 28 < band[1]
    assert results["rollout_seconds"].band is None
