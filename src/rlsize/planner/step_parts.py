"""
The parts of a placed loop's step: measured where they are known, predicted where a model is named.

The same code works out one placement as figures that explain themselves, the draws behind its bands, and arrays of
candidates: `work` and `said` decide which. Predictions are loaded only where something is predicted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import matching, rollout_batch, sync_pause
from rlsize.estimates.flow import Flow
from rlsize.estimates.step_assembly import LoopParts
from rlsize.facts.records.record import Refused
from rlsize.planner.rounding import rounded_down
from rlsize.rules.phases import MEASURED

if TYPE_CHECKING:
    from rlsize.estimates.figures import Worked
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.planner.options import FleetOption, Placement, TrainerOption
    from rlsize.planner.outlook import Terms


def loop_parts(terms: Terms, place: Placement) -> LoopParts:
    """
    The parts of a step.

    Raises:
        Refused: The loop cannot run so.
    """
    generated, tail = fleet_parts(terms, place, shared=place.shared)
    update, forwards = trainer_parts(terms, place.trainer, place.trainer_gpus)[place.shared]
    lent, swap = lent_parts(terms, place, generated) if place.loop == "hybrid" else (0.0, 0.0)
    return LoopParts(
        loop=place.loop,
        generation_seconds=generated,
        tail_seconds=tail,
        update_seconds=update,
        logprob_seconds=forwards,
        sync_seconds=sync_part(terms, place),
        overhead_seconds=overhead_part(terms, shared=place.shared),
        lent_ratio=lent,
        swap_seconds=swap,
        **unevenness(terms),
    )


def unevenness(terms: Terms) -> dict[str, Any]:
    """How far phases vary and syncs are hidden: known of published loops; steady phases where only rates are known."""
    if not terms.problem.predicted:
        return {"variation": None, "exposed_share": 1.0}
    measured = terms.problem.sync_seconds.known  # what was measured is the pause itself
    share = 1.0 if measured else terms.values["step_sync_exposed"]
    return {"variation": terms.values["step_variation"], "exposed_share": share}


def generated_samples(terms: Terms) -> Worked:
    """Samples that are generated for a step, those that are thrown away included."""
    return Flow(MEASURED, terms.known, terms.work)["generated_samples"]


def fleet_parts(terms: Terms, place: Placement, *, shared: bool) -> tuple[Any, Any]:
    """
    Time in which the fleet generates a step's samples within the loop, and what of it the longest sample adds.

    Raises:
        Refused: The instance does not fit, or cannot run.
    """
    if place.fleet.rate.known:
        rate = {"instance_tokens_per_second": terms.said(place.fleet.rate), "instances": place.instances}
        known = terms.known | rate | ({"available_fraction": 1.0} if shared else {})
        return Flow(MEASURED, known, terms.work)["generation_seconds"], 0.0
    from rlsize.planner.predicted_parts import predicted_fleet

    slowed = predicted_fleet(terms, place, ready_engine(place.fleet, shared=shared))
    available = terms.problem.available
    if available.known and available.number < 1.0 and not shared:  # the trainer's own GPUs are protected
        slowed[0] = terms.work(
            "generation_seconds",
            rollout_batch.fleet_time,
            samples=1.0,
            response_tokens=slowed[0],
            instances=1.0,
            instance_rate=terms.said(available),
        )
    return slowed[0], slowed[1]


def ready_engine(fleet: FleetOption, *, shared: bool) -> Replica:
    """
    The instance.

    Raises:
        Refused: There is none, with the reason.
    """
    found = fleet.ready(shared=shared)
    if found is None:
        raise Refused(str(fleet.engines.get(shared, "no engine is known")))
    return found


def trainer_parts(terms: Terms, trainer: TrainerOption, gpus: Worked) -> dict[bool, tuple[Worked, Worked]]:
    """
    Time of the update, and of the extra forward passes, within the loop: on GPUs of its own (False), and on shared.

    Raises:
        Refused: The trainer cannot be spread so.
    """
    if not trainer.seconds.known and trainer.question is not None:
        from rlsize.planner.predicted_parts import predicted_trainer

        return predicted_trainer(terms, trainer.question, gpus)
    measured = {"train_seconds": terms.said(trainer.seconds), "measured_gpus": terms.said(trainer.measured_gpus)}
    update = Flow(MEASURED, {**measured, "trainer_gpus": gpus}, terms.work)["update_seconds"]
    return dict.fromkeys((False, True), (update, 0.0))


def sync_part(terms: Terms, place: Placement) -> Worked:
    """Seconds of weight syncs that fall on one step."""
    work, problem = terms.work, terms.problem
    if problem.sync_seconds.known:
        seconds = terms.said(problem.sync_seconds)
    elif problem.model is not None:
        from rlsize.planner.predicted_parts import predicted_sync

        seconds = predicted_sync(terms, place, shared=place.shared)
    else:
        return 0.0
    return work(
        "sync_seconds", sync_pause.sync_seconds_per_step, exposed_sync_seconds=seconds, sync_every=problem.sync_every
    )


def overhead_part(terms: Terms, *, shared: bool) -> Worked:
    """What belongs to no phase: of published loops; where only rates are known, what changing over takes."""
    problem = terms.problem
    if problem.model is None:
        return terms.said(problem.swap_seconds) if shared else 0.0
    from rlsize.planner.predicted_parts import predicted_overhead

    return predicted_overhead(terms, problem.model, shared=shared)


def lent_parts(terms: Terms, place: Placement, generated: Worked) -> tuple[Worked, Worked]:
    """
    What lent trainer GPUs generate over what the fleet does, and the time in which they change over, both ways.

    Lent GPUs load the weights as colocated engines do; giving the memory back takes no longer than that.

    Raises:
        Refused: No instance fits beside the trainer.
    """
    if place.fleet.gpu != place.trainer.gpu:
        raise Refused(f"{place.trainer.gpu} trainer GPUs cannot be lent to instances on {place.fleet.gpu}")
    shared = replace(place, instances=lent_instances(place))
    alone, _ = fleet_parts(terms, shared, shared=True)
    ratio = terms.work("lent_ratio", rollout_batch.share_of, part=generated, whole=alone)
    return ratio, lent_swap(terms, shared)


def lent_swap(terms: Terms, place: Placement) -> Worked:
    """Seconds in which lent GPUs change over: predicted as a colocated sync, or given."""
    if terms.problem.predicted:
        from rlsize.planner.predicted_parts import predicted_sync

        return predicted_sync(terms, place, shared=True)
    return terms.said(terms.problem.swap_seconds)


def lent_instances(place: Placement) -> float:
    """
    Instances that the trainer's GPUs make while they are lent.

    Raises:
        Refused: They do not make one.
    """
    found = rounded_down(matching.instances_of(gpus=place.trainer_gpus, gpus_per_instance=place.fleet.gpus))
    if found < 1:
        raise Refused(f"{place.trainer_gpus:g} trainer GPUs cannot be lent: an instance takes {place.fleet.gpus:g}")
    return float(found)
