"""Attribution: how much of a change belongs to which of its causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def unexplained_change(together: Real, separate: Real) -> Real:
    """
    What causes do together beyond what each does by itself.

    u = c - s

    Args:
        together: Change when all causes act at the same time, c. [value]
        separate: Sum of the changes when each cause acts alone, s. [value]

    Returns:
        u. [value]

    Assumes nothing; it is 0 where causes do not touch each other.
    Source: definition.

    >>> unexplained_change(together=5.0, separate=4.5)
    0.5
    """
    return together - separate


def fair_share(contributions: Real, orders: Real) -> Real:
    """
    What a cause adds to a change, averaged over orders in which the causes can be made: its Shapley value.

    h = C / n

    Args:
        contributions: Sum over the orders of what the cause changes when it is made, C. [value]
        orders: Orders in which the causes are made, n. [1]

    Returns:
        h. [value]

    Assumes the orders are all there are; a sample of them gives an estimate. Shares sum to the whole change either way.
    Source: L. S. Shapley, A value for n-person games, 1953.

    >>> fair_share(contributions=3.0, orders=2.0)
    1.5
    """
    return contributions / orders
