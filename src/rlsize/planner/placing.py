"""How a loop is placed where nobody says: size of an instance, split, GPUs of the trainer; and other ways to run it."""

from __future__ import annotations

from dataclasses import replace
from math import lcm
from typing import TYPE_CHECKING

from rlsize.equations import matching, rollout_batch
from rlsize.estimates.figures import numbers
from rlsize.estimates.loop_memory import check_trainer
from rlsize.estimates.rollout_prediction import engine, steady
from rlsize.estimates.rollout_question import mean_lengths, why_not
from rlsize.facts.records.record import Refused
from rlsize.planner.evaluation import fitting_step, longest_tokens
from rlsize.planner.rounding import MOST_TRAINER_GPUS, WITHIN, first_fit, gpu_counts, rounded_down

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.estimates.rollout_question import RolloutQuestion
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Terms

LOOPS: tuple[Loop, ...] = ("colocated", "synchronous", "one-step-off", "async")
"""The ways to lay a loop out in time that are compared."""
_MOST_SPLITS = 40  # that are tried; more are thinned out


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
        size = ready.gpus
        if (degree > node and rates) or size > gpus or why_not(one, values):
            continue
        instances = float(rounded_down(matching.instances_of(gpus=gpus, gpus_per_instance=size)))
        samples = question.samples_per_step.number
        offered = rollout_batch.per_instance(amount=samples, instances=instances)
        found = steady(numbers, ready, offered, mean_lengths(one), values)
        rates[degree] = float(matching.rate_per_gpu(rate=instances * found.rate, gpus=gpus))
    most = max(rates.values(), default=0.0)
    return next((degree for degree in sorted(rates) if rates[degree] >= most * (1 - WITHIN)), None)


def moved(place: Placement, loop: Loop, rollout_gpus: float, trainer_gpus: float) -> Placement:
    """The placement laid out another way, on other GPUs; its instances are whole, and may be none."""
    found = replace(place, loop=loop, trainer_gpus=trainer_gpus)
    ready = None if place.fleet.rate.known else place.fleet.ready(shared=found.shared)
    size = place.fleet.gpus if ready is None else float(ready.gpus)
    return replace(found, fleet=replace(place.fleet, gpus=size), instances=float(rounded_down(rollout_gpus / size)))


def splits(size: float, replica: int, gpus: float) -> tuple[tuple[float, float], ...]:
    """
    Pairs of rollout and trainer GPUs that fill all GPUs with whole instances and whole replicas, but for a rest.

    Args:
        size: GPUs of an instance. [1]
        replica: GPUs of a model replica. [1]
        gpus: All GPUs. [1]
    """
    most = rounded_down((gpus - size) / replica)
    step = max(1, -(-most // _MOST_SPLITS))
    found = []
    for replicas in range(step, most + 1, step):
        trainer = float(replicas * replica)
        rollout = rounded_down((gpus - trainer) / size) * size
        found += [(rollout, trainer)] if rollout >= size else []
    return tuple(found)


def best_split(terms: Terms, place: Placement, gpus: float) -> Placement | None:
    """
    The placement on the split with the shortest central step; None where none works.

    Args:
        terms: In central numbers.
        place: A placement in two pools; its split does not matter.
        gpus: GPUs of both sides. [1]
    """
    longest = longest_tokens(terms)
    best, least = None, float("inf")
    for rollout, trainer in splits(place.fleet.gpus, place.trainer.replica, gpus):
        one = replace(place, instances=rollout / place.fleet.gpus, trainer_gpus=trainer)
        try:
            seconds = fitting_step(terms, one, longest)
        except Refused:
            continue
        if seconds < least:
            best, least = one, seconds
    return best


def other_ways(terms: Terms, place: Placement, gpus: float, *, split: bool) -> tuple[Placement, ...]:
    """
    The other ways to run the loop on as many GPUs; one may hold no instance.

    Args:
        terms: In central numbers.
        place: The loop as it is placed.
        gpus: GPUs of both sides.
        split: Whether the split was given: the other ways with two pools have the same; else each has its best.
    """
    found: list[Placement] = []
    for loop in LOOPS:
        if loop == place.loop:
            continue
        if loop == "colocated":
            found.append(moved(place, loop, gpus, gpus))
        elif split:
            found.append(moved(place, loop, place.rollout_gpus, place.trainer_gpus))
        else:
            way = best_split(terms, moved(place, loop, gpus, gpus), gpus)
            found += [way] if way else []
    return tuple(found)


def fitting_trainer(terms: Terms, trainer: TrainQuestion) -> int | None:
    """The fewest GPUs, parts of a node or whole nodes, on which the trainer fits as it is laid out; None for none."""
    question, longest = trainer.bare(), longest_tokens(terms)
    unit = lcm(trainer.replica, trainer.pipeline * trainer.expert)
    count = gpu_counts(unit, int(terms.problem.gpus_per_node or trainer.gpu.specification.gpus_per_node.value))

    def fits(index: int) -> bool:
        try:
            check_trainer(replace(question, gpus=float(count(index))), longest, terms.values)
        except Refused:
            return False
        return True

    found = first_fit(fits, lambda index: count(index) <= MOST_TRAINER_GPUS)
    return None if found is None else count(found)
