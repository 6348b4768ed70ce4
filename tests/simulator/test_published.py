"""
Published speedups can be simulated, and their directions come out as everybody finds them.

How large the published ones come out is in `docs/published-loops.md`; here are small loops, whose two sides meet the
same samples. What is claimed holds for each of the seeds, by the margin that the test states, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import inf
from typing import Any

import pytest
from benchmarks.loop_entries import ENTRIES, MARKS, built, read_entries, read_reasons
from benchmarks.published_loops import full_generation

from rlsize.simulator.run import simulate
from rlsize.simulator.setting import (
    MODES,
    EngineSetting,
    LengthSetting,
    Routing,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    Way,
    WorkSetting,
)

ENTRY = {entry.name: entry for entry in read_entries()}
SEEDS = (0, 1, 2, 3, 4)
NO_TIME = TrainerSetting(seconds=0.001)
KEEP = RuleSetting(oversampling=1.5, unfinished="keep")
DROP = RuleSetting(oversampling=1.5, unfinished="drop")


@pytest.mark.parametrize("name", ENTRY)
def test_an_entry_says_what_it_rests_on(name: str) -> None:
    """A positive claim with its range, a source and how it was read, a weight, and the origin of every input."""
    entry = ENTRY[name]
    assert 1.0 < entry.low <= entry.speedup <= entry.high
    assert {"work", "id", "read", "loci"} <= set(entry.facts["source"])
    assert set(entry.marks.split(", ")) <= set(MARKS)
    assert entry.marks
    assert entry.facts["inputs"]
    for given in entry.facts["inputs"]:
        assert given["from"] in {"given", "derived", "assumed"}
        assert given["why"]
        assert given["from"] != "given" or given["mark"] in MARKS
    assert name in read_reasons()


@pytest.mark.parametrize("name", ENTRY)
def test_an_entry_can_be_simulated(name: str) -> None:
    """Both sides are settings within their bounds."""
    for run in (ENTRY[name].baseline, ENTRY[name].improved):
        engine, work, rules = run.setting.engine, run.setting.work, run.setting.rules
        assert engine.instances >= 1
        assert engine.slots >= 1
        assert min(engine.fixed_seconds, run.setting.trainer.seconds, work.lengths.mean) > 0.0
        assert min(engine.sample_seconds, engine.kv_seconds, engine.prefill_seconds, run.setting.sync.seconds) >= 0.0
        assert 0.0 < work.acceptance <= 1.0
        assert work.lengths.mean <= work.lengths.cap
        longest = work.lengths.cap if work.lengths.cap < inf else 10 * work.lengths.mean
        assert engine.kv_tokens >= work.prompt_tokens + longest
        assert rules.mode in MODES
        assert rules.oversampling >= 1.0


def test_a_fleet_that_is_never_quite_full_takes_longer_than_the_bound() -> None:
    """Generation alone, in one batch that fills all slots once: near the bound where lengths are equal, and above."""
    engine = EngineSetting(instances=2, slots=16, fixed_seconds=0.01, sample_seconds=1e-3, kv_seconds=1e-6)
    took = []
    for cv in (0.0, 1.0):
        lengths = LengthSetting(mean=400.0, cv=cv, cap=4000.0)
        work = WorkSetting(groups=32, group_size=1, prompt_tokens=100, lengths=lengths)
        setting = Setting(engine=engine, work=work, trainer=NO_TIME)
        steps = 20
        took.append(simulate(setting, steps, 0).columns["end_seconds"][-1] / steps / full_generation(setting))
    assert took[0] == pytest.approx(1.0, rel=0.01)
    assert took[1] > 1.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seconds": 1.0, "second": 1.0}, "unknown ['second']"),
        ({}, "missing ['seconds']"),
        ({"seconds": "1"}, "'1' is no float"),
        ({"seconds": 1.0, "micro_batches": 1.5}, "1.5 is no int"),
        (3.0, "3.0 is no mapping"),
    ],
)
def test_a_fault_in_an_entry_is_said(given: object, said: str) -> None:
    """A key that is unknown or missing and a value of the wrong kind are errors that name them."""
    with pytest.raises(ValueError, match=r"^trainer[:.]") as fault:
        built(TrainerSetting, given, "trainer")
    assert said in str(fault.value)


def test_the_page_has_every_entry() -> None:
    """Each entry has a row and a part of its own on the page, with the claim that the file makes."""
    file = ENTRIES.parent.parent / "docs" / "published-loops.md"
    if not file.is_file():
        pytest.skip("the page is not beside these tests")
    page = file.read_text(encoding="utf-8")
    assert [name for name, entry in ENTRY.items() if f"| {name} | {entry.speedup:g}" not in page] == []
    assert [name for name in ENTRY if f"### {name}\n" not in page] == []


def loop(cv: float = 1.5, **parts: Any) -> Setting:
    """16 groups of 4 with a mean of 400 tokens on 4 instances that run them all at once; a trainer without a time."""
    usual: dict[str, Any] = {
        "engine": EngineSetting(instances=4, slots=32, fixed_seconds=0.01, sample_seconds=1e-4),
        "work": WorkSetting(groups=16, group_size=4, lengths=LengthSetting(mean=400.0, cv=cv)),
        "trainer": NO_TIME,
    }
    return Setting(**{**usual, **parts})


@cache
def pace(setting: Setting, seed: int, steps: int = 40, warmup: int = 10) -> float:
    """Optimizer steps per second after the warm-up."""
    ends = simulate(setting, steps, seed).columns["end_seconds"]
    assert len(ends) == steps
    return (steps - warmup) / (ends[-1] - ends[warmup - 1])


def gains(baseline: Setting, improved: Setting, seeds: Sequence[int] = SEEDS) -> list[float]:
    """How many times as quick the steps of one side are as those of the other, seed by seed."""
    return [pace(improved, seed) / pace(baseline, seed) for seed in seeds]


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("rules", [DROP, KEEP], ids=["over-sampling", "partial rollouts"])
def test_not_waiting_for_the_tail_helps_more_where_it_is_long(rules: RuleSetting) -> None:
    """With half as many groups again, steps at cv 1.5 gain at least 1.5 times as much as at cv 0.3, and some there."""
    light, heavy = (gains(loop(cv), loop(cv, rules=rules)) for cv in (0.3, 1.5))
    assert min(light) > 1.02
    assert all(more > 1.5 * less for less, more in zip(light, heavy, strict=True))


@pytest.mark.long
def test_more_gpus_do_not_shorten_a_tail() -> None:
    """Twice the instances: below 1.2 times where the longest sample decides, above 1.8 where there is much to do."""
    for few, low, high in (
        (loop(), 1.0, 1.2),
        (loop(0.3, work=WorkSetting(groups=512, group_size=4, lengths=LengthSetting(mean=400.0, cv=0.3))), 1.8, 2.0),
    ):
        many = replace(few, engine=replace(few.engine, instances=2 * few.engine.instances))
        found = [pace(many, seed, 12, 2) / pace(few, seed, 12, 2) for seed in SEEDS[:3]]
        assert low <= min(found)
        assert max(found) <= high


def split(groups: int, rollout_gpus: int, train_seconds: float, cv: float) -> tuple[Setting, Setting]:
    """Four GPUs colocated, and the same four split for an asynchronous loop; the trainer's time goes as 1 / GPUs."""
    work = WorkSetting(groups=groups, group_size=4, lengths=LengthSetting(mean=400.0, cv=cv))
    engine = EngineSetting(instances=4, slots=32, fixed_seconds=0.01, sample_seconds=1e-4, routing="queue")
    together = Setting(
        engine=engine,
        work=work,
        trainer=TrainerSetting(seconds=train_seconds),
        rules=RuleSetting(mode="colocated"),
    )
    apart = replace(
        together,
        engine=replace(engine, instances=rollout_gpus),
        trainer=TrainerSetting(seconds=train_seconds * 4 / (4 - rollout_gpus)),
        rules=RuleSetting(mode="async", max_staleness=4),
    )
    return together, apart


