"""Response lengths to generate: drawn so that a few hundred already have the distribution's mean and tail."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from rlsize.equations.lengths import capped_mean, lognormal_sigma

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

_CLOSE = 1e-6
_WIDEST = 1e3  # an uncapped mean so many times the cap leaves nearly every sample at the cap


def uncapped_mean(mean: float, cv: float, cap: float | None) -> float:
    """
    The mean that lengths would have without the cap, so that those with it have the mean that was asked for.

    Args:
        mean: Mean of the lengths that are seen, those cut at the cap included. [token]
        cv: Coefficient of variation without the cap. [1]
        cap: The cap; None for none. [token]

    Raises:
        ValueError: The mean lies above the cap, or so close to it that hardly a sample stays below.
    """
    if cap is None or cv == 0:
        if cap is not None and mean > cap:
            raise ValueError(f"a mean of {mean:g} tokens lies above the cap of {cap:g}")
        return mean
    if mean >= cap or capped_mean(_WIDEST * cap, cv, cap) < mean:
        raise ValueError(f"a mean of {mean:g} tokens leaves no room below the cap of {cap:g}")
    low, high = mean, _WIDEST * cap
    while high / low - 1.0 > _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if capped_mean(middle, cv, cap) < mean else (low, middle)
    return low


def response_lengths(count: int, mean: float, cv: float, cap: float | None, random: Random) -> tuple[int, ...]:
    """
    Response lengths: one from each of `count` equally likely parts of the distribution, in random order.

    Args:
        count: How many. [1]
        mean: Their mean, the cap included. [token]
        cv: Coefficient of variation without the cap. [1]
        cap: The longest that is generated; None for no cap. [token]
        random: The generator.

    Returns:
        Whole numbers of 1 or more. [token]

    Raises:
        ValueError: As `uncapped_mean`.
    """
    centre, sigma = uncapped_mean(mean, cv, cap), lognormal_sigma(cv)
    normal = NormalDist()
    drawn = []
    for index in range(count):
        quantile = min(max((index + random.random()) / count, 1e-12), 1.0 - 1e-12)
        length = centre * math.exp(sigma * normal.inv_cdf(quantile) - sigma**2 / 2.0)
        drawn.append(max(1, round(min(length, cap) if cap is not None else length)))
    random.shuffle(drawn)
    return tuple(drawn)


def running_lengths(lengths: Sequence[int], count: int, random: Random) -> list[tuple[int, int, int]]:
    """
    What is in flight at a random moment of steady generation: long samples more often, each at any age.

    Args:
        lengths: Lengths of whole samples. [token]
        count: How many are in flight. [1]
        random: The generator.

    Returns:
        Tokens generated already and tokens still to come, of each, and which of the lengths it is. [token]

    Source: renewal theory: a running sample's length is drawn in proportion to length, its age evenly (Cox, Renewal
    theory, section 5.2).
    """
    total = float(sum(lengths))
    ends: list[float] = []
    for length in lengths:
        ends.append((ends[-1] if ends else 0.0) + length / total)
    start, index, found = random.random(), 0, []
    for position in range(count):
        while ends[index] < (position + start) / count - _CLOSE and index < len(ends) - 1:
            index += 1
        age = random.randrange(lengths[index])
        found.append((age, lengths[index] - age, index))
    random.shuffle(found)
    return found
