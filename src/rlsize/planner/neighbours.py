"""What the next unit of GPUs on each side of a plan would bring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.facts.records.record import Refused
from rlsize.planner.evaluation import worked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.planner.choice import Alternative
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Outlook


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """
    The best plan with one unit more, or less, on a side.

    Args:
        side: rollout or trainer; both where they share.
        place: The plan.
        gpus: GPUs more; negative for fewer. [1]
        results: What it gives, in central numbers.
        change: By how much each result differs from that of the best plan.
    """

    side: str
    place: Placement
    gpus: float
    results: dict[str, float]
    change: dict[str, float]


def neighbours(outlook: Outlook, best: Alternative, trainer_counts: Sequence[float]) -> tuple[Neighbour, ...]:
    """
    What the next unit of GPUs on each side would bring, limits on GPUs aside.

    Args:
        outlook: How placements are worked out.
        best: The best plan.
        trainer_counts: Numbers of GPUs that its trainer can be spread over, beyond what there is too.
    """
    place = best.place
    changed: list[tuple[str, Placement]] = []
    for step in (-1, 1):
        count = _next(trainer_counts, float(place.trainer_gpus), step)
        if place.shared:
            if count is not None and count >= place.fleet.gpus:
                changed.append(("both", replace(place, trainer_gpus=count, instances=float(count // place.fleet.gpus))))
            continue
        if place.instances + step >= 1:
            changed.append(("rollout", replace(place, instances=place.instances + step)))
        if count is not None:
            changed.append(("trainer", replace(place, trainer_gpus=count)))
    found = []
    for side, other in changed:
        try:
            results = {key: float(value) for key, value in worked(outlook.central, other).items()}
        except Refused:  # fewer trainer GPUs than an instance takes cannot be lent
            continue
        change = {key: results[key] - best.results[key] for key in results}
        gpus = float(other.gpus - place.gpus)
        found.append(Neighbour(side=side, place=other, gpus=gpus, results=results, change=change))
    return tuple(found)


def _next(counts: Sequence[float], count: float, step: int) -> float | None:
    """The next larger or smaller number."""
    if step > 0:
        return min((one for one in counts if one > count), default=None)
    return max((one for one in counts if one < count), default=None)
