"""
Known theory, met within sampling error.

Seeds are fixed. A band of four standard errors of the mean, taken from independent parts of the same run, would hold in
all but about one of ten thousand runs that follow the theory (one of a thousand where there are only twenty parts).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from random import Random
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.tables import Table

from rlsize.equations import batch_drain, long_tail
from rlsize.estimates.outside import scoring
from rlsize.facts.algorithm import Agents
from rlsize.simulator.draws import SeededOutcomes, tokens_of
from rlsize.simulator.event_loop import EventLoop
from rlsize.simulator.run import conductor_of, simulate
from rlsize.simulator.setting import (
    EngineSetting,
    Latency,
    LengthSetting,
    Setting,
    TrainerSetting,
    WorkSetting,
)

ERRORS = 4.0

Lengths: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"


def band(found: Sequence[float]) -> tuple[float, float]:
    """Four standard errors around the mean of independent findings."""
    error = float(np.std(found, ddof=1)) / len(found) ** 0.5
    return float(np.mean(found)) - ERRORS * error, float(np.mean(found)) + ERRORS * error


def longest(samples: int, lengths: LengthSetting) -> float:
    """Expected longest of some samples, whose mean is known with the cap. [token]"""
    uncapped = batch_drain.uncapped_mean(lengths.mean, lengths.cv, lengths.cap)
    return float(long_tail.longest_of(samples, uncapped, lengths.cv, lengths.cap))


@pytest.mark.parametrize("samples", [4, 64])
@pytest.mark.parametrize("cap", [3000.0, 30000.0])
def test_the_longest_of_a_group_is_that_of_the_theory(samples: int, cap: float) -> None:
    """The mean longest of 2,000 groups is within four standard errors of the order statistic's; their mean, of its."""
    lengths = LengthSetting(mean=1000.0, cv=1.0, cap=cap)
    outcomes = SeededOutcomes(WorkSetting(groups=1, group_size=samples, lengths=lengths), seed=3)
    drawn = [outcomes.lengths(group) for group in range(2000)]
    low, high = band([max(row) for row in drawn])
    assert low < longest(samples, lengths) < high
    low, high = band([sum(row) / samples for row in drawn])
    assert low < lengths.mean < high


def test_a_batch_takes_as_long_as_its_longest() -> None:
    """With t1 = 0 the mean time of 400 batches is t0 × the expected longest of 64, within four standard errors."""
    lengths = LengthSetting(mean=500.0, cv=1.0, cap=4000.0)
    setting = Setting(
        engine=EngineSetting(instances=2, slots=32, fixed_seconds=0.25),
        work=WorkSetting(groups=8, group_size=8, lengths=lengths),
        trainer=TrainerSetting(seconds=1.0),
    )
    low, high = band(simulate(setting, 400, seed=5).columns["waiting_seconds"])
    assert low < 0.25 * longest(64, lengths) < high


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 8))
def test_slots_that_are_refilled_schedule_a_list(lengths: list[int], slots: int) -> None:
    """Graham: total / K and the longest are least; total / K + (1 - 1 / K) × longest is most, for K slots."""
    setting = Setting(
        engine=EngineSetting(instances=1, slots=slots, fixed_seconds=1.0),
        work=WorkSetting(groups=len(lengths), group_size=1, lengths=LengthSetting(mean=1.0)),
        trainer=TrainerSetting(seconds=1.0),
    )
    loop = conductor_of(setting, Table(tuple((length,) for length in lengths)))
    loop.run(1)
    makespan = loop.ledger.columns["waiting_seconds"][0]
    assert makespan >= max(sum(lengths) / slots, *lengths)
    assert makespan <= sum(lengths) / slots + (1 - 1 / slots) * max(lengths) + 1e-9


