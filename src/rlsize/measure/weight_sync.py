"""How long weights take to receivers, by a worker under torchrun; and new ones for a running engine."""

from __future__ import annotations

from dataclasses import asdict, field
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from rlsize.errors import Fault, InputError
from rlsize.estimates.message_cost import message_cost
from rlsize.estimates.scatter import scatter
from rlsize.facts.measured import EngineUpdate, SyncMeasured, SyncMethod
from rlsize.frozen import dataclass
from rlsize.measure.jobs import FEWEST_REPEATS, StageResult, WorkerEvents, command, launcher, scatter_doubts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAME = "weight sync"
BUCKETS = (64 * 2**20, 256 * 2**20, 1024 * 2**20)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncJob:
    """
    A weight sync to measure.

    Args:
        model: A directory with a `config.json`, or a Hugging Face id; no weights are read.
        dtype: Width on the wire, by torch's name.
        trainer_ranks: Ranks that hold equal shards of every tensor.
        receiver_ranks: Ranks that each receive all weights.
        bucket_bytes: Sizes of bucket to try, beside one message per tensor. [B]
        torchrun: Flags of torchrun for several nodes, in place of `--standalone`; without --nproc-per-node among them,
            each node starts as many ranks as the two sides together have.
        device: cpu, cuda, or auto: cuda where the worker finds it.
        seed: Where the random weights begin.
        start_seconds: Most that a silence may last: at the start, and while bytes are compared. [s]
    """

    model: str
    dtype: str = "bfloat16"
    trainer_ranks: int = 1
    receiver_ranks: int = 1
    bucket_bytes: tuple[int, ...] = BUCKETS
    torchrun: tuple[str, ...] = ()
    device: Literal["auto", "cpu", "cuda"] = "auto"
    seed: int = 0
    start_seconds: float = 600.0

    def __post_init__(self) -> None:
        if self.trainer_ranks < 1 or self.receiver_ranks < 1:
            what = f"{self.trainer_ranks} trainer and {self.receiver_ranks} receiver ranks"
            raise InputError(Fault(what, NAME, "a weight sync takes one rank or more on each side"))
        if any(size < 1 for size in self.bucket_bytes):
            raise InputError(Fault(f"a bucket of {min(self.bucket_bytes)} bytes", NAME, "name sizes above zero"))


def measure_sync(
    job: SyncJob, python: str, folder: Path, *, seconds: float, say: Callable[[str, float], None]
) -> StageResult[SyncMeasured]:
    """
    Measure a weight sync on this machine's devices, or with `torchrun` flags on those of several.

    Args:
        job: What to sync, and how.
        python: A Python with torch and transformers.
        folder: An empty folder for the worker, its log and its events.
        seconds: Time to spend on repeats, shared among the ways to send; set-up and comparing bytes come on top. [s]
        say: Told what is being measured, and which share of it is done.

    Raises:
        UnfinishedError: It ended before one way was measured.
        KeyboardInterrupt: Likewise, by Ctrl-C.
    """
    full = "a receiver needs the whole model and a bucket: take a smaller model, a narrower dtype or smaller buckets"
    heard = WorkerEvents(NAME, repeated="method", when_full=full)

    def told(event: dict[str, Any]) -> None:
        if event["event"] == "progress":
            say(event["way"], event["fraction"])

    through = launcher(job.torchrun, job.trainer_ranks + job.receiver_ranks)
    argv = command(python, "sync", {**asdict(job), "seconds": seconds}, folder, through)
    heard.listen(argv, folder, job.start_seconds, told)
    ready, tensors = heard.others["ready"], heard.others.get("tensors")
    methods = [_method(event, ready["bytes"]) for event in heard.results]
    cost = message_cost(tensors["bytes"], tensors["seconds"]) if tensors else None
    told_of = ("bytes", "tensors", "dtype", "backend", "trainer_ranks", "receiver_ranks")
    measured = SyncMeasured(
        **{key: ready[key] for key in told_of},
        methods=methods,
        per_message_seconds=cost.per_message_seconds if cost else None,
        wire_bytes_per_second=cost.wire_bytes_per_second if cost else None,
    )
    return heard.result(measured, (doubt for method in methods for doubt in sync_doubts(method)))


def _method(event: dict[str, Any], total: float) -> SyncMethod:
    seconds = median(event["seconds"])
    return SyncMethod(
        **{key: event[key] for key in ("method", "bucket_bytes", "messages", "identical")},
        seconds=seconds,
        gather_seconds=median(event["gather_seconds"]),
        scatter=scatter(event["seconds"]),
        bytes_per_second=total / seconds,
    )


def sync_doubts(method: SyncMethod) -> Iterator[str]:
    """Why the figures of one way to send may not hold, a sentence each."""
    size = f" in buckets of {method.bucket_bytes / 2**20:.4g} MiB" if method.bucket_bytes else ""
    name = f"{method.method}{size}"
    if not method.identical:
        yield f"{name}: a receiver's bytes differ from the sender's, so its time is not that of a sync."
    yield from scatter_doubts(name, method.scatter, "repeats", ": other work, or a slow rank or link")


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
        served: Through the routes of a server, which is started for it.
        start_seconds: Most that a silence may last, the start of the engine above all. [s]
    """

    model: str
    dtype: str = "bfloat16"
    engine: dict[str, Any] = field(default_factory=dict)
    requests: int = 16
    prompt_tokens: int = 64
    seed: int = 0
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
