"""The plain model in cases that can be worked out by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from tests.simulator.plain_model import PlainStep, plain_run
from tests.simulator.small_scenarios import Scenario, small_scenarios
from tests.simulator.tables import Table

from rlsize.simulator.setting import (
    EngineSetting,
    LengthSetting,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    WorkSetting,
)


def setting(rules: RuleSetting, sync: SyncSetting | None = None, groups: int = 2, **engine: Any) -> Setting:
    """One instance with t0 = 1 s and a trainer that needs 0.5 s for a token, at two samples to a group."""
    return Setting(
        engine=EngineSetting(**{"instances": 1, "slots": 8, "fixed_seconds": 1.0, **engine}),
        work=WorkSetting(groups=groups, group_size=2, lengths=LengthSetting(mean=4.0 / groups), prompt_tokens=3),
        trainer=TrainerSetting(seconds=4.0),
        sync=SyncSetting(seconds=1.5) if sync is None else sync,
        rules=rules,
    )


def seconds(steps: list[PlainStep]) -> list[float]:
    """Duration of every step. [s]"""
    ends = [0.0, *(step.end_seconds for step in steps)]
    return [after - before for before, after in pairwise(ends)]


def test_a_batch_all_together_takes_t0_of_its_longest_and_t1_of_all_its_tokens() -> None:
    """Sync: T = t0 × longest + t1 × tokens, then training and transport: 3 + 0.25 × 8, 4, 1.5 s."""
    steps = plain_run(setting(RuleSetting(), sample_seconds=0.25), Table(((2, 3), (1, 2))), 3)
    assert seconds(steps) == [10.5] * 3
    assert {(step.waiting_seconds, step.train_seconds, step.sync_seconds) for step in steps} == {(5.0, 4.0, 1.5)}
    assert {(step.staleness, step.trained_tokens, step.backlog_samples) for step in steps} == {((0,) * 4, 8, 0)}
    assert [step.generated_tokens for step in steps] == [8, 16, 24]
    assert [step.engine_busy_seconds for step in steps] == [5.0, 10.0, 15.0]


@pytest.mark.parametrize(("slots", "generation"), [(8, 2.0), (1, 8.0)])
def test_one_step_off_takes_the_longer_of_generation_and_training(slots: int, generation: float) -> None:
    """T = max(T_r, T_t) + sync after a first batch of T_r; from the second step on, samples are one version old."""
    steps = plain_run(setting(RuleSetting(mode="one-step-off"), slots=slots), Table(((2, 2),)), 4)
    period = max(generation, 4.0) + 1.5
    assert seconds(steps) == [generation + period, period, period, period]
    assert [step.staleness for step in steps] == [(0,) * 4, (1,) * 4, (1,) * 4, (1,) * 4]


def test_async_without_staleness_is_sync() -> None:
    """With k = 0 and a batch that fits the slots, nothing is admitted before the weights are there."""
    rows = Table(((2, 3), (1, 2), (4, 1)))
    rules = RuleSetting(mode="async", max_staleness=0)
    assert plain_run(setting(rules), rows, 4) == plain_run(setting(RuleSetting()), rows, 4)


def test_colocated_changes_over_twice() -> None:
    """Generation 2 s, change-over 0.25 s, training 4 s, change-over 0.25 s; no transport."""
    sync = SyncSetting(seconds=1.5, swap_seconds=0.25)
    steps = plain_run(setting(RuleSetting(mode="colocated"), sync), Table(((2, 2),)), 2)
    assert seconds(steps) == [6.5, 6.5]
    assert [step.sync_seconds for step in steps] == [0.5, 0.5]


def test_contexts_count_as_they_are_before_the_step() -> None:
    """Two samples of 2 and 1 tokens after a prompt of 3: t2 × (3 + 3), then t2 × 4."""
    (step,) = plain_run(setting(RuleSetting(), groups=1, kv_seconds=0.125), Table(((2, 1),)), 1)
    assert step.waiting_seconds == 2 + 0.125 * 10


@pytest.mark.parametrize(("instances", "generation"), [(1, 1.5 + 4), (2, 1.5 + 2)])
def test_a_prompt_is_computed_once_on_an_instance(instances: int, generation: float) -> None:
    """With a slot per instance: the second sample finds the prompt on the same instance, not on another."""
    engine: Any = {"instances": instances, "slots": 1, "prefill_seconds": 0.5, "routing": "round-robin"}
    (step,) = plain_run(setting(RuleSetting(), groups=1, **engine), Table(((2, 2),)), 1)
    assert step.waiting_seconds == generation


def test_a_full_cache_preempts_the_last() -> None:
    """A prompt of 3 and 3 + 3 tokens are more than 8: the second goes on after the first, and computes its 2 tokens."""
    engine: Any = {"kv_tokens": 8.0, "prefill_seconds": 0.5}
    (step,) = plain_run(setting(RuleSetting(), groups=1, **engine), Table(((4, 4),)), 1)
    assert step.waiting_seconds == 6 + 0.5 * (3 + 2)
    assert (step.preemptions, step.generated_tokens) == (1, 8)


def test_a_rejected_group_is_replaced() -> None:
    """Group 0 is thrown away after 2 s; group 1 comes in its place for 3 s."""
    (step,) = plain_run(setting(RuleSetting(), groups=1), Table(((2, 2), (3, 1)), frozenset({0})), 1)
    assert (step.waiting_seconds, step.trained_tokens, step.dropped_tokens) == (5.0, 4, 4)


def test_oversampling_drops_what_is_late() -> None:
    """The batch is complete with group 0; the two tokens of group 1 are lost, and group 2 opens the next batch."""
    steps = plain_run(setting(RuleSetting(oversampling=2.0), groups=1), Table(((1, 1), (3, 3))), 2)
    assert [step.trained_tokens for step in steps] == [2, 2]
    assert [step.dropped_tokens for step in steps] == [2, 4]


def test_oversampling_keeps_what_is_late() -> None:
    """Group 1 goes on beside groups 2 and 3, is complete with its third token, and two versions old by then."""
    rules = RuleSetting(oversampling=2.0, unfinished="keep")
    steps = plain_run(setting(rules, groups=1), Table(((1, 1), (3, 3))), 3)
    assert [step.waiting_seconds for step in steps] == [1.0, 1.0, 1.0]
    assert [step.trained_tokens for step in steps] == [2, 2, 6]
    assert [step.staleness for step in steps] == [(0, 0), (0, 0), (2, 2)]
    assert steps[-1].dropped_tokens == 0


@pytest.mark.parametrize(
    ("way", "end", "sync", "dropped"), [("in-flight", 3.5, 1.5, 0), ("drain", 6.5, 4.5, 0), ("abort", 3.5, 1.5, 4)]
)
def test_ways_of_a_weight_sync(way: Any, end: float, sync: float, dropped: int) -> None:
    """At 2 s group 0 is trained, and group 1 has 2 of its 5 tokens: it pauses, is waited for, or starts anew."""
    rules = RuleSetting(mode="async", max_staleness=1)
    steps = plain_run(setting(rules, SyncSetting(seconds=1.5, way=way), groups=1), Table(((1, 1), (5, 5))), 1)
    assert [(step.end_seconds, step.sync_seconds, step.dropped_tokens) for step in steps] == [(end, sync, dropped)]


@given(small_scenarios())
def test_nothing_is_lost_in_any_scenario(scenario: Scenario) -> None:
    """Every step trains on P × G samples, its parts add up, and tokens are generated before they are used."""
    setting, table, steps = scenario
    run = plain_run(setting, table, steps)
    k = setting.rules.max_staleness
    trained = 0
    for step, took in zip(run, seconds(run), strict=True):
        assert took == step.train_seconds + step.waiting_seconds + step.sync_seconds + step.overhead_seconds
        assert min(step.waiting_seconds, step.sync_seconds, *step.staleness) >= 0
        assert len(step.staleness) == setting.work.samples
        trained += step.trained_tokens
        assert trained + step.dropped_tokens <= step.generated_tokens
        if k is not None and setting.rules.drops_over_stale:
            assert max(step.staleness) < k + 1
