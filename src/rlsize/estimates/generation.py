"""How long a fleet takes to generate the samples of one optimizer step, with the tail of its lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import batch_drain, long_tail, rollout_batch
from rlsize.estimates.affine_line import AffineStep, affine
from rlsize.estimates.generation_batch import Ending, Shape, StepBatch, lengths_of, longest_of, shape_of
from rlsize.estimates.rollout_prediction import Lengths, at_batch, cache_capacity, engine_limit, steady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.rollout_prediction import Engine

    Work = Callable[..., Any]

__all__ = ["AffineStep", "Ending", "Generation", "StepBatch", "affine", "generation", "lengths_of"]

_POINTS = 49  # of the drain; 400 change the time by less than 0.5 %


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


def generation(work: Work, asked: Engine, batch: StepBatch, values: Mapping[str, Real]) -> Generation:
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


def _refilled(work: Work, asked: Engine, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    limit = batch.in_flight if batch.in_flight is not None else np.inf
    offered = work("in_flight_per_instance", rollout_batch.per_instance, amount=limit, instances=batch.instances)
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
        longest_tokens=_longest(work, batch, shape),
        live_tokens=shape.lengths.live,
        rate=found.rate,
        prefill_seconds=found.prefill_seconds,
    )


def _longest(work: Work, batch: StepBatch, shape: Shape) -> Real:
    return longest_of(work, batch.samples, shape.uncapped, batch.response_cv, shape.cap)


def _most(work: Work, asked: Engine, batch: StepBatch) -> Real:
    """Samples that an instance may work on: the engine's own limit, or less where the loop lets in fewer."""
    limit = engine_limit(asked.question)
    if batch.in_flight is None:
        return limit
    return work(
        "most_in_flight",
        rollout_batch.samples_in_flight,
        concurrency=work(
            "in_flight_per_instance", rollout_batch.per_instance, amount=batch.in_flight, instances=batch.instances
        ),
        capacity=limit,
        engine_limit=limit,
    )


def _drained(work: Work, asked: Engine, batch: StepBatch, shape: Shape, values: Mapping[str, Real]) -> Generation:
    own = work("samples_per_instance", rollout_batch.per_instance, amount=batch.samples, instances=batch.instances)
    room = cache_capacity(work, asked, shape.lengths, values)
    slots = work(
        "samples_in_flight",
        rollout_batch.samples_in_flight,
        concurrency=own,
        capacity=room,
        engine_limit=_most(work, asked, batch),
    )
    _, full_step, prefill = at_batch(work, asked, slots, shape.lengths, values)
    drain = _Drain(own, slots, full_step, prefill)
    seconds = _until_the_last(work, asked, batch, shape, drain, values)
    packed = work(
        "packed_seconds",
        rollout_batch.packed_time,
        samples=own,
        response_tokens=batch.response_tokens,
        batch=slots,
        step_seconds=full_step,
        prefill_seconds=prefill,
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
        longest_tokens=_longest(work, batch, shape),
        live_tokens=shape.lengths.live,
        rate=rate,
        prefill_seconds=prefill,
    )


@dataclass(frozen=True, slots=True)
class _Drain:
    """Samples of an instance, those of them in flight at once, the step with these, and a prompt's engine time."""

    samples: Real
    slots: Real
    full_step: Real
    prefill: Real


def _until_the_last(
    work: Work, asked: Engine, batch: StepBatch, shape: Shape, drain: _Drain, values: Mapping[str, Real]
) -> Real:
    """Seconds until the last sample has finished."""
    steps = work(
        "full_steps",
        batch_drain.full_steps,
        samples=drain.samples,
        slots=drain.slots,
        mean_tokens=batch.response_tokens,
        mean_remaining=shape.live,
    )
    return work(
        "generation_seconds",
        batch_drain.drained_time,
        full_steps=steps,
        full_step_seconds=drain.full_step,
        draining_seconds=_drain(work, asked, batch, shape, drain, values),
        samples=drain.samples,
        prefill_seconds=drain.prefill,
    )


def _drain(
    work: Work, asked: Engine, batch: StepBatch, shape: Shape, drain: _Drain, values: Mapping[str, Real]
) -> Real:
    """
    Seconds of the steps in which the batch shrinks: the integral of the step over what the longest response has left.

    An instance runs on while any of its samples does; the fleet waits for the slowest one, so the last steps count if
    any sample of the whole step still runs.
    """
    points = np.linspace(0.0, 1.0, _POINTS) ** 2
    cap = _last(shape.cap)
    tokens = np.maximum(cap * points, 1.0)
    curve = {
        "tokens": tokens,
        "mean_tokens": _last(shape.uncapped),
        "length_cv": _last(batch.response_cv),
        "max_tokens": cap,
    }
    fresh = batch_drain.finished_share(**curve)
    aged = batch_drain.finished_share_in_flight(**curve)
    refilled = _last(np.asarray(drain.samples) > np.asarray(drain.slots))
    done = np.clip(np.where(refilled, aged, fresh), 0.0, 1.0)
    slots = _last(drain.slots)
    here = batch_drain.chance_of_any(finished_share=done, samples=slots)
    running = batch_drain.still_running(finished_share=done, samples=slots, chance=here)
    instances = _last(batch.instances)
    running_at_all = np.minimum(slots * instances, _last(batch.samples))  # some instances may have none
    anywhere = batch_drain.chance_of_any(finished_share=done, samples=running_at_all)
    lengths = Lengths(
        prompt=_last(batch.prompt_tokens),
        response=_last(batch.response_tokens),
        live=long_tail.context_of(prompt_tokens=_last(batch.prompt_tokens), response_tokens=_last(shape.live)),
        longest=_last(shape.lengths.longest),
        computed=_last(shape.lengths.computed),
    )
    grown = long_tail.context_of(prompt_tokens=_last(batch.prompt_tokens), response_tokens=tokens)
    live = Lengths(
        prompt=lengths.prompt,
        response=lengths.response,
        live=np.where(refilled, lengths.live, grown),
        longest=lengths.longest,
        computed=lengths.computed,
    )
    spread = {name: _last(value) for name, value in values.items()}
    _, step, _ = at_batch(work, asked, running, live, spread)
    return np.trapezoid(anywhere * step, tokens, axis=-1)


def _last(value: Real) -> Any:  # noqa: ANN401 (a float, or an array with one more axis)
    return np.asarray(value, dtype=float)[..., None]
