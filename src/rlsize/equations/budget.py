"""Budgets: limits that follow from a baseline, and how far a quantity is from its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def allowed_change(baseline: Real, change_fraction: Real) -> Real:
    """
    How far a quantity may move when its limit is a share of the baseline.

    d = x |b|

    Args:
        baseline: The quantity in the baseline, b. [value]
        change_fraction: The share that is allowed, x. [1]

    Returns:
        d. [value]

    Assumes the share is meant of the size of the baseline, so that it means the same for a negative headroom.
    Source: definition.

    >>> allowed_change(baseline=2.0, change_fraction=0.05)
    0.1
    """
    return change_fraction * abs(baseline)


def highest_after_change(baseline: Real, change: Real) -> Real:
    """
    The most that a quantity may be when it may grow from a baseline.

    L = b + d

    Args:
        baseline: The quantity in the baseline, b. [value]
        change: Growth that is allowed, d. [value]

    Returns:
        L. [value]

    Assumes nothing.
    Source: definition.

    >>> highest_after_change(baseline=2.0, change=0.25)
    2.25
    """
    return baseline + change


def lowest_after_change(baseline: Real, change: Real) -> Real:
    """
    The least that a quantity may be when it may fall from a baseline.

    L = b - d

    Args:
        baseline: The quantity in the baseline, b. [value]
        change: Fall that is allowed, d. [value]

    Returns:
        L. [value]

    Assumes nothing.
    Source: definition.

    >>> lowest_after_change(baseline=2.0, change=0.25)
    1.75
    """
    return baseline - change


def margin_below(limit: Real, value: Real) -> Real:
    """
    Room between a quantity and the most that it may be.

    m = L - v

    Args:
        limit: The most that is allowed, L. [value]
        value: The quantity, v. [value]

    Returns:
        m. [value]

    Assumes nothing; it is negative where the limit is broken.
    Source: definition.

    >>> margin_below(limit=2.5, value=2.0)
    0.5
    """
    return limit - value


def margin_above(limit: Real, value: Real) -> Real:
    """
    Room between a quantity and the least that it may be.

    m = v - L

    Args:
        limit: The least that is allowed, L. [value]
        value: The quantity, v. [value]

    Returns:
        m. [value]

    Assumes nothing; it is negative where the limit is broken.
    Source: definition.

    >>> margin_above(limit=1800.0, value=2000.0)
    200.0
    """
    return value - limit


def margin_fraction(margin: Real, limit: Real) -> Real:
    """
    Room to a limit as a share of the limit.

    r = m / |L|

    Args:
        margin: Room to the limit, m. [value]
        limit: The limit, L; not 0. [value]

    Returns:
        r. [1]

    Assumes nothing.
    Source: definition.

    >>> margin_fraction(margin=0.5, limit=2.5)
    0.2
    """
    return margin / abs(limit)


def change_from_baseline(value: Real, baseline: Real) -> Real:
    """
    How far a quantity moved from a baseline.

    c = v - b

    Args:
        value: The quantity, v. [value]
        baseline: The quantity in the baseline, b. [value]

    Returns:
        c. [value]

    Assumes nothing; it is negative where the quantity fell.
    Source: definition.

    >>> change_from_baseline(value=2.5, baseline=2.0)
    0.5
    """
    return value - baseline


def relative_change(value: Real, baseline: Real) -> Real:
    """
    How far a quantity moved from a baseline, as a share of the baseline.

    c = (v - b) / |b|

    Args:
        value: The quantity, v. [value]
        baseline: The quantity in the baseline, b; not 0. [value]

    Returns:
        c. [1]

    Assumes nothing; it is negative where the quantity fell.
    Source: definition.

    >>> relative_change(value=2.5, baseline=2.0)
    0.25
    """
    return (value - baseline) / abs(baseline)
