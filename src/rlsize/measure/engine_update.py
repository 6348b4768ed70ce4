"""New weights for a running engine, through the interface that the installed vLLM has; a worker does it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault
from rlsize.estimates.scatter import scatter
from rlsize.facts.measured import EngineUpdate
from rlsize.measure.child import Child, ChildDiedError, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WORKER = "rlsize.measure.workers.engine_update"
NAME = "engine update"
FEWEST_REPEATS = 5
WIDE = 0.1  # coefficient of variation from which one median says little


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUpdateJob:
    """
    Updates of a running engine to measure.

    Args:
        model: A directory with a `config.json`, or a Hugging Face id; weights are made up, and written to disk.
        dtype: By torch's name.
        engine: Arguments of vLLM's `LLM` beside model, dtype and seed.
        requests: Requests kept in flight.
        prompt_tokens: Tokens of each prompt.
        seed: Where the random weights begin.
        disk: Reload from disk also where the weight-update API could be used.
        start_seconds: Most that a silence may last, the start of the engine above all. [s]
    """

    model: str
    dtype: str = "bfloat16"
    engine: dict[str, Any] = field(default_factory=dict)
    requests: int = 16
    prompt_tokens: int = 64
    seed: int = 0
    disk: bool = False
    start_seconds: float = 1800.0


@dataclass(slots=True, kw_only=True)
class EngineUpdateResult:
    """
    What came out.

    Args:
        measured: The figures.
        versions: Libraries that did the work.
        gpus: Names of the engine's GPUs; empty on a CPU.
        doubts: Why the figures may not hold.
        partial: Why it ended early; empty where all was measured.
    """

    measured: EngineUpdate
    versions: dict[str, str] = field(default_factory=dict)
    gpus: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    partial: str = ""


def measure_engine_update(
    job: EngineUpdateJob, python: str, folder: Path, *, seconds: float, say: Callable[[str, float], None]
) -> EngineUpdateResult:
    """
    Measure how long a running engine takes for new weights, and how long it makes no token meanwhile.

    Args:
        job: Which model, and how the engine runs.
        python: A Python with vLLM.
        folder: An empty folder for the worker and two checkpoints of the model.
        seconds: Time to spend on repeats; the start of the engine comes on top. [s]
        say: Told what is being measured, and which share of it is done.

    Raises:
        UnfinishedError: It ended before one update was measured.
        KeyboardInterrupt: Likewise, by Ctrl-C.
    """
    heard = _Heard()
    try:
        _listen(job, python, folder, seconds, heard, say)
    except KeyboardInterrupt:
        if not heard.updates:
            raise
        heard.partial = "interrupted"
    except ChildDiedError as error:
        if not heard.updates:
            raise heard.reason(error) from None
        heard.partial = heard.reason(error).faults[0].what
    return heard.result()


def _listen(
    job: EngineUpdateJob, python: str, folder: Path, seconds: float, heard: _Heard, say: Callable[[str, float], None]
) -> None:
    env = staged(folder)
    path = folder / "job.json"
    path.write_text(json.dumps({**asdict(job), "seconds": seconds}), encoding="utf-8")
    with Child([python, "-m", WORKER, str(path)], folder, NAME, env) as child:
        while (event := child.hear(job.start_seconds)) is not None:
            heard.take(event)
            if event["event"] == "update":
                count = len(heard.updates)
                say("engine update", min(1.0, count / FEWEST_REPEATS))


@dataclass(slots=True)
class _Heard:
    """The worker's events, as they came."""

    ready: dict[str, Any] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)
    failure: dict[str, Any] = field(default_factory=dict)
    partial: str = ""

    def take(self, event: dict[str, Any]) -> None:
        """Keep what one event says."""
        if event["event"] == "ready":
            self.ready = event
        elif event["event"] == "update":
            self.updates.append(event)
        elif event["event"] in {"out_of_memory", "failed"}:
            self.failure = event

    def reason(self, error: ChildDiedError) -> ChildDiedError:
        """Why it died: what the worker said, where it could."""
        if not self.failure:
            return error
        memory = self.failure["event"] == "out_of_memory"
        todo = "take a smaller model, or lower gpu_memory_utilization" if memory else "its whole log: --log FILE"
        return ChildDiedError(Fault(self.failure["text"], NAME, todo), memory=memory)

    def result(self) -> EngineUpdateResult:
        """The figures, and what speaks against them."""
        seconds = median(update["seconds"] for update in self.updates)
        pauses = [update["pause_seconds"] for update in self.updates]
        measured = EngineUpdate(
            interface=self.ready["interface"],
            seconds=seconds,
            pause_seconds=median(pauses),
            scatter=scatter(pauses),
            bytes_per_second=self.updates[0]["bytes"] / seconds,
        )
        unproven = sum(not update["loaded"] for update in self.updates)
        return EngineUpdateResult(
            measured=measured,
            versions=self.ready["versions"],
            gpus=self.ready["gpus"],
            doubts=list(update_doubts(measured, unproven)),
            partial=self.partial,
        )


def update_doubts(measured: EngineUpdate, unproven: int) -> Iterator[str]:
    """
    Why the figures may not hold, a sentence each.

    Args:
        measured: The figures.
        unproven: Updates after which the engine did not answer as the new weights do.
    """
    if unproven:
        yield f"engine update: after {unproven} updates the engine did not answer as the new weights do."
    if measured.scatter is None:
        return
    if measured.scatter.parts < FEWEST_REPEATS:
        yield f"engine update: {measured.scatter.parts} repeats, fewer than {FEWEST_REPEATS}; the median may be off."
    if measured.scatter.cv > WIDE:
        yield f"engine update: pauses scatter by {100 * measured.scatter.cv:.0f} % (coefficient of variation)."
