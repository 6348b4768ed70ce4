"""What to expect of a rollout: rates, step, cache, latencies and the time of an optimizer step, each with its band."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import decode_step, kernel_time, matching, prefill, rollout_batch
from rlsize.estimates import constants_memory, constants_rollout
from rlsize.estimates.all_constants import band_sources, constants_of
from rlsize.estimates.belief import interval, scattered
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.figures import DRAWS, apply, numbers, predicted
from rlsize.estimates.generation import generation, lengths_of
from rlsize.estimates.rollout_prediction import affine, engine_limit, first_and_later, steady
from rlsize.estimates.rollout_question import bare, drawn, figures, mean_lengths, most, offered, step_batch
from rlsize.estimates.rollout_rate import NEAR_BEST
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rlsize.equations._ops import Real
    from rlsize.estimates.belief import BandSource, Belief
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.generation import Generation
    from rlsize.estimates.rollout_prediction import Replica, Steady
    from rlsize.estimates.rollout_question import RolloutQuestion

    Array = NDArray[np.floating[Any]]
    _Known = tuple[Mapping[str, Any], Mapping[str, Worked]]  # numbers of a question, and constants, by name

STAGES = (constants_rollout.STAGE, constants_memory.STAGE)
"""The stages whose constants a rollout is predicted from."""

_MEMORY = ("kv_cache_tokens", "cache_concurrency")
_EXACT = ("samples_in_flight", "longest_response_tokens")  # beside what is drawn, nothing scatters them
_TOLD = 0.1  # of the variance; a smaller share is not worth a word
_GRID = 96  # concurrencies among which the knee is looked for
_POINTS = 45  # of the curve


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOutlook:
    """
    What to expect.

    Args:
        question: What was asked.
        results: The figures, with bands.
        sweep: Rates and parts of the step against concurrency.
        doubts: What makes the band of the rate wide, most important first.
    """

    question: RolloutQuestion
    results: tuple[Figure, ...]
    sweep: Sweep
    doubts: tuple[BandSource, ...]

    def figure(self, key: str) -> Figure:
        """The result of that key."""
        return next(figure for figure in self.results if figure.key == key)


def rollout_outlook(question: RolloutQuestion, asked: Replica, belief: Belief, seed: int) -> RolloutOutlook:
    """
    What to expect of a rollout.

    Args:
        question: What is asked.
        asked: Its engine, ready to be asked; it fits.
        belief: What is believed about the constants of `STAGES`.
        seed: Of the draws behind the bands.
    """
    central, moved = (bare(question), belief.central()), (drawn(question, seed), belief.drawn(seed))
    told = _told(apply, question, asked, (figures(question), constants_of(belief)))
    draws = _told(numbers, question, asked, moved)
    if question.whole_step:
        told |= _step_figures(question, _generated(question, asked, central), told["instance_tokens_per_second"])
        step = _generated(question, asked, moved)
        draws |= {
            "generation_seconds": step.seconds,
            "tail_seconds": step.tail_seconds,
            "longest_response_tokens": step.longest_tokens,
        }
    limited = Figure(key="limited_by", value=_limited_by(question, told), provenance="predicted")
    swept = _sweep(question, asked, (central, moved), seed, told["samples_in_flight"].number)
    results = [_banded(replace(figure, key=key), draws[key], seed) for key, figure in told.items()]
    if not question.whole_step:
        missing = question.instances if not question.instances.known else question.samples_per_step
        results.append(absent("generation_seconds", missing.missing))

    def rate(constants: Mapping[str, Real]) -> Worked:
        return _told(numbers, question, asked, (central[0], constants))["instance_tokens_per_second"]

    return RolloutOutlook(
        question=question,
        results=(*results, swept.knee, limited),
        sweep=swept,
        doubts=band_sources(belief, rate, constants_rollout.STAGE.noise, _TOLD),
    )


def _told(work: Work, question: RolloutQuestion, asked: Replica, known: _Known) -> dict[str, Worked]:
    """The results at steady load by key."""
    said, values = known
    lengths = lengths_of(work, step_batch(question, said))
    offer = offered(work, question, said)
    found = steady(work, asked, most(work, question) if offer is None else offer, lengths, values)
    line = affine(work, asked, found.batch, lengths, values)
    waiting = found.batch if offer is None else offer
    first, later = first_and_later(work, found, waiting, lengths, values)
    key, each = "rollout_gpu_tokens_per_second", "instance_tokens_per_second"
    told = {
        each: found.rate,
        key: work(key, matching.rate_per_gpu, rate=found.rate, gpus=asked.gpus),
        "samples_in_flight": found.batch,
        "engine_step_seconds": found.step_seconds,
        "fixed_step_seconds": line.fixed,
        "sample_step_seconds": line.per_sample,
        "kv_token_step_seconds": line.per_kv_token,
        "prefill_seconds": found.prefill_seconds,
        "kv_cache_tokens": kv_capacity(work, asked.question, values, lengths.live).kv_tokens,
        "cache_concurrency": found.capacity,
        "ttft_seconds": first,
        "tpot_seconds": later,
    }
    if said["instances"] is not None:
        fleet = "fleet_tokens_per_second"
        told[fleet] = work(
            fleet, matching.fleet_supply, instances=said["instances"], instance_rate=found.rate, headroom=1.0
        )
    return told


def _generated(question: RolloutQuestion, asked: Replica, known: _Known) -> Generation:
    """The samples of an optimizer step, as the fleet generates them."""
    said, values = known
    batch = step_batch(question, said)
    if said["concurrency"] is not None:
        in_flight = numbers("in_flight", matching.pool_rate, gpus=said["instances"], gpu_rate=said["concurrency"])
        batch = replace(batch, in_flight=in_flight)
    return generation(numbers, asked, batch, values)


def _step_figures(question: RolloutQuestion, found: Generation, rate: Figure) -> dict[str, Figure]:
    """It as figures; the integral over the drain is told as the time that it adds, and refilling has none."""
    of_samples = "mean of the longest of the step's samples"
    longest = predicted("longest_response_tokens", found.longest_tokens, of_samples)
    if question.ending == "refill":
        seconds = apply(
            "generation_seconds",
            rollout_batch.fleet_time,
            samples=question.samples_per_step,
            response_tokens=question.response_tokens,
            instances=question.instances,
            instance_rate=rate,
        )
        return {"generation_seconds": seconds, "longest_response_tokens": longest}
    packed = predicted("packed_seconds", found.full_seconds, "all samples at the batch's own rate")
    drains = "integral of the step over the lengths that are left as the batch drains"
    tail = predicted("tail_seconds", found.tail_seconds, drains)
    return {
        "generation_seconds": apply("generation_seconds", decode_step.both_times, first=packed, second=tail),
        "tail_seconds": tail,
        "longest_response_tokens": longest,
    }


def _limited_by(question: RolloutQuestion, told: Mapping[str, Figure]) -> str:
    """What the batch ran into."""
    batch = told["samples_in_flight"]
    if batch.number >= most(numbers, question):
        return "engine"
    return "cache" if batch.number >= told["cache_concurrency"].number else "offered"


def _banded(figure: Figure, draws: Real, seed: int) -> Figure:
    """With the 80 % interval of the draws, one measurement's scatter added."""
    noise, name = constants_rollout.STAGE.noise, "rollout"
    if figure.key in _MEMORY:
        noise, name = constants_memory.STAGE.noise, "memory"
    if figure.key in _EXACT:
        noise = 0.0
    spread = scattered(np.broadcast_to(np.asarray(draws, dtype=float), (DRAWS,)), noise, seed, name)
    low, high = interval(spread)
    return replace(figure, band=(low, high) if high > low else None)


