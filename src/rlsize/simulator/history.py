"""What is noted of a run beside its accounts: runs of instances, phases of the trainer, and what happens to groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.simulator.engine import BatchingEngine


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
