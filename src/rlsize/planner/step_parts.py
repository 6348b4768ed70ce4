"""
The parts of a placed loop's step: measured where they are known, predicted where a model is named.

The same code works out one placement as figures that explain themselves, the draws behind its bands, and arrays of
candidates: `work` and `said` decide which. Predictions are loaded only where something is predicted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import iteration, loop_time, matching, planning, rollout_batch, sync_pause
from rlsize.estimates.step_assembly import LoopParts
from rlsize.facts.records.record import Refused
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.planner.options import FleetOption, Placement, TrainerOption
    from rlsize.planner.setting import Setting


def loop_parts(setting: Setting, place: Placement) -> LoopParts:
    """
    The parts of a step.

    Raises:
        Refused: The loop cannot run so.
    """
    generated, tail = fleet_parts(setting, place, shared=place.shared)
    update, forwards = trainer_parts(setting, place.trainer, place.trainer_gpus, shared=place.shared)
    lent, swap = lent_parts(setting, place, generated) if place.loop == "hybrid" else (0.0, 0.0)
    return LoopParts(
        loop=place.loop,
        generation_seconds=generated,
        tail_seconds=tail,
        update_seconds=update,
        logprob_seconds=forwards,
        sync_seconds=sync_part(setting, place),
        overhead_seconds=overhead_part(setting, shared=place.shared),
        lent_ratio=lent,
        swap_seconds=swap,
        **unevenness(setting),
    )


def unevenness(setting: Setting) -> dict[str, Any]:
    """How far phases vary and syncs are hidden: known of published loops; steady phases where only rates are known."""
    if not setting.problem.predicted:
        return {"variation": None, "exposed_share": 1.0}
    measured = setting.problem.sync_seconds.known  # what was measured is the pause itself
    share = 1.0 if measured else setting.values["step_sync_exposed"]
    return {"variation": setting.values["step_variation"], "exposed_share": share}


def generated_samples(setting: Setting) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Samples that are generated for a step, those that are thrown away included."""
    problem = setting.problem
    return setting.work(
        "generated_samples",
        loop_time.generated_samples,
        samples_per_step=setting.said(problem.samples),
        tokens_generated_per_trained_token=setting.said(problem.waste),
    )


def fleet_parts(setting: Setting, place: Placement, *, shared: bool) -> tuple[Any, Any]:
    """
    Time in which the fleet generates a step's samples within the loop, and what of it the longest sample adds.

    Raises:
        Refused: The instance does not fit, or cannot run.
    """
    if place.fleet.rate.known:
        return _at_known_rate(setting, place, shared=shared), 0.0
    from rlsize.planner.predicted_parts import predicted_fleet

    slowed = predicted_fleet(setting, place, ready_engine(place.fleet, shared=shared))
    available = setting.problem.available
    if available.known and available.number < 1.0 and not shared:  # the trainer's own GPUs are protected
        slowed[0] = setting.work(
            "generation_seconds",
            rollout_batch.fleet_time,
            samples=1.0,
            response_tokens=slowed[0],
            instances=1.0,
            instance_rate=setting.said(available),
        )
    return slowed[0], slowed[1]


def ready_engine(fleet: FleetOption, *, shared: bool) -> Replica:
    """
    The instance.

    Raises:
        Refused: There is none, with the reason.
    """
    found = fleet.engine(shared=shared)
    if isinstance(found, str):
        raise Refused(found)
    return found


