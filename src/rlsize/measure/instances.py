"""Rollout instances as measuring processes: an engine of our own, or a client for a server that runs already."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import Fault, UnfinishedError
from rlsize.facts.counters import EngineCounters, Finished, PhaseRun, Snapshot
from rlsize.measure.child import Child, ChildDiedError, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

TOKENLESS_SECONDS = 120.0  # an engine that makes no token for so long in the middle of a phase hangs, whatever it says
FINISHED = ("seconds", "samples", "tokens", "sent", "first", "last")  # what a worker tells of samples that finished
FULL = 0.95  # share of what a level begins with whose prompts must have been read


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


class Launch(NamedTuple):
    """
    An instance to be started.

    Args:
        name: What to call it: `engine`, or the server's host and port.
        argv: The command that runs `workers/rollout_offline.py`, or `workers/rollout_online.py`.
        folder: A folder of its own.
        scrape: Reads its counters.
        env: Variables on top of the environment.
    """

    name: str
    argv: Sequence[str]
    folder: Path
    scrape: Callable[[str], EngineCounters | None]
    env: Mapping[str, str] = {}


def started(launches: Sequence[Launch], seconds: float) -> list[Instance]:
    """
    Instances, started together and ready to be told what to do.

    Args:
        launches: What to start.
        seconds: Most that each may take to be ready. [s]

    Raises:
        UnfinishedError: One does not start, or its server does not answer as it should; then all are ended.
    """
    with ExitStack() as unless_ready:
        children = []
        for one in launches:
            children.append(Child(one.argv, one.folder, one.name, {**staged(one.folder), **one.env}))
            unless_ready.callback(children[-1].end)
        found = [_ready(one, child, seconds) for one, child in zip(launches, children, strict=True)]
        unless_ready.pop_all()
    return found


def _ready(launch: Launch, child: Child, seconds: float) -> Instance:
    while (event := child.hear(seconds)) is not None:
        refuse_if_gone(launch.name, event)
        if event.get("event") == "ready":
            return Instance(launch.name, child, event, launch.scrape)
    raise UnfinishedError(Fault("ended before it was ready", launch.name, "look at its log: --log FILE"))


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
) -> Iterator[list[PhaseRun]]:
    """
    Run a phase on all instances; what is recorded so far, each time something was.

    Args:
        instances: The engines.
        groups: What each of them starts with.
        refill: What it goes on with, again and again; empty for a phase that ends when all is done.
        concurrency: Samples in flight of each. [1]
        page_seconds: Time between two looks at its counters. [s]
        name: What to call the phase; one with refill ends when it is halted.

    Raises:
        ChildDiedError: An instance died, or made no token for too long, however many pages it sent.
        UnfinishedError: A server has gone.
    """
    each = zip(instances, groups, strict=True)
    notes = [_Notes(instance, concurrency, own if refill else ()) for instance, own in each]
    for instance, own in zip(instances, groups, strict=True):
        told = {"do": "load", "phase": name, "groups": own, "refill": refill, "concurrency": concurrency}
        instance.child.tell({**told, "page_seconds": page_seconds})
    while running := [note for note in notes if note.end is None]:
        said = [note.take(event) for note in running for event in note.instance.child.heard()]
        full = [note.full for note in notes]
        if any(said):
            yield [note.run(None if None in full else max(moment or 0.0 for moment in full)) for note in notes]
        else:
            time.sleep(0.02)
        for note in running:
            note.refuse_if_tokenless()


def halt(instances: Sequence[Instance]) -> None:
    """End the phase that runs on all instances."""
    for instance in instances:
        instance.child.tell({"do": "halt"})


class _Notes:
    """What one instance said of one phase."""

    def __init__(self, instance: Instance, concurrency: int, start: Sequence[Any]) -> None:
        """With the groups that a level begins with: key, prompt tokens, samples, response tokens, age."""
        self.instance = instance
        self.concurrency = concurrency
        self.start_samples = sum(group[2] for group in start)
        self.start_tokens = sum((group[1] + sum(group[4:5])) * group[2] for group in start)
        self.full: float | None = None
        self.made = -1.0
        self.made_at = time.monotonic()
        self.begun: float | None = None
        self.end: Mapping[str, Any] | None = None
        self.own = True
        self.snapshots: list[Snapshot] = []
        self.finished: list[Finished] = []

    def take(self, event: Mapping[str, Any]) -> bool:
        """Note an event; whether it says anything new about the phase."""
        refuse_if_gone(self.instance.name, event)
        kind = event.get("event")
        if kind in {"begun", "idle"}:  # what it does between phases has its own end
            self.made_at = time.monotonic()
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
            self._look(event, counters)
        self.finished += [Finished(**dict(zip(FINISHED, one, strict=False))) for one in event["finished"]]

    def _look(self, event: Mapping[str, Any], counters: EngineCounters) -> None:
        """
        Whether it makes tokens, and whether it has read what it began with.

        A client counts its own streams: what a server makes for others, or keeps a connection alive with, is none of
        ours. An engine of our own tells of prompts by its counters.
        """
        opened = event.get("opened")
        prompts = (counters.prompt_tokens or 0.0) - (self.snapshots[0].counters.prompt_tokens or 0.0)
        made = event["streamed"] if opened is not None else counters.generation_tokens + prompts
        if made != self.made:
            self.made, self.made_at = made, time.monotonic()
        share = opened / self.start_samples if opened is not None and self.start_samples else 0.0
        if opened is None and self.start_tokens:
            share = prompts / self.start_tokens
        if self.full is None and share >= FULL:
            self.full = event["seconds"]

    def refuse_if_tokenless(self) -> None:
        """
        Give up an instance that makes no token any more.

        Raises:
            ChildDiedError: It does not.
        """
        if self.end is None and time.monotonic() - self.made_at > TOKENLESS_SECONDS:
            child, still = self.instance.child, "its pages still come" if self.snapshots else "it sends no page"
            what = f"made no token for {TOKENLESS_SECONDS:.0f} s ({still})"
            raise ChildDiedError(Fault(what, self.instance.name, "its last words: " + child.last_words()))

    def run(self, full: float | None = None) -> PhaseRun:
        """The phase as it was recorded so far; full when all instances are."""
        end = self.end or {}
        return PhaseRun(
            instance=self.instance.name,
            concurrency=self.concurrency,
            begun=self.begun or 0.0,
            full=full,
            ended=end.get("seconds"),
            asked=end.get("asked", 0),
            snapshots=tuple(self.snapshots),
            finished=tuple(self.finished),
            running=tuple((sent, samples) for sent, samples in end.get("running", ())),
            refused=end.get("refused", 0),
            broken=end.get("broken", 0),
            own_counters=self.own,
        )
