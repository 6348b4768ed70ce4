"""Which candidates of a block keep all limits, and the narrowest of those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import planning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from rlsize.planner.space import Limit, Space
    from rlsize.planner.tables import Rejections

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

_EXACT = 1e-12  # relative: a limit that is met to the last digit is kept


def within(
    space: Space, results: Mapping[str, Any], room: Mask, words: Callable[[int], str], rejected: Rejections
) -> Mask:
    """
    Which candidates keep all limits.

    Args:
        space: The limits.
        results: What the candidates give, by key; limits on what is not among it are kept.
        room: Which candidates there are.
        words: A candidate in a few words, by its place.
        rejected: Takes how many broke each limit, and the narrowest of those that broke just one.
    """
    broken = [(limit.key, _beyond(limit, results[limit.key], room)) for limit in space.limits if limit.key in results]
    times = np.zeros(room.shape, dtype=np.int16)
    for _, beyond in broken:
        times += beyond > _EXACT
    for key, beyond in broken:
        over = room & (beyond > _EXACT)
        alone = over & (times == 1)
        if alone.any():
            place = int(np.argmin(np.where(alone, beyond, np.inf)))
            rejected.add(key, int(over.sum()), words(place), float(beyond.ravel()[place]))
        elif over.any():
            rejected.add(key, int(over.sum()))
    fits: Mask = room & (times == 0)
    return fits


def _beyond(limit: Limit, result: Any, room: Mask) -> Array:  # noqa: ANN401 (a number or an array)
    """How far candidates lie beyond a limit: a share of it, or the amount where it is nothing."""
    value = np.broadcast_to(np.asarray(result, dtype=float), room.shape)
    beyond = np.asarray(planning.overshoot(value=value, limit=limit.value) if limit.value else value)
    return -beyond if limit.least else beyond
