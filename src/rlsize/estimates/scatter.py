"""How a number scattered: over equal parts of a window, or over repeats of the same work."""

from __future__ import annotations

from statistics import fmean, quantiles, stdev
from typing import TYPE_CHECKING

from rlsize.facts.measured import Scatter

if TYPE_CHECKING:
    from collections.abc import Sequence

TENTHS = 10


def scatter(values: Sequence[float]) -> Scatter | None:
    """
    Scatter of a number.

    Args:
        values: The number in each part or repeat, in any one unit.

    Returns:
        Coefficient of variation (sample standard deviation over the mean) and percentiles, which are interpolated and
        never lie outside the values; None for fewer than two, which do not scatter.

    >>> scatter([9.0, 10.0, 11.0])
    Scatter(parts=3, cv=0.1, p10=9.2, p50=10.0, p90=10.8)
    >>> scatter([9.0]) is None
    True
    """
    if len(values) < 2:  # noqa: PLR2004 (a single value does not scatter)
        return None
    mean = fmean(values)
    tenths = quantiles(values, n=TENTHS, method="inclusive")
    cv = stdev(values, mean) / abs(mean) if mean else 0.0
    return Scatter(parts=len(values), cv=cv, p10=tenths[0], p50=tenths[4], p90=tenths[8])
