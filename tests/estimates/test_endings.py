"""Samples that come as others leave, and those that are scored as they come, beside the same drawn."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush

import numpy as np
import pytest

from rlsize.equations import batch_drain
from rlsize.estimates.endings import Endings
from rlsize.estimates.generation import StepBatch
from rlsize.estimates.outside import endings, first_to_end, last_score, outside, scored_share, stretched
from rlsize.facts.algorithm import Agents

MEAN, CV, WAIT = 1000.0, 0.3, 500.0
SIGMA = np.sqrt(np.log1p(CV**2))


def ended(group: int) -> Endings:
    """Lognormal samples of so large groups, after a wait that is the same for all."""
    longest = WAIT + 8 * MEAN
    found = Endings(np.asarray(longest), 0.0, 0.0, np.asarray(float(group)))
    done = batch_drain.finished_share(np.maximum(found.tokens - WAIT, 1e-9), MEAN, CV, 8 * MEAN)
    return found._replace(done=done, whole=done**group)


def drawn(random: np.random.Generator, many: int) -> np.ndarray:
    """The same, drawn."""
    found: np.ndarray = WAIT + MEAN * np.exp(SIGMA * random.standard_normal(many) - SIGMA**2 / 2)
    return found


def let_in(samples: int, places: int, group: int) -> tuple[float, float]:
    """When the last group came, and when all samples had ended, on average over some batches."""
    random, found = np.random.default_rng(0), []
    for _ in range(25_000 // samples):
        under_way: list[float] = []
        now = end = 0.0
        for _ in range(samples // group):
            while len(under_way) > places - group:
                now = heappop(under_way)
            for one in drawn(random, group):
                heappush(under_way, now + one)
                end = max(end, now + one)
        found.append((now, end))
    last, whole = np.mean(found, axis=0)
    return float(last), float(whole)


@pytest.mark.parametrize(
    ("samples", "places", "group", "near"),
    [(128, 117, 16, 0.02), (128, 60, 8, 0.02), (512, 300, 1, 0.03), (512, 60, 1, 0.02), (128, 32, 16, 0.07)],
)
def test_samples_come_as_others_leave(samples: int, places: int, group: int, near: float) -> None:
    """Whole groups, one after the other, as soon as there are places; with two groups at a time 7 % too late."""
    own, (last, whole) = ended(group), let_in(samples, places, group)
    found = own.let_in(own, float(samples), float(places), float(group))
    assert found.full == pytest.approx(last, rel=near)
    assert found.full + found.left.longest_of(found.running) == pytest.approx(whole, rel=near)


def test_samples_that_all_find_a_place_wait_for_none() -> None:
    """Nothing comes later, and they end as they would."""
    own = ended(8)
    found = own.let_in(own, 128.0, np.inf, 8.0)
    assert (found.full, found.running, found.left) == (0.0, 128.0, own)


def test_candidates_in_arrays_come_as_each_by_itself() -> None:
    """A plan asks for many numbers of places at once."""
    own, places = ended(8), np.array([40.0, 100.0, 400.0])
    together = own.let_in(own, 128.0, places, 8.0)
    for at, one in enumerate(places):
        alone = own.let_in(own, 128.0, one, 8.0)
        assert together.full[at] == pytest.approx(float(alone.full))
        assert together.running[at] == pytest.approx(float(alone.running))


@pytest.mark.parametrize("cv", [0.0, 1.0])
def test_the_last_score_of_those_that_begin_one_after_the_other(cv: float) -> None:
    """A long one may have begun long before the last one does."""
    random, sigma = np.random.default_rng(0), np.sqrt(np.log1p(cv**2))
    begun = np.linspace(10.0, 60.0, 200)
    times = 20.0 * np.exp(sigma * random.standard_normal((2000, 200)) - sigma**2 / 2)
    agents = Agents(verify_seconds=20.0, verify_cv=cv)
    found = last_score(agents, begun, np.linspace(0.0, 1.0, 200), np.asarray([200.0]))
    assert found == pytest.approx((begun + times).max(axis=1).mean(), rel=0.02)


def test_redundant_samples_are_scored_that_come_before_their_group_is_complete() -> None:
    """Eight of ten are needed: those that come while the eighth is scored are scored too."""
    agents = Agents(verify_seconds=3.0, redundant_samples=2)
    batch = StepBatch(
        samples=64.0,
        instances=1.0,
        prompt_tokens=0.0,
        response_tokens=MEAN,
        response_cv=CV,
        group_size=8.0,
        agents=agents,
    )
    step, cap = 0.01, 8 * MEAN
    unscored = Agents(redundant_samples=2)
    came = stretched(replace(batch, agents=unscored), MEAN, cap, outside(unscored), step)
    held = stretched(batch, MEAN, cap, outside(agents), step)
    stopped = first_to_end(batch, held, MEAN).batch
    assert came.endings is not None
    assert held.endings is not None
    assert stopped.endings is not None
    random = np.random.default_rng(0)
    come = step * MEAN * np.exp(SIGMA * random.standard_normal((20_000, 10)) - SIGMA**2 / 2)
    complete = np.sort(come, axis=1)[:, 7:8] + 3.0
    expected = (come <= complete).sum(axis=1).mean() / 8
    assert scored_share(came.endings, held.endings, stopped.endings, 8.0) == pytest.approx(expected, rel=0.01)


def test_of_samples_that_wait_alike_the_longer_ones_run_for_more_of_their_time() -> None:
    """Those that are still under way late have long responses; drawn, with a wait of 1,000 tokens each."""
    agents = Agents(turns=2, tool_seconds=10.0)
    batch = StepBatch(
        samples=64.0, instances=1.0, prompt_tokens=0.0, response_tokens=MEAN, response_cv=1.0, agents=agents
    )
    found = endings(batch, MEAN, 8 * MEAN, outside(agents), 0.01)
    sigma, random = np.sqrt(np.log1p(1.0)), np.random.default_rng(0)
    own = np.minimum(MEAN * np.exp(sigma * random.standard_normal(200_000) - sigma**2 / 2), 8 * MEAN)
    for age in (2500.0, 4000.0):
        there = own[own + 1000.0 > age]
        assert float(found.run(np.asarray([age]))[0]) == pytest.approx((there / (there + 1000.0)).mean(), rel=0.06)
