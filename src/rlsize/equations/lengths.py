"""Response lengths: what a cap does to a long tail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import erf, exp, log, maximum, minimum, sqrt, where

if TYPE_CHECKING:
    from rlsize.equations._ops import Real

_RAREST = 1e-12  # of a share, and of what it leaves: its logarithm is worked out


def lognormal_sigma(length_cv: Real) -> Real:
    """
    Standard deviation of the logarithm of lengths that are lognormal.

    sigma = sqrt(ln(1 + c^2))

    Args:
        length_cv: Coefficient of variation of the lengths, c. [1]

    Returns:
        sigma. [1]

    Assumes lognormal lengths.
    Source: moments of the lognormal distribution (Johnson, Kotz, Balakrishnan, Continuous univariate distributions,
    chapter 14).

    >>> round(lognormal_sigma(length_cv=1.0), 6)
    0.832555
    """
    return sqrt(log(1.0 + length_cv**2))


def capped_mean(uncapped_mean: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Mean response length when generation stops at a cap.

    E[min(X, m)] = l Phi((ln(m / l) - s^2 / 2) / s) + m (1 - Phi((ln(m / l) + s^2 / 2) / s))

    Args:
        uncapped_mean: Mean length without the cap, l. [token]
        length_cv: Coefficient of variation without the cap, c, with s^2 = ln(1 + c^2). [1]
        max_tokens: The cap, m. [token]

    Returns:
        E[min(X, m)]. [token]

    Assumes lognormal lengths; with c = 0 all samples have the same length.
    Source: limited expected value of the lognormal distribution (Klugman, Panjer, Willmot, Loss models, appendix A).

    >>> round(capped_mean(uncapped_mean=1000.0, length_cv=1.0, max_tokens=2000.0), 3)
    873.123
    >>> capped_mean(uncapped_mean=1000.0, length_cv=0.0, max_tokens=2000.0)
    1000.0
    """
    sigma = lognormal_sigma(length_cv)
    safe = where(sigma > 0.0, sigma, 1.0)
    distance = log(max_tokens / uncapped_mean)
    below = normal_share((distance - sigma**2 / 2.0) / safe)
    above = 1.0 - normal_share((distance + sigma**2 / 2.0) / safe)
    spread = uncapped_mean * below + max_tokens * above
    certain = where(uncapped_mean < max_tokens, uncapped_mean, max_tokens)
    return where(sigma > 0.0, spread, certain)


def normal_share(deviate: Real) -> Real:
    """
    Share of a standard normal variable's values that are smaller.

    Phi = (1 + erf(z / sqrt(2))) / 2

    Args:
        deviate: The value, z. [1]

    Returns:
        Phi. [1]

    Assumes nothing.
    Source: distribution function of the normal (Johnson, Kotz, Balakrishnan, Continuous univariate distributions,
    chapter 13).

    >>> normal_share(deviate=0.0)
    0.5
    """
    return (1.0 + erf(deviate / 2.0**0.5)) / 2.0


def lognormal_quantile(mean: Real, variation: Real, deviate: Real) -> Real:
    """
    The value of a lognormal variable that as many are below as a standard normal has below a deviate.

    x = m exp(s z - s^2 / 2)

    Args:
        mean: Mean of the variable, m. [token]
        variation: Its coefficient of variation, c, with s^2 = ln(1 + c^2). [1]
        deviate: The standard normal deviate, z. [1]

    Returns:
        x. [token]

    Assumes a lognormal variable; times obey the same in their own unit.
    Source: definition of the lognormal distribution (Johnson, Kotz, Balakrishnan, Continuous univariate distributions,
    chapter 14).

    >>> round(lognormal_quantile(mean=1000.0, variation=1.0, deviate=0.0), 3)
    707.107
    """
    sigma = lognormal_sigma(variation)
    return mean * exp(sigma * deviate - sigma**2 / 2.0)


def normal_deviate(share: Real) -> Real:
    """
    The deviate that a share of a standard normal variable's values is smaller than.

    z = +-(t - (2.515517 + 0.802853 t + 0.010328 t^2) / (1 + 1.432788 t + 0.189269 t^2 + 0.001308 t^3))
    with t = sqrt(-2 ln min(F, 1 - F))

    Args:
        share: The share, F; between 0 and 1. [1]

    Returns:
        z. [1]

    Assumes that 0.00045 is no error.
    Source: Abramowitz, Stegun, Handbook of mathematical functions, 26.2.23.

    >>> round(normal_deviate(share=0.975), 2)
    1.96
    """
    rare = maximum(minimum(share, 1.0 - share), _RAREST)
    root = sqrt(-2.0 * log(rare))
    above = 2.515517 + 0.802853 * root + 0.010328 * root**2
    below = 1.0 + 1.432788 * root + 0.189269 * root**2 + 0.001308 * root**3
    return where(share > 1.0 - share, 1.0, -1.0) * (root - above / below)


def mean_of_shortest(share: Real, uncapped_mean: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Mean length of the shortest samples, over that of all.

    a = l Phi(z - s) / (F l_m), at most 1, with z the deviate of F and l_m the mean under the cap

    Args:
        share: Which share of the samples they are, F; more than nothing. [1]
        uncapped_mean: Mean length without the cap, l. [token]
        length_cv: Coefficient of variation without the cap, c, with s^2 = ln(1 + c^2). [1]
        max_tokens: The cap, m. [token]

    Returns:
        a. [1]

    Assumes lognormal lengths, and none among the shortest that is as long as the cap, but where these are all.
    Source: partial expectation of the lognormal distribution (Klugman, Panjer, Willmot, Loss models, appendix A).

    >>> round(mean_of_shortest(share=0.8, uncapped_mean=1000.0, length_cv=1.0, max_tokens=16000.0), 2)
    0.63
    """
    mean = capped_mean(uncapped_mean, length_cv, max_tokens)
    part = uncapped_mean * normal_share(normal_deviate(share) - lognormal_sigma(length_cv)) / (share * mean)
    return minimum(part, 1.0)
