"""What grows is foreseen in time, and what only moves is not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.effort import tries

from rlsize.estimates.forecast import HELD, HORIZON, Forecast, forecast

STEPS = 400
Series = tuple[str, np.ndarray, float]
"""What it is, its values, its limit."""


def remembering(random: np.random.Generator, memory: float, scatter: float) -> np.ndarray:
    """Noise that fades from step to step."""
    noise = random.normal(size=STEPS) * scatter * np.sqrt(1 - memory**2)
    found = np.zeros(STEPS)
    for index in range(1, STEPS):
        found[index] = memory * found[index - 1] + noise[index]
    return found


def growing(random: np.random.Generator) -> Iterator[Series]:
    """Ten loops that run out of something."""
    step, noise = np.arange(STEPS), random.normal(size=STEPS)
    late = np.maximum(0, step - 200)
    yield "length, steadily", 4000 + 20 * step + 400 * noise, 9000
    yield "length, noisy", 4000 + 20 * step + 1200 * noise, 9000
    yield "length, ever faster", 3000 * np.exp(0.004 * step + 0.1 * noise), 9000
    yield "length, three times as fast", 3000 * np.exp(0.012 * step + 0.1 * noise), 9000
    yield "longest of 256", np.array([random.lognormal(7 + 0.004 * one, 0.7, 256).max() for one in step]), 20000
    yield "queue, from some step on", 300 + 6 * late + 30 * noise, 900
    yield "queue, from some step on, fast", 300 + 10 * late + 30 * noise, 900
    yield "queue", np.maximum(0, 100 + 5 * step + remembering(random, 0.8, 60)), 1200
    yield "staleness in whole steps", np.round(1 + step / 60 + 0.2 * noise), 4
    yield "memory", 60e9 + 0.05e9 * step + 0.3e9 * noise, 75e9


def moving(random: np.random.Generator) -> Iterator[Series]:
    """Loops that go on for ever."""
    step, noise = np.arange(STEPS), random.normal(size=STEPS)
    yield "length", 8000 * np.exp(0.15 * noise), 13000
    yield "longest of 256", random.lognormal(7, 0.7, (STEPS, 256)).max(axis=1), 20000
    for memory in (0.5, 0.8, 0.9, 0.95):
        yield f"queue that remembers {memory}", 300 + remembering(random, memory, 60), 600
    yield "queue near its limit", 300 + remembering(random, 0.9, 60), 480
    yield "queue that fills and empties", 40.0 * (step % 12) + 10 * noise, 600
    yield "tide", 300 + 100 * np.sin(step / 15) + 20 * noise, 600
    yield "one jump", np.where(step < 200, 300, 400) + 30 * noise, 600
    yield "growth that ends", 3000 + 4000 * (1 - np.exp(-step / 100)) + 300 * noise, 12000
    yield "nothing", np.zeros(STEPS), 1


def first_told(values: np.ndarray, limit: float, until: int) -> list[int]:
    """Steps at which something is foreseen that was not the step before."""
    told = [forecast("x", values[: step + 1].tolist(), limit) is not None for step in range(until)]
    return [step for step in range(until) if told[step] and not (step and told[step - 1])]


@pytest.mark.long
def test_what_grows_is_foreseen_twenty_steps_ahead() -> None:
    """In more than eight of ten constructed loops; a limit is reached where the mean of five steps is there."""
    in_time, loops = 0, 0
    for seed in range(tries(8)):
        for _, values, limit in growing(np.random.default_rng(seed)):
            mean = np.convolve(values, np.ones(HELD) / HELD, "valid")
            reached = int(np.argmax(mean >= limit)) + HELD - 1
            assert mean.max() >= limit
            told = first_told(values, limit, reached)
            in_time += bool(told) and told[0] <= reached - 20
            loops += 1
    assert in_time > 0.8 * loops


@pytest.mark.long
def test_what_only_moves_is_told_less_than_once_in_500_steps() -> None:
    """Noise that remembers, tides, jumps and growth that ends are no growth."""
    false, steps = 0, 0
    for seed in range(tries(12)):
        for _, values, limit in moving(np.random.default_rng(seed)):
            false += len(first_told(values, limit, STEPS))
            steps += STEPS
    assert 500 * false < steps


def test_a_line_is_foreseen_where_it_goes() -> None:
    """A clean line reaches its limit when arithmetic says so, and no sooner than the horizon is anything told."""
    line = [100.0 * step for step in range(200)]
    found = forecast("x", line, 19_900 + 4_000.0)
    assert found is not None
    assert (found.steps, found.soonest, found.latest) == pytest.approx((40, 40, 40))
    assert forecast("x", line, 19_900 + 100.0 * (HORIZON + 1)) is None
    assert forecast("x", line[::-1], 30_000.0) is None
    assert forecast("x", line, 10_000.0) == Forecast("x", 19_900.0, 10_000.0, 0, 0, 0)
    assert forecast("x", [], 1.0) is None
