"""New weights for a running engine, through the interface that the installed vLLM has; a worker does it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from rlsize.estimates.scatter import scatter
from rlsize.facts.measured import EngineUpdate
from rlsize.measure.jobs import FEWEST_REPEATS, StageResult, WorkerEvents, command, scatter_doubts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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
        served: Through the routes of a server, which is started for it.
        start_seconds: Most that a silence may last, the start of the engine above all. [s]
    """

    model: str
    dtype: str = "bfloat16"
    engine: dict[str, Any] = field(default_factory=dict)
    requests: int = 16
    prompt_tokens: int = 64
    seed: int = 0
    disk: bool = False
    served: bool = False
    start_seconds: float = 1800.0


def measure_engine_update(
    job: EngineUpdateJob, python: str, folder: Path, *, seconds: float, say: Callable[[str, float], None]
) -> StageResult[EngineUpdate]:
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
    full = "take a smaller model, or lower gpu_memory_utilization"
    name = "server update" if job.served else "engine update"
    heard = WorkerEvents(name, repeated="update", when_full=full)

    def told(event: dict[str, Any]) -> None:
        if event["event"] == "update":
            say(name, min(1.0, len(heard.results) / FEWEST_REPEATS))

    argv = command(python, "engine_update", {**asdict(job), "seconds": seconds}, folder)
    heard.listen(argv, folder, job.start_seconds, told)
    ready, pauses = heard.others["ready"], [update["pause_seconds"] for update in heard.results]
    middle = median(update["seconds"] for update in heard.results)
    measured = EngineUpdate(
        interface=ready["interface"],
        seconds=middle,
        pause_seconds=median(pauses),
        scatter=scatter(pauses),
        bytes_per_second=heard.results[0]["bytes"] / middle,
    )
    unproven = sum(not update["loaded"] for update in heard.results)
    return heard.result(measured, update_doubts(measured, unproven, pauses=ready.get("pauses", True)))


def update_doubts(measured: EngineUpdate, unproven: int, *, pauses: bool = True) -> Iterator[str]:
    """
    Why the figures may not hold, a sentence each.

    Args:
        measured: The figures.
        unproven: Updates after which the engine did not answer as the new weights do.
        pauses: Whether what ran was paused meanwhile.
    """
    if not pauses:
        yield "engine update: this vLLM has no pause that keeps what runs, so it ran on while its weights were changed."
    if unproven:
        yield f"engine update: after {unproven} updates the engine did not answer as the new weights do."
    yield from scatter_doubts("engine update", measured.scatter, "pauses")
