"""Decisions in whole instances and GPUs: the only place that rounds."""

from __future__ import annotations

import math

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
