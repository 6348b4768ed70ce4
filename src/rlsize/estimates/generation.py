"""The samples of one optimizer step, their lengths, and how long a fleet takes to generate them, tail included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from rlsize.equations import batch_drain, long_tail, prefill, rollout_batch
from rlsize.estimates.figures import numbers
from rlsize.estimates.remembered import remembered
from rlsize.estimates.rollout_prediction import Lengths, at_batch, cache_capacity, engine_limit, steady
from rlsize.quantities.workload import MOST_MEAN_LENGTHS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.rollout_prediction import Replica

Ending = Literal["barrier", "refill"]
_POINTS = 49  # of the drain; 400 change the time by less than 0.5 %


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """
    The samples of one optimizer step, and the fleet that generates them.

    Args:
        samples: Samples that are generated. [1]
        instances: Rollout instances. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length, samples cut at the cap included. [token]
        response_cv: Coefficient of variation of response lengths without the cap. [1]
        max_tokens: The cap; None for none. [token]
        hit_ratio: Share of prompt tokens found in the prefix cache. [1]
        in_flight: Samples that the loop lets be in flight over all instances; None for as many as fit. [1]
        ending: barrier (the step waits for its last sample) or refill (finished samples are replaced at once).
    """

    samples: Real
    instances: Real
    prompt_tokens: Real
    response_tokens: Real
    response_cv: Real
    max_tokens: Real | None = None
    hit_ratio: Real = 0.0
    in_flight: Real | None = None
    ending: Ending = "barrier"


@dataclass(frozen=True, slots=True)
class Shape:
    """
    Lengths of a batch.

    Args:
        uncapped: Mean response length without the cap. [token]
        cap: The cap, or lengths that hardly a sample reaches. [token]
        live: What the mean sample in flight has, and has left. [token]
        lengths: For an engine at steady load.
    """

    uncapped: Real
    cap: Real
    live: Real
    lengths: Lengths


def shape_of(work: Work, batch: StepBatch) -> Shape:
    """The lengths of a step's samples."""
    cap = batch.max_tokens if batch.max_tokens is not None else MOST_MEAN_LENGTHS * batch.response_tokens
    return _shape(work, batch.prompt_tokens, batch.response_tokens, batch.response_cv, cap, batch.hit_ratio)


@remembered
def _shape(work: Work, prompt: Real, response: Real, length_cv: Real, cap: Real, hit_ratio: Real) -> Shape:
    """The same by its numbers; a plan asks for the same lengths again and again."""
    uncapped = work(
        "uncapped_mean", batch_drain.uncapped_mean, mean_tokens=response, length_cv=length_cv, max_tokens=cap
    )
    live = work(
        "mean_live_response",
        long_tail.mean_remaining_tokens,
        mean_tokens=uncapped,
        length_cv=length_cv,
        max_tokens=cap,
    )
    contexts = {
        "live": work("live_tokens", long_tail.context_of, prompt_tokens=prompt, response_tokens=live),
        "longest": work("longest_context", long_tail.context_of, prompt_tokens=prompt, response_tokens=cap),
    }
    computed = work("computed_prompt_tokens", prefill.group_prefill_tokens, prompt_tokens=prompt, hit_ratio=hit_ratio)
    lengths = Lengths(prompt=prompt, response=response, computed=computed, **contexts)
    return Shape(uncapped=uncapped, cap=cap, live=live, lengths=lengths)


@remembered
def longest_of(work: Work, samples: Real, uncapped: Real, length_cv: Real, cap: Real) -> Real:
    """Expected longest of some responses. [token]"""
    found: Real = work(
        "longest_response_tokens",
        long_tail.longest_of,
        samples=samples,
        mean_tokens=uncapped,
        length_cv=length_cv,
        max_tokens=cap,
    )
    return found


def longest_sequence(batch: StepBatch, *, capped: bool) -> float:
    """
    The longest sequence that memory must hold, prompt and response. [token]

    Args:
        batch: The samples, in numbers.
        capped: Whether somebody gave the cap, up to which responses are let grow then; else the longest response is
            as long as a step's longest is on average.
    """
    if capped and batch.max_tokens is not None:
        longest = batch.max_tokens
    else:
        shape = shape_of(numbers, batch)
        longest = longest_of(numbers, batch.samples, shape.uncapped, batch.response_cv, shape.cap)
    return float(long_tail.context_of(prompt_tokens=batch.prompt_tokens, response_tokens=longest))


def lengths_of(work: Work, batch: StepBatch) -> Lengths:
    """The mean lengths of a step's samples, for an engine at steady load."""
    return shape_of(work, batch).lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """
    What the fleet makes of a step's batch; numbers or arrays.

    Args:
        seconds: Until the samples of a step are there. [s]
        full_seconds: Of it, with all slots busy or as many as there are samples; with refill all of it. [s]
        tail_seconds: What waiting for the longest sample adds to the work at the batch's own rate. [s]
        batch: Samples in flight on one instance at the start. [1]
        capacity: Samples that an instance's cache holds. [1]
        longest_tokens: Expected longest response. [token]
        live_tokens: Context of the mean sample in flight. [token]
        rate: Response tokens per second of one instance, over the whole time. [token/s]
        prefill_seconds: Engine time of one prompt. [s]
    """

    seconds: Real
    full_seconds: Real
    tail_seconds: Real
    batch: Real
    capacity: Real
    longest_tokens: Real
    live_tokens: Real
    rate: Real
    prefill_seconds: Real


def generation(work: Work, asked: Replica, batch: StepBatch, values: Mapping[str, Real]) -> Generation:
    """
    Time until the fleet has generated the samples of one optimizer step.

    Args:
        work: `figures.numbers`; the integral over the drain has no figure of its own.
        asked: One instance.
        batch: The samples.
        values: Constants of rollout and memory by name: numbers, or arrays of draws.
    """
    shape = shape_of(work, batch)
    if batch.ending == "refill":
        return _refilled(work, asked, batch, shape, values)
    return _drained(work, asked, batch, shape, values)


