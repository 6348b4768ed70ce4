"""
Which of several changes moved a result: each by itself, all together, and what that leaves unexplained.

Nothing here knows what a change is: a function works out what any set of them gives. Changes that cannot stand alone
(more rollout GPUs than there are, until the GPUs change too) are taken together with those that they need.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from rlsize.equations import attribution
from rlsize.equations import budget as equations
from rlsize.estimates.belief import interval
from rlsize.estimates.figures import ends
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass
from rlsize.verdicts.budget import changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Keys = frozenset[str]
    Effects = Mapping[str, float]
    Array = NDArray[np.float64]
    Draws = Mapping[str, Array]

_MOST_TRIED = 12  # changes that need others and are told apart; of more, all make one cause


Verdict = Literal[
    "higher", "lower", "unchanged", "too close to call", "bands overlap", "only a bound", "only before", "only after"
]
_ROUNDING = 1e-9  # of a value: sums of floats that are equal on paper


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What a set of changes gives.

    Args:
        results: By key, in base units.
        refused: Why it cannot be worked out; empty where it can.
    """

    results: Effects = field(default_factory=dict)
    refused: str = ""


class Outcomes:
    """
    What sets of changes give, each worked out once.

    Args:
        run: Works a set of changes out; the empty set is where they start from.
    """

    def __init__(self, run: Callable[[Keys], Outcome]) -> None:
        self._run = run
        self._known: dict[Keys, Outcome] = {}

    def of(self, keys: Iterable[str]) -> Outcome:
        """What these changes give."""
        asked = frozenset(keys)
        if asked not in self._known:
            self._known[asked] = self._run(asked)
        return self._known[asked]

    def works(self, keys: Iterable[str]) -> bool:
        """Whether these changes can be made without the others."""
        return not self.of(keys).refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """
    One change, or several that only make sense together.

    Args:
        keys: The changes.
        effects: What they do to each result by themselves.
        refused: Why they cannot be made without the others; empty where they can.
    """

    keys: tuple[str, ...]
    effects: Effects = field(default_factory=dict)
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """
    A change of results, split by cause.

    Args:
        causes: In the order of the changes.
        together: What all of them do to each result.
        unexplained: What of that no cause does by itself; empty where some cannot stand alone.
        alone: Why single changes cannot be made by themselves, by key.
    """

    causes: tuple[Cause, ...]
    together: Effects
    unexplained: Effects
    alone: Mapping[str, str]


def split(keys: Sequence[str], outcomes: Outcomes, topic: Callable[[str], str] = str) -> Split:
    """
    Each cause by itself, and all together.

    Args:
        keys: The changes.
        outcomes: What sets of them give.
        topic: What a change is about: those that need others are tried with their like first.
    """
    before = outcomes.of(()).results
    alone = {key: outcomes.of((key,)).refused for key in keys if not outcomes.works((key,))}
    found = {group: outcomes.of(group) for group in grouped(keys, outcomes, topic)}
    causes = tuple(Cause(keys=own, effects=_effects(before, one), refused=one.refused) for own, one in found.items())
    together = _effects(before, outcomes.of(keys))
    unexplained = {
        key: attribution.unexplained_change(together=change, separate=math.fsum(cause.effects[key] for cause in causes))
        for key, change in together.items()
        if all(key in cause.effects for cause in causes)
    }
    return Split(causes=causes, together=together, unexplained=unexplained, alone=alone)


def _effects(before: Effects, found: Outcome) -> dict[str, float]:
    """How far each result that is on both sides moved."""
    return {
        key: equations.change_from_baseline(value=found.results[key], baseline=value)
        for key, value in before.items()
        if key in found.results
    }


def grouped(keys: Sequence[str], outcomes: Outcomes, topic: Callable[[str], str] = str) -> tuple[tuple[str, ...], ...]:
    """
    The changes, those together that cannot be made without each other; in the order of the changes.

    Args:
        keys: The changes.
        outcomes: What sets of them give.
        topic: What a change is about.
    """
    needy = [key for key in keys if not outcomes.works((key,))]
    groups: list[Keys] = [frozenset((key,)) for key in keys]
    for key in needy:
        own = next(group for group in groups if key in group)
        if outcomes.works(own):
            continue
        whole = _smallest_whole(key, keys, needy, outcomes, topic)
        while whole and any(whole & group and not group <= whole for group in groups):
            whole = frozenset().union(whole, *(group for group in groups if whole & group))
        if whole and outcomes.works(whole):
            groups = [whole, *(group for group in groups if not group <= whole)]
        elif whole and outcomes.works(keys):
            groups = [frozenset(keys)]
    placed = {key: index for index, key in enumerate(keys)}
    ordered = (tuple(sorted(group, key=placed.__getitem__)) for group in groups)
    return tuple(sorted(ordered, key=lambda group: placed[group[0]]))


def _smallest_whole(
    key: str, keys: Sequence[str], needy: Sequence[str], outcomes: Outcomes, topic: Callable[[str], str]
) -> Keys:
    """A set of changes that a needy one can be made with, none of which it can do without; empty where none works."""
    like = [other for other in keys if topic(other) == topic(key)]
    pools = ([other for other in needy if other in like], like, needy, keys)
    whole = next((frozenset(pool) for pool in pools if outcomes.works(pool)), frozenset[str]())
    if len(whole) > _MOST_TRIED:
        return whole
    for other in sorted(whole - {key}, key=lambda one: (one in like, keys.index(one))):
        if outcomes.works(whole - {other}):
            whole -= {other}
    return whole


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
) -> tuple[Difference, ...]:
    """
    Every result that has a number on either side, in the order of the first side, then of the second.

    Args:
        before: Results of the first side, by key.
        after: Those of the second.
        draws: Both sides on common draws, by key; None where they were drawn apart.
    """
    found = []
    for key in dict.fromkeys((*before, *after)):
        first, second = (_number(side.get(key), key) for side in (before, after))
        if first.known or second.known:
            drawn = (draws[0][key], draws[1][key]) if draws and key in draws[0] and key in draws[1] else None
            found.append(_difference(key, first, second, drawn))
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


def _apart(before: Figure, after: Figure) -> Verdict:
    """The verdict on bands that were drawn apart, or on points."""
    first, second = (ends(figure) for figure in (before, after))
    least = _least(before, after)
    if all(abs(two - one) <= least for one, two in zip((before.number, *first), (after.number, *second), strict=True)):
        return "unchanged"
    if second[0] > first[1] + least:
        return "higher"
    return "lower" if second[1] < first[0] - least else "bands overlap"
