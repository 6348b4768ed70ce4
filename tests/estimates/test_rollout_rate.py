"""Rates, step times and tails out of recorded runs whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.equations.engine_step import engine_step_time
from rlsize.estimates.counter_growth import together
from rlsize.estimates.latency import latency, percentiles
from rlsize.estimates.measured_rates import measured_rates
from rlsize.estimates.rollout_rate import (
    Interval,
    finite_batch,
    intervals,
    knee,
    level,
    relative_error,
    steady,
    step_time_fit,
)
from rlsize.estimates.rollout_summary import crosschecks, rollout_doubts, rollout_measured
from rlsize.facts.counters import EngineCounters, Finished, PhaseRun, RolloutWork, Snapshot, Totals
from rlsize.facts.measured import Machine, RolloutLevel
from rlsize.facts.rates import RateConditions

WORK = RolloutWork(prompt_tokens=100, group_size=4, response_tokens=(50, 70), block_tokens=16)
RATE, BATCH = 1000.0, 32


def counters(tokens: float, running: float, **more: Any) -> EngineCounters:
    """Counters after so many tokens, 32 of which come from each step."""
    fields: dict[str, Any] = {
        "instance": "e", "engine": "vllm", "generation_tokens": tokens, "requests_running": running,
        "step_tokens": Totals(sum=tokens, count=tokens / BATCH), "kv_cache_usage_fraction": 0.5,
        "kv_cache_tokens": 10_000, "computed_prompt_tokens": 0.0,
    }  # fmt: skip
    return EngineCounters(**{**fields, **more})


def recorded(ramp: int = 5, full: int = 40, drain: int = 3, rate: float = RATE, instance: str = "e") -> PhaseRun:
    """A run at one page per second that fills, works at a constant rate, and drains."""
    running = [BATCH * index / ramp for index in range(ramp)] + [BATCH] * full + [BATCH / 4] * drain
    tokens, snapshots = 0.0, []
    for second, batch in enumerate(running):
        snapshots.append(Snapshot(seconds=float(second), counters=counters(tokens, batch)))
        tokens += rate * batch / BATCH
    return PhaseRun(
        instance=instance, concurrency=BATCH, begun=0.0, full=float(ramp), ended=float(len(running)),
        snapshots=tuple(snapshots),
    )  # fmt: skip


def test_filling_and_draining_are_no_part_of_the_rate() -> None:
    """The steady state begins once the batch is full and ends before it empties."""
    run = recorded()
    window = steady(run)
    assert [snapshot.counters.requests_running for snapshot in (window[0], window[-1])] == [BATCH, BATCH]
    found = level([run], WORK)
    assert found is not None
    assert found.tokens_per_second == pytest.approx(RATE)
    assert found.mean_batch == pytest.approx(BATCH)
    assert found.seconds_per_step == pytest.approx(BATCH / RATE)
    assert relative_error(run) == pytest.approx(0.0, abs=1e-9)


def test_several_instances_are_averaged_and_their_spread_is_told() -> None:
    """One slow instance of three widens the spread, and a doubt names the cause."""
    runs = [recorded(rate=rate, instance=name) for rate, name in ((1000, "a"), (1000, "b"), (600, "c"))]
    found = level(runs, WORK)
    assert found is not None
    assert found.tokens_per_second == pytest.approx(2600 / 3)
    assert found.spread_tokens_per_second == pytest.approx(230.94, rel=1e-3)
    doubts = rollout_doubts({BATCH: runs}, [], summary({BATCH: runs}))
    assert any("straggler" in doubt for doubt in doubts)


def summary(levels: dict[int, list[PhaseRun]], batch: list[PhaseRun] | None = None) -> Any:
    """What `rollout_measured` makes of runs."""
    return rollout_measured(
        levels, batch or [], WORK, batch_prompts=2, batch_fraction=1.0, limit=BATCH, limited_by="max_num_seqs",
        gpus_per_instance=2.0,
    )  # fmt: skip


def test_a_short_window_and_a_drift_are_told() -> None:
    """A run too short to judge, and one that speeds up, each raise a doubt that says so."""
    short = {BATCH: [recorded(full=5)]}
    assert any("too short" in doubt for doubt in rollout_doubts(short, [], summary(short)))
    rising = recorded()
    grown = tuple(
        Snapshot(
            seconds=entry.seconds, counters=counters(entry.counters.generation_tokens + 10 * entry.seconds**2, BATCH)
        )
        for entry in rising.snapshots
    )
    drifting = {BATCH: [PhaseRun(instance="e", concurrency=BATCH, begun=0.0, full=5.0, ended=48.0, snapshots=grown)]}
    assert any("not steady: the rate rose by" in doubt for doubt in rollout_doubts(drifting, [], summary(drifting)))


def test_an_engine_that_is_held_up_by_something_else_is_told_apart() -> None:
    """Fewer samples in the mean step than in flight: the rate is that of the front end."""
    run = recorded()
    held = PhaseRun(instance="e", concurrency=2 * BATCH, begun=0.0, full=5.0, ended=48.0, snapshots=run.snapshots)
    doubts = rollout_doubts({2 * BATCH: [held]}, [], summary({2 * BATCH: [held]}))
    assert any("front end" in doubt for doubt in doubts)


def test_a_wait_that_was_cut_off_is_longer_than_it_was_seen() -> None:
    """
    Samples that begin and end in a look are the short ones; those that still run take their part of the percentiles.

    Worked by hand after Kaplan and Meier: of four, one ends after 1 s, one is cut off after 2 s, one ends after 3 s and
    one is cut off after 4 s. Beyond 1 s are 3/4, beyond 3 s 3/4 x 1/2 = 3/8; a tenth was never reached.
    """
    found = percentiles([(1.0, 1, True), (2.0, 1, False), (3.0, 1, True), (4.0, 1, False)])
    assert (found.p50_seconds, found.p90_seconds) == (3.0, None)
    whole = percentiles([(float(second), 1, True) for second in range(1, 101)])
    assert (whole.p50_seconds, whole.p90_seconds, whole.p99_seconds) == (50.0, 90.0, 99.0)


def test_a_level_tells_what_samples_of_its_steady_state_waited_for() -> None:
    """Those that were there before it was full do not count; of a finite batch all do."""
    early = Finished(seconds=9.0, samples=1, tokens=9, sent=0.0, first=1.0)
    late = Finished(seconds=20.0, samples=2, tokens=22, sent=6.0, first=10.0)
    run = replace(recorded(), finished=(early, late), running=((0.0, 1), (30.0, 8)))
    found = latency([run])
    assert found is not None
    assert found.samples == 2
    waits = (found.first_token.p50_seconds, found.token.p50_seconds, found.sample.p50_seconds)
    assert waits == (4.0, 1.0, None)  # ten after the first in 10 s; of ten samples two ended
    batch = latency([replace(run, full=None, running=())])
    assert batch is not None
    assert (batch.samples, batch.sample.p50_seconds) == (3, 14.0)
    assert latency([replace(run, ended=None)]) is None
    assert latency([recorded()]) is None


def finished_batch(tokens: float = 480.0, hits: float = 576.0) -> PhaseRun:
    """Two groups of four, 50 and 70 tokens each, and counters that agree unless told otherwise."""
    before = counters(0.0, 0, prompt_tokens=0.0, finished_requests=0.0, prefix_cache_hits=0.0, prefix_cache_queries=0.0)
    after = counters(
        tokens, 0, prompt_tokens=800.0, finished_requests=8.0, prefix_cache_hits=hits, prefix_cache_queries=800.0
    )
    return PhaseRun(
        instance="e", concurrency=8, begun=10.0, ended=12.0, asked=480,
        snapshots=(Snapshot(seconds=10.0, counters=before), Snapshot(seconds=12.0, counters=after)),
        finished=(Finished(seconds=11.0, samples=4, tokens=200), Finished(seconds=12.0, samples=4, tokens=280)),
    )  # fmt: skip


def test_the_tail_of_a_batch_is_read_off_the_finishing_times() -> None:
    """Half of the samples after one second, all after two."""
    found = finite_batch([finished_batch()], 2, 1.0)
    assert found is not None
    assert (found.seconds_to_50_percent, found.seconds_to_90_percent, found.seconds) == (1.0, 2.0, 2.0)
    assert found.tokens_per_second == 240.0
    assert found.longest_response_tokens == 70.0


def test_a_batch_that_broke_off_gives_no_tail() -> None:
    """Without an end there is nothing to wait for."""
    run = finished_batch()
    broken = PhaseRun(instance="e", concurrency=8, begun=10.0, snapshots=run.snapshots, finished=run.finished)
    assert finite_batch([broken], 2, 1.0) is None
    assert crosschecks([broken], WORK) == []


def test_counts_are_compared_with_those_by_hand() -> None:
    """Six of 100 prompt tokens' seven blocks of 16 can be found again by three of four samples."""
    checks = {check.what: (check.asked, check.counted) for check in crosschecks([finished_batch()], WORK)}
    assert checks == {
        "generation_tokens": (480, 480),
        "finished_requests": (8, 8),
        "prompt_tokens": (800, 800),
        "prefix_cache_hits": (2 * 3 * 96, 576),
    }


