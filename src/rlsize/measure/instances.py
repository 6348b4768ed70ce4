"""Rollout instances as measuring processes: an engine of our own, or a client for a server that runs already."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, UnfinishedError
from rlsize.facts.counters import EngineCounters, Snapshot
from rlsize.facts.rollout_run import Finished, PhaseRun
from rlsize.measure.child import Child, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

SILENT_SECONDS = 120.0  # an engine that says nothing for so long in the middle of a phase hangs


@dataclass(slots=True)
class Instance:
    """
    One rollout instance and the process that works it.

    Args:
        name: What it is called.
        child: The process.
        facts: What it said of itself when it was ready.
        scrape: Turns the text of its metrics page into counters; None where it cannot be read.
    """

    name: str
    child: Child
    facts: Mapping[str, Any]
    scrape: Callable[[str], EngineCounters | None]
    first: EngineCounters | None = field(default=None)

    def __post_init__(self) -> None:
        self.first = self.scrape(str(self.facts.get("page") or ""))


def started(
    name: str,
    argv: Sequence[str],
    folder: Path,
    scrape: Callable[[str], EngineCounters | None],
    seconds: float,
    env: Mapping[str, str] | None = None,
) -> Instance:
    """
    An instance, ready to be told what to do.

    Args:
        name: What to call it: `engine`, or the server's host and port.
        argv: The command that runs `workers/rollout_offline.py`, or `workers/rollout_online.py`.
        folder: A folder of its own.
        scrape: Reads its counters.
        seconds: Most that it may take to be ready. [s]
        env: Variables on top of the environment.

    Raises:
        UnfinishedError: It does not start, or the server does not answer as it should.
    """
    child = Child(argv, folder, name, {**staged(folder), **(env or {})})
    with ExitStack() as unless_ready:
        unless_ready.callback(child.end)
        while (event := child.hear(seconds)) is not None:
            refuse_if_gone(name, event)
            if event.get("event") == "ready":
                instance = Instance(name, child, event, scrape)
                unless_ready.pop_all()
                return instance
    raise UnfinishedError(Fault("ended before it was ready", name, "look at its log: --log FILE"))


def refuse_if_gone(name: str, event: Mapping[str, Any]) -> None:
    """
    Give up where a client says that its server has gone.

    Raises:
        UnfinishedError: It has.
    """
    if event.get("event") == "gone":
        todo = "is it up, is it the right address, and does it serve /v1/completions?"
        raise UnfinishedError(Fault(str(event.get("why")), name, todo))


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
        told = {"do": "load", "phase": name, "groups": own, "refill": refill, "concurrency": concurrency}
        instance.child.tell({**told, "page_seconds": page_seconds, "seconds": seconds})
    quiet_since = time.monotonic()
    while running := [note for note in notes if note.end is None]:
        said = [note.take(event) for note in running for event in note.instance.child.heard()]
        if any(said):
            quiet_since = time.monotonic()
            yield [note.run() for note in notes]
        elif time.monotonic() - quiet_since > SILENT_SECONDS:
            running[0].instance.child.hear(0.0)  # says who was silent, and its last words
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
        for when, many, tokens in event["finished"]:
            self.finished.append(Finished(seconds=when, samples=many, tokens=tokens))

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
