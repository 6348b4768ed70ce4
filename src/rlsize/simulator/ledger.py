"""Accounts of a run: one row for each optimizer step, of bounded size whatever happens in between."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.simulator.samples import Group

COLUMNS = (
    "end_seconds",  # when the step ended
    "train_seconds", "waiting_seconds", "sync_seconds", "failure_seconds", "overhead_seconds",  # of the step
    "trained_tokens", "trained_samples", "staleness_sum", "token_staleness_sum", "over_cap_samples", "most_stale",
    "generated_tokens", "dropped_tokens", "under_way_tokens",  # so far
    # so far, of instances
    "generating_seconds", "paused_seconds", "down_seconds", "away_seconds", "idle_seconds", "tail_seconds",
    "stepping_seconds", "slot_seconds",  # so far, of steps that have ended, and of the samples in them
    "backlog_samples", "backlog_tokens", "oldest_age_steps", "preemptions",  # at the end of the step
)  # fmt: skip
"""What a row holds. Times in s."""


class Ledger:
    """
    Rows of a run, and the row that is being written.

    Args:
        max_staleness: The cap, for counting what is above it; None for none. [1]
        compiled: Whether the compiled kernel writes them.
    """

    def __init__(self, max_staleness: float | None, *, compiled: bool = False) -> None:
        self.max_staleness, self.compiled = max_staleness, compiled
        self.columns = {name: array("d") for name in COLUMNS}
        self.staleness: list[dict[int, int]] = []  # samples by staleness, of each step
        self.row = dict.fromkeys(COLUMNS, 0.0)
        self._staleness: dict[int, int] = {}

    def trained(self, groups: Iterable[Group], version: int) -> None:
        """Groups are taken at a version of the trainer."""
        counts, row = self._staleness, self.row
        for group in groups:
            stamped = 0
            for sample in group.samples:
                lag = version - sample.version
                counts[lag] = counts.get(lag, 0) + 1
                stamped += sample.stamped
            row["trained_tokens"] += group.tokens
            row["trained_samples"] += group.size
            row["token_staleness_sum"] += version * group.tokens - stamped
            group.release()

    def add(self, name: str, amount: float) -> None:
        """Add to a column of the step under way."""
        self.row[name] += amount

    def close(self, so_far: dict[str, float], staleness: dict[int, int] | None = None) -> None:
        """
        The step is over.

        Args:
            so_far: Columns that count from the beginning, or hold at this moment; or those that were added to, too.
            staleness: Samples by staleness, of whom `trained` has not been told.
        """
        row, counts = self.row, staleness or self._staleness
        row.update(so_far)
        row["staleness_sum"] = float(sum(lag * count for lag, count in counts.items()))
        row["most_stale"] = float(max(counts, default=0))
        cap = self.max_staleness
        row["over_cap_samples"] = 0.0 if cap is None else float(sum(n for lag, n in counts.items() if lag >= cap + 1))
        for name, column in self.columns.items():
            column.append(row[name])
        self.staleness.append(counts)
        self.row = dict.fromkeys(COLUMNS, 0.0)
        self._staleness = {}

    def __len__(self) -> int:
        return len(self.staleness)
