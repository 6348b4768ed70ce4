"""What one message of a weight sync costs beside its bytes, from the times of messages of several sizes."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCost:
    """
    The fit t = a + S / w.

    Args:
        per_message_seconds: What a message costs whatever its size, a. [s]
        wire_bytes_per_second: What is left when that is taken out, w; None where the times do not grow with the
            bytes. [B/s]
    """

    per_message_seconds: float
    wire_bytes_per_second: float | None


def message_cost(sizes: Sequence[float], seconds: Sequence[float]) -> MessageCost | None:
    """
    Fixed cost and bandwidth from messages that were timed one by one.

    Messages of one size count as one point, their median, so that a late rank in a few of them changes little. Points
    weigh by their number of messages, and by the inverse square of their time: the error of a time grows with it.
    Neither figure can be negative; where the best line has one, the best without it stands.

    Args:
        sizes: Bytes of each message. [B]
        seconds: Time of each message. [s]

    Returns:
        The fit, or None with fewer than two sizes, which no line can be drawn through.

    >>> fit = message_cost([1e6, 2e6, 4e6], [2e-3, 3e-3, 5e-3])
    >>> round(fit.per_message_seconds, 6), round(fit.wire_bytes_per_second)
    (0.001, 1000000000)
    """
    points = _points(sizes, seconds)
    if len(points) < 2:  # noqa: PLR2004 (a line takes two points)
        return None
    fixed, slope = _line(points)
    return MessageCost(per_message_seconds=fixed, wire_bytes_per_second=1 / slope if slope else None)


class _Point(NamedTuple):
    size: float
    seconds: float
    weight: float


def _points(sizes: Sequence[float], seconds: Sequence[float]) -> list[_Point]:
    found: dict[float, list[float]] = {}
    for size, passed in zip(sizes, seconds, strict=True):
        if passed > 0:
            found.setdefault(size, []).append(passed)
    medians = {size: median(times) for size, times in found.items()}
    return [_Point(size, middle, len(found[size]) / middle**2) for size, middle in medians.items()]


def _line(points: Sequence[_Point]) -> tuple[float, float]:
    """Intercept and slope of the weighted least squares, neither of them negative."""
    weight = sum(point.weight for point in points)
    size = sum(point.weight * point.size for point in points) / weight
    seconds = sum(point.weight * point.seconds for point in points) / weight
    spread = sum(point.weight * (point.size - size) ** 2 for point in points)
    slope = sum(point.weight * (point.size - size) * (point.seconds - seconds) for point in points) / spread
    if slope <= 0:
        return seconds, 0.0
    if seconds < slope * size:  # the line would cut the axis below zero: the best one through the origin
        squares = sum(point.weight * point.size**2 for point in points)
        return 0.0, sum(point.weight * point.size * point.seconds for point in points) / squares
    return seconds - slope * size, slope
