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
