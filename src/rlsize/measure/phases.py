"""One phase of load on all instances at once: told, heard, and noted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rlsize.facts.counters import EngineCounters, Snapshot
from rlsize.facts.rollout_run import Finished, PhaseRun
from rlsize.measure.instances import SILENT_SECONDS, refuse_if_gone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.measure.instances import Instance


def phase(
    instances: Sequence[Instance],
    groups: Sequence[Sequence[Any]],
    refill: Sequence[Any],
    concurrency: int,
    page_seconds: float,
    name: str,
    seconds: float | None = None,
) -> Iterator[list[PhaseRun]]:
    """
    Run a phase on all instances; what is recorded so far, each time something was.

    Args:
        instances: The engines.
        groups: What each of them starts with.
        refill: What it goes on with, again and again; empty for a phase that ends when all is done.
        concurrency: Samples in flight of each. [1]
        page_seconds: Time between two looks at its counters. [s]
        name: What to call the phase.
        seconds: When a phase with refill ends, unless it is halted before. [s]

    Raises:
        ChildDiedError: An instance died.
        UnfinishedError: A server has gone.
    """
    notes = [_Notes(instance, concurrency) for instance in instances]
    for instance, own in zip(instances, groups, strict=True):
        instance.child.tell(
            {
                "do": "load",
                "phase": name,
                "groups": own,
                "refill": refill,
                "concurrency": concurrency,
                "page_seconds": page_seconds,
                "seconds": seconds,
            }
        )
    quiet_since = time.monotonic()
    while not all(note.ended for note in notes):
        said = [note.take(event) for note in notes if not note.ended for event in note.instance.child.heard()]
        if any(said):
            quiet_since = time.monotonic()
            yield [note.run() for note in notes]
        elif time.monotonic() - quiet_since > SILENT_SECONDS:
            silent = next(note.instance for note in notes if not note.ended)
            silent.child.hear(0.0)  # says who was silent, and its last words
        else:
            time.sleep(0.02)


def halt(instances: Sequence[Instance]) -> None:
    """End the phase that runs on all instances."""
    for instance in instances:
        instance.child.tell({"do": "halt"})


class _Notes:
    """What one instance said of one phase."""

    def __init__(self, instance: Instance, concurrency: int) -> None:
        self.instance = instance
        self.concurrency = concurrency
        self.begun: float | None = None
        self.end: Mapping[str, Any] | None = None
        self.own = True
        self.snapshots: list[Snapshot] = []
        self.finished: list[Finished] = []

    @property
    def ended(self) -> bool:
        return self.end is not None

    def take(self, event: Mapping[str, Any]) -> bool:
        """Note an event; whether it says anything new about the phase."""
        refuse_if_gone(self.instance.name, event)
        kind = event.get("event")
        if kind == "begun":
            self.begun = event["seconds"]
        elif kind == "page":
            self._page(event)
        elif kind == "idle":
            self.end = event
        return kind in {"page", "idle"}

    def _page(self, event: Mapping[str, Any]) -> None:
        """
        Note a page; whose count is used is settled by the first one.

        The engine's counters and the client's begin elsewhere, so their difference is no progress: a page that a dying
        server cannot fill any more is left out.
        """
        counters = self.instance.scrape(event["text"]) if self.own else None
        self.own = counters is not None or bool(self.own and self.snapshots)
        if not self.own:
            counters = EngineCounters(
                instance=self.instance.name,
                engine="unknown",
                generation_tokens=event["streamed"],
                requests_running=event["in_flight"],
            )
        if counters is not None:
            self.snapshots.append(Snapshot(seconds=event["seconds"], counters=counters))
        self.finished += [
            Finished(seconds=when, samples=many, tokens=tokens) for when, many, tokens in event["finished"]
        ]

    def run(self) -> PhaseRun:
        """The phase as it was recorded so far."""
        end = self.end or {}
        return PhaseRun(
            instance=self.instance.name,
            concurrency=self.concurrency,
            begun=self.begun or 0.0,
            ended=end.get("seconds"),
            asked=end.get("asked", 0),
            snapshots=tuple(self.snapshots),
            finished=tuple(self.finished),
            refused=end.get("refused", 0),
            broken=end.get("broken", 0),
            own_counters=self.own,
        )
