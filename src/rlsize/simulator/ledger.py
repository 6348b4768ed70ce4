"""Samples, their groups, and what is kept of a run: one row for each optimizer step, of bounded size."""

from __future__ import annotations

from array import array
from dataclasses import field
from typing import TYPE_CHECKING

from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlsize.simulator.batch import Batch
    from rlsize.simulator.engine import BatchingEngine

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

NEVER = -1


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


class Group:
    """
    The samples of one prompt.

    Args:
        serial: Its number, in the order of admission.
        lengths: Response tokens of its samples.
        size: Samples that it needs; all of them where not given. [1]
    """

    __slots__ = ("dropped", "first", "oldest", "samples", "serial", "size", "tokens", "unfinished")

    def __init__(self, serial: int, lengths: list[int], size: int | None = None) -> None:
        self.serial = serial
        self.tokens = sum(lengths)
        self.size = self.unfinished = len(lengths) if size is None else size
        self.first: list[Sample] = []  # that have ended, where it needs fewer than it has
        self.oldest = NEVER  # version of its stalest sample, once it is complete
        self.dropped = False
        self.samples: list[Sample] = [Sample(self, member, length) for member, length in enumerate(lengths)]

    def take_first(self) -> list[Sample]:
        """Keep those that have ended; which are left over."""
        others = [sample for sample in self.samples if sample not in self.first]
        self.samples, self.tokens = self.first, sum(sample.length for sample in self.first)
        return others

    def release(self) -> None:
        """Let go of the samples, which are trained or dropped: they point back here, which would keep all of them."""
        self.samples = []


class Sample:
    """
    One response.

    `done` counts its tokens up to the last time that it joined a batch; while it runs, its engine's clock says the
    rest. `stop` is where this stretch ends: at a tool call, or at its length. `held` counts KV tokens beside the
    prompt. `stamped` sums the versions of its tokens, while it is in no batch.
    """

    __slots__ = (
        "done", "engine", "group", "held", "joined", "length", "member", "stamped", "stop", "turn", "turns", "version",
    )  # fmt: skip
    joined: int  # its engine's clock when it joined
    turn: int
    turns: int

    def __init__(self, group: Group, member: int, length: int) -> None:
        self.group = group
        self.member = member
        self.length = length
        self.stop = length
        self.engine: Batch | None = None
        self.done = self.held = self.stamped = 0
        self.version = NEVER

    def forget(self) -> None:
        """Begin anew: its tokens are gone."""
        self.done = self.held = self.stamped = 0
        self.version = NEVER


@dataclass(frozen=True, slots=True)
class Span:
    """
    Something that lasted.

    Args:
        track: Who: `trainer`, `sync`, or `instance 3`.
        name: What it did.
        start: From. [s]
        end: To. [s]
        batch: Samples that ran, for instances. [1]
    """

    track: str
    name: str
    start: float
    end: float
    batch: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """
    Something that happened.

    Args:
        time: When. [s]
        name: What.
        numbers: With which numbers.
    """

    time: float
    name: str
    numbers: dict[str, float] = field(default_factory=dict)


class Recorder:
    """
    Hands spans and events on, as they happen.

    Args:
        take: Takes each; it says when to stop by returning False. Without it nothing is handed on.
    """

    def __init__(self, take: Callable[[Span | Event], bool] | None = None) -> None:
        self._take, self.on = take or (lambda _: False), take is not None

    def run(self, engine: BatchingEngine) -> None:
        """An instance has ended a run of steps."""
        if self.on and engine.last_batch:
            name = f"batch {engine.last_batch}"
            span = Span(f"instance {engine.index}", name, engine.started, engine.loop.now, engine.last_batch)
            self.on = self._take(span)

    def phase(self, track: str, name: str, start: float, end: float) -> None:
        """Something has ended, or is known to end then."""
        if self.on:
            self.on = self._take(Span(track, name, start, end))

    def event(self, time: float, name: str, **numbers: float) -> None:
        """Something has happened."""
        if self.on:
            self.on = self._take(Event(time, name, numbers))
