"""Lengths from buckets: what a sample of a known distribution says about it, and what it cannot say."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.estimates.counter_growth import lengths_grown, syncs_grown, unfinished_tokens
from rlsize.estimates.length_fit import length_doubts, length_fit, pasted
from rlsize.estimates.lengths import response_lengths
from rlsize.facts.counters import Buckets, EngineCounters, LengthCounts, Snapshot, Totals

COARSE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
FINE = (100, 300, 500, 700, 1000, 1500, *range(2000, 10_001, 1000), 12_500, 15_000, 17_500, 20_000, 30_000, 60_000)


def counted(lengths: list[float], bounds: tuple[int, ...] = FINE, **more: float) -> LengthCounts:
    """What an engine's histogram would say of these lengths."""
    counts = [float(sum(1 for length in lengths if length <= bound)) for bound in (*bounds, math.inf)]
    buckets = Buckets(bounds=tuple(map(float, bounds)), counts=tuple(counts))
    return LengthCounts(tokens=sum(lengths), samples=len(lengths), buckets=buckets, **more)


def drawn(mean: float, cv: float, cap: float | None, samples: int = 3000, seed: int = 1) -> list[float]:
    """Lengths of the distribution that the whole program has."""
    return [float(length) for length in response_lengths(samples, mean, cv, cap, Random(seed))]


@settings(max_examples=12)
@given(
    mean=st.floats(500, 5000),
    cv=st.floats(0.3, 1.6),
    bounds=st.sampled_from([COARSE, FINE]),
    seed=st.integers(0, 99),
)
def test_the_distribution_comes_back(mean: float, cv: float, bounds: tuple[int, ...], seed: int) -> None:
    """With the cap that was asked for, the mean is exact and the spread within a few of its standard errors."""
    lengths = drawn(mean, cv, 16_384.0, seed=seed)
    fit = length_fit(counted(lengths, bounds, asked=16_384.0))
    assert fit.mean == pytest.approx(sum(lengths) / len(lengths))
    assert (fit.cap, fit.why) == (16_384.0, "")
    assert fit.cv is not None
    assert fit.cv_error is not None
    assert fit.cv_error < 0.1
    assert abs(fit.cv - cv) < 4 * fit.cv_error + 0.02 * cv


@pytest.mark.long
def test_a_cap_is_found_where_samples_pile_up() -> None:
    """One response in fourteen cut at 8,192 tokens shows; a distribution of the same spread without a cap has none."""
    fit = length_fit(counted(drawn(3000.0, 1.0, 8192.0)))
    assert fit.cap == 8192.0
    assert fit.cap_from.startswith("samples pile up between ")
    assert fit.cv == pytest.approx(1.0, abs=0.05)
    assert fit.quantiles is not None
    assert fit.quantiles[2] == 8192.0
    assert fit.quantiles[0] == pytest.approx(sorted(drawn(3000.0, 1.0, 8192.0))[1500], rel=0.03)
    free = length_fit(counted(drawn(3000.0, 0.8, None)))
    assert free.cap is None
    assert free.cv == pytest.approx(0.8, abs=0.04)


def test_a_cap_that_no_sample_reached_is_not_believed() -> None:
    """The engine counts how samples ended: hardly one by its length."""
    assert length_fit(counted(drawn(3000.0, 1.0, 8192.0), capped=2.0)).cap is None


def test_the_line_for_a_scenario_gives_the_lengths_back() -> None:
    """Mean, spread and cap as a scenario has them."""
    fit = length_fit(counted(drawn(3000.0, 1.0, 8192.0)))
    assert pasted(fit) in {f"response_tokens: {{mean: 3000, cv: {cv}, max: 8192}}" for cv in ("0.99", "1.00", "1.01")}
    assert pasted(length_fit(counted([100.0]))) == ""


def test_too_few_samples_and_a_single_bucket_have_no_spread() -> None:
    """Each says what is missing; the mean is there."""
    few = length_fit(counted(drawn(3000.0, 1.0, None, samples=20)))
    assert (few.cv, few.why) == (None, "30 finished samples; 20 are too few")
    alike = length_fit(counted([1600.0] * 90))
    assert (alike.mean, alike.cv) == (1600.0, None)
    assert alike.why == "finer buckets: all samples lie between 1,500 and 2,000 tokens"


@pytest.mark.long
def test_lengths_of_two_kinds_and_broken_off_ones_are_doubtful() -> None:
    """Half of the samples short and half long are not lognormal; one in twenty broken off is missing."""
    counts = counted([400.0] * 500 + [9500.0] * 500, aborted=53.0)
    doubts = length_doubts(counts, length_fit(counts))
    assert [doubt.partition(":")[0] for doubt in doubts] == [
        "the lengths are not lognormal",
        "53 samples were broken off",
    ]
    fine = counted(drawn(3000.0, 1.0, 8192.0), aborted=3.0)
    assert length_doubts(fine, length_fit(fine)) == []


def engine(lengths: list[float], bounds: tuple[int, ...] = FINE, **more: object) -> EngineCounters:
    """An engine whose samples had these lengths."""
    counts = counted(lengths, bounds)
    total = Totals(sum=counts.tokens, count=counts.samples)
    known = {"generation_tokens": counts.tokens, "response_tokens": total, "response_buckets": counts.buckets, **more}
    return EngineCounters(instance="a", engine="vllm", **known)  # type: ignore[arg-type]  # fields by their names


def test_buckets_grow_between_two_pages_and_over_instances() -> None:
    """Only what finished in the window counts; instances with other buckets meet at the bounds that both have."""
    first, last = engine([50.0, 400.0]), engine([50.0, 400.0, 800.0, 900.0])
    found = lengths_grown([(first, last), (engine([], COARSE), engine([800.0], COARSE))])
    assert found is not None
    assert (found.tokens, found.samples) == (2500.0, 3.0)
    assert list(found.buckets.bounds) == [100, 500, 1000, 2000, 5000, 10_000, 20_000]
    assert list(found.buckets.counts) == [0, 0, 3, 3, 3, 3, 3, 3]
    assert lengths_grown([(first, first)]) is None
    assert lengths_grown([(engine([], COARSE), last)]) is None


def test_a_sync_that_only_its_last_duration_tells_is_one_for_each_change() -> None:
    """Two other durations are two syncs; the same one is none; a page without is unknown."""
    told = [2.0, 2.0, 2.5, 2.5, 2.1]
    looks = [
        Snapshot(seconds=float(at), counters=engine([], last_weight_sync_seconds=value))
        for at, value in enumerate(told)
    ]
    syncs, seconds = syncs_grown(looks)
    assert syncs == 2.0
    assert seconds == pytest.approx(4.6)
    assert syncs_grown(looks[:2]) == (0.0, 0.0)
    assert syncs_grown([Snapshot(seconds=0.0, counters=engine([]))] * 2) == (None, None)


def test_what_is_in_flight_is_missing_where_tokens_count_at_the_end() -> None:
    """Ten samples of 1,000 tokens, half done, are 5,000 tokens; an engine that counts each step misses none."""
    first = engine([], at_finish=True, finished_requests=0.0, requests_running=10.0)
    last = engine([1000.0] * 20, at_finish=True, finished_requests=20.0, requests_running=10.0)
    assert unfinished_tokens([(first, last)]) == 5000.0
    assert unfinished_tokens([(engine([]), engine([1000.0]))]) is None
