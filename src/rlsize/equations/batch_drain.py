"""A batch as it drains: how many samples still run when their responses have reached some length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import exp, log, maximum, minimum, where
from rlsize.equations.lengths import capped_mean, lognormal_sigma, normal_share

if TYPE_CHECKING:
    from rlsize.equations._ops import Real

_HALVINGS = 60


def uncapped_mean(mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Mean length without the cap, from the mean that is seen with it.

    l_0 such that E[min(X, m)] = l

    Args:
        mean_tokens: Mean length that is seen, samples cut at the cap included, l. [token]
        length_cv: Coefficient of variation without the cap, c. [1]
        max_tokens: The cap, m; above the mean. [token]

    Returns:
        l_0. [token]

    Assumes lognormal lengths; a mean within 2 % of the cap is taken as 2 % below it.
    Source: inverse of the limited expected value (`lengths.capped_mean`), by bisection.

    >>> round(float(uncapped_mean(mean_tokens=873.123, length_cv=1.0, max_tokens=2000.0)), 1)
    1000.0
    """
    seen = minimum(mean_tokens, 0.98 * max_tokens)
    low, high = log(seen), log(max_tokens) + 9.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = capped_mean(exp(middle), length_cv, max_tokens) < seen
        low, high = where(short, middle, low), where(short, high, middle)
    return exp((low + high) / 2)


def finished_share(tokens: Real, mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Share of responses that are no longer than some length.

    F = Phi((ln(x / l_0) + s^2 / 2) / s), 1 from the cap on

    Args:
        tokens: The length, x. [token]
        mean_tokens: Mean length without the cap, l_0. [token]
        length_cv: Coefficient of variation without the cap, with s^2 = ln(1 + c^2). [1]
        max_tokens: The cap. [token]

    Returns:
        F. [1]

    Assumes lognormal lengths.
    Source: distribution function of the lognormal.

    >>> round(finished_share(tokens=1000.0, mean_tokens=1000.0, length_cv=1.0, max_tokens=8000.0), 4)
    0.6614
    """
    sigma = maximum(lognormal_sigma(length_cv), 1e-3)
    share = normal_share((log(tokens / mean_tokens) + sigma**2 / 2) / sigma)
    return where(tokens < max_tokens, share, 1.0)


def finished_share_in_flight(tokens: Real, mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Share of samples in flight that finish within some more tokens.

    F_e = E[min(X, x)] / E[min(X, m)]

    Args:
        tokens: Further tokens, x. [token]
        mean_tokens: Mean length without the cap. [token]
        length_cv: Coefficient of variation without the cap. [1]
        max_tokens: The cap, m. [token]

    Returns:
        F_e. [1]

    Assumes lognormal lengths, and samples of all ages.
    Source: distribution of residual life (Cox, Renewal theory, section 5.2).

    >>> round(finished_share_in_flight(tokens=1000.0, mean_tokens=1000.0, length_cv=0.0, max_tokens=8000.0), 4)
    1.0
    """
    reached = minimum(tokens, max_tokens)
    return capped_mean(mean_tokens, length_cv, reached) / capped_mean(mean_tokens, length_cv, max_tokens)


def chance_of_any(finished_share: Real, samples: Real) -> Real:
    """
    Chance that at least one of some samples still runs.

    P = 1 - F^n

    Args:
        finished_share: Share that has finished by then, F. [1]
        samples: Samples, n. [1]

    Returns:
        P. [1]

    Assumes independent samples; correlation within a group lowers it.
    Source: largest order statistic.

    >>> round(chance_of_any(finished_share=0.99, samples=100), 4)
    0.634
    """
    return 1 - finished_share**samples


def still_running(finished_share: Real, samples: Real, chance: Real) -> Real:
    """
    Samples that still run, given that any does.

    h = n (1 - F) / P, at least 1

    Args:
        finished_share: Share that has finished by then, F. [1]
        samples: Samples, n. [1]
        chance: Chance that any still runs, P. [1]

    Returns:
        h. [1]

    Assumes independent samples.
    Source: conditional mean.

    >>> still_running(finished_share=0.5, samples=100, chance=1.0)
    50.0
    """
    return maximum(1.0, samples * (1 - finished_share) / maximum(chance, 1e-12))


def full_steps(samples: Real, slots: Real, mean_tokens: Real, mean_remaining: Real) -> Real:
    """
    Engine steps with all slots busy, before a batch that is larger than its slots begins to drain.

    n = max(0, S l / H - l_r) for S > H, else 0

    Args:
        samples: Samples of the batch on one instance, S. [1]
        slots: Samples in flight at most, H. [1]
        mean_tokens: Mean response length, l. [token]
        mean_remaining: Mean remaining length of a sample in flight, l_r. [token]

    Returns:
        n. [token]

    Assumes slots are refilled until no sample waits; work is conserved.
    Source: conservation of work and renewal theory.

    >>> full_steps(samples=1024, slots=256, mean_tokens=1000, mean_remaining=625)
    3375.0
    """
    return where(samples > slots, maximum(0.0, samples * mean_tokens / slots - mean_remaining), 0.0)


def drained_time(
    full_steps: Real, full_step_seconds: Real, draining_seconds: Real, samples: Real, prefill_seconds: Real
) -> Real:
    """
    Time of a batch that waits for its last sample.

    t = n T + t_d + S P

    Args:
        full_steps: Steps with all slots busy, n. [token]
        full_step_seconds: One of them, T. [s/token]
        draining_seconds: Steps while the batch drains, t_d. [s]
        samples: Samples of the batch on one instance, S. [1]
        prefill_seconds: Engine time that one prompt takes, P. [s]

    Returns:
        t. [s]

    Assumes prefill takes engine time from decoding.
    Source: sum.

    >>> drained_time(full_steps=1000, full_step_seconds=0.02, draining_seconds=10, samples=100, prefill_seconds=0.01)
    31.0
    """
    return full_steps * full_step_seconds + draining_seconds + samples * prefill_seconds