def _refilled(work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    offered = np.inf if batch.in_flight is None else _in_flight_of_each(work, batch)
    found = steady(work, asked, offered, shape.lengths, values)
    seconds = work(
        "generation_seconds",
        rollout_batch.fleet_time,
        samples=batch.samples,
        response_tokens=batch.response_tokens,
        instances=batch.instances,
        instance_rate=found.rate,
    )
    return Generation(
        seconds=seconds,
        full_seconds=seconds,
        tail_seconds=0.0,
        batch=found.batch,
        capacity=found.capacity,
        longest_tokens=longest_of(work, batch.samples, shape.uncapped, batch.response_cv, shape.cap),
        live_tokens=shape.lengths.live,
        rate=found.rate,
        prefill_seconds=found.prefill_seconds,
    )


def _in_flight_of_each(work: Work, batch: StepBatch) -> Worked:
    """Samples that the loop lets be in flight on one instance."""
    return work("in_flight_per_instance", rollout_batch.per_instance, amount=batch.in_flight, instances=batch.instances)


def _drained(work: Work, asked: Replica, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    own = work("samples_per_instance", rollout_batch.per_instance, amount=batch.samples, instances=batch.instances)
    room = cache_capacity(work, asked, shape.lengths, values)
    most = engine_limit(asked.question)
    if batch.in_flight is not None:
        most = work(
            "most_in_flight",
            rollout_batch.samples_in_flight,
            concurrency=_in_flight_of_each(work, batch),
            capacity=most,
            engine_limit=most,
        )
    slots = work(
        "samples_in_flight", rollout_batch.samples_in_flight, concurrency=own, capacity=room, engine_limit=most
    )
    _, full_step, prefill_seconds = at_batch(work, asked, slots, shape.lengths, values)
    seconds = work(
        "generation_seconds",
        batch_drain.drained_time,
        full_steps=work(
            "full_steps",
            batch_drain.full_steps,
            samples=own,
            slots=slots,
            mean_tokens=batch.response_tokens,
            mean_remaining=shape.live,
        ),
        full_step_seconds=full_step,
        draining_seconds=_draining_seconds(work, asked, batch, shape, (own, slots), values),
        samples=own,
        prefill_seconds=prefill_seconds,
    )
    packed = work(
        "packed_seconds",
        rollout_batch.packed_time,
        samples=own,
        response_tokens=batch.response_tokens,
        batch=slots,
        step_seconds=full_step,
        prefill_seconds=prefill_seconds,
    )
    rate = work(
        "batch_tokens_per_second",
        rollout_batch.batch_rate,
        samples=own,
        response_tokens=batch.response_tokens,
        seconds=seconds,
    )
    return Generation(
        seconds=seconds,
        full_seconds=packed,
        tail_seconds=work("tail_seconds", rollout_batch.beyond, whole=seconds, part=packed),
        batch=slots,
        capacity=room,
        longest_tokens=longest_of(work, batch.samples, shape.uncapped, batch.response_cv, shape.cap),
        live_tokens=shape.lengths.live,
        rate=rate,
        prefill_seconds=prefill_seconds,
    )


def _draining_seconds(
    work: Work,
    asked: Replica,
    batch: StepBatch,
    shape: Shape,
    samples: tuple[Real, Real],
    values: Mapping[str, Real],
) -> Worked:
    """
    Seconds of the steps in which the batch shrinks: the integral of the step over what the longest response has left.

    An instance runs on while any of its samples does; the fleet waits for the slowest one, so the last steps count if
    any sample of the whole step still runs.

    Args:
        work: `figures.numbers`.
        asked: One instance.
        batch: The samples.
        shape: Their lengths.
        samples: Those of an instance, and those of them in flight at once.
        values: Constants by name.
    """
    cap, (own, slots) = _last(shape.cap), map(_last, samples)
    tokens = np.maximum(cap * np.linspace(0.0, 1.0, _POINTS) ** 2, 1.0)
    curve = {
        "tokens": tokens,
        "mean_tokens": _last(shape.uncapped),
        "length_cv": _last(batch.response_cv),
        "max_tokens": cap,
    }
    fresh = batch_drain.finished_share(**curve)
    aged = batch_drain.finished_share_in_flight(**curve)
    refilled = own > slots
    done = np.clip(np.where(refilled, aged, fresh), 0.0, 1.0)
    here = batch_drain.chance_of_any(finished_share=done, samples=slots)
    running = batch_drain.still_running(finished_share=done, samples=slots, chance=here)
    running_at_all = np.minimum(slots * _last(batch.instances), _last(batch.samples))  # some instances may have none
    anywhere = batch_drain.chance_of_any(finished_share=done, samples=running_at_all)
    prompt = _last(batch.prompt_tokens)
    aged_live = long_tail.context_of(prompt_tokens=prompt, response_tokens=_last(shape.live))
    fresh_live = long_tail.context_of(prompt_tokens=prompt, response_tokens=tokens)
    lengths = Lengths(
        prompt=prompt,
        response=_last(batch.response_tokens),
        live=np.where(refilled, aged_live, fresh_live),
        longest=_last(shape.lengths.longest),
        computed=_last(shape.lengths.computed),
    )
    spread = {name: _last(value) for name, value in values.items()}
    _, step, _ = at_batch(work, asked, running, lengths, spread)
    return np.trapezoid(anywhere * step, tokens, axis=-1)


def _last(value: Worked) -> Worked:
    """As an array with one more axis, for the points of the drain."""
    return np.asarray(value, dtype=float)[..., None]