class OneServer:
    """
    Customers queue for a server, first come, first served.

    Args:
        gaps: Times between arrivals. [s]
        services: Times of service. [s]
    """

    def __init__(self, gaps: Iterator[float], services: Iterator[float]) -> None:
        self.loop = EventLoop()
        self.gaps, self.services = gaps, services
        self.queue: deque[float] = deque()  # when each arrived, the one that is served included
        self.waits: list[float] = []
        self.loop.at(next(gaps), self.arrive)

    def arrive(self) -> None:
        """A customer arrives."""
        self.loop.at(self.loop.now + next(self.gaps), self.arrive)
        self.queue.append(self.loop.now)
        if len(self.queue) == 1:
            self.serve()

    def serve(self) -> None:
        """The customer at the head is served."""
        self.waits.append(self.loop.now - self.queue[0])
        self.loop.at(self.loop.now + next(self.services), self.leave)

    def leave(self) -> None:
        """The customer at the head leaves."""
        self.queue.popleft()
        if self.queue:
            self.serve()

    def decide(self) -> None:
        """Nothing is left to decide."""

    def begin(self) -> None:
        """Nothing begins."""

    def mean_wait(self, customers: int) -> float:
        """Mean wait in the queue, after a quarter as many customers have warmed it up. [s]"""
        self.loop.run(self.decide, self.begin, lambda: len(self.waits) >= customers * 5 // 4)
        return sum(self.waits[customers // 4 :]) / len(self.waits[customers // 4 :])


def exponential(random: Random, rate: float) -> Iterator[float]:
    """Exponential times."""
    while True:
        yield random.expovariate(rate)


def constant(_: Random, rate: float) -> Iterator[float]:
    """Equal times."""
    while True:
        yield 1.0 / rate


@pytest.mark.parametrize("load", [0.5, 0.8])
@pytest.mark.parametrize(("services", "cv"), [(exponential, 1.0), (constant, 0.0)])
def test_customers_of_one_server_wait_as_long_as_they_should(
    load: float, services: Callable[[Random, float], Iterator[float]], cv: float
) -> None:
    """
    M/M/1 and M/D/1 on the event loop: Pollaczek and Khinchine's wait, load × (1 + cv²) / (2 × (1 - load)) services.

    For M/M/1 with the service that follows it is 1 / (mu - lambda). The band is four standard errors of twenty runs of
    4,000 customers each.
    """
    rate = 2.0
    found = []
    for run in range(20):
        random = Random(f"{load} {cv} {run}")
        found.append(OneServer(exponential(random, load * rate), services(random, rate)).mean_wait(4000))
    wait = load * (1 + cv**2) / (2 * (1 - load)) / rate
    if cv == 1.0:
        assert wait + 1 / rate == pytest.approx(1 / (rate - load * rate))
    low, high = band(found)
    assert low < wait < high
    assert high - low < 0.4 * wait


def drawn(lengths: LengthSetting, seed: int = 1) -> Lengths:
    """Lengths of 40 members of 5,000 groups, all for the first optimizer step. [token]"""
    generator = np.random.default_rng(seed)
    shared, own = generator.standard_normal(5000), generator.standard_normal((40, 5000))
    found: Lengths = tokens_of(lengths, shared, own, np.zeros(5000))
    return found


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.0])
def test_gamma_lengths_have_their_mean_and_spread(cv: float) -> None:
    """The first two moments of forty times 5,000 lengths are within four standard errors: mean, mean² × (1 + cv²)."""
    parts = drawn(LengthSetting(mean=20000.0, cv=cv, shape="gamma"))
    low, high = band(parts.mean(axis=1).tolist())
    assert low < 20000.0 < high
    low, high = band(((parts / 20000.0) ** 2).mean(axis=1).tolist())
    assert low < 1 + cv**2 < high


@pytest.mark.parametrize("shape", ["gamma", "lognormal"])
def test_lengths_that_are_cut_have_the_mean_that_is_seen(shape: str) -> None:
    """With a cap at twice the mean, the mean of what is cut is that of the setting, within four standard errors."""
    parts = drawn(LengthSetting(mean=20000.0, cv=1.0, cap=40000.0, shape="gamma" if shape == "gamma" else "lognormal"))
    assert parts.max() == 40000
    low, high = band(parts.mean(axis=1).tolist())
    assert low < 20000.0 < high


def test_empirical_lengths_are_those_that_were_seen() -> None:
    """Each of the values is drawn as often as it is listed, within four standard errors, and no other ever."""
    values = (10.0, 10.0, 500.0, 7000.0, 90000.0)
    parts = drawn(LengthSetting(mean=sum(values) / 5, cv=1.0, shape="empirical", values=values))
    assert set(np.unique(parts)) == {10, 500, 7000, 90000}
    for value, share in ((10, 0.4), (500, 0.2), (7000, 0.2), (90000, 0.2)):
        low, high = band((parts == value).mean(axis=1).tolist())
        assert low < share < high


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_lengths_within_a_group_are_correlated(rho: float) -> None:
    """The correlation of two members' log lengths is rho, within four standard errors, (1 - rho²) / sqrt(5000) each."""
    logs = np.log(drawn(LengthSetting(mean=1e6, cv=1.0, cap=inf, correlation=rho)))
    assert abs(float(np.corrcoef(logs[0], logs[1])[0, 1]) - rho) < ERRORS * (1 - rho**2) / 5000**0.5
    assert abs(float(np.corrcoef(logs[0, :-1], logs[0, 1:])[0, 1])) < ERRORS / 5000**0.5


def test_equal_luck_makes_equal_lengths() -> None:
    """With rho = 1 all members of a group have the same length, groups different ones."""
    rows = drawn(LengthSetting(mean=1e6, cv=1.0, correlation=1.0))
    assert (rows == rows[0]).all()
    assert len(np.unique(rows[0])) > 4900


def test_lengths_drift_with_the_steps() -> None:
    """A drift of 0.5 over 1,000 steps of four groups: group 4,000 is half as long again, group 2,000 a quarter."""
    lengths = LengthSetting(mean=1000.0, drift=0.5)
    outcomes = SeededOutcomes(WorkSetting(groups=4, group_size=2, lengths=lengths), seed=1)
    assert [outcomes.lengths(group) for group in (0, 2000, 4000)] == [[1000, 1000], [1250, 1250], [1500, 1500]]


@pytest.mark.parametrize("failed", [0.0, 0.3, 0.6])
def test_scores_take_as_long_as_the_closed_form_says(failed: float) -> None:
    """A verifier that fails takes its time once more: mean and spread over many samples are those of `scoring`."""
    agents = Agents(verify_seconds=2.0, verify_cv=0.5, verify_failed_fraction=failed)
    work = WorkSetting(
        groups=1, group_size=8, lengths=LengthSetting(mean=1.0), verify=Latency(seconds=2.0, cv=0.5),
        verify_failed_fraction=failed,
    )  # fmt: skip
    outcomes = SeededOutcomes(work, 1)
    drawn = np.array([[outcomes.verify_seconds(group, member) for member in range(8)] for group in range(10_000)])
    mean, variation = scoring(agents)
    assert mean == pytest.approx(2.0 / (1.0 - failed))
    assert drawn.mean() == pytest.approx(mean, rel=0.02)
    assert drawn.std() / drawn.mean() == pytest.approx(variation, rel=0.04)
    once = replace(work, verify_failed_fraction=0.0)
    again = drawn[0] / np.array([SeededOutcomes(once, 1).verify_seconds(0, member) for member in range(8)])
    assert again == pytest.approx(again.round())
    assert again.min() >= 1.0 - 1e-9
