"""Decisions in whole instances and GPUs: the only place that rounds."""

from __future__ import annotations

import math
from math import lcm
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SLACK = 1e-9  # a quotient of two measured numbers is not exact; 10.000000000000002 instances are ten

WITHIN = 0.02
"""Of a rate or a step: less than a prediction can tell, so of two sizes of an instance the smaller one is taken."""


def rounded_up(exact: float) -> int:
    """
    The smallest whole number that covers `exact`, forgiving the last bits of a float.

    >>> rounded_up(12.288), rounded_up(10.000000000000002), rounded_up(0.2)
    (13, 10, 1)
    """
    return max(1, math.ceil(exact - _SLACK * max(1.0, abs(exact))))


def rounded_down(exact: float) -> int:
    """
    The largest whole number within `exact`, forgiving the last bits of a float.

    >>> rounded_down(12.9), rounded_down(9.999999999999998)
    (12, 10)
    """
    return math.floor(exact + _SLACK * max(1.0, abs(exact)))


MOST_TRAINER_GPUS = 2**20


def gpu_counts(unit: int, node: int) -> Callable[[int], int]:
    """
    The GPU counts worth trying, by index: doublings within a node, then whole nodes.

    Args:
        unit: GPUs of which there must be a multiple. [1]
        node: GPUs of a node. [1]

    >>> count = gpu_counts(2, 8)
    >>> [count(index) for index in range(5)]
    [2, 4, 8, 16, 24]
    """
    small = [unit * 2**power for power in range(node.bit_length()) if unit * 2**power < node]
    step = lcm(unit, node)
    return lambda index: small[index] if index < len(small) else step * (index - len(small) + 1)


def first_fit(fits: Callable[[int], bool], allowed: Callable[[int], bool]) -> int | None:
    """
    The index of the first candidate that fits: what each GPU holds only falls as GPUs are added.

    Args:
        fits: Whether the candidate of an index fits.
        allowed: Whether there is one.

    >>> first_fit(lambda index: index >= 5, lambda index: index < 100)
    5
    """
    if not allowed(0):
        return None
    below, above = -1, 0
    while not fits(above):
        below, above = above, 2 * above + 1
        if not allowed(above):
            return None
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if fits(middle) else (middle, above)
    return above
