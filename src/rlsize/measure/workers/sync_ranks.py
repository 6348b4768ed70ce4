"""The ranks of a weight sync: the first are the trainer's, the first of them sends, all after them receive."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import timedelta
from time import perf_counter
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_WAIT = timedelta(minutes=20)  # ranks wait for one that reads, allocates or hashes a large model


class Ranks:
    """
    Who is who, in the process groups that torchrun started.

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
