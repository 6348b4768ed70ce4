"""Response lengths: what a cap does to a long tail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import erf, exp, log, sqrt, where

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


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
