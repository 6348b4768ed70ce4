"""Constant lengths and rates reproduce the closed forms of `rlsize.equations`, with no tolerance beyond rounding."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.tables import Table

from rlsize.equations import imbalance, iteration, matching
from rlsize.simulator.ledger import Event, Ledger, Recorder, Span
from rlsize.simulator.run import conductor_of, simulate
from rlsize.simulator.setting import (
    EngineSetting,
    Latency,
    LengthSetting,
    Mode,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    Way,
    WorkSetting,
)

exactly = partial(pytest.approx, rel=1e-12, abs=1e-10)

GROUPS, GROUP_SIZE, LENGTH, TRAIN = 64, 8, 1536, 20.0
RATE, SLOTS = 4000.0, 64
TOKENS = matching.tokens_per_step(GROUPS, GROUP_SIZE, LENGTH)
REQUIRED = matching.required_supply(matching.consumption(TOKENS, TRAIN), 1.0)
ROLLOUT = iteration.rollout_seconds(GROUPS * GROUP_SIZE, matching.fleet_supply(8, RATE, 1.0) / LENGTH)
WARM = 3  # steps before cycles repeat


def worked(
    mode: Mode, instances: int = 8, train: float = TRAIN, sync: SyncSetting | None = None, rate: float = RATE
) -> Setting:
    """The worked example: 512 samples of 1536 tokens, 20 s to train them, 64 slots that make 4,000 tokens a second."""
    return Setting(
        engine=EngineSetting(instances=instances, slots=SLOTS, fixed_seconds=SLOTS / rate),
        work=WorkSetting(groups=GROUPS, group_size=GROUP_SIZE, lengths=LengthSetting(mean=LENGTH)),
        trainer=TrainerSetting(seconds=train),
        sync=sync or SyncSetting(),
        rules=RuleSetting(mode=mode, max_staleness=1 if mode == "async" else None),
    )


def step_times(ledger: Ledger) -> list[float]:
    """Duration of each step after the warm-up. [s]"""
    return [after - before for before, after in pairwise(ledger.columns["end_seconds"][WARM - 1 :])]


def updates(setting: Setting, steps: int) -> list[Span]:
    """When the trainer trained, after the warm-up."""
    spans: list[Span] = []

    def take(seen: Span | Event) -> bool:
        if isinstance(seen, Span) and seen.name == "update":
            spans.append(seen)
        return True

    simulate(setting, steps, recorder=Recorder(take))
    return spans[WARM:]


def test_the_trainer_of_the_worked_example_idles_for_a_fifth() -> None:
    """Eight instances feed 32,000 of 39,321.6 tokens a second: async and one-step-off, the trainer waits for 18.6 %."""
    idle = imbalance.trainer_idle_fraction(matching.fleet_supply(8, RATE, 1.0), REQUIRED)
    assert round(idle, 3) == 0.186
    spans = updates(worked("async"), 12)
    for span, following in pairwise(spans):
        assert 1.0 - (span.end - span.start) / (following.start - span.start) == exactly(idle)
    columns = simulate(worked("one-step-off"), 12).columns
    for waiting, train in zip(columns["waiting_seconds"][WARM:], columns["train_seconds"][WARM:], strict=True):
        assert waiting / (waiting + train) == exactly(idle)
        assert waiting + train == exactly(imbalance.step_time_with_idle(TRAIN, idle))


@pytest.mark.parametrize("mode", ["async", "one-step-off"])
def test_a_matched_loop_waits_for_nothing(mode: Mode) -> None:
    """Where both sides need 24 s, in numbers that binary fractions can say, nobody waits, to the last bit."""
    ledger = simulate(worked(mode, rate=4096.0, train=24.0), 12)
    assert set(step_times(ledger)) == {24.0}
    assert {*ledger.columns["waiting_seconds"][1:], *ledger.columns["idle_seconds"]} == {0.0}


def test_what_an_oversized_fleet_makes_too_much_piles_up() -> None:
    """
    Fifteen instances without a cap: backlog and tokens in flight grow by 60,000 - 39,321.6 = 20,678.4 a second.

    Samples are scored half an engine step after their end, so that no step ends just when training does.
    """
    setting = worked("async", instances=15, sync=SyncSetting(every=10**6))
    setting = replace(
        setting,
        work=replace(setting.work, verify=Latency(seconds=SLOTS / RATE / 2)),
        rules=RuleSetting(mode="async", max_staleness=None),
    )
    columns = simulate(setting, 20).columns
    piled = [sum(both) for both in zip(columns["backlog_tokens"], columns["under_way_tokens"], strict=True)]
    growth = imbalance.backlog_growth(matching.fleet_supply(15, RATE, 1.0), REQUIRED)
    seconds = columns["end_seconds"][-1] - columns["end_seconds"][WARM]
    assert growth == exactly(20678.4)
    assert seconds == exactly((19 - WARM) * TRAIN)
    assert piled[-1] - piled[WARM] == exactly(imbalance.backlog_after(growth, seconds))


@pytest.mark.parametrize("way", ["in-flight", "drain", "abort"])
def test_sync_adds_its_pause_to_both_sides(way: Way) -> None:
    """Sync: rollout + training + pause; one-step-off: the longer of the two + pause, however samples are stopped."""
    sync = SyncSetting(seconds=1.5, way=way)
    after_each_other = iteration.synchronous_iteration_time(ROLLOUT, TRAIN, sync.seconds)
    assert step_times(simulate(worked("sync", sync=sync), 6)) == [exactly(after_each_other)] * 3
    for train in (TRAIN, 2 * TRAIN):
        overlapped = iteration.overlapped_iteration_time(ROLLOUT, train, sync.seconds)
        assert step_times(simulate(worked("one-step-off", sync=sync, train=train), 6)) == [exactly(overlapped)] * 3


def test_a_pause_in_flight_delays_what_is_in_flight() -> None:
    """Async and short of samples: a cycle is a wave of samples and the pause in the midst of it."""
    cycle = iteration.overlapped_iteration_time(ROLLOUT, TRAIN, 1.5)
    spans = updates(worked("async", sync=SyncSetting(seconds=1.5)), 10)
    assert [after.start - before.start for before, after in pairwise(spans)] == [exactly(cycle)] * 6


def test_colocated_takes_turns() -> None:
    """Rollout, training and two change-overs; a transport has no part in it."""
    cycle = iteration.colocated_iteration_time(ROLLOUT, TRAIN, 2 * 0.75)
    ledger = simulate(worked("colocated", sync=SyncSetting(seconds=9.0, swap_seconds=0.75)), 6)
    assert step_times(ledger) == [exactly(cycle)] * 3
    assert set(ledger.columns["sync_seconds"]) == {1.5}


LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=12)
SECONDS = st.floats(0.001, 1.0)


def alone(lengths: list[int], engine: EngineSetting, prompt_tokens: int = 0) -> tuple[float, list[float]]:
    """Seconds until groups of one sample are all complete on one instance, and when each is. [s]"""
    setting = Setting(
        engine=engine,
        work=WorkSetting(
            groups=len(lengths), group_size=1, lengths=LengthSetting(mean=1.0), prompt_tokens=prompt_tokens
        ),
        trainer=TrainerSetting(seconds=1.0),
    )
    ends: dict[float, float] = {}

    def take(seen: Span | Event) -> bool:
        if isinstance(seen, Event) and seen.name == "group accepted":
            ends[seen.numbers["group"]] = seen.time
        return True

    loop = conductor_of(setting, Table(tuple((length,) for length in lengths)), Recorder(take))
    loop.run(1)
    return loop.ledger.columns["waiting_seconds"][0], [ends[group] for group in range(len(lengths))]


@given(LENGTHS, SECONDS, SECONDS, st.floats(0.0, 0.01), st.integers(0, 50))
def test_samples_that_run_all_together(lengths: list[int], t0: float, t1: float, t2: float, prompt: int) -> None:
    """T = t0 × longest + t1 × tokens, and t2 for each of l samples' contexts from p to p + l - 1."""
    engine = EngineSetting(instances=1, slots=len(lengths), fixed_seconds=t0, sample_seconds=t1)
    assert alone(lengths, engine)[0] == exactly(t0 * max(lengths) + t1 * sum(lengths))
    contexts = sum(length * prompt + length * (length - 1) // 2 for length in lengths)
    with_kv = replace(engine, kv_seconds=t2)
    expected = t0 * max(lengths) + t1 * sum(lengths) + t2 * contexts
    assert alone(lengths, with_kv, prompt)[0] == exactly(expected)


def processor_sharing(lengths: list[int], slots: int, seconds: float) -> list[float]:
    """When each of some jobs ends that share a processor, at most so many at once, from one end to the next."""
    left = {job: float(length) for job, length in enumerate(lengths)}
    now, ends = 0.0, [0.0] * len(lengths)
    while left:
        sharing = list(left)[:slots]
        each = min(left[job] for job in sharing)
        now += each * len(sharing) * seconds
        for job in sharing:
            left[job] -= each
            if left[job] == 0.0:
                ends[job] = now
                del left[job]
    return ends


@given(LENGTHS, st.integers(1, 6), SECONDS)
def test_without_t0_an_instance_shares_its_time(lengths: list[int], slots: int, t1: float) -> None:
    """t0 = 0: each sample ends when it would where jobs share one processor equally, at most as many as slots."""
    engine = EngineSetting(instances=1, slots=slots, fixed_seconds=0.0, sample_seconds=t1)
    ends = alone(lengths, engine)[1]
    assert ends == [exactly(end) for end in processor_sharing(lengths, slots, t1)]


@given(LENGTHS, SECONDS)
def test_without_t1_samples_do_not_see_each_other(lengths: list[int], t0: float) -> None:
    """t1 = t2 = 0: each sample takes t0 × its length, as with infinitely many servers."""
    engine = EngineSetting(instances=1, slots=len(lengths), fixed_seconds=t0)
    assert alone(lengths, engine)[1] == [exactly(t0 * length) for length in lengths]


@st.composite
def loops(draw: st.DrawFn) -> tuple[Setting, Table]:
    """A loop whose batch fits its slots, with random lengths."""
    groups, size, instances = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    row = st.lists(st.integers(1, 30), min_size=size, max_size=size).map(tuple)
    setting = Setting(
        engine=EngineSetting(
            instances=instances,
            slots=size * -(-groups // instances),
            fixed_seconds=draw(SECONDS),
            sample_seconds=draw(SECONDS),
        ),
        work=WorkSetting(groups=groups, group_size=size, lengths=LengthSetting(mean=10.0)),
        trainer=TrainerSetting(seconds=draw(st.floats(0.0, 20.0)), micro_batches=draw(st.integers(1, groups))),
        sync=SyncSetting(seconds=draw(st.floats(0.0, 3.0))),
    )
    return setting, Table(tuple(draw(st.lists(row, min_size=1, max_size=9))))


@given(loops())
def test_async_without_staleness_is_sync(loop: tuple[Setting, Table]) -> None:
    """With k = 0 and a batch that fits the slots, the ledger is that of the synchronous loop, to the last bit."""
    setting, table = loop
    ledgers = []
    for rules in (RuleSetting(mode="sync"), RuleSetting(mode="async", max_staleness=0)):
        conductor = conductor_of(replace(setting, rules=rules), table)
        conductor.run(5)
        ledgers.append(conductor.ledger)
    assert ledgers[0].columns == ledgers[1].columns
    assert ledgers[0].staleness == ledgers[1].staleness


@given(loops(), st.sampled_from(("sync", "one-step-off")))
def test_a_sync_in_no_time_is_none(loop: tuple[Setting, Table], mode: Mode) -> None:
    """Infinite bandwidth: steps end when they would if weights were never synced."""
    ends = []
    for every in (1, 10**6):
        setting = replace(loop[0], sync=SyncSetting(seconds=0.0, every=every), rules=RuleSetting(mode=mode))
        conductor = conductor_of(setting, loop[1])
        conductor.run(5)
        ends.append(conductor.ledger.columns["end_seconds"])
    assert ends[0] == ends[1]
