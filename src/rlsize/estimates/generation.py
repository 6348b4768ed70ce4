"""How long a fleet takes to generate the samples of one optimizer step, with the tail of its lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rlsize.equations import affine_step, batch_drain, kv_cache, long_tail, rollout_batch
from rlsize.estimates.rollout_prediction import Lengths, at_batch, cache_capacity, engine_limit, steady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.rollout_prediction import Engine

    Work = Callable[..., Any]

Ending = Literal["barrier", "refill"]
_POINTS = 49  # of the drain; 400 change the time by less than 0.5 %
_NO_CAP = 32.0  # mean lengths beyond which hardly a sample goes


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


@dataclass(frozen=True, slots=True)
class _Shape:
    """Lengths of a batch: with and without the cap, and of the mean sample in flight."""

    uncapped: Real
    cap: Real
    live: Real
    lengths: Lengths


def _shape(work: Work, batch: StepBatch) -> _Shape:
    cap = batch.max_tokens if batch.max_tokens is not None else _NO_CAP * batch.response_tokens
    uncapped = work(
        "uncapped_mean",
        batch_drain.uncapped_mean,
        mean_tokens=batch.response_tokens,
        length_cv=batch.response_cv,
        max_tokens=cap,
    )
    live = work(
        "mean_live_response",
        long_tail.mean_remaining_tokens,
        mean_tokens=uncapped,
        length_cv=batch.response_cv,
        max_tokens=cap,
    )
    contexts = {
        "live": work("live_tokens", long_tail.context_of, prompt_tokens=batch.prompt_tokens, response_tokens=live),
        "longest": work(
            "longest_context", long_tail.context_of, prompt_tokens=batch.prompt_tokens, response_tokens=cap
        ),
    }
    from rlsize.equations.prefill import group_prefill_tokens

    computed = work(
        "computed_prompt_tokens",
        group_prefill_tokens,
        prompt_tokens=batch.prompt_tokens,
        hit_ratio=batch.hit_ratio,
    )
    lengths = Lengths(prompt=batch.prompt_tokens, response=batch.response_tokens, computed=computed, **contexts)
    return _Shape(uncapped=uncapped, cap=cap, live=live, lengths=lengths)


def lengths_of(work: Work, batch: StepBatch) -> Lengths:
    """The mean lengths of a step's samples, for an engine at steady load."""
    return _shape(work, batch).lengths


def generation(work: Work, asked: Engine, batch: StepBatch, values: Mapping[str, Real]) -> Generation:
    """
    Time until the fleet has generated the samples of one optimizer step.

    Args:
        work: `working.numbers`; the integral over the drain has no figure of its own.
        asked: One instance.
        batch: The samples.
        values: Constants of rollout and memory by name: numbers, or arrays of draws.
    """
    shape = _shape(work, batch)
    if batch.ending == "refill":
        return _refilled(work, asked, batch, shape, values)
    return _drained(work, asked, batch, shape, values)


def _refilled(work: Work, asked: Engine, batch: StepBatch, shape: _Shape, values: Mapping[str, Real]) -> Generation:
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


def _longest(work: Work, batch: StepBatch, shape: _Shape) -> Real:
    return work(
        "longest_response_tokens",
        long_tail.longest_of,
        samples=batch.samples,
        mean_tokens=shape.uncapped,
        length_cv=batch.response_cv,
        max_tokens=shape.cap,
    )


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


def _drained(work: Work, asked: Engine, batch: StepBatch, shape: _Shape, values: Mapping[str, Real]) -> Generation:
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
    steps = work(
        "full_steps",
        batch_drain.full_steps,
        samples=own,
        slots=slots,
        mean_tokens=batch.response_tokens,
        mean_remaining=shape.live,
    )
    draining = _drain(work, asked, batch, shape, _Drain(own, slots), values)
    seconds = work(
        "generation_seconds",
        batch_drain.drained_time,
        full_steps=steps,
        full_step_seconds=full_step,
        draining_seconds=draining,
        samples=own,
        prefill_seconds=prefill,
    )
    packed = work(
        "packed_seconds",
        rollout_batch.packed_time,
        samples=own,
        response_tokens=batch.response_tokens,
        batch=slots,
        step_seconds=full_step,
        prefill_seconds=prefill,
    )
    return Generation(
        seconds=seconds,
        full_seconds=packed,
        tail_seconds=work("tail_seconds", rollout_batch.beyond, whole=seconds, part=packed),
        batch=slots,
        capacity=room,
        longest_tokens=_longest(work, batch, shape),
        live_tokens=shape.lengths.live,
        rate=work(
            "batch_tokens_per_second",
            rollout_batch.batch_rate,
            samples=own,
            response_tokens=batch.response_tokens,
            seconds=seconds,
        ),
        prefill_seconds=prefill,
    )


@dataclass(frozen=True, slots=True)
class _Drain:
    """Samples of an instance, and those of them in flight at once."""

    samples: Real
    slots: Real


def _drain(
    work: Work, asked: Engine, batch: StepBatch, shape: _Shape, drain: _Drain, values: Mapping[str, Real]
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
    anywhere = batch_drain.chance_of_any(finished_share=done, samples=slots * instances)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineStep:
    """
    An engine step as a straight line, T = t_0 + t_1 b + t_2 K.

    Args:
        fixed: t_0. [s]
        per_sample: t_1. [s]
        per_kv_token: t_2. [s/token]
    """

    fixed: Any
    per_sample: Any
    per_kv_token: Any


def affine(work: Work, asked: Engine, batch: Any, lengths: Lengths, values: Mapping[str, Real]) -> AffineStep:  # noqa: ANN401 (as `work` makes them)
    """The line through the step at a batch, that at half of it, and that with contexts of half the length."""
    half_batch = work("half_batch", rollout_batch.half, amount=batch)
    half_live = work("half_live_tokens", rollout_batch.half, amount=lengths.live)
    shorter = Lengths(
        prompt=lengths.prompt,
        response=lengths.response,
        live=half_live,
        longest=lengths.longest,
        computed=lengths.computed,
    )
    _, whole, _ = at_batch(work, asked, batch, lengths, values)
    _, less, _ = at_batch(work, asked, half_batch, lengths, values)
    _, short, _ = at_batch(work, asked, batch, shorter, values)
    kv = {
        name: work("live_kv_tokens", affine_step.kv_tokens_of, batch=samples, live_tokens=live)
        for name, samples, live in (
            ("whole", batch, lengths.live),
            ("short", batch, half_live),
            ("less", half_batch, lengths.live),
        )
    }
    each = work(
        "step_seconds_per_kv_token",
        affine_step.seconds_per_kv_token,
        seconds_short=short,
        seconds_long=whole,
        kv_tokens_short=kv["short"],
        kv_tokens_long=kv["whole"],
    )
    sample = work(
        "step_seconds_per_sample",
        affine_step.seconds_per_sample,
        seconds_low=less,
        seconds_high=whole,
        kv_seconds_low=work("kv", affine_step.kv_seconds, seconds_per_kv_token=each, live_kv_tokens=kv["less"]),
        kv_seconds_high=work("kv", affine_step.kv_seconds, seconds_per_kv_token=each, live_kv_tokens=kv["whole"]),
        batch_low=half_batch,
        batch_high=batch,
    )
    fixed = work(
        "step_fixed_seconds",
        affine_step.fixed_seconds,
        step_seconds=whole,
        seconds_per_sample=sample,
        batch=batch,
        seconds_per_kv_token=each,
        live_kv_tokens=kv["whole"],
    )
    return AffineStep(fixed=fixed, per_sample=sample, per_kv_token=each)
