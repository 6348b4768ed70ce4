"""Snapshots of running engines as rates, with what they contain and what is doubtful about them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.observing import observation, observed_rates
from rlsize.facts.counters import EngineCounters, Snapshot, Totals

if TYPE_CHECKING:
    from rlsize.facts.observations import Observation


def history(rate: float = 4000.0, *, waiting: float = 5, seconds: float = 300.0, **last: Any) -> list[Snapshot]:
    """An engine of constant rate, looked at every 5 s; `last` are fields of its last page that were zero at first."""
    found = []
    for index in range(int(seconds / 5.0) + 1):
        counters = EngineCounters(
            instance="a",
            engine="vllm",
            model="m",
            generation_tokens=1e6 + rate * 5.0 * index,
            requests_running=64 if rate else 0,
            requests_waiting=waiting,
            started_at=1.7e9,
            block_size=16,
            prefix_caching=True,
        )
        if index * 5.0 == seconds:
            counters = replace(counters, **last)
        found.append(Snapshot(seconds=5.0 * index, counters=counters))
    return found


def watched(*histories: list[Snapshot], window: float = 300.0, **known: float) -> Observation:
    """What a fleet of these instances did."""
    return observation({f"engine-{index}": snapshots for index, snapshots in enumerate(histories)}, {}, window, **known)


def test_the_rate_is_tokens_by_wall_clock() -> None:
    """Tokens over the time between first and last page; while busy the same, for an engine that always ran."""
    seen = watched(history(4000.0))
    assert seen.mean == pytest.approx(4000.0)
    assert seen.busy_mean == pytest.approx(4000.0)
    assert seen.spread is None
    assert not seen.lower_bound
    assert seen.warnings == ()


def test_an_engine_with_work_and_no_token_is_stuck() -> None:
    """Not where nothing waited, nor where tokens are counted as their sample finishes: none may have in the window."""
    assert watched(history(0.0)).instances[0].stuck
    assert not watched(history(0.0, waiting=0)).instances[0].stuck
    late = [replace(one, counters=replace(one.counters, at_finish=True)) for one in history(0.0)]
    assert not watched(late).instances[0].stuck
    assert not watched(history(4000.0)).instances[0].stuck


def test_busy_leaves_out_the_time_without_work() -> None:
    """An engine that stood still for half the window made twice its mean while it ran."""
    first = history(4000.0, seconds=150)
    last = first[-1].counters
    idle = [
        Snapshot(seconds=150.0 + 5.0 * index, counters=replace(last, requests_running=0, requests_waiting=0))
        for index in range(1, 31)
    ]
    seen = watched(first + idle)
    assert seen.mean == pytest.approx(2000.0)
    assert seen.busy_mean == pytest.approx(600_000 / 155)
    assert seen.lower_bound


def test_the_fleet_has_a_mean_and_a_spread() -> None:
    """Mean and sample standard deviation are over instances."""
    seen = watched(history(3900.0), history(4000.0), history(4100.0))
    assert seen.mean == pytest.approx(4000.0)
    assert seen.spread == pytest.approx(100.0)
    assert seen.why == "all 3 instances were saturated for 90 % of the window or more"


def test_one_instance_held_back_makes_a_lower_bound() -> None:
    """The mean is a lower bound as soon as one instance that counts was not saturated, and says which."""
    seen = watched(history(4000.0), history(3000.0, waiting=0))
    assert seen.lower_bound
    assert seen.saturated_fraction == 0.0
    assert [instance.lower_bound for instance in seen.instances] == [False, True]
    assert "1 of 2 instances were not shown to be saturated; engine-1" in seen.why
    assert any("lower bound, what the fleet was asked for" in warning for warning in seen.warnings)


def test_a_straggler_is_far_below_its_neighbours() -> None:
    """Below 80 % of the median and more than two median absolute deviations under it; a slightly slow one is none."""
    seen = watched(history(4000.0), history(4010.0), history(3990.0), history(2500.0), history(3700.0))
    assert [instance.straggler for instance in seen.instances] == [False, False, False, True, False]
    assert "engine-3 is a straggler: 2,500 tok/s" in seen.warnings


def test_two_instances_have_no_straggler() -> None:
    """Of two instances nobody can say which one is the odd one."""
    seen = watched(history(4000.0), history(1000.0))
    assert not any(instance.straggler for instance in seen.instances)


@pytest.mark.parametrize("field", ["generation_tokens", "preemptions", "finished_requests", "response_tokens"])
def test_counters_that_go_back_leave_the_instance_out(field: str) -> None:
    """A counter that shrank means a restart, even if tokens grew meanwhile: the instance is listed, not averaged."""
    big: Any = Totals(sum=1e9, count=1e9) if field == "response_tokens" else 1e9
    small: Any = Totals(sum=1.0, count=1.0) if field == "response_tokens" else 1.0
    broken = history(4000.0)
    broken[10] = replace(broken[10], counters=replace(broken[10].counters, **{field: big}))
    broken[11] = replace(broken[11], counters=replace(broken[11].counters, **{field: small}))
    seen = watched(broken, history(4000.0))
    assert [instance.used for instance in seen.instances] == [False, True]
    assert "restarted, or several engines answer at its address" in seen.instances[0].left_out
    assert seen.mean == pytest.approx(4000.0)
    assert any(warning.startswith("engine-0 is left out") for warning in seen.warnings)


def test_another_start_time_is_a_restart() -> None:
    """Counters that grew past their old value betray a restart by the start time; a clock step of a second does not."""
    assert not watched(history(4000.0, started_at=1.7e9 + 100)).used
    assert watched(history(4000.0, started_at=1.7e9 + 1)).used


def test_what_cannot_be_judged_is_left_out() -> None:
    """An instance read once, or for less than half of the window, does not count; one never read is listed too."""
    once, short = history(4000.0)[:1], history(4000.0, seconds=100)
    seen = observation({"once": once, "short": short, "whole": history(4000.0)}, {"gone": "answers 404"}, 300.0)
    assert {instance.instance: instance.left_out for instance in seen.instances} == {
        "once": "was read only once",
        "short": "could be read for only 100 s of 300 s",
        "whole": "",
        "gone": "answers 404",
    }
    assert not observation({"once": once}, {}, 300.0).used


def test_what_a_mean_includes() -> None:
    """Sync pauses if syncs ran; stragglers from two instances on; ramp and tail if the batch was not always full."""
    assert list(watched(history(weight_syncs=3.0, weight_sync_seconds=9.0)).includes) == ["sync_pauses"]
    two = watched(history(weight_syncs=3.0), history())
    assert list(two.includes) == ["sync_pauses", "stragglers"]
    filling = history(weight_syncs=3.0)
    empty = [replace(s, counters=replace(s.counters, requests_waiting=0, requests_running=8)) for s in filling[:3]]
    assert list(watched([*empty, *filling[3:]]).includes) == ["sync_pauses", "ramp", "tail"]
    assert two.includes["sync_pauses"] == "3 weight syncs ran in the window"


def test_sync_pauses_without_a_counter_need_a_long_window() -> None:
    """Where pages do not count syncs, 300 s are taken to hold some, and it is said; a counter at rest means none."""
    assert "taken to hold its share" in watched(history()).includes["sync_pauses"]
    assert "sync_pauses" not in watched(history(seconds=100), window=100).includes
    assert "sync_pauses" not in watched(history(weight_syncs=0.0)).includes


def test_the_group_size_is_read_where_groups_are_sent_whole() -> None:
    """The mean n of requests is the group size; n = 1 leaves it unstated; the caller knows better than the page."""
    assert watched(history(samples_per_request=Totals(sum=800, count=100))).group_size == 8
    assert watched(history(samples_per_request=Totals(sum=100, count=100))).group_size is None
    assert watched(history(samples_per_request=Totals(sum=100, count=100)), group_size=16).group_size == 16


def test_spread_groups_are_told_by_the_prefix_cache() -> None:
    """With groups of 8 and prompts of 400 tokens in blocks of 16, 84 % hits are expected; 20 % is a warning."""
    cache: dict[str, Any] = {
        "prefix_cache_queries": 1000.0,
        "samples_per_request": Totals(sum=800, count=100),
        "prompt_lengths": Totals(sum=320_000, count=800),
    }
    good = watched(history(prefix_cache_hits=800.0, **cache))
    assert good.prefix_cache_hit_fraction == pytest.approx(0.8)
    assert good.affine_prefix_cache_hit_fraction.value == pytest.approx(0.84)
    assert good.warnings == ()
    assert any(
        "keep each group on one instance" in text
        for text in watched(history(prefix_cache_hits=200.0, **cache)).warnings
    )


def test_what_is_missing_for_the_expected_hits_is_named() -> None:
    """Without a group size the expected hit ratio says which flag would give it; without a cache there is none."""
    unknown = watched(history(prompt_lengths=Totals(sum=400, count=1))).affine_prefix_cache_hit_fraction
    assert (unknown.known, unknown.missing) == (False, "--group")
    off = [replace(look, counters=replace(look.counters, prefix_caching=False)) for look in history()]
    assert watched(off, group_size=8).affine_prefix_cache_hit_fraction.missing == "a prefix cache, which is off"


def test_finished_samples_lean_to_the_short_ones() -> None:
    """The mean length of finished samples is doubted where far more tokens were generated for each that finished."""
    young = watched(history(response_tokens=Totals(sum=100_000, count=200), finished_requests=200))
    assert young.mean_response_tokens == 500
    assert any("short samples finish first" in warning for warning in young.warnings)
    steady = watched(history(response_tokens=Totals(sum=1_200_000, count=200), finished_requests=200))
    assert steady.warnings == ()


def test_without_lengths_their_mean_is_tokens_over_finished() -> None:
    """Where the page has no lengths, tokens over finished samples stand in, with a warning."""
    seen = watched(history(finished_requests=200))
    assert seen.mean_response_tokens == pytest.approx(6000)
    assert any("no response lengths are on the page" in warning for warning in seen.warnings)


def told(**stated: Any) -> list[Snapshot]:
    """An engine whose pages all state this; it finished 2,400 samples of 500 tokens."""
    found = [replace(look, counters=replace(look.counters, **stated)) for look in history()]
    first, last = found[0].counters, found[-1].counters
    found[0] = replace(found[0], counters=replace(first, finished_requests=0.0))
    return [*found[:-1], replace(found[-1], counters=replace(last, finished_requests=2400.0))]


def test_gpus_that_pages_state_go_into_the_rates() -> None:
    """Where the caller says nothing and all pages say the same."""
    alike, mixed = watched(told(gpus=8), told(gpus=8)), watched(told(gpus=8), told(gpus=4))
    assert observed_rates(alike, measured_at="x").gpus_per_instance == 8
    assert observed_rates(alike, measured_at="x", gpus_per_instance=2).gpus_per_instance == 2
    assert observed_rates(mixed, measured_at="x").gpus_per_instance is None


def test_tokens_that_count_at_the_end_are_doubtful() -> None:
    """64 samples in flight, half of 500 tokens done, are 16,000 beside 1,200,000; the mean length is exact."""
    seen = watched(told(at_finish=True))
    assert seen.mean_response_tokens == 500
    (warning,) = seen.warnings
    assert warning.startswith("vllm counts tokens only when their sample finishes: samples in flight at either end")
    assert "hold about 16,000 more, 1 % of those counted" in warning


def test_different_engines_are_told() -> None:
    """A mean over two kinds of engines is the rate of neither."""
    assert any(
        "different engines (sglang, vllm)" in warning for warning in watched(told(), told(engine="sglang")).warnings
    )


def test_different_models_are_told() -> None:
    """The mean over two models is the rate of neither."""
    other = [replace(look, counters=replace(look.counters, model="n")) for look in history()]
    assert any("different models (m, n)" in warning for warning in watched(history(), other).warnings)


def test_an_idle_fleet_has_a_rate_of_zero() -> None:
    """Engines that generate nothing are answered, with a lower bound of zero."""
    seen = watched(history(0.0, waiting=0))
    assert seen.mean == 0.0
    assert seen.busy_mean is None
    assert seen.lower_bound


def test_a_rates_file_says_what_was_seen() -> None:
    """Rate, spread, bound, inclusions and conditions of the observation stand in the rates."""
    rates = observed_rates(
        watched(history(3900.0), history(4100.0, waiting=0)),
        measured_at="2026-01-02T03:04:05+00:00",
        gpus_per_instance=2,
    )
    rate = rates.instance_tokens_per_second
    assert rate is not None
    assert rate.mean == pytest.approx(4000.0)
    assert (rate.instances, rate.lower_bound) == (2, True)
    assert rates.includes == ["sync_pauses", "stragglers"]
    assert (rates.source.engine, rates.conditions.model) == ("vllm", "m")
    assert [entry.lower_bound for entry in rates.instances] == [False, True]


@given(
    st.lists(
        st.tuples(st.floats(0.1, 100), st.floats(0, 1e12), *[st.floats(0, 1e4) | st.none()] * 2),
        min_size=1,
        max_size=6,
    )
)  # fmt: skip
def test_any_history_gives_an_observation(steps: list[tuple[float, float, float | None, float | None]]) -> None:
    """Whatever counters a page shows, the answer is an observation with shares between 0 and 1."""
    seconds, snapshots = 0.0, []
    for step, tokens, running, waiting in steps:
        seconds += step
        counters = EngineCounters(
            instance="a", engine="vllm", generation_tokens=tokens, requests_running=running, requests_waiting=waiting
        )
        snapshots.append(Snapshot(seconds=seconds, counters=counters))
    seen = watched(snapshots, window=1.0)
    for instance in seen.used:
        assert instance.tokens_per_second is not None
        assert instance.saturated_fraction is None or 0.0 <= instance.saturated_fraction <= 1.0
        assert instance.lower_bound == (instance.saturated_fraction is None or instance.saturated_fraction < 0.9)
