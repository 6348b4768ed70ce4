"""The long tail: how long the last sample of a batch keeps an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations._ops import maximum, minimum, where
from rlsize.equations.lengths import lognormal_sigma

if TYPE_CHECKING:
    from rlsize.equations._ops import Real

_POINTS = 400  # of the integrals; they agree with 4,000 to 1e-4


def longest_of(samples: Real, mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Expected longest of some responses.

    E[max] = integral from 0 to m of (1 - F(x)^n) dx

    Args:
        samples: Responses, n. [1]
        mean_tokens: Mean length without the cap. [token]
        length_cv: Coefficient of variation without the cap. [1]
        max_tokens: The cap, m. [token]

    Returns:
        E[max]. [token]

    Assumes lognormal lengths that are independent; correlation within a group lowers it.
    Source: mean of the largest order statistic (David, Nagaraja, Order statistics, section 3.1).

    >>> round(float(longest_of(samples=128, mean_tokens=1000, length_cv=1.0, max_tokens=8000)), -1)
    6010.0
    """
    fresh, _, lengths = _distribution(mean_tokens, length_cv, max_tokens)
    return _integral(1.0 - fresh ** _last(samples), lengths)


def longest_remaining_of(samples: Real, mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Expected time until the last of the samples in flight has finished, if none is added any more, in tokens.

    E[max] = integral from 0 to m of (1 - F_e(x)^n) dx, F_e(x) = integral from 0 to x of (1 - F(y)) dy / E[X]

    Args:
        samples: Samples in flight, n. [1]
        mean_tokens: Mean length without the cap. [token]
        length_cv: Coefficient of variation without the cap. [1]
        max_tokens: The cap, m. [token]

    Returns:
        E[max]. [token]

    Assumes lognormal lengths and a batch that has been refilled for long, so its samples are of all ages.
    Source: renewal theory (Cox, Renewal theory, section 5.2).

    >>> round(float(longest_remaining_of(samples=256, mean_tokens=1000, length_cv=0.5, max_tokens=100000)), -1)
    3140.0
    """
    _, remaining, lengths = _distribution(mean_tokens, length_cv, max_tokens)
    return _integral(1.0 - remaining ** _last(samples), lengths)


def batch_steps(
    samples: Real, slots: Real, mean_tokens: Real, longest: Real, longest_remaining: Real, mean_remaining: Real
) -> Real:
    """
    Engine steps until a batch that waits for its last sample is done.

    n = E[max] for S <= H, else max(E[max], S l / H - l_r + E[max_r])

    Args:
        samples: Samples of the batch on one instance, S. [1]
        slots: Samples in flight at most, H. [1]
        mean_tokens: Mean response length, l. [token]
        longest: Expected longest of all samples, E[max]. [token]
        longest_remaining: Expected longest remaining length of H samples in flight, E[max_r]. [token]
        mean_remaining: Mean remaining length of a sample in flight, l_r. [token]

    Returns:
        n. [token]

    Assumes slots are refilled until no sample waits; then the batch drains, which takes the longest remaining length,
    in which l_r of it would have kept all slots busy.
    Source: conservation of work and renewal theory; within 6 % of simulated batches of 300 to 2,048 samples on 64 to 256 slots.

    >>> batch_steps(samples=1024, slots=256, mean_tokens=1000, longest=4200, longest_remaining=3141, mean_remaining=625)
    6516.0
    """
    draining = samples * mean_tokens / slots - mean_remaining + longest_remaining
    return where(samples <= slots, longest, maximum(longest, draining))


def batch_time(
    steps: Real,
    fixed_seconds: Real,
    samples: Real,
    mean_tokens: Real,
    seconds_per_sample: Real,
    kv_token_steps: Real,
    seconds_per_kv_token: Real,
    prefill_seconds: Real,
) -> Real:
    """
    Time to generate a batch on one instance, the longest sample included.

    t = n t_0 + S l t_1 + K t_2 + S P

    Args:
        steps: Engine steps until the last sample is done, n. [token]
        fixed_seconds: Fixed time of a step, t_0. [s/token]
        samples: Samples of the batch on one instance, S. [1]
        mean_tokens: Mean response length, l. [token]
        seconds_per_sample: Time of a step for each sample in it, t_1. [s/token]
        kv_token_steps: Live KV tokens, summed over all steps, K. [token^2]
        seconds_per_kv_token: Time of a step for each live KV token, t_2. [s/token^2]
        prefill_seconds: Engine time that one prompt takes, P. [s]

    Returns:
        t. [s]

    Assumes an affine step; then the sum over all steps needs the longest sample and sums over samples only.
    Source: sum of t_0 + t_1 b + t_2 K over the steps of a batch, exact for an affine step.

    >>> batch_time(steps=5000, fixed_seconds=0.01, samples=100, mean_tokens=1000, seconds_per_sample=1e-4,
    ...            kv_token_steps=1e8, seconds_per_kv_token=1e-8, prefill_seconds=0.02)
    63.0
    """
    work = mean_tokens * seconds_per_sample + prefill_seconds
    return steps * fixed_seconds + samples * work + kv_token_steps * seconds_per_kv_token


def kv_token_steps(samples: Real, prompt_tokens: Real, mean_tokens: Real, mean_live_response: Real) -> Real:
    """
    Live KV tokens of a batch, summed over all its steps.

    K = S l (p + l_live)

    Args:
        samples: Samples of the batch, S. [1]
        prompt_tokens: Mean prompt length, p. [token]
        mean_tokens: Mean response length, l. [token]
        mean_live_response: Mean response length so far of a sample in flight, l_live = E[X^2] / (2 E[X]). [token]

    Returns:
        K. [token^2]

    Assumes prompt and response lengths are independent.
    Source: sum over the tokens of each sample.

    >>> kv_token_steps(samples=10, prompt_tokens=100, mean_tokens=1000, mean_live_response=600)
    7000000
    """
    return samples * mean_tokens * (prompt_tokens + mean_live_response)


def mean_remaining_tokens(mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Mean of what is left of a sample in flight, and of what it has: half its length-weighted mean.

    l_r = E[X^2] / (2 E[X])

    Args:
        mean_tokens: Mean length without the cap. [token]
        length_cv: Coefficient of variation without the cap. [1]
        max_tokens: The cap. [token]

    Returns:
        l_r. [token]

    Assumes lognormal lengths and samples of all ages.
    Source: renewal theory (Cox, Renewal theory, section 5.2).

    >>> round(float(mean_remaining_tokens(mean_tokens=1000, length_cv=0.5, max_tokens=100000)), 0)
    625.0
    """
    _, remaining, lengths = _distribution(mean_tokens, length_cv, max_tokens)
    return _integral(1.0 - remaining, lengths)


def _last(values: Real) -> Any:  # noqa: ANN401 (a float, or an array with one more axis)
    """The same values, with a last axis for the points of an integral."""
    import numpy as np

    return np.asarray(values, dtype=float)[..., None]


def _integral(heights: Any, lengths: Any) -> Real:  # noqa: ANN401 (arrays of any shape)
    import numpy as np

    return np.trapezoid(heights, lengths, axis=-1)


def _distribution(mean_tokens: Real, length_cv: Real, max_tokens: Real) -> tuple[Any, Any, Any]:
    """F and F_e of capped lognormal lengths, and the lengths at which they are taken: even in the logarithm's normal."""
    import numpy as np

    from rlsize.equations.lengths import _phi

    sigma = maximum(lognormal_sigma(length_cv), 1e-3)
    centre = np.log(mean_tokens) - sigma**2 / 2
    highest = minimum(8.5, maximum((np.log(max_tokens) - centre) / sigma, -8.5))
    steps = np.linspace(0.0, 1.0, _POINTS)
    normal = -8.5 + (_last(highest) + 8.5) * steps
    lengths = np.exp(_last(centre) + _last(sigma) * normal)
    lengths[..., 0] = 0.0
    lengths = np.minimum(lengths, _last(max_tokens))
    fresh = _phi(normal)
    widths = np.diff(lengths, axis=-1)
    alive = 1.0 - fresh
    areas = np.cumsum(widths * (alive[..., 1:] + alive[..., :-1]) / 2, axis=-1)
    areas = np.concatenate([np.zeros_like(areas[..., :1]), areas], axis=-1)
    return fresh, areas / areas[..., -1:], lengths
