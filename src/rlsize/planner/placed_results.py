"""All results of a placement, memory included, as plain numbers and as draws: what a comparison is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlsize.estimates.working import DRAWS
from rlsize.planner.choice import scatter_name
from rlsize.planner.evaluation import worked
from rlsize.planner.memory_left import memory_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Outlook

    Array = NDArray[np.float64]


def central_results(outlook: Outlook, place: Placement) -> dict[str, float]:
    """
    What a placement gives by key, in central numbers; what lacks an input is left out.

    Raises:
        Refused: The loop cannot run so.
    """
    found = worked(outlook.central, place) | memory_of(outlook.central, place)
    return {key: float(value) for key, value in found.items()}


def drawn_results(outlook: Outlook, place: Placement) -> dict[str, Array]:
    """
    The same on joint draws; placements that differ have a scatter of their own, equal ones share it.

    Raises:
        Refused: The loop cannot run so.
    """
    noise = outlook.noise(scatter_name(place))
    found = worked(outlook.drawn, place, noise) | memory_of(outlook.drawn, place)
    return {key: np.broadcast_to(np.asarray(value, dtype=np.float64), (DRAWS,)) for key, value in found.items()}
