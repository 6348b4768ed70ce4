"""One placed loop of a scenario, worked out: what `check`, `diff` and `report` judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.commands.plan_asked import PlanFlags
from rlsize.commands.plan_problem import posed, refuse_without_gpus
from rlsize.commands.predict_step_gpus import pools
from rlsize.equations import matching
from rlsize.errors import Fault, InputError
from rlsize.facts.records.record import Refused
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from rlsize.commands.plan_problem import Posed
    from rlsize.planner.evaluation import Evaluation
    from rlsize.planner.options import Placement
    from rlsize.shell.inputs import Inputs


def evaluated(inputs: Inputs, *, calibration: str | None = None, seed: str = "0") -> Evaluation:
    """
    What the scenario's own loop gives.

    Args:
        inputs: The scenario; what was used of it is kept there.
        calibration: A calibration file.
        seed: Of the draws behind bands.

    Raises:
        InputError: All that is missing or wrong.
    """
    return evaluated_with(inputs, PlanFlags(calibration=calibration, seed=seed))


def evaluated_with(inputs: Inputs, said: PlanFlags) -> Evaluation:
    """
    What the loop gives that scenario and flags describe.

    Raises:
        InputError: All that is missing or wrong.
    """
    from rlsize.planner.choice import family_of, outlived, scatter_name
    from rlsize.planner.evaluation import Evaluation, evaluation
    from rlsize.reports.plan import outlived_words

    problem = written(inputs, said)
    try:
        place = written_placement(inputs, problem)
        found = evaluation(problem.outlook, place, scatter_name(place))
    except Refused as refusal:
        return Evaluation(placement={}, results={}, refused=str(refusal))
    late = outlived(problem.outlook, family_of(problem.outlook, place, priced=False))
    warnings = [*inputs.warnings, *([outlived_words(late, place.staleness)] if late is not None else [])]
    return replace(found, warnings=tuple(warnings), notes=tuple(inputs.notes))


def written(inputs: Inputs, said: PlanFlags) -> Posed:
    """
    The problem of the loop as scenario and flags describe it.

    Raises:
        InputError: All that is missing or wrong.
    """
    notes = len(inputs.notes)
    found = pools(inputs, said.step.loop)
    inputs.warnings[:0] = inputs.notes[notes:]  # that nobody said how the loop is laid out decides all the rest
    del inputs.notes[notes:]
    refuse_without_gpus(inputs, found)
    return posed(inputs, said, found)


def written_placement(inputs: Inputs, problem: Posed) -> Placement:
    """
    The placement as it is written; where nobody says how GPUs are split, the quickest split.

    Raises:
        Refused: The loop cannot run so.
        InputError: Nobody says how GPUs are split, and only rates are known.
    """
    from rlsize.planner.options import Placement

    pooled, fleet = problem.pools, problem.fleet
    loop = pooled.loop
    if loop == "colocated":
        rollout, trainer = pooled.gpus.number, pooled.gpus.number
    elif pooled.split:
        rollout, trainer = pooled.rollout.number, pooled.trainer.number
    elif problem.plan is not None and not problem.known.rate.known and not problem.known.train_seconds.known:
        from rlsize.commands.predict_step import chosen_way

        way, reason = chosen_way(inputs, problem.plan, pooled, dict(problem.outlook.central.values))
        if reason:
            raise Refused(reason)
        rollout, trainer = way.rollout_gpus, way.trainer_gpus
    else:
        todo = "give placement.rollout_gpus and trainer_gpus, or let `rlsize plan` choose"
        raise InputError(Fault("nobody says how the GPUs are split", "placement", todo))
    instances = rounded_down(matching.instances_of(gpus=rollout, gpus_per_instance=fleet.gpus))
    if instances < 1:
        raise Refused(f"{rollout:g} rollout GPUs do not hold an instance of {fleet.gpus:g}")
    if problem.plan is not None:
        plan = problem.plan
        cap, transport = plan.max_staleness.number, plan.transport
    else:
        cap, transport = float(inputs.said("placement.max_staleness") or 1.0), ""
    return Placement(
        loop=loop,
        fleet=fleet,
        instances=float(instances),
        trainer=problem.trainer,
        trainer_gpus=float(trainer),
        max_staleness=cap,
        transport=transport or "nccl-broadcast",
    )
