"""Means of steps that remember each other, and whether two of them differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations.time_series import block_length, interval_widening, unbiased_autocorrelation
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DRAWS = 2000
_AT_ONCE = 2**20
CONFIDENCE = 0.95  # a rollback is decided on it, so one false alarm in twenty is enough
DEVIATE = 1.96  # of its ends
FEWEST_STEPS = 12
FEWEST_BLOCKS = 4  # blocks that a series must hold to be drawn from; fewer say nothing of each other


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanChange:
    """
    The relative change of a mean, or of a ratio of two means.

    Args:
        fraction: Change as a share of what it was. [1]
        low: Lower end of its 95 % interval. [1]
        high: Upper end. [1]
    """

    fraction: float
    low: float
    high: float

    @property
    def told(self) -> bool:
        """Whether it can be told from no change."""
        return self.low > 0 or self.high < 0


def blocks_of(series: Sequence[float]) -> tuple[int, float]:
    """Length of the blocks that a series is drawn in, and how many of them it holds."""
    values = np.asarray(series, dtype=float)
    count = len(values)
    if count < 2 or not np.ptp(values):  # noqa: PLR2004 (one value, or ever the same one, remembers nothing)
        return 1, float(count)
    centred = values - values.mean()
    autocorrelation = float(centred[1:] @ centred[:-1]) / float(centred @ centred)
    memory = unbiased_autocorrelation(autocorrelation, count)
    length = min(round(float(block_length(memory, count))), count)
    return length, count / length


def resampled_means(series: Sequence[float], random: np.random.Generator, draws: int = DRAWS) -> Array:
    """
    Means of series drawn anew in overlapping blocks, which wrap around at the end.

    Args:
        series: One value per step, in the order of the steps.
        random: The generator.
        draws: How many.
    """
    values = np.asarray(series, dtype=float)
    length, _ = blocks_of(series)
    sums = np.cumsum(np.concatenate(([0.0], values, values[: length - 1]))) if length > 1 else None
    whole, rest = divmod(len(values), length)
    portion = max(1, _AT_ONCE // whole)  # draws of long series one portion after the other, as they fill the memory
    sizes = [min(portion, draws - done) for done in range(0, draws, portion)]
    parts = []
    for size in sizes:
        starts = random.integers(0, len(values), size=(size, whole))
        parts.append((values[starts] if sums is None else sums[starts + length] - sums[starts]).sum(axis=1))
    total = np.concatenate(parts)
    if rest and sums is not None:
        last = random.integers(0, len(values), size=draws)
        total = total + sums[last + rest] - sums[last]
    return np.asarray(total / len(values))


def mean_change(
    before: Sequence[float], after: Sequence[float], random: np.random.Generator, draws: int = DRAWS
) -> MeanChange | None:
    """
    How far the mean of one series lies from that of another.

    Args:
        before: Values per step of the first.
        after: Values per step of the second.
        random: The generator.
        draws: How often both are drawn anew.

    Returns:
        The change; None where either is too short, its memory counted, or the first one's mean is 0.
    """
    blocks = min(blocks_of(series)[1] if len(series) >= FEWEST_STEPS else 0.0 for series in (before, after))
    first = float(np.mean(before)) if before else 0.0
    if blocks < FEWEST_BLOCKS or first == 0.0:
        return None
    second = float(np.mean(after))
    earlier, later = resampled_means(before, random, draws), resampled_means(after, random, draws)
    # changes of the mean itself where some draws of what was before hold nothing but zeros
    drawn = (later - earlier) / (earlier if earlier.min() > 0.0 else first)
    tail = (1.0 - CONFIDENCE) / 2.0
    fraction, wider = second / first - 1.0, float(interval_widening(parts=blocks, deviate=DEVIATE))
    low, high = (fraction + wider * (float(np.quantile(drawn, share)) - fraction) for share in (tail, 1.0 - tail))
    return MeanChange(fraction=fraction, low=low, high=high)


def above_zero(series: Sequence[float], random: np.random.Generator) -> bool:
    """
    Whether the mean of a series that is never negative can be told from 0.

    Args:
        series: One value per step, in the order of the steps.
        random: The generator.
    """
    if len(series) < FEWEST_STEPS or blocks_of(series)[1] < FEWEST_BLOCKS:
        return False
    return float(np.quantile(resampled_means(series, random, DRAWS), (1.0 - CONFIDENCE) / 2.0)) > 0.0


def standard_error(series: Sequence[float]) -> float:
    """Standard error of the mean of a series, its memory counted; 0 for a constant one, or a single value."""
    values = np.asarray(series, dtype=float)
    if len(values) < 2 or not np.ptp(values):  # noqa: PLR2004 (one value has no spread)
        return 0.0
    _, blocks = blocks_of(series)
    return float(values.std(ddof=1) / np.sqrt(max(blocks, 1.0)))
