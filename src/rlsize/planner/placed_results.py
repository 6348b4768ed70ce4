"""All results of a placement, memory included, as plain numbers: what a comparison is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.planner.evaluation import worked
from rlsize.planner.memory_left import memory_of

if TYPE_CHECKING:
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Outlook


def central_results(outlook: Outlook, place: Placement) -> dict[str, float]:
    """
    What a placement gives by key, in central numbers; what lacks an input is left out.

    Raises:
        Refused: The loop cannot run so.
    """
    found = worked(outlook.central, place) | memory_of(outlook.central, place)
    return {key: float(value) for key, value in found.items()}
