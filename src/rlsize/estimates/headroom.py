"""The headroom that is left for a measured rate, which holds part of what headroom covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations.headroom import remaining_headroom
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure
from rlsize.facts.headroom import FULL_HEADROOM, HEADROOM_PARTS

if TYPE_CHECKING:
    from collections.abc import Collection


def headroom_left(included: Collection[str], full: float = FULL_HEADROOM) -> Figure:
    """
    Headroom for the parts that a rate does not hold yet.

    Args:
        included: The parts that it holds.
        full: The headroom of a rate that holds none. [1]

    >>> headroom_left([]).value, headroom_left(HEADROOM_PARTS).value
    (0.8, 1.0)
    """
    whole = Figure(key="headroom", value=full, provenance="default", source="default for a rate that holds nothing")
    held = [part for part in HEADROOM_PARTS if part in included]
    return apply("headroom", remaining_headroom, headroom=whole, parts_included=len(held), parts=len(HEADROOM_PARTS))
