"""A function over many things, on all cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def side_by_side(work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any]:
    """What a function makes of each, in order; in processes where there are several."""
    if len(things) <= 1:
        return [work(thing) for thing in things]
    import joblib

    return list(joblib.Parallel(n_jobs=-1)(joblib.delayed(work)(thing) for thing in things))
