"""Sums of figures, or of bare numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.estimates.working import apply, total
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlsize.equations._ops import Real


def added(work: Callable[..., Real], key: str, parts: Sequence[Real]) -> Real:
    """The sum of figures, or of bare numbers."""
    if work is not apply:
        return sum(parts)
    figures = [
        part if isinstance(part, Figure) else Figure(key=key, value=part, provenance="default") for part in parts
    ]
    named = [replace(part, key=f"{part.key}_{place}") for place, part in enumerate(figures, start=1)]
    return replace(figures[0], key=key) if len(figures) == 1 else total(key, _distinct(figures, named))


def _distinct(figures: Sequence[Figure], named: Sequence[Figure]) -> Sequence[Figure]:
    """The figures, under numbered keys where two share one: `total` keeps one of each key."""
    return figures if len({figure.key for figure in figures}) == len(figures) else named
