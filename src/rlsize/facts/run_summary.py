"""What a training run does per optimizer step, once it has settled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.run_log import RunMode, Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class SetApart:
    """
    Steps that do not count.

    Args:
        why: Why not.
        steps: Their numbers.
        seconds: Their wall clock, together. [s]
    """

    why: str
    steps: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """
    A run, step by step and in the mean of its settled steps.

    Args:
        source: What was read.
        framework: Whose log it is.
        mode: How rollouts and training lie in time.
        steps: Numbers of the settled steps.
        columns: One value per settled step, by field of `StepRecord`, and `train_seconds` and `other_seconds`; only
            columns without a gap.
        figures: Means and ratios of the settled steps, by key.
        set_apart: Steps that do not count: warm-up and outliers.
        skipped: Records that could not be read.
        keys: The log's key behind each field.
        counts: What a field counts, where that is not what its name says.
        guessed: The fields whose meaning was told by the names of keys alone, and how `--map` says it.
        unread: Keys that look like times, and were not understood.
        warnings: What the reader must know before trusting it.
    """

    source: str = ""
    framework: str = ""
    mode: RunMode = "unknown"
    steps: tuple[int, ...] = ()
    columns: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    set_apart: tuple[SetApart, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)
    guessed: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def figure(self, key: str, missing: str = "a log that has it") -> Figure:
        """A figure; without a value where the log lacks it."""
        return self.figures.get(key, absent(key, missing))
