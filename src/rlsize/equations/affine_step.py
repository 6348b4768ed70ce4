"""The affine form of an engine step, T = t_0 + t_1 b + t_2 K, from a step that bends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import maximum

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def seconds_per_kv_token(seconds_short: Real, seconds_long: Real, kv_tokens_short: Real, kv_tokens_long: Real) -> Real:
    """
    Time of a step for each live KV token.

    t_2 = (T_2 - T_1) / (K_2 - K_1)

    Args:
        seconds_short: Step with short contexts, T_1. [s]
        seconds_long: Step with as many long contexts, T_2. [s]
        kv_tokens_short: Live KV tokens in the one, K_1. [token]
        kv_tokens_long: Live KV tokens in the other, K_2. [token]

    Returns:
        t_2. [s/token]

    Assumes reading the cache takes time in proportion to it between the two.
    Source: secant.

    >>> seconds_per_kv_token(seconds_short=0.25, seconds_long=0.75, kv_tokens_short=0, kv_tokens_long=2)
    0.25
    """
    return (seconds_long - seconds_short) / (kv_tokens_long - kv_tokens_short)


def seconds_per_sample(
    seconds_low: Real,
    seconds_high: Real,
    kv_seconds_low: Real,
    kv_seconds_high: Real,
    batch_low: Real,
    batch_high: Real,
) -> Real:
    """
    Time of a step for each sample in it, without its cache.

    t_1 = max(0, (T_2 - k_2) - (T_1 - k_1)) / (b_2 - b_1)

    Args:
        seconds_low: Step at the smaller batch, T_1. [s]
        seconds_high: Step at the larger batch, T_2. [s]
        kv_seconds_low: Of the one, time to read the cache, k_1. [s]
        kv_seconds_high: Of the other, likewise, k_2. [s]
        batch_low: Smaller batch, b_1. [1]
        batch_high: Larger batch, b_2. [1]

    Returns:
        t_1. [s]

    Assumes a straight line between the batches.
    Source: secant.

    >>> seconds_per_sample(seconds_low=0.02, seconds_high=0.05, kv_seconds_low=0.0, kv_seconds_high=0.01, batch_low=100,
    ...                    batch_high=200)
    0.0002
    """
    return maximum(0.0, (seconds_high - kv_seconds_high) - (seconds_low - kv_seconds_low)) / (batch_high - batch_low)


def fixed_seconds(
    step_seconds: Real, seconds_per_sample: Real, batch: Real, seconds_per_kv_token: Real, live_kv_tokens: Real
) -> Real:
    """
    Time of a step that neither samples nor caches add to.

    t_0 = T - t_1 b - t_2 K

    Args:
        step_seconds: A step, T. [s]
        seconds_per_sample: Of each sample in it, t_1. [s]
        batch: Samples, b. [1]
        seconds_per_kv_token: Of each live KV token, t_2. [s/token]
        live_kv_tokens: Live KV tokens, K. [token]

    Returns:
        t_0. [s]

    Assumes the line goes through this step.
    Source: definition of the affine step.

    >>> round(fixed_seconds(step_seconds=0.05, seconds_per_sample=1e-4, batch=200, seconds_per_kv_token=5e-8,
    ...                     live_kv_tokens=2e5), 6)
    0.02
    """
    return step_seconds - seconds_per_sample * batch - seconds_per_kv_token * live_kv_tokens


def kv_seconds(seconds_per_kv_token: Real, live_kv_tokens: Real) -> Real:
    """
    Time of a step to read the live KV cache.

    k = t_2 K

    Args:
        seconds_per_kv_token: Of each live KV token, t_2. [s/token]
        live_kv_tokens: Live KV tokens, K. [token]

    Returns:
        k. [s]

    Assumes an affine step.
    Source: definition.

    >>> kv_seconds(seconds_per_kv_token=5e-8, live_kv_tokens=2e5)
    0.01
    """
    return seconds_per_kv_token * live_kv_tokens


def kv_tokens_of(batch: Real, live_tokens: Real) -> Real:
    """
    Live KV tokens of a batch.

    K = b s

    Args:
        batch: Samples, b. [1]
        live_tokens: Context of the mean one, s. [token]

    Returns:
        K. [token]

    Assumes nothing is shared; with shared prompts see `engine_step.live_kv_tokens`.
    Source: definition.

    >>> kv_tokens_of(batch=100, live_tokens=2000)
    200000
    """
    return batch * live_tokens