def test_an_engine_that_serves_somebody_else_too_is_told() -> None:
    """More tokens counted than asked for raise a doubt."""
    levels = {BATCH: [recorded()]}
    doubts = rollout_doubts(levels, [], summary(levels, [finished_batch(tokens=800.0)]))
    assert any("somebody else" in doubt for doubt in doubts)


def test_low_prefix_cache_hits_are_told() -> None:
    """Groups that do not find each other's prompt are a routing problem."""
    levels = {BATCH: [recorded()]}
    doubts = rollout_doubts(levels, [], summary(levels, [finished_batch(hits=96.0)]))
    assert any("prefix cache hit 12 %" in doubt for doubt in doubts)


@given(
    truth=st.tuples(st.floats(1e-3, 0.05), st.floats(1e-5, 1e-3), st.floats(1e-8, 1e-6), st.floats(1e-6, 1e-4)),
    seed=st.integers(0, 50),
)
def test_the_fit_finds_the_law_that_made_the_steps(truth: tuple[float, ...], seed: int) -> None:
    """Steps that obey the law exactly give its coefficients back."""
    random = Random(seed)
    made = []
    for _ in range(60):
        batch, live, prefill = random.uniform(1, 256), random.uniform(1e3, 1e6), random.choice([0.0, 200.0, 900.0])
        seconds = step_seconds(truth, batch, live, prefill)
        made.append(
            Interval(
                seconds=10 * seconds, tokens=10 * batch, steps=10, batch=batch, live_tokens=live, prefill_tokens=prefill
            )
        )
    fit = step_time_fit(made)
    assert fit is not None
    found = (fit.t0_seconds, fit.t1_seconds, fit.t2_seconds, fit.t3_seconds)
    assert found == pytest.approx(truth, rel=1e-3)
    assert fit.residual_fraction < 1e-6


