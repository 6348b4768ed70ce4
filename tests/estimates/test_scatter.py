"""How numbers scatter: percentiles that stay within the numbers, and a spread in the numbers' own proportion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.scatter import scatter


def test_a_spread_by_hand() -> None:
    """Of 8, 10 and 12 the sample deviation is 2, a fifth of the mean; percentiles lie on lines between them."""
    found = scatter([12.0, 8.0, 10.0])
    assert found is not None
    assert (found.parts, found.cv, found.p10, found.p50, found.p90) == pytest.approx((3, 0.2, 8.4, 10.0, 11.6))


@pytest.mark.parametrize("values", [[], [3.0]])
def test_fewer_than_two_do_not_scatter(values: list[float]) -> None:
    """One value says nothing about a spread, which is not the same as a spread of zero."""
    assert scatter(values) is None


def test_zeros_scatter_by_nothing() -> None:
    """A phase that took no time has no mean to divide by."""
    found = scatter([0.0, 0.0])
    assert found is not None
    assert found.cv == 0.0


@given(values=st.lists(st.floats(0.1, 1e6), min_size=2, max_size=40), factor=st.floats(0.01, 100.0))
def test_percentiles_are_ordered_and_scale(values: list[float], factor: float) -> None:
    """Percentiles lie in order between the ends, and another unit changes no coefficient of variation."""
    found, scaled = scatter(values), scatter([factor * value for value in values])
    assert found is not None
    assert scaled is not None
    slack = 1 + 1e-9
    assert min(values) <= found.p10 * slack <= found.p50 * slack**2 <= found.p90 * slack**3 <= max(values) * slack**4
    assert scaled.cv == pytest.approx(found.cv, abs=1e-9)
    assert scaled.p50 == pytest.approx(factor * found.p50)
