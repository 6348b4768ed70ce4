"""What a series of measurements that remember each other says."""

from __future__ import annotations

from rlsize.equations._ops import Real, maximum, minimum, sqrt

MOST_AUTOCORRELATION = 0.97  # above it a series is a drift, and no block of it is like another


def block_length(autocorrelation: Real, count: Real) -> Real:
    """
    Length of the blocks in which a series is drawn anew, so that what one step does to the next survives.

    b = max(1, (3/2)^(1/3) (2 r / (1 - r^2))^(2/3) n^(1/3))

    Args:
        autocorrelation: Correlation of a step with the next one, r. [1]
        count: Steps in the series, n. [1]

    Returns:
        b. [1]

    Assumes that correlation fades with distance as r, r^2, r^3, ... (a first-order autoregression); below 0 counts as
    none, and above 0.97 as that. Overlapping blocks take the factor (3/2)^(1/3).
    Source: Carlstein, The use of subseries values for estimating the variance of a general statistic from a stationary
    sequence, 1986; Hall, Horowitz and Jing, On blocking rules for the bootstrap with dependent data, 1995.

    >>> round(block_length(autocorrelation=0.5, count=1000.0), 4)
    13.8672
    """
    remembered = minimum(maximum(autocorrelation, 0.0), MOST_AUTOCORRELATION)
    ratio = 2.0 * remembered / (1.0 - remembered**2)
    return maximum(1.0, 1.5 ** (1 / 3) * ratio ** (2 / 3) * count ** (1 / 3))


def unbiased_autocorrelation(autocorrelation: Real, count: Real) -> Real:
    """
    Correlation of a step with the next one, without the bias of a short series.

    r = r' + (1 + 3 r') / (n - 1)

    Args:
        autocorrelation: The correlation as the series has it, around its own mean, r'. [1]
        count: Steps in the series, n; more than 1. [1]

    Returns:
        r. [1]

    Assumes a first-order autoregression whose mean is not known: the series' own mean follows its drifts, and hides
    part of its memory. The estimate may lie beyond 1.
    Source: Kendall, Note on bias in the estimation of autocorrelation, 1954; Marriott and Pope, Bias in the estimation
    of autocorrelations, 1954.

    >>> unbiased_autocorrelation(autocorrelation=0.5, count=26.0)
    0.6
    """
    return autocorrelation + (1.0 + 3.0 * autocorrelation) / (count - 1.0)


def trend_error(scatter: Real, count: Real, autocorrelation: Real) -> Real:
    """
    Standard error of the slope of a straight line through a series, for each step of it.

    e = s sqrt(12 / (n^3 - n)) sqrt((1 + r) / (1 - r))

    Args:
        scatter: Standard deviation of the series around the line, s. [value]
        count: Steps in the series, n; more than 1. [1]
        autocorrelation: Correlation of a step's deviation with the next one's, r. [1]

    Returns:
        e. [value]

    Assumes deviations that are a first-order autoregression, in a series much longer than its memory; below 0 counts as
    none, and above 0.97 as that.
    Source: least squares on equally spaced points; the variance of a mean of correlated values (Bayley and Hammersley,
    The effective number of independent observations in an autocorrelated time series, 1946).

    >>> round(trend_error(scatter=1.0, count=60.0, autocorrelation=0.5), 5)
    0.01291
    """
    remembered = minimum(maximum(autocorrelation, 0.0), MOST_AUTOCORRELATION)
    return scatter * sqrt(12.0 / (count**3 - count)) * sqrt((1.0 + remembered) / (1.0 - remembered))


def steps_to_limit(level: Real, growth: Real, limit: Real) -> Real:
    """
    Steps until something that grows by as much each step is at its limit.

    h = (L - y) / g

    Args:
        level: Where it is, y. [value]
        growth: What it grows by in a step, g; more than 0. [value/step]
        limit: Its limit, L. [value]

    Returns:
        h. [step]

    Assumes that it goes on as it did; 0 or less where it is there.
    Source: definition.

    >>> steps_to_limit(level=8000.0, growth=100.0, limit=12000.0)
    40.0
    """
    return (limit - level) / growth


def interval_widening(parts: Real, deviate: Real) -> Real:
    """
    Factor by which an interval from a few parts of a series is too narrow.

    w = (1 + (z^2 + 1) / (4 (m - 1))) sqrt(m / (m - 1))

    Args:
        parts: Parts that do not remember each other, m; more than 1. [1]
        deviate: Normal deviate of the interval's end, z; 1.96 for 95 %. [1]

    Returns:
        w. [1]

    Assumes parts that scatter normally: their own spread is known no better than from m of them. The first factor is
    Student's quantile over the normal one, to first order; the second makes their variance unbiased.
    Source: Cornish and Fisher, Moments and cumulants in the specification of distributions, 1938 (the expansion).

    >>> round(interval_widening(parts=12.0, deviate=1.96), 4)
    1.1594
    """
    return (1.0 + (deviate**2 + 1.0) / (4.0 * (parts - 1.0))) * sqrt(parts / (parts - 1.0))
