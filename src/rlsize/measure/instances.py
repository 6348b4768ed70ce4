"""Rollout instances as measuring processes: an engine of our own, or a client for a server that runs already."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, UnfinishedError
from rlsize.measure.child import Child, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rlsize.facts.counters import EngineCounters

TOKEN = "RLSIZE_BEARER_TOKEN"  # noqa: S105 (the name of a variable, not a token)
REACH = 3.0  # time-outs until a server counts as out of reach: it is asked for three pages
ENGINE_ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1"}  # a measurement is nobody else's business
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


def offline(
    job: Mapping[str, Any],
    python: str,
    folder: Path,
    scrape: Callable[[str], EngineCounters | None],
    start_seconds: float,
) -> Instance:
    """
    An engine of our own.

    Args:
        job: What `workers/rollout_offline.py` takes.
        python: The Python that has vLLM.
        folder: An empty folder of its own.
        scrape: Reads its counters.
        start_seconds: Most that it may take to load. [s]

    Raises:
        UnfinishedError: It does not start.
    """
    env = {name: os.environ.get(name, value) for name, value in ENGINE_ENVIRONMENT.items()}
    return _started("engine", "rollout_offline", job, python, folder, scrape, start_seconds, env)


def online(
    name: str,
    job: Mapping[str, Any],
    python: str,
    folder: Path,
    scrape: Callable[[str], EngineCounters | None],
    token: str = "",
) -> Instance:
    """
    A client for a server that runs already.

    Args:
        name: The server's host and port.
        job: What `workers/rollout_online.py` takes.
        python: The Python that has aiohttp, which is that of rlsize.
        folder: An empty folder of its own.
        scrape: Reads its counters.
        token: Bearer token; handed on in the environment, which is no file.

    Raises:
        UnfinishedError: The server does not answer as it should.
    """
    return _started(name, "rollout_online", job, python, folder, scrape, REACH * job["timeout_seconds"], {TOKEN: token})


def _started(
    name: str,
    worker: str,
    job: Mapping[str, Any],
    python: str,
    folder: Path,
    scrape: Callable[[str], EngineCounters | None],
    seconds: float,
    env: Mapping[str, str],
) -> Instance:
    folder.mkdir(parents=True)
    file = folder / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    child = Child(
        [python, "-m", f"rlsize.measure.workers.{worker}", str(file)], folder, name, {**staged(folder), **env}
    )
    try:
        ready = _ready(name, child, seconds)
    except BaseException:
        child.end()
        raise
    return Instance(name, child, ready, scrape)


def _ready(name: str, child: Child, seconds: float) -> Mapping[str, Any]:
    """
    What an instance says of itself when it is ready.

    Raises:
        UnfinishedError: It never is.
    """
    while (event := child.hear(seconds)) is not None:
        refuse_if_gone(name, event)
        if event.get("event") == "ready":
            return event
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
