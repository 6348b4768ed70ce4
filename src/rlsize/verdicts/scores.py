"""How wrong predictions are: errors, bias, and how often the 80 % band holds the measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RESAMPLES = 2000
_ENDS = (0.025, 0.975)  # of a 95 % interval
_HIGH = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """
    One prediction beside its measurement.

    Args:
        measured: What was measured.
        predicted: What is predicted, in the same unit.
        low: Lower end of the 80 % band; None where there is no band.
        high: Upper end.
        source: The publication; its points are not independent of each other.
        family: A smaller group within a source.
        weight: What the point counts in quantiles. [1]
    """

    measured: float
    predicted: float
    low: float | None
    high: float | None
    source: str
    family: str
    weight: float = 1.0

    @property
    def error(self) -> float:
        """
        |predicted / measured - 1|.

        >>> Point(measured=100.0, predicted=75.0, low=None, high=None, source="s", family="f").error
        0.25
        """
        return abs(self.predicted / self.measured - 1.0)

    @property
    def inside(self) -> bool | None:
        """Whether the band holds the measurement; None without a band."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """
    How wrong a set of predictions is.

    Args:
        n: Predictions. [1]
        sources: Publications. [1]
        families: Families of records. [1]
        median: Median of |predicted / measured - 1|. [1]
        p90: Its 90th percentile. [1]
        bias: Median of log(predicted / measured). [1]
        banded: Predictions with a band. [1]
        coverage: Share of those whose band holds the measurement; None without any. [1]
        coverage_interval: Its 95 % bootstrap interval.
        resampled: What the bootstrap draws: source, family or row.
        width: Median of a band's upper end over its lower; None without any. [1]
    """

    n: int
    sources: int
    families: int
    median: float
    p90: float
    bias: float
    banded: int
    coverage: float | None
    coverage_interval: tuple[float, float] | None
    resampled: str
    width: float | None


def score(points: Sequence[Point], seed: int = 0) -> Score:
    """
    The score of predictions, at least one.

    The interval of the coverage comes from resampling whole sources, since points of one source err together; with one
    source, families; with one family, points.
    """
    errors = np.array([point.error for point in points])
    logs = np.log([point.predicted / point.measured for point in points])
    weights = np.array([point.weight for point in points])
    banded = [point for point in points if point.inside is not None]
    rows = [str(index) for index in range(len(banded))]
    own = {"source": [point.source for point in banded], "family": [point.family for point in banded]}
    resampled, groups = next(((name, found) for name, found in own.items() if len(set(found)) > 1), ("row", rows))
    inside = np.array([bool(point.inside) for point in banded], dtype=float)
    ratios = [point.high / point.low for point in banded if point.low and point.high]
    return Score(
        n=len(points),
        sources=len({point.source for point in points}),
        families=len({(point.source, point.family) for point in points}),
        median=quantile(errors, weights, 0.5),
        p90=quantile(errors, weights, _HIGH),
        bias=quantile(logs, weights, 0.5),
        banded=len(banded),
        coverage=float(inside.mean()) if banded else None,
        coverage_interval=_interval(inside, groups, seed) if banded else None,
        resampled=resampled,
        width=float(np.median(ratios)) if ratios else None,
    )


def quantile(values: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> float:
    """
    A weighted quantile; with equal weights the usual one, interpolated between values.

    >>> quantile(np.array([1.0, 2.0, 4.0]), np.ones(3), 0.5)
    2.0
    >>> quantile(np.array([1.0, 2.0, 4.0]), np.array([8.0, 1.0, 1.0]), 0.5)
    1.0
    """
    if np.ptp(weights) == 0:
        return float(np.quantile(values, share))
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(reached, share - 1e-12)])


def _interval(inside: NDArray[np.float64], groups: Sequence[str], seed: int) -> tuple[float, float]:
    _, members = np.unique(groups, return_inverse=True)
    held = np.bincount(members, weights=inside)
    sizes = np.bincount(members)
    picked = np.random.default_rng(seed).integers(0, len(sizes), (RESAMPLES, len(sizes)))
    shares = held[picked].sum(axis=1) / sizes[picked].sum(axis=1)
    low, high = np.quantile(shares, _ENDS)
    return float(low), float(high)