def _sweep(question: RolloutQuestion, asked: Replica, known: tuple[_Known, _Known], seed: int, batch: float) -> Sweep:
    """
    An engine from one sample to as many as it takes.

    Args:
        question: What is asked.
        asked: Its engine.
        known: Its numbers and the constants: central, and in joint draws.
        seed: Of the draws behind the bands.
        batch: Samples in flight at the load that was asked about.
    """
    central, moved = known
    alone = _at(question, asked, np.array([1.0]), central)
    room = float(min(engine_limit(asked.question), np.min(alone.capacity)))
    ladder = _ladder(batch, room)
    found = _at(question, asked, ladder, central)
    spread = _at(question, asked, ladder[:, None], moved)
    lengths = mean_lengths(question)
    first, later = first_and_later(numbers, found, ladder, lengths, central[1])
    parts = _step_shares(found, lengths.response)
    bands = [
        interval(scattered(row, constants_rollout.STAGE.noise, seed, "rollout")) for row in np.asarray(spread.rate)
    ]
    levels = tuple(
        Level(
            concurrency=float(concurrency),
            tokens_per_second=_rate("instance_tokens_per_second", found.rate[index], bands[index], 1.0),
            gpu_tokens_per_second=_rate("rollout_gpu_tokens_per_second", found.rate[index], bands[index], asked.gpus),
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
        knee=_knee(question, asked, known, room),
    )


def _step_shares(found: Steady, response_tokens: Worked) -> dict[str, Worked]:
    """Seconds of a step by part: what all parts share is shared out, and prefill is spread over the steps."""
    counted = numbers("decode_step_seconds", decode_step.step_of_parts, **found.parts)
    slowdown = numbers("slowdown", rollout_batch.share_of, part=found.step_seconds, whole=counted)
    parts = {
        name: numbers(f"{name}_seconds", kernel_time.slowed, seconds=part, slowdown=slowdown)
        for name, part in found.parts.items()
    }
    parts["prefill"] = numbers(
        "prefill_step_seconds",
        prefill.prefill_in_step,
        batch=found.batch,
        response_tokens=response_tokens,
        prefill_seconds=found.prefill_seconds,
    )
    return parts


def _at(question: RolloutQuestion, asked: Replica, concurrency: Array, known: _Known) -> Steady:
    said, values = known
    return steady(numbers, asked, concurrency, lengths_of(numbers, step_batch(question, said)), values)


def _ladder(batch: float, room: float) -> Array:
    """1, 2, 4, ... up to the most, and the batch that was asked about."""
    most = max(1.0, float(np.floor(room)))
    doubling = 2.0 ** np.arange(0.0, np.log2(most) + 1e-9)
    return np.unique([*doubling, most, max(1.0, min(most, float(np.round(batch))))])


def _rate(key: str, rate: float, band: tuple[float, float], gpus: float) -> Figure:
    value, low, high = (float(numbers(key, matching.rate_per_gpu, rate=entry, gpus=gpus)) for entry in (rate, *band))
    return Figure(key=key, value=value, provenance="predicted", band=(low, high))


def _curve(question: RolloutQuestion, asked: Replica, central: _Known, room: float) -> Curve:
    grid = np.unique(np.round(np.linspace(1.0, max(2.0, np.floor(room)), _POINTS)))
    found = _at(question, asked, grid, central)
    parts = _step_shares(found, question.response_tokens.number)
    return Curve(
        concurrency=tuple(grid.tolist()),
        tokens_per_second=tuple(np.asarray(found.rate).tolist()),
        parts={name: tuple(np.broadcast_to(part, grid.shape).tolist()) for name, part in parts.items()},
    )


def _knee(question: RolloutQuestion, asked: Replica, known: tuple[_Known, _Known], room: float) -> Figure:
    grid = np.unique(np.round(np.geomspace(1.0, max(1.0, np.floor(room)), _GRID)))
    rates = np.asarray(_at(question, asked, grid, known[0]).rate)
    moved = np.asarray(_at(question, asked, grid[:, None], known[1]).rate)
    low, high = interval(np.asarray(_first_near_best(grid, moved), dtype=np.float64))
    found = f"first of {len(grid)} concurrencies whose rate is within {1 - NEAR_BEST:.0%} of the best"
    figure = predicted("knee_concurrency", _first_near_best(grid, rates[:, None])[0], found)
    return replace(figure, band=(low, high) if high > low else None)


def _first_near_best(grid: Array, rates: Array) -> Array:
    near = rates >= NEAR_BEST * rates.max(axis=0)
    found: Array = grid[near.argmax(axis=0)]
    return found
