"""Rhythms of an asynchronous loop that waits for each batch in turn, beside the same drawn."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.equations import batch_drain
from rlsize.estimates.async_cycle import Cycle, rhythms
from rlsize.estimates.endings import Endings

MEAN, SAMPLES = 1000.0, 128
BATCHES = 400


def in_turn(cv: float, staleness: int, trained: float, places: float, score: float) -> float:
    """Mean step, drawn, of batches that wait for environments, of whose samples one after the other is scored."""
    sigma, random = np.sqrt(np.log1p(cv**2)), np.random.default_rng(0)
    begin = deque([0.0] * (staleness + 1))  # of the batches that may be under way
    given_back: list[float] = []  # when, of each environment that is taken
    coming: list[tuple[float, int]] = []  # samples, and their batches
    scored, lacks, ends = [0.0] * (BATCHES + staleness + 1), [SAMPLES] * (BATCHES + staleness + 1), [0.0]
    admitted, free = 0, 0.0
    for batch in range(BATCHES):
        while begin:
            start = begin.popleft()
            for one in MEAN * np.exp(sigma * random.standard_normal(SAMPLES) - sigma**2 / 2):
                came = one + (start if len(given_back) < places else max(start, heappop(given_back)))
                heappush(given_back, came)
                heappush(coming, (came, admitted))
            admitted += 1
        while lacks[batch]:
            came, whose = heappop(coming)
            scored[whose] = free = max(came, free) + score
            lacks[whose] -= 1
        ends.append(max(ends[-1], scored[batch]) + trained)
        begin.append(ends[-1])
    return float(np.diff(ends[20:]).mean())


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


def lognormal(cv: float) -> Endings:
    """Samples that end as lognormal ones do."""
    found = Endings(np.asarray(50 * MEAN), 0.0, 0.0, np.asarray(1.0))
    done = batch_drain.finished_share(np.maximum(found.tokens, 1e-9), MEAN, cv, 50 * MEAN)
    return found._replace(done=done, whole=done)


@pytest.mark.parametrize(
    ("staleness", "places", "scores"), [(1, 1.2, 0.0), (3, 1.5, 0.0), (1, np.inf, 0.9), (2, 1.6, 0.7)]
)
@pytest.mark.parametrize("cv", [0.3, 0.8])
def test_batches_wait_for_environments_and_verifiers_of_those_before(
    staleness: int, places: float, scores: float, cv: float
) -> None:
    """By which their last samples come later: of places for so many batches, and of scores that take so many means."""
    ends = lognormal(cv)
    found = rhythms(
        "wait",
        1,
        MEAN,
        cv,
        50 * MEAN,
        float(staleness),
        1.0,
        float(SAMPLES),
        places,
        scores * MEAN,
        0.0,
        *ends,
        *(ends if np.isfinite(places) else ()),
    )
    for tokens, due in list(zip(found.tokens, found.due, strict=True))[:7:2]:
        drawn = in_turn(cv, staleness, (1 - due) * tokens, places * SAMPLES, scores * MEAN / SAMPLES)
        assert tokens == pytest.approx(drawn, rel=0.08)


@given(st.floats(0.0, 80.0), st.floats(0.0, 30.0), st.floats(0.0, 1.0), st.floats(0.1, 100.0))
def test_a_pause_hides_no_more_of_a_rhythm_than_it_lasts(train: float, pause: float, share: float, wait: float) -> None:
    """Waits outside the GPUs go on in it."""
    cycle = Cycle((0.0, 20.0, 60.0), (30.0, 40.0, 60.0), (1.0, 1.0, 1.0), share, wait)
    plain, paused = cycle.seconds(train), cycle.seconds(train, pause)
    assert plain - pause - 1e-9 <= paused <= plain + 1e-9
