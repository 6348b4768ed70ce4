"""Scores: medians, bias and coverage of the band."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.verdicts import contests, grading
from rlsize.verdicts.grading import Point, quantile, score


def made(ratio: float, *, inside: bool = True, source: str = "s", family: str = "f", weight: float = 1.0) -> Point:
    """A prediction that is off by a factor, in or out of its band."""
    low, high = (50.0, 200.0) if inside else (200.0, 300.0)
    return Point(
        measured=100.0, predicted=100.0 * ratio, low=low, high=high, source=source, family=family, weight=weight
    )


def test_the_examples_in_the_docstrings_hold() -> None:
    """Of scores and of contests."""
    assert doctest.testmod(grading).failed == 0
    assert doctest.testmod(contests).failed == 0


def test_errors_are_relative_to_the_measurement() -> None:
    """Of 20, 0 and 10 % the median is 10 %; the bias keeps the sign."""
    found = score([made(0.8), made(1.0), made(0.9)])
    assert found.median == pytest.approx(0.1)
    assert found.p90 == pytest.approx(0.18)
    assert found.bias == pytest.approx(math.log(0.9))
    assert found.width == pytest.approx(4.0)


def test_coverage_counts_bands_that_hold_the_measurement() -> None:
    """Points without a band count for nothing."""
    bare = Point(measured=1.0, predicted=1.0, low=None, high=None, source="s", family="f")
    found = score([made(1.0), made(1.0, inside=False), bare])
    assert (found.n, found.banded, found.coverage) == (3, 2, 0.5)
    assert score([bare]).coverage is None
    assert score([bare]).coverage_interval is None


def test_points_of_one_source_err_together() -> None:
    """Resampling whole sources gives a wider interval than resampling a source's own points would."""
    together = [
        made(1.0, inside=source < 4, source=str(source), family=str(i)) for source in range(6) for i in range(20)
    ]
    apart = [made(1.0, inside=i % 6 < 4, source="s", family=str(i)) for i in range(120)]
    wide, narrow = (score(points) for points in (together, apart))
    assert (wide.resampled, narrow.resampled) == ("source", "family")
    assert wide.coverage == narrow.coverage == pytest.approx(2 / 3)
    widths = [np.ptp(found.coverage_interval or (0, 0)) for found in (wide, narrow)]
    assert widths[0] > 2 * widths[1]


def test_one_family_is_resampled_by_row() -> None:
    """There is nothing larger."""
    assert score([made(1.0), made(0.5, inside=False)]).resampled == "row"


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30))
def test_a_score_does_not_depend_on_the_order(ratios: list[float]) -> None:
    """Nor does anything lie outside the errors."""
    points = [made(ratio, family=str(ratio)) for ratio in ratios]
    one, other = score(points), score(points[::-1])
    assert one.median == pytest.approx(other.median)
    assert min(point.error for point in points) <= one.median <= one.p90 <= max(point.error for point in points) + 1e-12


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=20), st.integers(2, 5))
def test_weights_count_as_repeats_would(values: list[float], times: int) -> None:
    """A value with weight k stands where k equal values would, up to interpolation."""
    weighted = quantile(np.array(values), np.array([float(times), *[1.0] * (len(values) - 1)]), 0.5)
    repeated = sorted([*[values[0]] * times, *values[1:]])
    middle = len(repeated) // 2
    assert weighted in {repeated[middle], repeated[max(0, middle - 1)]} or len(values) == 1


def test_a_large_family_does_not_drown_the_others() -> None:
    """Counted once each, a good family of hundred weighs as much as a bad one of one."""
    good = [made(1.0, weight=0.01) for _ in range(100)]
    found = score([*good, made(2.0, family="g"), made(2.0, family="h")])
    assert found.median == pytest.approx(1.0)
