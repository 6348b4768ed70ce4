"""A training log as counters and gauges: the series of `facts/published.py`."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from rlsize.equations.money import cost_per_step
from rlsize.facts import published

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.run_log import RunLog, RunMode, StepRecord


def counts(log: RunLog, pools: Mapping[str, float]) -> dict[str, float]:
    """
    What a log has counted, from its first row to its last; series that no row tells are missing.

    Args:
        log: The log.
        pools: GPUs of both pools and their prices, as `cost_per_step` names them; what is missing of the GPUs is the
            log's, and without prices nothing costs.
    """
    told: dict[str, list[float]] = {}
    for row in log.steps:
        for series, value in _row(row, log.mode, pools).items():
            if value is not None:
                told.setdefault(series, []).append(value)
    found = {series: fsum(values) for series, values in told.items()}
    if published.DROPPED in found and published.TRAINED in found:
        found[published.GENERATED] = found[published.TRAINED] + found[published.DROPPED]
    return found


def gauges(log: RunLog) -> dict[str, float]:
    """What the last row that tells it says of queue and staleness."""
    fields = {
        published.QUEUED: "queued_samples",
        published.AGE: "largest_staleness_steps",
        published.STALENESS: "staleness_steps",
    }
    told = {
        series: next((value for row in reversed(log.steps) if (value := getattr(row, name)) is not None), None)
        for series, name in fields.items()
    }
    return {series: value for series, value in told.items() if value is not None}


def _row(row: StepRecord, mode: RunMode, pools: Mapping[str, float]) -> dict[str, float | None]:
    """What a row adds to each counter."""
    worked = [part for part in (row.logprob_seconds, row.update_seconds) if part is not None]
    dropped: float | None = None
    if row.samples and row.dropped_samples is not None and row.response_tokens is not None:
        dropped = row.dropped_samples * row.response_tokens / row.samples  # as long as those that were trained
    return {
        published.STEP: row.step_seconds,
        published.WAIT: _waited(row, mode),
        published.SYNC: row.sync_seconds,
        published.BUSY: sum(worked) if worked else None,
        published.TRAINED: row.response_tokens,
        published.DROPPED: dropped,
        published.STEPS: row.updates,
        published.COST: _cost(row, mode, pools),
    }


def _waited(row: StepRecord, mode: RunMode) -> float | None:
    """Seconds without samples: as the trainer logs them, all of a generation that it takes turns with, or its share."""
    if mode == "colocated":
        return None  # one pool does both
    if row.wait_seconds is not None:
        return row.wait_seconds
    if mode == "synchronous" and row.generation_seconds is not None:
        return row.generation_seconds
    if row.trainer_idle_fraction is not None and row.step_seconds is not None:
        return row.trainer_idle_fraction * row.step_seconds
    return None


def _cost(row: StepRecord, mode: RunMode, pools: Mapping[str, float]) -> float | None:
    sizes = {key: value for key in ("rollout_gpus", "trainer_gpus") if (value := getattr(row, key)) is not None}
    given = {**sizes, **pools}
    if mode == "colocated" and "trainer_gpus" in given:  # those that are shared count once
        given["rollout_gpus"] = 0.0
        given.setdefault("rollout_gpu_hour", given.get("trainer_gpu_hour", 0.0))
    if row.step_seconds is None or len(given) < len(POOLS):
        return None
    return float(cost_per_step(**given, step_seconds=row.step_seconds))


POOLS = ("rollout_gpus", "rollout_gpu_hour", "trainer_gpus", "trainer_gpu_hour")
"""What a cost needs of both pools."""


class Counters:
    """
    Counters that only grow, whatever becomes of the log.

    Args:
        totals: What was served last, by an earlier process; empty where there was none.
        sums: What the log had counted then.
        first: The first row of that log, as text.
        engines: Response tokens that each engine had counted then, by name.
    """

    def __init__(
        self, totals: Mapping[str, float], sums: Mapping[str, float], first: str, engines: Mapping[str, float]
    ) -> None:
        self.totals, self.sums, self.first, self.engines = dict(totals), dict(sums), first, dict(engines)
        self._fresh = bool(first)  # whether no log was read in this life, though one was before

    def read(self, first: str, sums: Mapping[str, float]) -> dict[str, float]:
        """
        Take a log as it is now; the counters.

        Rows that were not counted yet are. What another log than before holds as this process begins is of the past,
        and is not: it would look like a rate. A log that begins anew while we look is all new.
        """
        steps = published.STEPS
        same = not self.first or (first == self.first and sums.get(steps, 0.0) >= self.sums.get(steps, 0.0))
        if not same and self._fresh:
            before: Mapping[str, float] = sums
        else:
            before = self.sums if same else {}
        for key, value in sums.items():
            self.totals[key] = self.totals.get(key, 0.0) + max(0.0, value - before.get(key, 0.0))
        self.sums, self.first, self._fresh = dict(sums), first, False
        return self.totals

    def generated(self, engines: Mapping[str, float]) -> None:
        """
        Take what engines have counted by now; of one that nobody saw before, what it had counted is of the past.

        One that counts less than before began anew, and all of it is new.
        """
        for name, count in engines.items():
            before = self.engines.get(name, count)
            grown = count - before if count >= before else count
            self.totals[published.GENERATED] = self.totals.get(published.GENERATED, 0.0) + grown
        self.engines |= engines


def first_row(log: RunLog) -> str:
    """What tells a log from another that is written to the same place."""
    return f"{log.steps[0].step} {log.steps[0].step_seconds}"
