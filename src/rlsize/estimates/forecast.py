"""When what grows in a running loop will be at its limit: a straight line through its last steps, if it is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlsize.equations.time_series import steps_to_limit, trend_error, unbiased_autocorrelation

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOWS = (30, 60, 120)
"""Steps that a line is put through: a short one sees a growth that began lately, a long one a slow one."""
HORIZON = 100  # steps; beyond it a run changes more than its trend tells
SURE = 4.0  # standard errors by which a slope is above nothing
HELD = 5  # steps in a row that say so
_STILL = 0.5  # of the slope that the second half must have, so that a jump, or growth that fades, is none
_ABOVE = 1.0  # standard deviations above the line: what jumps is at its limit before its mean is


class Forecast(NamedTuple):
    """
    Something that will be at its limit.

    Args:
        key: What it is, a column of a log.
        now: What it is now, by the line. [its unit]
        limit: Its limit. [its unit]
        steps: Steps until then; 0 where it is there. [step]
        soonest: The same by the steepest line that its scatter allows (two standard errors). [step]
        latest: The same by the flattest. [step]
    """

    key: str
    now: float
    limit: float
    steps: float
    soonest: float
    latest: float


def forecast(key: str, values: Sequence[float], limit: float) -> Forecast | None:
    """
    When a column will be at its limit; None where nothing shows that it will be, within 100 steps.

    Args:
        key: The column.
        values: Its values, the last one now.
        limit: Its limit.
    """
    if len(values) >= HELD and min(values[-HELD:]) >= limit:
        return Forecast(key, values[-1], limit, 0.0, 0.0, 0.0)
    series = np.asarray(values, dtype=float)
    found = [one for window in WINDOWS if (one := _held(key, series, limit, window)) is not None]
    return min(found, key=lambda one: one.steps) if found else None


def _held(key: str, series: np.ndarray, limit: float, window: int) -> Forecast | None:
    """What a line through so many steps says, if it has said so for some steps."""
    if len(series) < window + HELD - 1:
        return None
    told = None
    for back in reversed(range(HELD)):
        end = len(series) - back
        told = _line(key, series[end - window : end], limit)
        before = series[: end - window]
        if told is None or (before.size >= HELD and _smooth(series[:end])[-1] <= _smooth(before).max()):
            return None  # what was there before comes and goes
    return told


def _smooth(series: np.ndarray) -> np.ndarray:
    return np.convolve(series, np.ones(HELD) / HELD, "valid")


def _slope(series: np.ndarray) -> tuple[np.ndarray, float]:
    """Places around the middle, and the slope of the line through what is there."""
    places = np.arange(len(series)) - (len(series) - 1) / 2
    return places, float(places @ series / (places @ places))


def _line(key: str, series: np.ndarray, limit: float) -> Forecast | None:
    count = len(series)
    places, growth = _slope(series)
    rest = series - series.mean() - growth * places
    scatter = float(np.sqrt(rest @ rest / (count - 2)))
    memory = float(rest[1:] @ rest[:-1] / (rest @ rest)) if scatter > 0 else 0.0
    error = trend_error(scatter, count, unbiased_autocorrelation(memory, count))
    if growth <= max(0.0, SURE * error) or _slope(series[count // 2 :])[1] < _STILL * growth:
        return None
    now = float(series.mean() + growth * places[-1])
    near = min(now + _ABOVE * scatter, limit)
    soonest, steps, latest = (
        float(steps_to_limit(near, slope, limit)) for slope in (growth + 2 * error, growth, growth - 2 * error)
    )
    return Forecast(key, now, limit, steps, soonest, latest) if steps <= HORIZON else None
