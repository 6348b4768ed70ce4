"""Whole instances and GPUs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlsize.planner.rounding import rounded_down, rounded_up


@given(st.integers(min_value=1, max_value=10**6), st.floats(min_value=-1e-10, max_value=1e-10))
def test_a_whole_number_stays_itself_whatever_its_last_bits(count: int, noise: float) -> None:
    """Ten instances are ten, also when a division gave 10.000000000000002."""
    assert rounded_up(count * (1 + noise)) == count
    assert rounded_down(count * (1 + noise)) == count


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_rounding_up_covers_and_wastes_less_than_one(exact: float) -> None:
    """The count covers the need, and one fewer would not."""
    count = rounded_up(exact)
    assert count >= exact * (1 - 1e-8)
    assert count == 1 or count - 1 < exact
