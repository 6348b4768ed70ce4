"""Time per phase of a step: by events on the device, which do not hold it up, or by the clock on a CPU."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

if TYPE_CHECKING:
    from collections.abc import Iterator

PHASES = ("logprob", "forward", "backward", "optimizer")


class Clock:
    """
    Seconds of each phase, summed over a step.

    Args:
        device: Where the work is done.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[tuple[str, Any, Any]] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what is done inside; on a GPU it may still run when this ends."""
        begun = self._mark()
        yield
        self._marks.append((name, begun, self._mark()))

    def read(self) -> dict[str, float]:
        """Seconds of each phase since the last reading; waits for the device."""
        synchronize(self._device)
        found = dict.fromkeys(PHASES, 0.0)
        for name, begun, ended in self._marks:
            found[name] += begun.elapsed_time(ended) / 1e3 if self._device.type == "cuda" else ended - begun
        self._marks.clear()
        return found

    def _mark(self) -> Any:
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def slowest(values: list[float]) -> list[float]:
    """The largest of each value over all ranks; the slowest rank decides how long a step takes."""
    found = torch.tensor(values, dtype=torch.float64)
    distributed.all_reduce(found, op=distributed.ReduceOp.MAX)
    return list(found.tolist())


def summed(value: float) -> float:
    """The sum of a value over all ranks."""
    found = torch.tensor(value, dtype=torch.float64)
    distributed.all_reduce(found)
    return float(found.item())


def agreed(decision: float) -> float:
    """What rank 0 has decided; clocks differ, and ranks that disagree would wait for each other for ever."""
    found = torch.tensor(decision, dtype=torch.float64)
    distributed.broadcast(found, src=0)
    return float(found.item())
