"""Conversions that several frameworks' figures share: totals into parts, rates into GPUs."""

from __future__ import annotations

_NEAR = 0.02  # printed rates have few digits


def part(total: float, of: float, beside: float) -> float | None:
    """
    The part of a total that belongs to the first of two means.

    >>> part(300.0, 100.0, 50.0)
    200.0
    """
    return total * of / (of + beside) if of + beside > 0 else None


def other_part(total: float, of: float, beside: float) -> float | None:
    """The part that belongs to the second mean."""
    return part(total, beside, of)


def count(total: float, *means: float) -> float | None:
    """
    How many samples have a total between them.

    >>> count(300.0, 100.0, 50.0)
    2.0
    """
    each = sum(means)
    return float(round(total / each)) if each > 0 and total / each < 2.0**53 else None


def times(first: float, second: float) -> float:
    """A product."""
    return first * second


def rounded_product(first: float, second: float) -> float | None:
    """A product that is a whole number, of factors with few digits."""
    product = first * second
    return float(round(product)) if abs(product) < 2.0**53 else None


def ratio(part_: float, whole: float) -> float | None:
    """A share; None of nothing."""
    return part_ / whole if whole > 0 else None


def gpus(rate: float, each: float) -> float | None:
    """
    The GPUs that reach a rate together, from that rate and that of each; None where that is no whole number.

    >>> gpus(61967.76, 7745.97), gpus(10.0, 4.0)
    (8.0, None)
    """
    if not (each > 0 and 0 <= rate < 2.0**53 * each):
        return None
    found = rate / each
    nearest = float(round(found))
    return nearest if nearest >= 1 and abs(found - nearest) <= _NEAR * nearest else None


def known(value: float) -> float | None:
    """A figure that frameworks log as 0 where they cannot tell it."""
    return value if value != 0.0 else None
