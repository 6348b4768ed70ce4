"""Runs of a framework that no constant was fitted to, predicted a priori: errors as aimed at, and bands."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from benchmarks.coverage import expected_coverage
from benchmarks.frameworks import predicted, runs

from rlsize.verdicts.grading import Point, score


@pytest.fixture(scope="module")
def steps() -> list[Point]:
    """Steps of verl and its forks."""
    verl = [run[1:] for run in runs() if run[0] == "verl" and "step" in run[2]]
    return [point for scenario, took, of in verl for _, point in predicted(scenario, {"step": took["step"]}, of)]


@pytest.mark.long
def test_steps_of_a_framework_that_was_not_tuned_on_are_as_close_as_was_aimed_at(steps: list[Point]) -> None:
    """A median of 15 % and a 90th percentile of 35 %."""
    errors = [point.error for point in steps]
    assert median(errors) <= 0.15
    assert float(np.quantile(errors, 0.9)) <= 0.35


@pytest.mark.long
def test_their_bands_hold_what_bands_of_80_percent_hold_of_so_many_sources(steps: list[Point]) -> None:
    """Each publication counts once."""
    sources = sorted({point.source for point in steps})
    each = [score([point for point in steps if point.source == source]).coverage or 0.0 for source in sources]
    low, high = expected_coverage(len(sources))
    assert low <= float(np.mean(each)) <= high


@pytest.mark.parametrize(("sources", "ends"), [(1, (0, 1)), (2, (0, 1)), (3, (1 / 3, 1)), (20, (0.6, 0.95))])
def test_few_sources_say_little_of_bands(sources: int, ends: tuple[float, float]) -> None:
    """Of 20 sources 12 to 19 are inside in 95 of 100 cases, by the table of the binomial distribution."""
    assert expected_coverage(sources) == pytest.approx(ends)
