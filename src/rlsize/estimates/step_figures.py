"""The predicted step as figures that explain themselves, and as draws."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import decode_step, rollout_batch
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.generation import Generation

    Work = Callable[..., Any]


def generated_figures(
    fleet: Generation, instances: float, lengths: Mapping[str, Figure], *, refill: bool
) -> tuple[Figure, Figure]:
    """
    Time of the fleet as a figure, and its tail; the integral over the drain is told as the time that it adds.

    Args:
        fleet: What it makes of its samples, in central numbers.
        instances: Rollout instances.
        lengths: Figures of `samples` and `response_tokens`.
        refill: Whether finished samples are replaced at once.
    """
    key = "generation_seconds"
    tail = Figure(
        key="tail_seconds",
        value=float(fleet.tail_seconds),
        provenance="predicted",
        source="integral of the engine step over the lengths that are left as the batch drains",
    )
    if refill:
        rate = Figure(
            key="instance_tokens_per_second",
            value=float(fleet.rate),
            provenance="predicted",
            source="rollout_batch.steady_rate, as rlsize predict rollout explains it",
        )
        made = apply(key, rollout_batch.fleet_time, instances=instances, instance_rate=rate, **lengths)
        return made, replace(tail, source="finished samples are replaced at once")
    if fleet.tail_seconds <= 0:
        source = "integral of the engine step as the batch drains"
        return Figure(key=key, value=float(fleet.seconds), provenance="predicted", source=source), tail
    packed = Figure(
        key="packed_seconds",
        value=float(fleet.full_seconds),
        provenance="predicted",
        source="rollout_batch.packed_time: all samples at the batch's own rate",
    )
    return apply(key, decode_step.both_times, first=packed, second=tail), tail
