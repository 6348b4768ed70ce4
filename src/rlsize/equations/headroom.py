"""Headroom: what a measured rate does not yet contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def remaining_headroom(headroom: Real, parts_included: Real, parts: Real) -> Real:
    """
    Headroom left to apply to a rate that already contains some of what headroom covers.

    h' = h^((k - i) / k)

    Args:
        headroom: Derating of a rate that contains no part, h. [1]
        parts_included: Parts that the rate already contains, i. [1]
        parts: Parts that headroom covers, k. [1]

    Returns:
        h'. [1]

    Assumes every part takes the same share of log h, as nobody has measured them apart: with h = 0.8 and five parts
    each takes 4.4 %.
    Source: Runbook: rollout fleet sizing and rebalancing, sizing calculator (0.8 as a starting default); the equal
    shares are an assumption of this program.

    >>> round(remaining_headroom(headroom=0.8, parts_included=3.0, parts=5.0), 6)
    0.91461
    >>> remaining_headroom(headroom=0.8, parts_included=5.0, parts=5.0)
    1.0
    """
    return headroom ** ((parts - parts_included) / parts)


def standard_error(spread: Real, instances: Real) -> Real:
    """
    How far the mean over a few instances may lie from that of all of them.

    se = s / sqrt(n)

    Args:
        spread: Standard deviation over the instances that were measured, s. [token/s]
        instances: Instances that were measured, n. [1]

    Returns:
        se. [token/s]

    Assumes the measured instances are a random sample of the fleet, two or more.
    Source: the standard error of a mean.

    >>> standard_error(spread=300.0, instances=9)
    100.0
    """
    return spread / instances**0.5
