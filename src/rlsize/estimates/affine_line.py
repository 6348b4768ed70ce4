"""An engine step as a straight line in its batch and its KV tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.equations import affine_step, rollout_batch
from rlsize.estimates.rollout_prediction import Lengths, at_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.rollout_prediction import Engine

    Work = Callable[..., Any]


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
    sample = _sample(work, (less, whole), (half_batch, batch), each, kv)
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


def _sample(work: Work, steps: tuple[Any, Any], batches: tuple[Any, Any], each: Any, kv: Mapping[str, Any]) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Time of each sample, from the step at half the batch and at all of it."""
    read = [
        work("kv_seconds", affine_step.kv_seconds, seconds_per_kv_token=each, live_kv_tokens=kv[name])
        for name in ("less", "whole")
    ]
    return work(
        "step_seconds_per_sample",
        affine_step.seconds_per_sample,
        seconds_low=steps[0],
        seconds_high=steps[1],
        kv_seconds_low=read[0],
        kv_seconds_high=read[1],
        batch_low=batches[0],
        batch_high=batches[1],
    )
