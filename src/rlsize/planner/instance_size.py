"""How many GPUs share a rollout instance where nobody says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import matching, rollout_batch
from rlsize.estimates.figures import numbers
from rlsize.estimates.rollout_prediction import engine, steady
from rlsize.estimates.rollout_question import mean_lengths, why_not
from rlsize.planner.rounding import WITHIN, rounded_down

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.estimates.rollout_question import RolloutQuestion


def quickest_degree(
    question: RolloutQuestion, degrees: Iterable[int], gpus: float, values: Mapping[str, float]
) -> int | None:
    """
    The degree of tensor parallelism that makes most of a fleet's GPUs; of those within 2 % the smallest.

    Each is judged by the response tokens per second of its whole instances over all GPUs of the fleet, the step's
    samples shared out over them; one whose cache does not hold the longest sample does not count.

    Args:
        question: One instance and its load; its own degree does not matter.
        degrees: Those that can deal out the model's heads.
        gpus: GPUs that generate, at most. [1]
        values: Central values of the constants.

    Returns:
        None where no instance fits.

    Raises:
        Refused: A number type that the GPU lacks.
    """
    rates: dict[int, float] = {}
    node = question.engine.gpu.specification.gpus_per_node.value
    for degree in degrees:
        layout = replace(question.engine.layout, tensor=degree)
        one = replace(question, engine=replace(question.engine, layout=layout))
        ready = engine(one.engine)
        size = ready.numbers.gpus
        if (degree > node and rates) or size > gpus or why_not(one, values):
            continue
        instances = float(rounded_down(matching.instances_of(gpus=gpus, gpus_per_instance=size)))
        samples = question.samples_per_step.number
        offered = rollout_batch.per_instance(amount=samples, instances=instances)
        found = steady(numbers, ready, offered, mean_lengths(one), values)
        rates[degree] = float(matching.rate_per_gpu(rate=instances * found.rate, gpus=gpus))
    most = max(rates.values(), default=0.0)
    return next((degree for degree in sorted(rates) if rates[degree] >= most * (1 - WITHIN)), None)
