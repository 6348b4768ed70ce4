"""A training log as means of its settled steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.run_summary import run_summary
from rlsize.facts.run_log import RunLog, RunMode, StepRecord


def log(seconds: list[float], mode: RunMode = "async", **fields: Any) -> RunLog:
    """Steps of these lengths, with the same fields each."""
    steps = tuple(StepRecord(step=place, step_seconds=value, **fields) for place, value in enumerate(seconds, 1))
    return RunLog(source="a.log", framework="verl", form="console", mode=mode, steps=steps)


STEP: dict[str, Any] = {"wait_seconds": 4.0, "logprob_seconds": 3.0, "update_seconds": 12.0, "sync_seconds": 1.0}


def test_the_parts_of_a_step_are_added_and_shared_out() -> None:
    """By hand: 20 s of which 15 s are work, 4 s waiting, 1 s sync; 30,000 tokens."""
    found = run_summary(log([20.0] * 12, **STEP, response_tokens=30_000.0))
    values = {key: figure.number for key, figure in found.figures.items()}
    assert values["train_seconds"] == 15.0
    assert values["other_seconds"] == 0.0
    assert values["trainer_idle_fraction"] == pytest.approx(0.2)
    assert values["sync_pause_fraction"] == pytest.approx(0.05)
    assert values["consumption_tokens_per_second"] == pytest.approx(2000.0)
    assert values["trained_tokens_per_second"] == pytest.approx(1500.0)


def test_what_rounding_leaves_of_a_step_is_nothing() -> None:
    """0.1 + 0.2 and 0.3 differ in the last bit of a double; no log means a phase by it."""
    found = run_summary(log([0.1 + 0.2] * 12, wait_seconds=0.0, update_seconds=0.3))
    assert found.figure("other_seconds").number == 0.0


def test_in_turn_the_trainer_waits_while_samples_are_made() -> None:
    """And the fleet's rate is the log's to tell: 30,000 tokens in 10 s."""
    found = run_summary(log([20.0] * 12, "synchronous", generation_seconds=10.0, response_tokens=30_000.0))
    assert found.figures["fleet_tokens_per_second"].number == pytest.approx(3000.0)
    assert found.figures["trainer_idle_fraction"].number == pytest.approx(0.5)


def test_shared_gpus_have_no_idle_trainer() -> None:
    """Generation is another phase of the same GPUs."""
    found = run_summary(log([20.0] * 12, "colocated", generation_seconds=10.0, update_seconds=9.0))
    assert "trainer_idle_fraction" not in found.figures
    assert found.figures["other_seconds"].number == pytest.approx(1.0)


def test_rows_of_several_steps_count_per_step() -> None:
    """Four optimizer steps in a row of 80 s are 20 s each."""
    found = run_summary(log([80.0] * 12, **{key: 4 * value for key, value in STEP.items()}, updates=4.0))
    assert found.figures["step_seconds"].number == 20.0
    assert found.figures["train_seconds"].number == 15.0


def test_warm_up_and_outliers_are_set_apart_and_named() -> None:
    """Two slow steps at the start, one with a checkpoint in the middle; a slightly slow one counts."""
    seconds = [90.0, 40.0, *[20.0 + place % 3 for place in range(27)], 28.0]
    seconds[15] = 300.0
    found = run_summary(log(seconds))
    assert [(apart.why, apart.steps) for apart in found.set_apart] == [
        ("warm-up", (1, 2)),
        ("far slower than the others", (16,)),
    ]
    assert found.set_apart[0].seconds == 130.0
    assert found.figures["step_seconds"].number == pytest.approx(21.2, abs=0.2)


def test_warm_up_is_left_out_as_asked() -> None:
    """Never all steps."""
    assert run_summary(log([20.0] * 12), 5).steps == (6, 7, 8, 9, 10, 11, 12)
    assert run_summary(log([20.0] * 3), 99).steps == (3,)


def test_a_field_that_some_steps_lack_is_the_mean_of_the_others() -> None:
    """One step of twelve without a wait: the others' mean, which is told; where most lack it, nobody knows."""
    whole = log([20.0] * 12, **STEP)
    for lacking, known in ((1, True), (6, True), (7, False)):
        without = [replace(step, wait_seconds=None) for step in whole.steps[-lacking:]]
        found = run_summary(replace(whole, steps=(*whole.steps[:-lacking], *without)))
        assert ("wait_seconds" in found.figures) == known
        assert any("not all settled steps have wait_seconds" in text for text in found.warnings) == known
        assert found.figures["step_seconds"].number == 20.0
        if known:
            assert found.figures["wait_seconds"].number == pytest.approx(4.0)


def test_times_that_cannot_be_are_not_taken_for_measured() -> None:
    """Steps without duration, or longer than anything: no rate is worked out of them, and nothing overflows."""
    for seconds in (0.0, 1e300):
        found = run_summary(log([seconds] * 12, update_seconds=seconds, response_tokens=30_000.0))
        assert not {"step_seconds", "train_seconds", "consumption_tokens_per_second"} & set(found.figures)
        assert found.figures["batch_tokens"].number == 30_000.0


def test_what_is_counted_up_begins_with_the_second_row() -> None:
    """The first row has no difference; it is set apart, so that the others' means are not lost."""
    whole = log([20.0] * 12, **STEP, response_tokens=30_000.0)
    counted = replace(whole, steps=(replace(whole.steps[0], response_tokens=None), *whole.steps[1:]))
    found = run_summary(counted)
    assert found.figures["batch_tokens"].number == 30_000.0
    assert found.set_apart[0].steps == (1,)


def test_what_must_fit_is_the_most_of_all_steps() -> None:
    """Peaks of memory have no mean; how they vary is told."""
    rows = [StepRecord(step=step, step_seconds=9.0, peak_allocated_bytes=held) for step, held in enumerate((4e9, 6e9))]
    found = run_summary(replace(log([9.0, 9.0]), steps=tuple(rows)), 0).figure("peak_allocated_bytes")
    assert (found.number, found.deviation) == (6e9, 1e9)


def test_few_steps_are_doubted() -> None:
    """Three are an anecdote."""
    assert "only 3 settled steps" in run_summary(log([20.0] * 3)).warnings[0]


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=60))
def test_every_step_counts_or_is_set_apart(seconds: list[float]) -> None:
    """None is lost, and the mean lies within the steps that count."""
    found = run_summary(log(seconds))
    apart = [step for one in found.set_apart for step in one.steps]
    assert sorted([*found.steps, *apart]) == list(range(1, len(seconds) + 1))
    assert found.steps
    kept = [seconds[step - 1] for step in found.steps]
    assert min(kept) * (1 - 1e-9) <= found.figures["step_seconds"].number <= max(kept) * (1 + 1e-9)
