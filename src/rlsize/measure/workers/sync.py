"""
A weight sync, as a worker of torchrun: all weights of a model from trainer ranks to receiver ranks, in several ways.

The job is a JSON file: model, dtype, trainer_ranks, bucket_bytes, device, seed, seconds. Rank 0 tells `ready`, a
`method` for each way, `tensors` with the time of each tensor sent alone, `progress` on the way and `done`; a rank that
fails tells `out_of_memory` or `failed`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist

from rlsize.measure.workers.events import say, say_why

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_WAIT = timedelta(minutes=20)  # ranks wait for one that reads, allocates or hashes a large model
HASHED_AT_ONCE = 2**26  # bytes copied to the host in one piece
LEAST_REPEATS = 5
LONE_PASSES = 3  # the median of so many is the time of a tensor sent alone
TOLD_EVERY = 0.5  # seconds between two reports of progress


class Ranks:
    """
    Who is who, in the process groups that torchrun started.

    The first ranks are the trainer's, the first of them sends, all after them receive.

    Args:
        trainers: Ranks that hold shards; the rest receive.
        device: cpu, cuda, or auto: cuda where torch finds one.
    """

    def __init__(self, trainers: int, device: str) -> None:
        local, beside = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
        cuda = device == "cuda" or (device == "auto" and torch.cuda.is_available())
        if cuda and torch.cuda.device_count() < beside:
            found = torch.cuda.device_count()
            raise RuntimeError(f"NCCL takes one GPU for each rank: {beside} ranks on this node, {found} GPUs")
        self.device = torch.device("cuda", local) if cuda else torch.device("cpu")
        self.backend = "nccl" if cuda else "gloo"
        if cuda:
            torch.cuda.set_device(self.device)
        dist.init_process_group(self.backend, timeout=LONGEST_WAIT, device_id=self.device if cuda else None)
        self.rank: int = dist.get_rank()
        self.world: int = dist.get_world_size()
        self.trainers = trainers
        if not 1 <= trainers < self.world:
            raise RuntimeError(f"{trainers} trainer ranks of {self.world} leave no receiver, or nobody to send")
        self.training = dist.new_group(list(range(trainers)))
        self.wire = dist.new_group([0, *range(trainers, self.world)])
        self._gathers: list[Callable[[], float]] = []

    @property
    def trains(self) -> bool:
        """Whether this rank holds a shard."""
        return self.rank < self.trainers

    @property
    def wired(self) -> bool:
        """Whether this rank sends or receives."""
        return self.rank == 0 or not self.trains

    def broadcast(self, data: torch.Tensor) -> None:
        """Rank 0's bytes to all receivers; only they and rank 0 may call."""
        dist.broadcast(data, src=0, group=self.wire)

    def settle(self) -> None:
        """Wait until this rank's device has done all that was asked of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def slowest(self, *values: float) -> list[float]:
        """The largest of each value over all ranks, which all have to call."""
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        found: list[float] = shared.tolist()
        return found

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Time what is inside as gathering, without making the device wait: events on CUDA, the clock on a CPU."""
        if self.device.type == "cuda":
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            yield
            last.record()
            self._gathers.append(lambda: first.elapsed_time(last) / 1000)  # it tells milliseconds
        else:
            start = perf_counter()
            yield
            passed = perf_counter() - start
            self._gathers.append(lambda: passed)

    def gathered_seconds(self) -> float:
        """
        Seconds spent gathering since the last call, after `settle`.

        Only rank 0's count: other trainer ranks run ahead, and wait inside the next gather while rank 0 broadcasts.
        """
        total = sum(seconds() for seconds in self._gathers)
        self._gathers.clear()
        return total if self.rank == 0 else 0.0


