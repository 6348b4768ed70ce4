"""Pairs of rates: medians, the median of their ratios, and how sure it is."""

from __future__ import annotations

import json
import statistics
from random import Random
from typing import Any

PAIRS = 9
DRAWS = 10_000  # of the bootstrap
LOW, HIGH = 0.025, 0.975


def interval(values: list[float]) -> tuple[float, float]:
    """A 95 % bootstrap interval of the median."""
    random = Random(0)  # noqa: S311 (resampling, not secrets)
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(DRAWS))
    return medians[int(LOW * DRAWS)], medians[int(HIGH * DRAWS)]


def show(
    case: str,
    other: str,
    pairs: list[tuple[float, float]],
    unit: str = "tokens",
    **more: Any,  # noqa: ANN401 (anything that JSON can hold)
) -> None:
    """
    Print one comparison as a line of JSON.

    Args:
        case: What was compared.
        other: Who the second of each pair is.
        pairs: Rates of rlsize and of the other, pair by pair.
        unit: What is counted.
        more: What else is worth knowing.
    """
    ratios = [ours / theirs for ours, theirs in pairs]
    low, high = interval(ratios)
    told = {
        "case": case,
        "pairs": len(pairs),
        f"rlsize_median_{unit}_per_second": round(statistics.median(ours for ours, _ in pairs)),
        f"{other}_median_{unit}_per_second": round(statistics.median(theirs for _, theirs in pairs)),
        "median_of_ratios": round(statistics.median(ratios), 3),
        "interval_95_percent": [round(low, 3), round(high, 3)],
    }
    print(json.dumps(told | more), flush=True)
