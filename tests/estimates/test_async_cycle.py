"""Rhythms of an asynchronous loop that waits for each batch in turn, beside the same drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.async_cycle import Cycle, rhythms

MEAN, SAMPLES = 1000.0, 128


@pytest.mark.parametrize("staleness", [1, 2, 4])
@pytest.mark.parametrize("cv", [0.3, 1.2])
def test_long_and_short_steps_follow_each_other_and_do_not_even_out(staleness: int, cv: float) -> None:
    """A batch is due when its longest response has come, which the steps before it have given time for."""
    found = rhythms("wait", 1, MEAN, cv, 50 * MEAN, float(staleness), 1.0, float(SAMPLES))
    sigma, random = np.sqrt(np.log1p(cv**2)), np.random.default_rng(0)
    longest = MEAN * np.exp(sigma * random.standard_normal((20_000, SAMPLES)).max(axis=1) - sigma**2 / 2)
    for tokens, due in zip(found.tokens[:6], found.due[:6], strict=True):
        trained, steps = (1 - due) * tokens, [0.0] * staleness
        for one in longest:
            steps.append(trained + max(0.0, one - sum(steps[-staleness:])))
        assert tokens == pytest.approx(np.mean(steps), rel=0.05)


@given(st.floats(0.0, 80.0), st.floats(0.0, 30.0), st.floats(0.0, 1.0), st.floats(0.1, 100.0))
def test_a_pause_hides_no_more_of_a_rhythm_than_it_lasts(train: float, pause: float, share: float, wait: float) -> None:
    """Waits outside the GPUs go on in it."""
    cycle = Cycle((0.0, 20.0, 60.0), (30.0, 40.0, 60.0), (1.0, 1.0, 1.0), share, wait)
    plain, paused = cycle.seconds(train), cycle.seconds(train, pause)
    assert plain - pause - 1e-9 <= paused <= plain + 1e-9
