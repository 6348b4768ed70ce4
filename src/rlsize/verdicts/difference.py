"""
What became of a result: the change with its band, and whether it can be told from no change.

Both sides are drawn together, so what is uncertain in both cancels. A change is too close to call where the 80 %
interval of the difference holds 0, which is where that of the ratio holds 1. Sides that were saved have bands and no
draws: there only bands that do not overlap tell a change, unless one loop is behind both, whose draws were the same:
then low is compared with low and high with high, as a budget's baseline is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from rlsize.equations import budget as equations
from rlsize.estimates.belief import interval
from rlsize.estimates.figures import ends
from rlsize.facts.figure import Figure, absent
from rlsize.verdicts.budget import changed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Draws = Mapping[str, Array]

Verdict = Literal[
    "higher", "lower", "unchanged", "too close to call", "bands overlap", "only a bound", "only before", "only after"
]
_ROUNDING = 1e-9  # of a value: sums of floats that are equal on paper


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """
    One result on both sides.

    Args:
        quantity: Its key, whose ending says the unit of values and change.
        before: On the first side; without a value where that has none.
        after: On the second side.
        change: How far it moved, with the 80 % interval on common draws.
        change_fraction: The same as a share of what it was; unknown where that is 0.
        verdict: What can be said of it.
    """

    quantity: str
    before: Figure
    after: Figure
    change: Figure
    change_fraction: Figure
    verdict: Verdict

    @property
    def moved(self) -> bool:
        """Whether it is anything but unchanged."""
        return self.verdict != "unchanged"


def differences(
    before: Mapping[str, Figure],
    after: Mapping[str, Figure],
    draws: tuple[Draws, Draws] | None = None,
    *,
    one_loop: bool = False,
) -> tuple[Difference, ...]:
    """
    Every result that has a number on either side, in the order of the first side, then of the second.

    Args:
        before: Results of the first side, by key.
        after: Those of the second.
        draws: Both sides on common draws, by key; None where they were saved.
        one_loop: Whether bands that were saved are of one loop, and so of the same draws.
    """
    found = []
    for key in dict.fromkeys((*before, *after)):
        first, second = (_number(side.get(key), key) for side in (before, after))
        if first.known or second.known:
            drawn = (draws[0][key], draws[1][key]) if draws and key in draws[0] and key in draws[1] else None
            one = _difference(key, first, second, drawn)
            found.append(_by_ends(one) if one_loop and one.verdict == "bands overlap" else one)
    return tuple(found)


def bounded(one: Difference, *, before: bool, after: bool) -> Difference:
    """
    A result of which a side is only a lower bound: it may be higher than it says, which leaves fewer changes certain.

    Args:
        one: The result.
        before: Whether the first side is a bound.
        after: Whether the second one is.
    """
    certain = one.verdict in {"only before", "only after"} or (one.verdict == "higher" and not before)
    return one if certain or not (before or after) else replace(one, verdict="only a bound")


def _number(figure: Figure | None, key: str) -> Figure:
    """The figure, where it has a number that can be compared."""
    if figure is None:
        return absent(key, "")
    value = figure.value
    counts = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return figure if counts else absent(key, figure.missing)


def _difference(key: str, before: Figure, after: Figure, drawn: tuple[Array, Array] | None) -> Difference:
    change, share = absent(key, ""), absent("change_fraction", "")
    one = Difference(
        quantity=key, before=before, after=after, change=change, change_fraction=share, verdict="unchanged"
    )
    if not (before.known and after.known):
        return replace(one, verdict="only before" if before.known else "only after")
    change, share = changed(key, after, before)
    if drawn is None:
        return replace(one, change=change, change_fraction=share, verdict=_apart(before, after))
    moves = np.asarray(equations.change_from_baseline(value=drawn[1], baseline=drawn[0]))
    change = _banded(change, moves)
    if share.known and (np.all(drawn[0] > 0) or np.all(drawn[0] < 0)):
        share = _banded(share, np.asarray(equations.relative_change(value=drawn[1], baseline=drawn[0])))
    return replace(one, change=change, change_fraction=share, verdict=_told(change, moves, _least(before, after)))


def _least(before: Figure, after: Figure) -> float:
    """The smallest change that is more than rounding."""
    return _ROUNDING * max(abs(before.number), abs(after.number))


def _banded(figure: Figure, moves: Array) -> Figure:
    low, high = interval(moves)
    return replace(figure, band=(low, high)) if high > low else figure


def _told(change: Figure, moves: Array, least: float) -> Verdict:
    """The verdict on common draws."""
    if abs(change.number) <= least and float(np.abs(moves).max()) <= least:
        return "unchanged"
    low, high = interval(moves)
    if low > least or high < -least:
        return "higher" if low > least else "lower"
    return "too close to call"


def _by_ends(one: Difference) -> Difference:
    """The same with a verdict on both ends of bands that were drawn together."""
    pairs = zip(*(ends(figure) for figure in (one.before, one.after)), strict=True)
    sides = (*pairs, (one.before.number, one.after.number))
    moves = [equations.change_from_baseline(value=second, baseline=first) for first, second in sides]
    least = _least(one.before, one.after)
    if all(move > least for move in moves):
        return replace(one, verdict="higher")
    return replace(one, verdict="lower" if all(move < -least for move in moves) else "too close to call")


def _apart(before: Figure, after: Figure) -> Verdict:
    """The verdict on bands that were drawn apart, or on points."""
    first, second = (ends(figure) for figure in (before, after))
    least = _least(before, after)
    if all(abs(two - one) <= least for one, two in zip((before.number, *first), (after.number, *second), strict=True)):
        return "unchanged"
    if second[0] > first[1] + least:
        return "higher"
    return "lower" if second[1] < first[0] - least else "bands overlap"
