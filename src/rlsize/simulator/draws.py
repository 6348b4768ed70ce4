"""
The randomness of a run: every draw belongs to a group, an instance or a failure, never to a moment.

So two runs with the same seed meet the same samples whatever their fleets and rules are (common random numbers), and a
longer run continues a shorter one.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, inf, lgamma, sqrt
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from rlsize.equations import batch_drain, lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from rlsize.simulator.setting import Latency, LengthSetting, WorkSetting

    Floats = NDArray[np.float64]

CHUNK = 512
"""Groups that are drawn at once."""
_KEPT = 4  # chunks of a stream that are kept, at least: samples of older groups may still ask
_KEPT_STEPS = 8  # optimizer steps whose groups are kept
_SHARED = 128  # chunks of lengths that runs share
_LENGTHS, _ACCEPTED, _PLACES, _TOOLS, _VERIFY, _LOSSES, _FAILURES, _STRAGGLERS, _TURNS = range(9)
_GRID = 4001  # points of a tabulated quantile function
_NORMAL = 8.0  # standard normal deviates beyond which hardly a draw goes
_PER_STEPS = 1000.0  # optimizer steps over which drift counts
_ALMOST = 0.999  # of the cap, above which a mean cannot be reached with a spread

_T = TypeVar("_T")


class Outcomes(Protocol):
    """What chance brings; the simulator asks nothing else of it."""

    def lengths(self, group: int) -> list[int]:
        """Response tokens of a group's samples. [token]"""

    def accepted(self, group: int) -> bool:
        """Whether dynamic sampling keeps a group."""

    def place(self, group: int, member: int) -> float:
        """Where a sample goes under random routing, 0 to 1. [1]"""

    def turns(self, group: int, member: int) -> int:
        """Turns of a sample. [1]"""

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


class _Groups(Generic[_T]):
    """
    What is drawn for each group, a chunk of groups at a time.

    Args:
        draw: Draws a chunk, by its number.
        kept: Chunks to keep. [1]
    """

    def __init__(self, draw: Callable[[int], list[_T]], kept: int) -> None:
        self._draw, self._kept = draw, kept
        self._chunks: dict[int, list[_T]] = {}

    def of(self, group: int) -> _T:
        """What was drawn for a group."""
        number, row = divmod(group, CHUNK)
        chunk = self._chunks.get(number)
        if chunk is None:
            if len(self._chunks) == self._kept:
                del self._chunks[min(self._chunks)]
            chunk = self._chunks[number] = self._draw(number)
        return chunk[row]


class SeededOutcomes:
    """
    Outcomes drawn from a seed.

    Args:
        work: What a step is made of.
        seed: The seed.
    """

    def __init__(self, work: WorkSetting, seed: int) -> None:
        self._work, self._seed = work, seed
        kept = max(_KEPT, ceil(_KEPT_STEPS * work.groups / CHUNK))
        self._lengths = _Groups(self._draw_lengths, kept)
        self._verdicts = _Groups(self._draw_verdicts, kept)
        self._places = _Groups(self._draw_places, kept)
        self._tools = _Groups(self._draw_tools, kept)
        self._turns = _Groups(self._draw_turns, kept)
        self._scores = _Groups(self._draw_scores, kept)

    def lengths(self, group: int) -> list[int]:
        """Response tokens of a group's samples. [token]"""
        return self._lengths.of(group)

    def accepted(self, group: int) -> bool:
        """Whether dynamic sampling keeps a group."""
        return self._work.acceptance >= 1.0 or self._verdicts.of(group)

    def place(self, group: int, member: int) -> float:
        """Where a sample goes under random routing, 0 to 1. [1]"""
        return self._places.of(group)[member]

    def turns(self, group: int, member: int) -> int:
        """Turns of a sample. [1]"""
        return self._turns.of(group)[member]

    def tool_seconds(self, group: int, member: int, turn: int) -> float:
        """Time of a tool call, those that a failing environment makes it repeat included. [s]"""
        return self._tools.of(group)[member][turn - 1]

    def verify_seconds(self, group: int, member: int) -> float:
        """Time to score a sample. [s]"""
        return self._scores.of(group)[member]

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

    def length_table(self, chunk: int) -> NDArray[np.int64]:
        """Response tokens of a chunk of groups. [token] [group, member]"""
        work = self._work
        return shared_lengths(work.lengths, work.groups, work.started, self._seed, chunk)

    def verdict_table(self, chunk: int) -> NDArray[np.bool_]:
        """Whether dynamic sampling keeps each of a chunk of groups."""
        if self._work.acceptance >= 1.0:
            return np.ones(CHUNK, dtype=bool)
        return self._generator(_ACCEPTED, chunk).random(CHUNK) < self._work.acceptance

    def _generator(self, stream: int, part: int = 0) -> np.random.Generator:
        return _generator(self._seed, stream, part)

    def _draw_lengths(self, chunk: int) -> list[list[int]]:
        found: list[list[int]] = self.length_table(chunk).tolist()
        return found

    def _draw_verdicts(self, chunk: int) -> list[bool]:
        found: list[bool] = self.verdict_table(chunk).tolist()
        return found

    def _draw_places(self, chunk: int) -> list[list[float]]:
        found: list[list[float]] = self._generator(_PLACES, chunk).random((self._work.started, CHUNK)).T.tolist()
        return found

    def _draw_tools(self, chunk: int) -> list[list[list[float]]]:
        work = self._work
        generator, shape = self._generator(_TOOLS, chunk), (work.turns, work.started, CHUNK)
        seconds = _latencies(work.tool, generator.standard_normal(shape))
        if work.failed_fraction:
            failed = generator.geometric(1.0 - work.failed_fraction, shape) - 1
            seconds = (failed + 1) * seconds + failed * work.environment_seconds
        found: list[list[list[float]]] = seconds.T.tolist()
        return found

    def _draw_turns(self, chunk: int) -> list[list[int]]:
        work, shape = self._work, (self._work.started, CHUNK)
        ends = np.full(shape, work.turns)
        if work.turn_end_fraction:
            ends = np.minimum(self._generator(_TURNS, chunk).geometric(work.turn_end_fraction, shape), work.turns)
        found: list[list[int]] = ends.T.tolist()
        return found

    def _draw_scores(self, chunk: int) -> list[list[float]]:
        work, shape = self._work, (self._work.started, CHUNK)
        generator = self._generator(_VERIFY, chunk)
        seconds = _latencies(work.verify, generator.standard_normal(shape))
        if work.verify_failed_fraction:
            seconds = generator.geometric(1.0 - work.verify_failed_fraction, shape) * seconds
        found: list[list[float]] = seconds.T.tolist()
        return found


