"""A predicted engine as the simulator takes it: its step by batch, cache and prompt tokens, its slots and cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import affine_step, engine_step, kernel_time, rollout_batch
from rlsize.estimates.engine_memory import check_room, kv_capacity
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import computed_anew, lengths_of
from rlsize.estimates.outside import computing, in_turns, left_behind, losing, outside
from rlsize.estimates.rollout_prediction import affine, at_batch, engine, engine_limit, prompt_seconds, steady

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.generation import StepBatch
    from rlsize.estimates.rollout_prediction import Lengths, Replica

ALL_THAT_FIT = 1e9
"""Samples in flight that no engine can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """
    Time of an engine step as a straight line, and what the engine holds.

    Args:
        fixed: A step with nothing in it. [s]
        sample: What each running sample adds. [s]
        kv_token: What each live KV token adds. [s]
        prompt_token: What each prompt token that is computed adds. [s]
        slots: Samples that it runs at most. [1]
        kv_tokens: Tokens that its cache holds; None where nobody knows. [token]
        batch: Samples at which the line was taken. [1]
        rate: Response tokens per second with that batch, where the line was made to reach it. [token/s]
        points: Samples, and what a step with them takes without KV and prompts, where that is no straight line: a
            mixture of experts reads more experts with each sample, until all are read. [1, s]
    """

    fixed: float
    sample: float
    kv_token: float
    prompt_token: float
    slots: int
    kv_tokens: float | None
    batch: float
    rate: float | None = None
    points: tuple[tuple[int, float], ...] = ()

    def slowed(self, factor: float) -> StepLine:
        """The same line, each time of it so many times as long."""

        def slower(seconds: float) -> float:
            return float(kernel_time.slowed(seconds=seconds, slowdown=factor))

        return replace(
            self,
            fixed=slower(self.fixed),
            sample=slower(self.sample),
            kv_token=slower(self.kv_token),
            prompt_token=slower(self.prompt_token),
            points=tuple((samples, slower(seconds)) for samples, seconds in self.points),
        )


def predicted_line(
    question: EngineQuestion,
    batch: StepBatch,
    values: Mapping[str, float],
    concurrency: float | None,
    load: float = ALL_THAT_FIT,
) -> StepLine:
    """
    An engine within a loop.

    Args:
        question: The instance.
        batch: The lengths of its samples, and the share of their prompts in the prefix cache.
        values: Constants of rollout, memory and step by name.
        concurrency: Samples that it is given; as many as fit where None. [1]
        load: Samples that the loop has for it at most, at which the line is taken. [1]

    Raises:
        Refused: It does not fit, or cannot run so.
    """
    asked = engine(question)
    lengths = lengths_of(numbers, replace(batch, hit_ratio=0.0))  # the simulator says which prompts the cache finds
    out = None if batch.agents is None else outside(batch.agents)
    if out is not None:
        lengths = in_turns(lengths, out)
    check_room(question, lengths.live, values)
    offered = load if concurrency is None else min(load, concurrency)
    found = steady(numbers, asked, offered, lengths, values)
    line = affine(numbers, asked, found.batch, lengths, values)
    anew = 0.0 if out is None else out.calls * out.tool_tokens
    plain = computing(lengths_of(numbers, batch), anew)
    if offered > found.capacity:  # contexts are computed anew
        again = computed_anew(plain, found.capacity, out)
        plain, anew = computing(plain, again), anew + again
        if out is not None and out.calls:
            plain, anew = losing(plain, out, batch.own_prompt, 1.0), anew + left_behind(out, plain, batch.own_prompt)[0]
    # each sample is a request, which takes the host time; the simulator has but tokens, of a prompt those of its group
    prefill = prompt_seconds(numbers, asked, found.batch, plain, values)
    once = rollout_batch.share_of(part=batch.prompt_tokens, whole=batch.group_size)
    prompt = float(rollout_batch.share_of(part=prefill, whole=once + anew))
    slow = values["step_rollout_slowdown"]
    if question.model.architecture.moe:
        slow = kernel_time.slowed(seconds=slow, slowdown=values["step_rollout_moe_slowdown"])
    limit = engine_limit(question)
    slots = int(limit if concurrency is None else min(limit, concurrency))
    return StepLine(
        fixed=max(0.0, line.fixed),
        sample=max(0.0, line.per_sample),
        kv_token=max(0.0, line.per_kv_token),
        prompt_token=max(0.0, prompt),
        slots=slots,
        kv_tokens=float(kv_capacity(numbers, question, values, lengths.live).kv_tokens),
        batch=float(found.batch),
        rate=_rate(asked, lengths_of(numbers, batch), found.batch, slow, values),
        points=_points(asked, lengths, slots, max(0.0, line.per_kv_token), values),
    ).slowed(slow)


def _points(
    asked: Replica, lengths: Lengths, slots: int, kv_token: float, values: Mapping[str, float]
) -> tuple[tuple[int, float], ...]:
    """A step without its KV at every power of two of samples, and with all slots; nothing where there is one slot."""
    batches = [*(1 << power for power in range((slots - 1).bit_length())), slots]
    _, whole, _ = at_batch(numbers, asked, np.array(batches, dtype=float), lengths, values)
    kv_tokens = affine_step.kv_tokens_of(batch=np.array(batches), live_tokens=lengths.live)
    times = np.maximum(0.0, whole - kv_token * kv_tokens).tolist()
    return tuple(zip(batches, times, strict=True)) if slots > 1 else ()


def _rate(asked: Replica, lengths: Lengths, batch: float, slow: float, values: Mapping[str, float]) -> float:
    """Response tokens per second of a full batch, with the prompts that the cache finds."""
    _, step, prompt = at_batch(numbers, asked, batch, lengths, values)
    return float(
        rollout_batch.steady_rate(
            batch=batch,
            response_tokens=lengths.response,
            prefill_seconds=kernel_time.slowed(seconds=prompt, slowdown=slow),
            step_seconds=kernel_time.slowed(seconds=step, slowdown=slow),
        )
    )


def scaled_line(line: StepLine, rate: float) -> StepLine:
    """
    A line of the same shape, as fast as a rate says.

    Args:
        line: A predicted line.
        rate: Response tokens per second of the instance with a full batch. [token/s]
    """
    if line.rate is None:
        raise TypeError("the line says no rate to scale")  # a slip of the caller
    factor = rollout_batch.share_of(part=line.rate, whole=rate)
    return replace(line.slowed(factor), rate=rate)


def constant_line(slots: int, rate: float) -> StepLine:
    """
    An engine whose step takes the same time at every batch.

    Args:
        slots: Samples that it runs at most. [1]
        rate: Response tokens per second with all slots busy. [token/s]
    """
    fixed = float(engine_step.step_time_of_rate(batch=slots, rate=rate))
    return StepLine(
        fixed=fixed,
        sample=0.0,
        kv_token=0.0,
        prompt_token=0.0,
        slots=slots,
        kv_tokens=None,
        batch=float(slots),
        rate=rate,
    )
