"""The parts of a placed loop's step that are predicted: generation, training, weight syncs, overhead."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import decode_step, iteration, kernel_time, matching, rl_step, rollout_batch
from rlsize.errors import Refused
from rlsize.estimates.figures import apply, bare, entries, numbers, predicted
from rlsize.estimates.generation import StepBatch, generation
from rlsize.estimates.prefix_cache import SPREADS, routed_hits
from rlsize.estimates.remembered import remembered
from rlsize.estimates.step_assembly import REFILLING, trained_in_loop, within_a_loop
from rlsize.estimates.step_prediction import suiting, sync_in_loop
from rlsize.estimates.sync_prediction import SyncTimeQuestion
from rlsize.estimates.train_prediction import train_step
from rlsize.facts.figure import Figure
from rlsize.facts.inference_engines import inference_engine
from rlsize.planner.step_parts import FleetParts, generated_samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.figures import Worked
    from rlsize.estimates.generation import Generation
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import LoopProblem, Placement
    from rlsize.planner.outlook import Terms


def predicted_fleet(terms: Terms, place: Placement, ready: Replica) -> FleetParts:
    """What the fleet takes for a step's samples within the loop."""
    fleet = generation_of(terms.bare if terms.work is apply else terms, place, ready)
    made, tail = fleet.seconds, fleet.tail_seconds
    sample, dropped = fleet.sample_seconds, fleet.dropped_fraction
    if terms.work is apply:
        lengths = {"samples": generated_samples(terms), "response_tokens": terms.problem.response_tokens}
        refill = place.loop in REFILLING
        made, tail = _generated_figures(fleet, place.instances, lengths, refill=refill)
        sample = predicted("sample_seconds", sample, "rollout_batch.cycle_time: its tokens at the rate of the engine")
        dropped = predicted("late_dropped_fraction", dropped, "batch_drain.kept_tokens where the batch closes")
    if terms.problem.agents is not None:
        if terms.work is apply:
            made = predicted(
                "generation_seconds", fleet.seconds, "samples that run or wait outside the GPUs, as they end"
            )
        taken = fleet.taken_share if terms.problem.agents.redundant_samples else None
        if terms.work is apply and taken is not None:
            taken = predicted("taken_fraction", taken, "lengths of the first to end over those of all")
        return FleetParts(made, tail, sample, dropped, fleet.cycle, taken, fleet.lengths)
    moe = ready.question.model.architecture.moe is not None
    times = {"generation_seconds": made, "tail_seconds": tail, "sample_seconds": sample}
    seconds, tail, sample = (within_a_loop(terms.work, key, time, terms.values, moe=moe) for key, time in times.items())
    return FleetParts(made, tail, sample, dropped, fleet.cycle, lengths=fleet.lengths).taking(seconds)


def shaped_fleet(terms: Terms, place: Placement, ready: Replica, seconds: Worked) -> FleetParts:
    """
    A fleet whose rate is known at the load that the loop gives it: an engine of the predicted shape, so much faster.

    Args:
        terms: In which the step is worked out.
        place: The placement.
        ready: Its instance.
        seconds: Time of a step's tokens at the known rate. [s]
    """
    fleet = generation_of(terms.bare if terms.work is apply else terms, place, ready)
    longer = rollout_batch.share_of(part=fleet.seconds, whole=fleet.full_seconds)
    factor = rollout_batch.share_of(part=bare(seconds), whole=fleet.full_seconds)
    tail = kernel_time.slowed(seconds=fleet.tail_seconds, slowdown=factor)
    sample, dropped = kernel_time.slowed(seconds=fleet.sample_seconds, slowdown=factor), fleet.dropped_fraction
    if terms.work is apply:
        longer = predicted("slowdown", longer, "until the last sample is there, over all at the batch's own rate")
        tail = predicted("tail_seconds", tail, "of an engine of the predicted shape, at the known rate")
        sample = predicted("sample_seconds", sample, "rollout_batch.cycle_time, at the known rate")
        dropped = predicted("late_dropped_fraction", dropped, "batch_drain.kept_tokens where the batch closes")
    made = terms.work("generation_seconds", kernel_time.slowed, seconds=seconds, slowdown=longer)
    return FleetParts(fleet.seconds, tail, sample, dropped, fleet.cycle, lengths=fleet.lengths).taking(made)


