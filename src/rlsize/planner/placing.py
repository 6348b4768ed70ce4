"""How a loop is placed where nobody says: size of an instance, split, GPUs of the trainer; and other ways to run it."""

from __future__ import annotations

from dataclasses import replace
from math import lcm
from typing import TYPE_CHECKING

from rlsize.equations import matching, rollout_batch
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import lengths_of
from rlsize.estimates.rollout_fit import why_not
from rlsize.estimates.rollout_prediction import engine, steady
from rlsize.estimates.rollout_question import bare, step_batch
from rlsize.estimates.step_loops import LOOPS, Way, check_way, longest_tokens, step_question
from rlsize.estimates.step_loops import bare as bare_plan
from rlsize.estimates.step_prediction import predicted_step
from rlsize.estimates.train_prediction_question import bare_question
from rlsize.estimates.trainer_fit import check_trainer
from rlsize.facts.records.record import Refused
from rlsize.planner.rounding import MOST_TRAINER_GPUS, WITHIN, first_fit, gpu_counts, rounded_down

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.estimates.rollout_question import RolloutQuestion
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.step_loops import LoopPlan


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
        lengths = lengths_of(numbers, step_batch(one, bare(one)))
        found = steady(numbers, ready, offered, lengths, values)
        rates[degree] = float(matching.rate_per_gpu(rate=instances * found.rate, gpus=gpus))
    most = max(rates.values(), default=0.0)
    return next((degree for degree in sorted(rates) if rates[degree] >= most * (1 - WITHIN)), None)


_MOST_SPLITS = 40  # that are tried; more are thinned out


def colocated_way(plan: LoopPlan, gpus: float) -> Way:
    """Both sides on all GPUs, as far as instances and model replicas fill them."""
    return Way(loop="colocated", rollout_gpus=_whole(gpus, _size(plan, shared=True)), trainer_gpus=gpus)


def splits(plan: LoopPlan, gpus: float) -> tuple[tuple[float, float], ...]:
    """Pairs of rollout and trainer GPUs that fill all GPUs with whole instances and whole replicas, but for a rest."""
    size, replica = _size(plan, shared=False), plan.train.replica
    most = rounded_down((gpus - size) / replica)
    step = max(1, -(-most // _MOST_SPLITS))
    found = []
    for replicas in range(step, most + 1, step):
        trainer = float(replicas * replica)
        rollout = _whole(gpus - trainer, size)
        found += [(rollout, trainer)] if rollout >= size else []
    return tuple(found)


def best_split(plan: LoopPlan, loop: Loop, gpus: float, values: Mapping[str, float]) -> Way | None:
    """The split with the shortest central step; None where none works."""
    said, best, least = bare_plan(plan), None, float("inf")
    for rollout, trainer in splits(plan, gpus):
        way = Way(loop=loop, rollout_gpus=rollout, trainer_gpus=trainer)
        try:
            check_way(plan, way, values)
            seconds = float(predicted_step(step_question(plan, way, said), values).seconds)
        except Refused:
            continue
        if seconds < least:
            best, least = way, seconds
    return best


def other_ways(plan: LoopPlan, gpus: float, values: Mapping[str, float], *, split: bool) -> tuple[Way, ...]:
    """
    The other ways to run the loop on as many GPUs.

    Args:
        plan: The loop.
        gpus: GPUs of both sides.
        values: Central values of the constants.
        split: Whether the split was given: the other ways with two pools have the same; else each has its best.
    """
    found: list[Way] = []
    for loop in LOOPS:
        if loop == plan.way.loop:
            continue
        if loop == "colocated":
            found.append(colocated_way(plan, gpus))
        elif split:
            found.append(Way(loop=loop, rollout_gpus=plan.way.rollout_gpus, trainer_gpus=plan.way.trainer_gpus))
        else:
            way = best_split(plan, loop, gpus, values)
            found += [way] if way else []
    return tuple(found)


def fitting_trainer(plan: LoopPlan, values: Mapping[str, float]) -> int | None:
    """The fewest GPUs, parts of a node or whole nodes, on which the trainer fits as it is laid out; None for none."""
    question, replica = bare_question(plan.train), plan.train.replica
    longest = longest_tokens(plan, values)
    unit = lcm(replica, plan.train.pipeline * plan.train.expert)
    count = gpu_counts(unit, int(plan.train.gpu.specification.gpus_per_node.value))

    def fits(index: int) -> bool:
        try:
            check_trainer(replace(question, gpus=float(count(index))), longest, values)
        except Refused:
            return False
        return True

    found = first_fit(fits, lambda index: count(index) <= MOST_TRAINER_GPUS)
    return None if found is None else count(found)


def _size(plan: LoopPlan, *, shared: bool) -> float:
    found = plan.engines[shared]
    return 1.0 if isinstance(found, str) else float(found.numbers.gpus)


def _whole(gpus: float, size: float) -> float:
    """GPUs of whole instances."""
    return rounded_down(gpus / size) * size