def tensor_counts(source: str) -> list[int]:
    """
    Elements of every parameter of a model, in its order; tied ones once. Nothing is allocated.

    Args:
        source: A directory with a `config.json`, or a Hugging Face id.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source))
    return [parameter.numel() for _, parameter in model.named_parameters()]


class Weights:
    """
    The weights that a sync sends, as one rank holds them.

    They are kept as raw bytes. A broadcast only copies, so its speed does not depend on the type, and the comparison
    of sender and receiver is one of bytes anyway.

    A trainer rank keeps an equal part of every tensor, the last ones padded, as FSDP does; with several of them, room
    to gather the largest tensor comes on top. A receiver keeps everything.

    Args:
        counts: Elements of each tensor.
        width: Bytes of an element.
        ranks: Who is who.
    """

    def __init__(self, counts: list[int], width: int, ranks: Ranks) -> None:
        self.ranks = ranks
        self.sizes = [count * width for count in counts]
        self.total = sum(self.sizes)
        shards = ranks.trainers if ranks.trains else 1
        held = [-(-count // shards) * width for count in counts]
        self.own = [torch.zeros(size, dtype=torch.uint8, device=ranks.device) for size in held]
        room = max(held) * shards if shards > 1 else 0
        self._room = torch.empty(room, dtype=torch.uint8, device=ranks.device)

    def fill(self, seed: int) -> None:
        """New weights on the trainer's ranks, other ones for each seed; the receivers keep what they have."""
        if self.ranks.trains:
            generator = torch.Generator(self.ranks.device).manual_seed(seed * self.ranks.world + self.ranks.rank)
            for shard in self.own:
                shard.random_(0, 256, generator=generator)

    def whole(self, index: int) -> torch.Tensor:
        """One tensor: gathered from the shards on a trainer rank (all of them have to call), at hand on a receiver."""
        shard = self.own[index]
        if not self.ranks.trains or self.ranks.trainers == 1:
            return shard
        room = self._room[: len(shard) * self.ranks.trainers]
        dist.all_gather_into_tensor(room, shard, group=self.ranks.training)
        return room[: self.sizes[index]]

    def digest(self) -> torch.Tensor:
        """SHA-256 over all bytes of all tensors, as 32 bytes on this rank's device."""
        sha = hashlib.sha256()
        for index in range(len(self.sizes)):
            for piece in self.whole(index).split(HASHED_AT_ONCE):
                sha.update(piece.cpu().numpy())
        return torch.frombuffer(bytearray(sha.digest()), dtype=torch.uint8).to(self.ranks.device)

    def identical(self) -> bool:
        """Whether every receiver holds the sender's bytes; the same answer on all ranks, which all have to ask."""
        own = self.digest()
        every = [torch.empty_like(own) for _ in range(self.ranks.world)]
        dist.all_gather(every, own)
        return all(torch.equal(every[0], every[rank]) for rank in range(self.ranks.trainers, self.ranks.world))


class PerTensor:
    """Gather a tensor, broadcast it, and go on to the next."""

    name = "per-tensor"
    bucket_bytes = None

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.messages = len(weights.sizes)

    def __call__(self) -> None:
        """Send everything once."""
        for index in range(self.messages):
            self.send(index)

    def send(self, index: int) -> None:
        """Send one tensor."""
        ranks = self.weights.ranks
        with ranks.gathering():
            whole = self.weights.whole(index)
        if ranks.wired:
            ranks.broadcast(whole)


class Piece(NamedTuple):
    """
    A part of one tensor in a bucket; all in bytes.

    Args:
        tensor: Which tensor.
        start: Where the part begins in the tensor.
        at: Where it begins in the bucket.
        size: How long it is.
    """

    tensor: int
    start: int
    at: int
    size: int


def packed(sizes: list[int], bucket_bytes: int) -> list[list[Piece]]:
    """
    What goes into which bucket: tensors one after the other, cut where a bucket is full.

    >>> [[tuple(piece) for piece in bucket] for bucket in packed([3, 4], 5)]
    [[(0, 0, 0, 3), (1, 0, 3, 2)], [(1, 2, 0, 2)]]
    """
    buckets: list[list[Piece]] = [[]]
    used = 0
    for tensor, size in enumerate(sizes):
        start = 0
        while start < size:
            if used == bucket_bytes:
                buckets.append([])
                used = 0
            piece = Piece(tensor, start, used, min(size - start, bucket_bytes - used))
            buckets[-1].append(piece)
            used += piece.size
            start += piece.size
    return buckets


class Bucketed:
    """
    Gather tensors, copy them into a bucket, broadcast it when it is full, and copy out of it on the other side.

    There is one bucket, so packing waits for the broadcast before it.

    Args:
        weights: What is sent.
        bucket_bytes: Size of the bucket. [B]
    """

    name = "bucketed"

    def __init__(self, weights: Weights, bucket_bytes: int) -> None:
        self.weights = weights
        self.bucket_bytes = bucket_bytes
        self._plan = packed(weights.sizes, bucket_bytes)
        self.messages = len(self._plan)
        room = bucket_bytes if weights.ranks.wired else 0
        self._bucket = torch.empty(room, dtype=torch.uint8, device=weights.ranks.device)

    def __call__(self) -> None:
        """Send everything once."""
        ranks = self.weights.ranks
        if ranks.rank == 0:
            self._send()
        elif ranks.trains:
            for index in range(len(self.weights.sizes)):
                self.weights.whole(index)
        else:
            self._receive()

    def _send(self) -> None:
        ranks, at_hand, whole = self.weights.ranks, -1, self._bucket
        for pieces in self._plan:
            for tensor, start, at, size in pieces:
                if tensor != at_hand:
                    with ranks.gathering():
                        whole = self.weights.whole(tensor)
                    at_hand = tensor
                self._bucket[at : at + size].copy_(whole[start : start + size])
            ranks.broadcast(self._filled(pieces))

    def _receive(self) -> None:
        for pieces in self._plan:
            self.weights.ranks.broadcast(self._filled(pieces))
            for tensor, start, at, size in pieces:
                self.weights.own[tensor][start : start + size].copy_(self._bucket[at : at + size])

    def _filled(self, pieces: list[Piece]) -> torch.Tensor:
        return self._bucket[: pieces[-1].at + pieces[-1].size]


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
        code = say_why(error, rank=int(os.environ["RANK"]))
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)  # an orderly end would wait for ranks that wait for this one


if __name__ == "__main__":
    _run()
