"""
The randomness of a run: every draw belongs to a group, an instance or a failure, never to a moment.

So two runs with the same seed meet the same samples whatever their fleets and rules are (common random numbers), and a
longer run continues a shorter one.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rlsize.simulator.response_lengths import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.simulator.setting import Latency, WorkSetting

_CHUNK = 512  # groups drawn at once
_KEPT = 4  # chunks of a stream that are kept, at least: samples of older groups may still ask
_KEPT_STEPS = 8  # optimizer steps whose groups are kept
_LENGTHS, _ACCEPTED, _PLACES, _TOOLS, _VERIFY, _LOSSES, _FAILURES, _STRAGGLERS = range(8)


class Outcomes(Protocol):
    """What chance brings; the simulator asks nothing else of it."""

    def lengths(self, group: int) -> list[int]:
        """Response tokens of a group's samples. [token]"""

    def accepted(self, group: int) -> bool:
        """Whether dynamic sampling keeps a group."""

    def place(self, group: int, member: int) -> float:
        """Where a sample goes under random routing, 0 to 1. [1]"""

    def tool_seconds(self, group: int, member: int, turn: int) -> float:
        """Time of a tool call. [s]"""

    def verify_seconds(self, group: int, member: int) -> float:
        """Time to score a sample. [s]"""

    def losses(self, instance: int) -> Iterator[float]:
        """Times that an instance is up before it is lost, one after the other, in units of their mean. [1]"""

    def failures(self) -> Iterator[float]:
        """Times that the trainer works before it fails, in units of their mean. [1]"""

    def stragglers(self, instances: int, share: float) -> list[int]:
        """Instances that are slow."""


class SeededOutcomes:
    """
    Outcomes drawn from a seed.

    Args:
        work: What a step is made of.
        seed: The seed.
    """

    def __init__(self, work: WorkSetting, seed: int) -> None:
        self._work, self._seed = work, seed
        self._kept = max(_KEPT, ceil(_KEPT_STEPS * work.groups / _CHUNK))
        self._chunks: dict[int, dict[int, Any]] = {stream: {} for stream in range(_FAILURES)}

    def lengths(self, group: int) -> list[int]:
        """Response tokens of a group's samples. [token]"""
        chunk, row = divmod(group, _CHUNK)
        found: list[int] = self._chunk(_LENGTHS, chunk)[row]
        return found

    def accepted(self, group: int) -> bool:
        """Whether dynamic sampling keeps a group."""
        if self._work.acceptance >= 1.0:
            return True
        chunk, row = divmod(group, _CHUNK)
        return bool(self._chunk(_ACCEPTED, chunk)[row] < self._work.acceptance)

    def place(self, group: int, member: int) -> float:
        """Where a sample goes under random routing, 0 to 1. [1]"""
        chunk, row = divmod(group, _CHUNK)
        return float(self._chunk(_PLACES, chunk)[row][member])

    def tool_seconds(self, group: int, member: int, turn: int) -> float:
        """Time of a tool call. [s]"""
        chunk, row = divmod(group, _CHUNK)
        return float(self._chunk(_TOOLS, chunk)[row][member][turn - 1])

    def verify_seconds(self, group: int, member: int) -> float:
        """Time to score a sample. [s]"""
        chunk, row = divmod(group, _CHUNK)
        return float(self._chunk(_VERIFY, chunk)[row][member])

    def losses(self, instance: int) -> Iterator[float]:
        """Times that an instance is up before it is lost, in units of their mean. [1]"""
        return _exponential(self._generator(_LOSSES, instance))

    def failures(self) -> Iterator[float]:
        """Times that the trainer works before it fails, in units of their mean. [1]"""
        return _exponential(self._generator(_FAILURES))

    def stragglers(self, instances: int, share: float) -> list[int]:
        """Instances that are slow: the first of an order that does not depend on how many there are to be."""
        count = round(instances * share)
        if not count:
            return []
        order = self._generator(_STRAGGLERS).random(instances).argsort()
        return [int(index) for index in order[:count]]

    def _generator(self, stream: int, part: int = 0) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence((self._seed, stream, part))))

    def _chunk(self, stream: int, chunk: int) -> Any:  # noqa: ANN401 (nested lists of the stream's own shape)
        kept = self._chunks[stream]
        if chunk not in kept:
            if len(kept) == self._kept:
                del kept[min(kept)]
            kept[chunk] = self._drawn(stream, chunk)
        return kept[chunk]

    def _drawn(self, stream: int, chunk: int) -> Any:  # noqa: ANN401 (as above)
        work, generator = self._work, self._generator(stream, chunk)
        size = work.group_size
        if stream == _LENGTHS:
            shared = generator.standard_normal(_CHUNK)
            own = generator.standard_normal((size, _CHUNK))  # member by member: larger groups keep the smaller ones'
            batch = (chunk * _CHUNK + np.arange(_CHUNK)) / work.groups
            return tokens_of(work.lengths, shared, own, batch).T.tolist()
        if stream == _ACCEPTED:
            return generator.random(_CHUNK).tolist()
        if stream == _PLACES:
            return generator.random((size, _CHUNK)).T.tolist()
        if stream == _TOOLS:
            shape = (work.turns, size, _CHUNK)
            return _latencies(work.tool, generator.standard_normal(shape)).T.tolist()
        return _latencies(work.verify, generator.standard_normal((size, _CHUNK))).T.tolist()


def _latencies(latency: Latency, normal: Any) -> Any:  # noqa: ANN401 (arrays)
    """Lognormal times of that mean and cv."""
    sigma = np.sqrt(np.log1p(latency.cv**2))
    return latency.seconds * np.exp(sigma * normal - sigma**2 / 2)


def _exponential(generator: np.random.Generator) -> Iterator[float]:
    while True:
        yield float(generator.standard_exponential())
