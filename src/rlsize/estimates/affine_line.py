"""An engine step as a straight line in its batch and its KV tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import affine_step, rollout_batch
from rlsize.estimates.rollout_prediction import at_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.rollout_prediction import Engine, Lengths

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
    steps, kv = {}, {}
    for name, samples, live in (
        ("whole", batch, lengths.live), ("less", half_batch, lengths.live), ("short", batch, half_live),
    ):  # fmt: skip
        _, steps[name], _ = at_batch(work, asked, samples, replace(lengths, live=live), values)
        kv[name] = work("live_kv_tokens", affine_step.kv_tokens_of, batch=samples, live_tokens=live)
    each = work(
        "step_seconds_per_kv_token",
        affine_step.seconds_per_kv_token,
        seconds_short=steps["short"],
        seconds_long=steps["whole"],
        kv_tokens_short=kv["short"],
        kv_tokens_long=kv["whole"],
    )
    read = {
        name: work("kv_seconds", affine_step.kv_seconds, seconds_per_kv_token=each, live_kv_tokens=kv[name])
        for name in ("less", "whole")
    }
    sample = work(
        "step_seconds_per_sample",
        affine_step.seconds_per_sample,
        seconds_low=steps["less"],
        seconds_high=steps["whole"],
        kv_seconds_low=read["less"],
        kv_seconds_high=read["whole"],
        batch_low=half_batch,
        batch_high=batch,
    )
    fixed = work(
        "step_fixed_seconds",
        affine_step.fixed_seconds,
        step_seconds=steps["whole"],
        seconds_per_sample=sample,
        batch=batch,
        seconds_per_kv_token=each,
        live_kv_tokens=kv["whole"],
    )
    return AffineStep(fixed=fixed, per_sample=sample, per_kv_token=each)