@pytest.mark.long
@pytest.mark.parametrize("rollout_gpus", [1, 3])
def test_async_loses_where_the_split_leaves_one_side_short(rollout_gpus: int) -> None:
    """With 20 s of generation and 20 s of training on all four GPUs, one GPU for either takes 1.5 times as long."""
    assert max(gains(*split(128, rollout_gpus, 20.0, 0.3), SEEDS[:3])) < 1 / 1.5


def test_async_wins_where_the_tail_leaves_gpus_idle() -> None:
    """Where the longest sample decides and the split is even, the asynchronous loop is at least 1.5 times as quick."""
    assert min(gains(*split(16, 2, 5.0, 1.5))) > 1.5


def dealt(routing: Routing, correlation: float) -> Setting:
    """Four slots on each instance for 64 samples of 16 groups of 16."""
    lengths = LengthSetting(mean=400.0, cv=1.5, correlation=correlation)
    return loop(
        engine=EngineSetting(instances=4, slots=4, fixed_seconds=0.01, routing=routing),
        work=WorkSetting(groups=16, group_size=16, lengths=lengths),
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("routing", "correlation", "margin"),
    [("affine", 0.0, 1.02), ("round-robin", 0.0, 1.02), ("random", 0.0, 1.02), ("affine", 0.7, 1.3)],
)
def test_one_queue_beats_dealing_at_once_where_tails_are_long(
    routing: Routing, correlation: float, margin: float
) -> None:
    """
    The queue is never slower, and quicker on average by 1.02 where members are independent.

    Where they are alike and groups stay together, by 1.3. The gains are small where members are independent because the
    queue does not know which samples are long: list scheduling of the same draws has 1.04 to 1.06.
    """
    found = gains(dealt(routing, correlation), dealt("queue", correlation))
    assert min(found) > 1.0
    assert sum(found) / len(found) > margin