def _generator(seed: int, stream: int, part: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, stream, part))))


@lru_cache(maxsize=_SHARED)
def shared_lengths(setting: LengthSetting, groups: int, size: int, seed: int, chunk: int) -> NDArray[np.int64]:
    """Response tokens of a chunk of groups, shared by runs that differ by other things. [token] [group, member]"""
    generator = _generator(seed, _LENGTHS, chunk)
    shared = generator.standard_normal(CHUNK)
    own = generator.standard_normal((size, CHUNK))  # by member: larger groups keep the smaller ones'
    batch = (chunk * CHUNK + np.arange(CHUNK)) / groups
    return np.ascontiguousarray(tokens_of(setting, shared, own, batch).T)


def _latencies(latency: Latency, normal: Floats) -> Floats:
    """Lognormal times of that mean and cv."""
    return np.asarray(lengths.lognormal_quantile(mean=latency.seconds, variation=latency.cv, deviate=normal))


def _exponential(generator: np.random.Generator) -> Iterator[float]:
    while True:
        yield float(generator.standard_exponential())


def tokens_of(setting: LengthSetting, shared: Floats, own: Floats, batch: Floats) -> NDArray[np.int64]:
    """
    Response lengths.

    Args:
        setting: Their distribution.
        shared: A standard normal for each group. [group]
        own: A standard normal for each sample. [member, group]
        batch: The optimizer step, roughly, for which a group is generated. [group]

    Returns:
        Whole tokens, at least 1. [member, group]
    """
    rho = setting.correlation
    normal = np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own
    raw = _quantile(setting, normal) * (1.0 + setting.drift * batch / _PER_STEPS)
    return np.maximum(1, np.rint(np.minimum(raw, setting.cap))).astype(np.int64)


def _quantile(setting: LengthSetting, normal: Floats) -> Floats:
    """The length that as many are shorter than as normal variables are smaller, the cap left out."""
    if setting.shape == "constant" or (setting.cv == 0.0 and setting.shape != "empirical"):
        return np.full_like(normal, setting.mean)
    if setting.shape == "lognormal":
        mean = _uncapped_mean(setting.mean, setting.cv, setting.cap)
        return np.asarray(lengths.lognormal_quantile(mean=mean, variation=setting.cv, deviate=normal))
    grid, table = _table(setting)
    if setting.shape == "empirical":
        return np.asarray(setting.values, dtype=float)[np.searchsorted(table, normal, side="right")]
    return np.interp(normal, grid, table)


@lru_cache(maxsize=8)  # every chunk asks
def _uncapped_mean(mean: float, variation: float, cap: float) -> float:
    if cap == inf:
        return mean
    seen = min(mean, _ALMOST * cap)
    return float(batch_drain.uncapped_mean(mean_tokens=seen, length_cv=variation, max_tokens=cap))


@lru_cache(maxsize=8)
def _table(setting: LengthSetting) -> tuple[Floats, Floats]:
    """Deviates, and quantiles there; for an empirical distribution the deviates at which the next value begins."""
    grid = np.linspace(-_NORMAL, _NORMAL, _GRID)
    share = np.asarray(lengths.normal_share(deviate=grid))
    if setting.shape == "empirical":
        return grid, np.interp(np.arange(1, len(setting.values)) / len(setting.values), share, grid)
    return grid, _gamma(setting, share)


def _gamma(setting: LengthSetting, share: Floats) -> Floats:
    """Quantiles of a gamma distribution whose mean is that of the setting once the cap has cut it."""
    shape = 1.0 / setting.cv**2
    logs = np.linspace(np.log(1e-9 / shape), np.log(1.0 + 60.0 * (setting.cv + setting.cv**2)), 20 * _GRID)
    at = np.exp(logs)  # in units of the mean
    density = np.exp(shape * (np.log(shape) + logs) - shape * at - lgamma(shape))  # times dx = x dlog x
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(logs))])
    quantiles = np.interp(share, below / below[-1], at)
    if setting.cap == inf:
        return setting.mean * quantiles
    target = min(setting.mean, _ALMOST * setting.cap)
    low, high = target, target * 1e6
    for _ in range(80):
        middle = sqrt(low * high)
        mean = np.interp(np.log(setting.cap / middle), logs, _limited(at, below / below[-1])) * middle
        low, high = (middle, high) if mean < target else (low, middle)
    return sqrt(low * high) * quantiles


def _limited(at: Floats, below: Floats) -> Floats:
    """E[min(X, x)] at each x: the integral of what is above."""
    above = 1.0 - below
    return np.concatenate([[at[0]], at[0] + np.cumsum((above[1:] + above[:-1]) / 2 * np.diff(at))])