def _at_known_rate(setting: Setting, place: Placement, *, shared: bool) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Time of the fleet at the rate that is known, derated for what that does not contain."""
    work, said, problem = setting.work, setting.said, setting.problem
    rate = work(
        "expected_tokens_per_second",
        planning.supply_that_is_there,
        rate=work(
            "derated_tokens_per_second",
            matching.fleet_supply,
            instances=1.0,
            instance_rate=said(place.fleet.rate),
            headroom=said(problem.headroom),
        ),
        available_fraction=1.0 if shared else said(problem.available),
    )
    return work(
        "generation_seconds",
        rollout_batch.fleet_time,
        samples=generated_samples(setting),
        response_tokens=said(problem.response_tokens),
        instances=place.instances,
        instance_rate=rate,
    )


def trainer_parts(setting: Setting, trainer: TrainerOption, gpus: Any, *, shared: bool) -> tuple[Any, Any]:  # noqa: ANN401 (as `work` makes them)
    """
    Time of the update, and of the extra forward passes, within the loop.

    Raises:
        Refused: The trainer cannot be spread so.
    """
    if trainer.seconds.known or trainer.question is None:
        return _known_update(setting, trainer, gpus), 0.0
    from rlsize.planner.predicted_parts import predicted_trainer

    return predicted_trainer(setting, trainer.question, gpus, shared=shared)


def all_trainer_parts(setting: Setting, trainer: TrainerOption, gpus: Any) -> dict[bool, tuple[Any, Any]]:  # noqa: ANN401 (numbers or arrays)
    """
    The same on GPUs of its own (False) and on shared ones (True), worked out once for both.

    Raises:
        Refused: The trainer cannot be spread so.
    """
    if trainer.seconds.known or trainer.question is None:
        return dict.fromkeys((False, True), (_known_update(setting, trainer, gpus), 0.0))
    from rlsize.planner.predicted_parts import predicted_trainers

    return predicted_trainers(setting, trainer.question, gpus)


def _known_update(setting: Setting, trainer: TrainerOption, gpus: Any) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Time of an update that was measured, on other numbers of GPUs."""
    return setting.work(
        "update_seconds",
        iteration.phase_time_on,
        phase_seconds=setting.said(trainer.seconds),
        pool_gpus=setting.said(trainer.measured_gpus),
        gpus=gpus,
    )


def sync_part(setting: Setting, place: Placement) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Seconds of weight syncs that fall on one step."""
    work, problem = setting.work, setting.problem
    if problem.sync_seconds.known:
        seconds = setting.said(problem.sync_seconds)
    elif problem.model is not None:
        from rlsize.planner.predicted_parts import predicted_sync

        seconds = predicted_sync(setting, place, shared=place.shared)
    else:
        return 0.0
    return work(
        "sync_seconds", sync_pause.sync_seconds_per_step, exposed_sync_seconds=seconds, sync_every=problem.sync_every
    )


def overhead_part(setting: Setting, *, shared: bool) -> Any:  # noqa: ANN401 (as `work` makes them)
    """What belongs to no phase: of published loops; where only rates are known, what changing over takes."""
    problem = setting.problem
    if problem.model is None:
        return setting.said(problem.swap_seconds) if shared else 0.0
    from rlsize.planner.predicted_parts import predicted_overhead

    return predicted_overhead(setting, problem.model, shared=shared)


def lent_parts(setting: Setting, place: Placement, generated: Any) -> tuple[Any, Any]:  # noqa: ANN401 (as `work` makes them)
    """
    What lent trainer GPUs generate over what the fleet does, and the time in which they change over, both ways.

    Lent GPUs load the weights as colocated engines do; giving the memory back takes no longer than that.

    Raises:
        Refused: No instance fits beside the trainer.
    """
    if place.fleet.gpu != place.trainer.gpu:
        raise Refused(f"{place.trainer.gpu} trainer GPUs cannot be lent to instances on {place.fleet.gpu}")
    shared = replace(place, instances=lent_instances(place))
    alone, _ = fleet_parts(setting, shared, shared=True)
    ratio = setting.work("lent_ratio", rollout_batch.share_of, part=generated, whole=alone)
    return ratio, lent_swap(setting, shared)


def lent_swap(setting: Setting, place: Placement) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Seconds in which lent GPUs change over: predicted as a colocated sync, or given."""
    if setting.problem.predicted:
        from rlsize.planner.predicted_parts import predicted_sync

        return predicted_sync(setting, place, shared=True)
    return setting.said(setting.problem.swap_seconds)


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
