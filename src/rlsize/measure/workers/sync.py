"""
A weight sync, as a worker of torchrun: all weights of a model from trainer ranks to receiver ranks, in several ways.

The job is a JSON file: model, dtype, trainer_ranks, bucket_bytes, device, seed, seconds. Rank 0 tells `ready`, a
`method` for each way, `tensors` with the time of each tensor sent alone, `progress` on the way and `done`; a rank that
fails tells `out_of_memory` or `failed`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist

from rlsize.measure.workers.events import say
from rlsize.measure.workers.sync_ranks import Ranks
from rlsize.measure.workers.sync_ways import Bucketed, PerTensor
from rlsize.measure.workers.sync_weights import Weights, tensor_counts

LEAST_REPEATS = 5
LONE_PASSES = 3  # the median of so many is the time of a tensor sent alone
TOLD_EVERY = 0.5  # seconds between two reports of progress
OUT_OF_MEMORY = 70  # exit code
MOST_TOLD = 400  # characters of an error


def main(job: dict[str, Any]) -> None:
    """Measure every way in turn."""
    ranks = Ranks(job["trainer_ranks"], job["device"])
    dtype = getattr(torch, job["dtype"])
    weights = Weights(_agreed_counts(job["model"], ranks), dtype.itemsize, ranks)
    _tell_ready(job, weights)
    sizes = dict.fromkeys(min(int(size), weights.total) for size in job["bucket_bytes"])
    ways = [None, *sizes]
    for number, size in enumerate(ways):
        weights.fill(job["seed"] + number)
        _measure(_way(weights, size), job["seconds"] / len(ways), (number, len(ways)))
    _measure_tensors(PerTensor(weights))
    if ranks.rank == 0:
        say("done")
    dist.barrier()
    dist.destroy_process_group()


def _agreed_counts(source: str, ranks: Ranks) -> list[int]:
    """The tensors, read by rank 0 alone: one import of transformers instead of one on every rank."""
    told: list[Any] = [tensor_counts(source) if ranks.rank == 0 else None]
    dist.broadcast_object_list(told, src=0, device=ranks.device)
    counts: list[int] = told[0]
    return counts


def _tell_ready(job: dict[str, Any], weights: Weights) -> None:
    ranks = weights.ranks
    cuda = ranks.device.type == "cuda"
    names: list[Any] = [None] * ranks.world
    dist.all_gather_object(names, torch.cuda.get_device_name(ranks.device) if cuda else "")
    if ranks.rank == 0:
        versions = {"torch": torch.__version__, "transformers": sys.modules["transformers"].__version__}
        if cuda:
            versions["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
        say(
            "ready",
            bytes=weights.total,
            tensors=len(weights.sizes),
            dtype=job["dtype"],
            backend=ranks.backend,
            trainer_ranks=ranks.trainers,
            receiver_ranks=ranks.world - ranks.trainers,
            versions=versions,
            gpus=[name for name in names if name],
        )


def _way(weights: Weights, bucket_bytes: int | None) -> PerTensor | Bucketed:
    """A way to send, made when its turn comes, so that one bucket at a time takes memory."""
    return PerTensor(weights) if bucket_bytes is None else Bucketed(weights, bucket_bytes)


def _measure(way: PerTensor | Bucketed, budget: float, place: tuple[int, int]) -> None:
    """
    Repeat one way until its time is used, then compare bytes; the first pass sets up connections and is not counted.

    All ranks stop together, because they decide on times that they have agreed on.
    """
    ranks, began, told = way.weights.ranks, perf_counter(), 0.0
    _timed(way, began)
    began = perf_counter()
    seconds: list[float] = []
    gathers: list[float] = []
    used = 0.0
    while len(seconds) < LEAST_REPEATS or used < budget:
        passed, gathered, used = _timed(way, began)
        seconds.append(passed)
        gathers.append(gathered)
        if ranks.rank == 0 and used - told >= TOLD_EVERY:
            told = used
            say("progress", way=_label(way), fraction=(place[0] + min(1.0, used / budget)) / place[1])
    identical = way.weights.identical()
    if ranks.rank == 0:
        say(
            "method",
            method=way.name,
            bucket_bytes=way.bucket_bytes,
            messages=way.messages,
            seconds=seconds,
            gather_seconds=gathers,
            identical=identical,
        )


def _label(way: PerTensor | Bucketed) -> str:
    return way.name if way.bucket_bytes is None else f"{way.name}, {way.bucket_bytes / 2**20:.4g} MiB"


def _timed(way: PerTensor | Bucketed, began: float) -> tuple[float, float, float]:
    """Seconds of one pass on its slowest rank, of which gathering, and since a moment; the same on all ranks."""
    ranks = way.weights.ranks
    dist.barrier()
    ranks.settle()
    start = perf_counter()
    way()
    ranks.settle()
    passed = perf_counter() - start
    slowest, gathered, used = ranks.slowest(passed, ranks.gathered_seconds(), perf_counter() - began)
    return slowest, gathered, used


def _measure_tensors(way: PerTensor) -> None:
    """
    The broadcast of each tensor alone, from a common start to the end on the slowest rank.

    What a message costs beside its bytes shows in the small ones. It holds what the ranks take to start together.
    """
    ranks, sizes = way.weights.ranks, way.weights.sizes
    passes: list[list[float]] = []
    for _ in range(LONE_PASSES):
        own = [_alone(way, index) for index in range(len(sizes))]
        passes.append(ranks.slowest(*own))
    ranks.gathered_seconds()
    if ranks.rank == 0:
        say("tensors", bytes=sizes, seconds=[median(times) for times in zip(*passes, strict=True)])


def _alone(way: PerTensor, index: int) -> float:
    """Seconds of one tensor's broadcast on this rank; gathering, where there is any, comes before the start."""
    ranks = way.weights.ranks
    whole = way.weights.whole(index)
    if not ranks.wired:
        return 0.0
    ranks.settle()
    dist.barrier(group=ranks.wire)
    ranks.settle()
    start = perf_counter()
    ranks.broadcast(whole)
    ranks.settle()
    return perf_counter() - start


def _run() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        main(job)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is told)
        # Whichever rank fails first tells why: rank 0 may be waiting for it, and torchrun's own words name no reason.
        memory = isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "allocate memory" in str(error)
        text = f"{type(error).__name__}: {error}".splitlines()[0][:MOST_TOLD]
        say("out_of_memory" if memory else "failed", rank=int(os.environ["RANK"]), text=text)
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(OUT_OF_MEMORY if memory else 1)  # an orderly end would wait for ranks that wait for this one


if __name__ == "__main__":
    _run()
