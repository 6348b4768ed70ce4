"""What a running loop is heading for: the columns of its log that have a limit, and when they will be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.forecast import forecast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.forecast import Forecast
    from rlsize.facts.figure import Figure
    from rlsize.facts.run_summary import RunSummary

LIMITED = ("longest_response_tokens", "peak_reserved_bytes", "queued_samples", "largest_staleness_steps")
"""Columns that may have a limit."""


def foreseen(run: RunSummary, limits: Mapping[str, Figure]) -> tuple[Forecast, ...]:
    """
    All that is foreseen, the soonest first.

    Args:
        run: The log's settled steps.
        limits: Limits by column; absent where nobody says one.
    """
    found = [
        forecast(key, run.columns[key], limits[key].number)
        for key in LIMITED
        if key in run.columns and key in limits and limits[key].known
    ]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.steps))
