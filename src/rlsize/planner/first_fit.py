"""The first number of GPUs that holds something which more GPUs hold more easily."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
