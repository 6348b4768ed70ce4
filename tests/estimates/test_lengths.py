"""Response lengths have the mean asked for, the cap and the tail; and what is in flight at a random moment."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.equations.kv_cache import mean_live_tokens
from rlsize.equations.lengths import capped_mean
from rlsize.estimates.lengths import response_lengths, running_lengths, uncapped_mean


@given(mean=st.floats(10, 5000), cv=st.floats(0.1, 2.0), room=st.floats(1.5, 50), seed=st.integers(0, 100))
def test_lengths_have_the_mean_that_was_asked_for_and_stay_below_the_cap(
    mean: float, cv: float, room: float, seed: int
) -> None:
    """A few hundred are enough, as each comes from its own part of the distribution."""
    cap = room * mean
    drawn = response_lengths(400, mean, cv, cap, Random(seed))
    assert fmean(drawn) == pytest.approx(mean, rel=0.05, abs=1)
    assert all(1 <= length <= round(cap) for length in drawn)


def test_a_wider_distribution_has_a_longer_tail() -> None:
    """The longest of 256 grows with the coefficient of variation, and is the mean without one."""
    longest = [max(response_lengths(256, 1000, cv, None, Random(0))) for cv in (0.0, 0.5, 1.0, 2.0)]
    assert longest[0] == 1000
    assert longest == sorted(longest)
    assert longest[2] > 5000


@given(cv=st.floats(0.05, 3.0), mean=st.floats(1, 1e5), share=st.floats(0.05, 0.9))
def test_the_uncapped_mean_undoes_the_cap(cv: float, mean: float, share: float) -> None:
    """The cap takes away exactly what was added for it."""
    cap = mean / share
    try:
        wider = uncapped_mean(mean, cv, cap)
    except ValueError:
        assert capped_mean(1e3 * cap, cv, cap) < mean
        return
    assert wider >= mean * (1 - 1e-6)
    assert capped_mean(wider, cv, cap) == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize(("mean", "cv", "cap"), [(100.0, 0.0, 50.0), (100.0, 0.5, 100.0), (100.0, 0.5, 99.0)])
def test_a_mean_that_no_capped_lengths_can_have_is_refused(mean: float, cv: float, cap: float) -> None:
    """The message says both numbers."""
    with pytest.raises(ValueError, match=r"100.*(cap|below)"):
        uncapped_mean(mean, cv, cap)


def test_what_is_in_flight_is_longer_and_half_done() -> None:
    """Running samples have the mean age of renewal theory, which `mean_live_tokens` gives too."""
    lengths = response_lengths(500, 1000, 0.8, None, Random(1))
    running = running_lengths(lengths, 4000, Random(2))
    mean = fmean(lengths)
    cv = (fmean((length - mean) ** 2 for length in lengths)) ** 0.5 / mean
    assert fmean(age for age, *_ in running) == pytest.approx(mean_live_tokens(0, mean, cv), rel=0.05)
    assert fmean(age + rest for age, rest, _ in running) > 1.4 * mean
    assert all(age + rest == lengths[index] for age, rest, index in running)
    assert all(age >= 0 and rest >= 1 for age, rest, _ in running)
