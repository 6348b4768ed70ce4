"""What to expect of a rollout: rates, step, cache, latencies and the time of an optimizer step, each with its band."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import decode_step, matching, rollout_batch
from rlsize.estimates import constants_memory, constants_rollout
from rlsize.estimates.belief import interval, scattered, sensitivity
from rlsize.estimates.engine_compiled import capacity
from rlsize.estimates.figures import DRAWS, apply, numbers
from rlsize.estimates.generation import affine, generation, lengths_of
from rlsize.estimates.rollout_prediction import first_and_later, steady
from rlsize.estimates.rollout_question import bare, drawn, figures, most, offered, step_batch
from rlsize.estimates.rollout_sweep import Sweep, sweep
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.generation import Generation
    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.rollout_question import RolloutQuestion

    Work = Callable[..., Any]

STAGES = (constants_rollout.STAGE, constants_memory.STAGE)
"""The stages whose constants a rollout is predicted from."""

_KNOWN = {constant.name: constant for stage in STAGES for constant in stage.constants}
_MEMORY = ("kv_cache_tokens", "cache_concurrency")
_EXACT = ("samples_in_flight", "longest_response_tokens")  # beside what is drawn, nothing scatters them
_TOLD = 0.1  # of the variance; a smaller share is not worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """
    A constant that makes the band of the rate wide.

    Args:
        meaning: What it is.
        share: Share of the variance that comes from it. [1]
    """

    meaning: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOutlook:
    """
    What to expect.

    Args:
        question: What was asked.
        results: The figures, with bands.
        limited_by: What limits the batch: offered, cache or engine.
        sweep: Rates and parts of the step against concurrency.
        doubts: What makes the band of the rate wide, most important first.
    """

    question: RolloutQuestion
    results: tuple[Figure, ...]
    limited_by: str
    sweep: Sweep
    doubts: tuple[Doubt, ...]

    def figure(self, key: str) -> Figure:
        """The result of that key."""
        return next(figure for figure in self.results if figure.key == key)


def rollout_outlook(question: RolloutQuestion, asked: Engine, belief: Belief, seed: int) -> RolloutOutlook:
    """
    What to expect of a rollout.

    Args:
        question: What is asked.
        asked: Its engine, ready to be asked; it fits.
        belief: What is believed about the constants of `STAGES`.
        seed: Of the draws behind the bands.
    """
    central = belief.central()
    values = {name: _constant(belief, name, value) for name, value in central.items()}
    told = _told(apply, question, asked, figures(question), values)
    draws = _told(numbers, question, asked, drawn(question, seed), belief.drawn(seed))
    if question.whole_step:
        told |= _step_figures(question, asked, central, told["instance_tokens_per_second"])
        draws |= _step(_generated(question, asked, drawn(question, seed), belief.drawn(seed)))
    limited = _limited_by(question, told)
    swept = sweep(question, asked, belief, seed, told["samples_in_flight"].number)
    results = [_banded(replace(figure, key=key), draws[key], seed) for key, figure in told.items()]
    if not question.whole_step:
        missing = question.instances if not question.instances.known else question.samples_per_step
        results.append(absent("generation_seconds", missing.missing))
    return RolloutOutlook(
        question=question,
        results=(*results, swept.knee, Figure(key="limited_by", value=limited, provenance="predicted")),
        limited_by=limited,
        sweep=swept,
        doubts=_doubts(question, asked, belief),
    )


def _constant(belief: Belief, name: str, value: float) -> Figure:
    """A constant as a figure that says where it comes from."""
    known = _KNOWN.get(name)
    if known is None:
        return Figure(key=name, value=value, provenance="default", source="a constant of another stage")
    narrowed = belief.spread(name) < known.spread * (1 - 1e-6)
    how = "calibrated" if narrowed else known.basis
    source = f"{known.meaning} ({how}: {known.source})"
    return Figure(key=name, value=value, provenance="measured" if narrowed else "default", source=source)


def _told(
    work: Work, question: RolloutQuestion, asked: Engine, said: Mapping[str, Any], values: Mapping[str, Real]
) -> dict[str, Any]:
    """The results at steady load by key."""
    lengths = lengths_of(work, step_batch(question, said))
    offer = offered(work, question, said)
    found = steady(work, asked, most(work, question) if offer is None else offer, lengths, values)
    line = affine(work, asked, found.batch, lengths, values)
    waiting = found.batch if offer is None else offer
    first, later = first_and_later(work, found, waiting, lengths, values)
    key, each = "rollout_gpu_tokens_per_second", "instance_tokens_per_second"
    told = {
        each: found.rate,
        key: work(key, matching.rate_per_gpu, rate=found.rate, gpus=asked.numbers.gpus),
        "samples_in_flight": found.batch,
        "engine_step_seconds": found.step_seconds,
        "fixed_step_seconds": line.fixed,
        "sample_step_seconds": line.per_sample,
        "kv_token_step_seconds": line.per_kv_token,
        "prefill_seconds": found.prefill_seconds,
        "kv_cache_tokens": capacity(asked.question, values, lengths.live, work).kv_tokens,
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


def _generated(
    question: RolloutQuestion, asked: Engine, said: Mapping[str, Any], values: Mapping[str, Real]
) -> Generation:
    batch = step_batch(question, said)
    if said["concurrency"] is not None:
        in_flight = numbers("in_flight", matching.pool_rate, gpus=said["instances"], gpu_rate=said["concurrency"])
        batch = replace(batch, in_flight=in_flight)
    return generation(numbers, asked, batch, values)


def _step(found: Generation) -> dict[str, Any]:
    """The results of an optimizer step by key."""
    return {
        "generation_seconds": found.seconds,
        "tail_seconds": found.tail_seconds,
        "longest_response_tokens": found.longest_tokens,
    }


def _step_figures(
    question: RolloutQuestion, asked: Engine, central: Mapping[str, float], rate: Figure
) -> dict[str, Figure]:
    """The same as figures; the integral over the drain is told as the time that it adds, and refilling has none."""
    found = _generated(question, asked, bare(question), central)
    longest = Figure(
        key="longest_response_tokens",
        value=float(found.longest_tokens),
        provenance="predicted",
        source="mean of the longest of the step's samples",
    )
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
    packed = Figure(
        key="packed_seconds",
        value=float(found.full_seconds),
        provenance="predicted",
        source="all samples at the batch's own rate",
    )
    tail = Figure(
        key="tail_seconds",
        value=float(found.tail_seconds),
        provenance="predicted",
        source="integral of the step over the lengths that are left as the batch drains",
    )
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


def _doubts(question: RolloutQuestion, asked: Engine, belief: Belief) -> tuple[Doubt, ...]:
    """Each constant's share of the variance of the rate's logarithm, where correlations are left aside."""
    said = bare(question)
    slopes = sensitivity(
        belief, lambda values: [_told(numbers, question, asked, said, values)["instance_tokens_per_second"]]
    )[0]
    parts = {name: float((slope * belief.spread(name)) ** 2) for name, slope in zip(belief.names, slopes, strict=True)}
    whole = sum(parts.values()) + constants_rollout.STAGE.noise**2
    ranked = sorted(parts, key=lambda name: parts[name], reverse=True)
    return tuple(
        Doubt(meaning=_KNOWN[name].meaning, share=parts[name] / whole)
        for name in ranked
        if name in _KNOWN and parts[name] >= _TOLD * whole
    )
