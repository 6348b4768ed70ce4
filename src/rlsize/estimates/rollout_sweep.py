"""Rates and parts of the engine step against concurrency, and the knee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import decode_step, kernel_time, matching, prefill, rollout_batch
from rlsize.estimates.belief import interval, scattered
from rlsize.estimates.constants_rollout import STAGE
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import lengths_of
from rlsize.estimates.rollout_prediction import engine_limit, first_and_later, steady
from rlsize.estimates.rollout_question import bare, drawn, step_batch
from rlsize.estimates.rollout_rate import NEAR_BEST
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rlsize.estimates.belief import Belief
    from rlsize.estimates.rollout_prediction import Engine, Steady
    from rlsize.estimates.rollout_question import RolloutQuestion

    Array = NDArray[np.floating[Any]]

_GRID = 96  # concurrencies among which the knee is looked for
_POINTS = 45  # of the curve
_PREFILL = "prefill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """
    An instance at one concurrency.

    Args:
        concurrency: Samples at once. [1]
        tokens_per_second: Response tokens per second of the instance, with its band. [token/s]
        gpu_tokens_per_second: The same of one GPU. [token/s]
        step_seconds: A decode step, its part of prefill left out. [s]
        ttft_seconds: Time to first token. [s]
        tpot_seconds: Time per output token. [s]
        parts: Seconds of a step by part, the prefill that falls on it included. [s]
    """

    concurrency: float
    tokens_per_second: Figure
    gpu_tokens_per_second: Figure
    step_seconds: float
    ttft_seconds: float
    tpot_seconds: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """
    The same at even distances, for a picture.

    Args:
        concurrency: Samples at once. [1]
        tokens_per_second: Response tokens per second of the instance. [token/s]
        parts: Seconds of a step by part. [s]
    """

    concurrency: tuple[float, ...]
    tokens_per_second: tuple[float, ...]
    parts: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """
    An instance from one sample to all that it takes.

    Args:
        levels: Doubling, up to the limit; the load that was asked about among them.
        here: Index of that load.
        curve: The same at even distances.
        knee: Smallest concurrency whose rate is near the best.
    """

    levels: tuple[Level, ...]
    here: int
    curve: Curve
    knee: Figure

    @property
    def asked(self) -> Level:
        """The level of the load that was asked about."""
        return self.levels[self.here]


def sweep(question: RolloutQuestion, asked: Engine, belief: Belief, seed: int, batch: float) -> Sweep:
    """
    An engine from one sample to as many as it takes.

    Args:
        question: What is asked.
        asked: Its engine.
        belief: What is believed about the constants.
        seed: Of the draws behind the bands.
        batch: Samples in flight at the load that was asked about.
    """
    central = belief.central()
    alone = _at(question, asked, np.array([1.0]), bare(question), central)
    room = float(min(engine_limit(asked.question), np.min(alone.capacity)))
    ladder = _ladder(batch, room)
    found = _at(question, asked, ladder, bare(question), central)
    spread = _at(question, asked, ladder[:, None], drawn(question, seed), belief.drawn(seed))
    lengths = lengths_of(numbers, step_batch(question, bare(question)))
    first, later = first_and_later(numbers, found, ladder, lengths, central)
    parts = step_shares(found, lengths.response)
    bands = [interval(scattered(row, STAGE.noise, seed, "rollout")) for row in np.asarray(spread.rate)]
    levels = tuple(
        Level(
            concurrency=float(concurrency),
            tokens_per_second=_rate("instance_tokens_per_second", found.rate[index], bands[index], 1.0),
            gpu_tokens_per_second=_rate(
                "rollout_gpu_tokens_per_second", found.rate[index], bands[index], asked.numbers.gpus
            ),
            step_seconds=float(found.step_seconds[index]),
            ttft_seconds=float(first[index]),
            tpot_seconds=float(later[index]),
            parts={name: float(np.broadcast_to(part, ladder.shape)[index]) for name, part in parts.items()},
        )
        for index, concurrency in enumerate(ladder)
    )
    here = int(np.argmin(np.abs(ladder - batch)))
    return Sweep(
        levels=levels,
        here=here,
        curve=_curve(question, asked, central, room),
        knee=_knee(question, asked, belief, seed, room),
    )


def step_shares(found: Steady, response_tokens: Any) -> dict[str, Any]:  # noqa: ANN401 (numbers or arrays)
    """
    Seconds of a step by part: what all parts share out evenly is shared out, and prefill is spread over the steps.

    Args:
        found: Numbers or arrays.
        response_tokens: Mean response length. [token]
    """
    counted = numbers("decode_step_seconds", decode_step.step_of_parts, **found.parts)
    slowdown = numbers("slowdown", rollout_batch.share_of, part=found.step_seconds, whole=counted)
    parts = {
        name: numbers(f"{name}_seconds", kernel_time.slowed, seconds=part, slowdown=slowdown)
        for name, part in found.parts.items()
    }
    parts[_PREFILL] = numbers(
        "prefill_step_seconds",
        prefill.prefill_in_step,
        batch=found.batch,
        response_tokens=response_tokens,
        prefill_seconds=found.prefill_seconds,
    )
    return parts


def _at(
    question: RolloutQuestion, asked: Engine, concurrency: Array, said: Mapping[str, Any], values: Mapping[str, Any]
) -> Steady:
    return steady(numbers, asked, concurrency, lengths_of(numbers, step_batch(question, said)), values)


def _ladder(batch: float, room: float) -> Array:
    """1, 2, 4, ... up to the most, and the batch that was asked about."""
    most = max(1.0, float(np.floor(room)))
    doubling = 2.0 ** np.arange(0.0, np.log2(most) + 1e-9)
    return np.unique([*doubling, most, max(1.0, min(most, float(np.round(batch))))])


def _rate(key: str, rate: float, band: tuple[float, float], gpus: float) -> Figure:
    value, low, high = (float(numbers(key, matching.rate_per_gpu, rate=entry, gpus=gpus)) for entry in (rate, *band))
    return Figure(key=key, value=value, provenance="predicted", band=(low, high))


def _curve(question: RolloutQuestion, asked: Engine, central: Mapping[str, float], room: float) -> Curve:
    grid = np.unique(np.round(np.linspace(1.0, max(2.0, np.floor(room)), _POINTS)))
    found = _at(question, asked, grid, bare(question), central)
    parts = step_shares(found, question.response_tokens.number)
    return Curve(
        concurrency=tuple(grid.tolist()),
        tokens_per_second=tuple(np.asarray(found.rate).tolist()),
        parts={name: tuple(np.broadcast_to(part, grid.shape).tolist()) for name, part in parts.items()},
    )


def _knee(question: RolloutQuestion, asked: Engine, belief: Belief, seed: int, room: float) -> Figure:
    grid = np.unique(np.round(np.geomspace(1.0, max(1.0, np.floor(room)), _GRID)))
    rates = np.asarray(_at(question, asked, grid, bare(question), belief.central()).rate)
    moved = np.asarray(_at(question, asked, grid[:, None], drawn(question, seed), belief.drawn(seed)).rate)
    low, high = interval(np.asarray(_first_near_best(grid, moved), dtype=np.float64))
    return Figure(
        key="knee_concurrency",
        value=float(_first_near_best(grid, rates[:, None])[0]),
        provenance="predicted",
        source=f"first of {len(grid)} concurrencies whose rate is within {1 - NEAR_BEST:.0%} of the best",
        band=(low, high) if high > low else None,
    )


def _first_near_best(grid: Array, rates: Array) -> Array:
    near = rates >= NEAR_BEST * rates.max(axis=0)
    found: Array = grid[near.argmax(axis=0)]
    return found