def step_seconds(truth: tuple[float, ...], batch: float, live: float, prefill: float) -> float:
    """The law with those coefficients."""
    t0, t1, t2, t3 = truth
    return float(engine_step_time(t0, t1, t2, t3, batch, live, prefill))


def test_a_coefficient_that_noise_hides_is_left_out_and_none_is_negative() -> None:
    """Steps that do not depend on the KV cache give no coefficient for it."""
    random = Random(3)
    made = [
        Interval(
            seconds=(0.01 + 1e-4 * batch) * random.gauss(1, 0.02), tokens=batch, steps=1, batch=batch,
            live_tokens=random.uniform(1e4, 1e5), prefill_tokens=0.0,
        )
        for batch in range(1, 120)
    ]  # fmt: skip
    fit = step_time_fit(made)
    assert fit is not None
    assert fit.t0_seconds == pytest.approx(0.01, rel=0.05)
    assert fit.t1_seconds == pytest.approx(1e-4, rel=0.05)
    assert fit.t2_seconds * 5e4 < 0.02 * 0.01
    assert fit.t3_seconds == 0.0


def test_too_few_intervals_give_no_fit() -> None:
    """Seven are needed for four coefficients."""
    run = recorded(ramp=1, full=4, drain=1)
    assert step_time_fit(intervals(run.snapshots, WORK)) is None


def test_the_knee_is_the_first_level_near_the_best() -> None:
    """Within 5 % of the best rate; a single level has none."""
    rates = {1: 100.0, 16: 900.0, 64: 1960.0, 256: 2000.0}
    levels = [RolloutLevel(concurrency=at, tokens_per_second=rate, window_seconds=1.0) for at, rate in rates.items()]
    assert knee(levels) == 64
    assert knee(levels[:1]) is None


def test_ranks_of_a_server_count_as_one_instance() -> None:
    """Counts add up, shares are averaged, and steps that run side by side say nothing about one step."""
    one = together([counters(100.0, 3), counters(300.0, 5, kv_cache_usage_fraction=0.7)])
    assert (one.generation_tokens, one.requests_running, one.kv_cache_tokens) == (400.0, 8, 20_000)
    assert one.kv_cache_usage_fraction == pytest.approx(0.6)
    assert one.step_tokens is None
    assert together([counters(1.0, 1)]) == counters(1.0, 1)


def test_a_sweep_that_did_not_reach_its_top_gives_a_lower_bound() -> None:
    """The rate of a lower concurrency is what the instance was asked for, not all that it can do."""
    measured = summary({BATCH: [recorded()]})
    told: dict[str, Any] = {
        "measured_at": "2026-11-20T12:00:00+00:00",
        "conditions": RateConditions(),
        "machine": Machine(),
    }
    whole = measured_rates(**told, rollout=measured, asked_concurrency=BATCH).instance_tokens_per_second
    short = measured_rates(**told, rollout=measured, asked_concurrency=4 * BATCH).instance_tokens_per_second
    assert whole is not None
    assert short is not None
    assert not whole.lower_bound
    assert short.lower_bound
    assert "128 asked for" in short.why


@pytest.mark.parametrize(("instances", "includes"), [(1, []), (2, ["stragglers"])])
def test_the_rate_of_several_instances_holds_what_stragglers_cost(instances: int, includes: list[str]) -> None:
    """They had their batches together, so the slow ones among them are in it."""
    measured = summary({BATCH: [replace(recorded(), instance=str(index)) for index in range(instances)]})
    told: dict[str, Any] = {"conditions": RateConditions(), "machine": Machine()}
    found = measured_rates(**told, measured_at="2026-11-20T12:00:00+00:00", rollout=measured, asked_concurrency=BATCH)
    assert found.includes == includes
