"""What watched engines had to do: how many samples ran and waited, and how long weight syncs held them up."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from rlsize.estimates.counter_growth import grown
from rlsize.facts.evidence import EngineLoad

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.counters import Snapshot


def engine_load(histories: Mapping[str, Sequence[Snapshot]]) -> EngineLoad:
    """
    The mean load of an instance.

    Args:
        histories: Snapshots of each instance that counts, in the order of time.
    """
    ends = [(snapshots[0].counters, snapshots[-1].counters) for snapshots in histories.values() if len(snapshots) > 1]
    finished = grown(ends, "finished_requests")
    preempted = grown(ends, "preemptions")
    return EngineLoad(
        running=_gauge(histories, "requests_running"),
        waiting=_gauge(histories, "requests_waiting"),
        preemptions_per_sample=preempted / finished if preempted is not None and finished else None,
        sync_pause_fraction=_pause(histories),
    )


def _gauge(histories: Mapping[str, Sequence[Snapshot]], name: str) -> float | None:
    """Mean over the moments of each instance, then over the instances."""
    found = [
        fmean(values)
        for snapshots in histories.values()
        if (values := [value for one in snapshots if (value := getattr(one.counters, name)) is not None])
    ]
    return fmean(found) if found else None


def _pause(histories: Mapping[str, Sequence[Snapshot]]) -> float | None:
    """Share of the window in weight syncs, of the instance that spent most of it so; None where no page counts them."""
    shares = []
    for snapshots in histories.values():
        seconds = snapshots[-1].seconds - snapshots[0].seconds
        spent = grown([(snapshots[0].counters, snapshots[-1].counters)], "weight_sync_seconds")
        if spent is not None and seconds > 0:
            shares.append(min(1.0, spent / seconds))
    return max(shares) if shares else None