def synced(cv: float, way: Way) -> Setting:
    """An asynchronous loop whose engines set the pace, with a sync at every step."""
    return loop(
        cv,
        engine=EngineSetting(instances=4, slots=8, fixed_seconds=0.01, sample_seconds=1e-4, routing="queue"),
        trainer=TrainerSetting(seconds=1.0),
        sync=SyncSetting(seconds=0.2, way=way),
        rules=RuleSetting(mode="async", max_staleness=4),
    )


@pytest.mark.long
def test_going_on_through_a_sync_beats_waiting_for_it_the_more_the_longer_the_tail() -> None:
    """In-flight over drain: above 1.1 at cv 0.3, and at cv 1.5 at least 1.3 times what it is there."""
    light, heavy = (gains(synced(cv, "drain"), synced(cv, "in-flight")) for cv in (0.3, 1.5))
    assert min(light) > 1.1
    assert all(more > 1.3 * less for less, more in zip(light, heavy, strict=True))


@pytest.mark.long
def test_throughput_grows_with_the_staleness_that_is_allowed_and_saturates() -> None:
    """From cap 0 to 1 by a quarter, never down by more than 2 %, and from 8 to 32 by less than 5 %."""
    caps = (0, 1, 2, 4, 8, 32)
    for seed in SEEDS[:3]:
        found = {
            cap: pace(
                loop(
                    1.0,
                    engine=EngineSetting(instances=4, slots=16, fixed_seconds=0.01, sample_seconds=1e-4),
                    trainer=TrainerSetting(seconds=6.0),
                    rules=RuleSetting(mode="async", max_staleness=cap),
                ),
                seed,
            )
            for cap in caps
        }
        assert found[1] > 1.25 * found[0]
        assert all(found[more] > 0.98 * found[less] for less, more in pairwise(caps))
        assert found[32] < 1.05 * found[8]
