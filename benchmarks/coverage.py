"""Whether bands of 80 % hold as much as such bands do: of few sources, whose points err together, that says little."""

from __future__ import annotations

from math import comb
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.verdicts.grading import Point

_SHARE = 0.8
_TAIL = 0.025  # of 95 %, on either side


def expected_coverage(sources: int) -> tuple[float, float]:
    """Shares of so many sources that bands of 80 % hold in 95 of 100 cases (binomial, both tails alike)."""
    chances = [comb(sources, k) * _SHARE**k * (1 - _SHARE) ** (sources - k) for k in range(sources + 1)]
    likely = [k for k in range(sources + 1) if min(sum(chances[: k + 1]), sum(chances[k:])) > _TAIL]
    return likely[0] / sources, likely[-1] / sources


def consistent(points: Sequence[Point]) -> bool:
    """Whether bands of 80 % may hold as much as these do, each source counted once."""
    own: dict[str, list[bool]] = {}
    for one in points:
        if one.inside is not None:
            own.setdefault(one.source, []).append(one.inside)
    low, high = expected_coverage(len({one.source for one in points}))
    return not own or low <= round(fmean(map(fmean, own.values())), 9) <= high
