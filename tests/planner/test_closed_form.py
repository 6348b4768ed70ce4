"""The step of a plan is that of the simulator: random loops in all modes, with late samples of all kinds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from benchmarks.agents import planned, played
from benchmarks.closed_form import pairs, random_loop, within
from tests.effort import tries

NEAR_SHARE = 0.85  # of the loops; 93 % of 240
BIAS = 0.05


@pytest.mark.long
def test_the_step_of_a_plan_is_that_of_the_simulator() -> None:
    """Within 10 % in nine of ten loops, and none far off."""
    ratios = [pair.ratio for pair in pairs(range(tries(16)))]
    assert within(ratios) >= NEAR_SHARE
    assert abs(float(np.median(ratios)) - 1) < BIAS
    assert 1 / 1.5 < min(ratios) <= max(ratios) < 1.5


@pytest.mark.long
@pytest.mark.parametrize("seed", [37, 2062])
def test_late_samples_are_dropped_when_they_end(seed: int) -> None:
    """A loop that drops them, whose cache is about full; one was said to take 22 % longer."""
    problem, place, _ = random_loop(Random(seed), "async")
    found = replace(problem, late={**problem.late, "async": "drop"})
    assert planned(found, place) == pytest.approx(played(found, place), rel=0.1)


@pytest.mark.long
def test_samples_beyond_the_slots_fill_no_cache() -> None:
    """An engine whose 1,024 slots are fewer than its cache has room for; the loop was said to take 17 % longer."""
    problem, place, _ = random_loop(Random(7124), "async")
    assert planned(problem, place) == pytest.approx(played(problem, place), rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("seed", [50242, 50327])
def test_groups_run_on_no_more_instances_than_there_are_groups(seed: int) -> None:
    """As the samples of a group stay together; 8 and 16 groups on 32 instances were said to be 16 and 8 % quicker."""
    problem, place, _ = random_loop(Random(seed), "colocated")
    simulated = [played(problem, place, run) for run in range(4)]
    assert planned(problem, place) == pytest.approx(np.mean(simulated), rel=0.05)