def _generated_figures(
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
    drains = "integral of the engine step over the lengths that are left as the batch drains"
    tail = predicted("tail_seconds", fleet.tail_seconds, drains)
    if refill:
        steady = "rollout_batch.steady_rate, as rlsize predict rollout explains it"
        rate = predicted("instance_tokens_per_second", fleet.rate, steady)
        made = apply(key, rollout_batch.fleet_time, instances=instances, instance_rate=rate, **lengths)
        return made, replace(tail, source="finished samples are replaced at once")
    if fleet.tail_seconds <= 0:
        return predicted(key, fleet.seconds, "integral of the engine step as the batch drains"), tail
    busy = "rollout_batch.packed_time: all samples at the batch's own rate"
    packed = predicted("packed_seconds", fleet.full_seconds, busy)
    return apply(key, decode_step.both_times, first=packed, second=tail), tail


def predicted_trainer(terms: Terms, asked: TrainQuestion, gpus: Worked) -> dict[bool, tuple[Worked, Worked]]:
    """
    Time of the update, and of the extra forward passes, within the loop: on GPUs of its own (False), and on shared.

    Raises:
        Refused: The trainer cannot be spread so.
    """
    pool = Figure(key="trainer_gpus", value=gpus, source="the placement") if terms.work is apply else gpus
    own = {name: terms.said(figure) for name, figure in asked.figures.items()}
    step = train_step(terms.work, replace(asked, **{**own, "gpus": pool}), terms.values)
    return dict.fromkeys((False, True), trained_in_loop(terms.work, step, terms.values))


def _lengths(terms: Terms) -> dict[str, Worked]:
    """Lengths of a step's samples, in numbers or arrays."""
    problem, said = terms.problem, terms.said
    return {
        "prompt_tokens": said(problem.prompt_tokens),
        "response_tokens": said(problem.response_tokens),
        "response_cv": terms.response_cv,
        "max_tokens": said(problem.max_tokens) if problem.max_tokens.known else None,
    }


def generation_of(terms: Terms, place: Placement, ready: Replica) -> Generation:
    """
    What the engines make of a step's samples by themselves.

    Args:
        terms: Numbers or arrays.
        place: The placement.
        ready: Its instance.
    """
    problem, said = terms.problem, terms.said
    samples = generated_samples(terms)
    refill, late = place.loop in REFILLING, problem.late_rule(place.loop)
    in_flight = None
    if refill:
        in_flight = rl_step.allowed_in_flight(samples_per_step=samples, max_staleness=place.max_staleness)
    if problem.concurrency.known:
        offered = matching.pool_rate(gpus=place.instances, gpu_rate=said(problem.concurrency))
        in_flight = offered if in_flight is None else np.minimum(in_flight, offered)
    batch = StepBatch(
        samples=samples,
        instances=place.instances,
        **_lengths(terms),
        hit_ratio=hits(terms, ready.question.engine, place.instances),
        in_flight=in_flight,
        ending="refill" if refill else "barrier",
        late=late,
        oversampling=1.0 if late == "wait" else problem.oversampling,
        group_size=said(problem.group_size),
        max_staleness=place.max_staleness if place.loop == "async" else None,
        parts=problem.parts,
        sync_every=problem.sync_every,
        agents=problem.agents,
        together=problem.routing not in SPREADS,
    )
    values = terms.values
    if problem.agents is not None:  # the loop slows engines only, not what samples wait for
        slower = within_a_loop(
            numbers, "", values["rollout_stack_slowdown"], values, moe=ready.question.model.architecture.moe is not None
        )
        values = {**values, "rollout_stack_slowdown": slower}
    return generation(numbers, ready, batch, values)


def hits(terms: Terms, engine: str, instances: Worked) -> Worked:
    """
    Share of prompt tokens in the prefix cache: as it is known, or what the samples of a group find.

    Args:
        terms: Numbers or arrays.
        engine: The engine, whose blocks count where nobody says how large they are.
        instances: Rollout instances. [1]
    """
    problem, said = terms.problem, terms.said
    if problem.hit_fraction.known:
        return said(problem.hit_fraction)
    block = problem.block_tokens
    return routed_hits(
        problem.routing,
        group_size=said(problem.group_size),
        instances=instances,
        prompt_tokens=said(problem.prompt_tokens),
        block_tokens=block.number if block.known else inference_engine(engine).block_tokens,
        work=numbers,
    )


def sync_questions(
    problem: LoopProblem, place: Placement, *, shared: bool, transport: str = ""
) -> list[SyncTimeQuestion]:
    """
    One weight sync on each kind of GPU that it crosses.

    Args:
        problem: The loop.
        place: The placement.
        shared: Whether engines run on the trainer's GPUs.
        transport: Class of the sync; empty for the placement's own, or the usual one where that does not suit.

    Raises:
        Refused: The model or its GPUs are not known.
    """
    model = problem.model
    if model is None:
        raise Refused("the model is not known, so a weight sync cannot be predicted: give sync_seconds")
    return [
        SyncTimeQuestion(
            model=model,
            gpu=gpu,
            transport=transport or suiting(place.transport, shared=shared),
            dtype=problem.wire_dtype,
            trainer_gpus=place.trainer_gpus,
            rollout_gpus=place.rollout_gpus,
            instance_gpus=place.fleet.gpus,
        )
        for gpu in sync_gpus(place, shared=shared)
    ]


_IN_PLACE = Figure(
    key="sync_seconds", value=0.0, provenance="predicted", source="engines read the trainer's weights where they are"
)


def predicted_sync(terms: Terms, place: Placement, *, shared: bool, transport: str = "") -> Worked:
    """Seconds of one weight sync, as in `sync_questions`; over GPUs of two kinds, as long as the slower kind takes."""
    if shared and terms.problem.in_place and not transport:
        return _IN_PLACE if terms.work is apply else 0.0
    questions = sync_questions(terms.problem, place, shared=shared, transport=transport)
    known = [
        sync_in_loop(apply, wanted, terms.values)
        if terms.work is apply
        else _sync_seconds(terms.values, **entries(wanted))  # which fleets on shared GPUs have in common
        for wanted in questions
    ]
    if len(known) == 1:
        alone = isinstance(known[0], Figure) and shared and place.trainer_gpus <= 1
        # Nobody has measured copies on one device.
        return replace(known[0], verified=False) if alone else known[0]
    return terms.work(
        "sync_seconds",
        iteration.overlapped_iteration_time,
        rollout_seconds=known[0],
        train_seconds=known[1],
        exposed_sync_seconds=0.0,
    )


@remembered
def _sync_seconds(values: Mapping[str, Any], **asked: Worked) -> Worked:
    """Seconds of one weight sync of a loop."""
    return sync_in_loop(numbers, SyncTimeQuestion(**asked), values)


def sync_gpus(place: Placement, *, shared: bool) -> list[Any]:
    """The kinds of GPUs that a sync crosses."""
    engine = place.fleet.ready(shared=shared)
    found = [] if engine is None else [engine.question.gpu]
    question = place.trainer.question
    if question is not None and all(question.gpu.name != gpu.name for gpu in found):
        found.append(question.gpu)
    if not found:
        raise Refused("the GPU is not known, so a weight sync cannot be predicted: give sync_seconds")
    return found
