"""The loop behind `plan`, `check`, `diff` and `report`: from flags, scenario, rates and profiles to a problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.commands.plan_asked import known_rates
from rlsize.equations import planning
from rlsize.errors import Fault, InputError
from rlsize.estimates.working import apply
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.commands.plan_asked import KnownRates, PlanFlags
    from rlsize.commands.predict_step_gpus import Pools
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.step_loops import LoopPlan
    from rlsize.planner.options import FleetOption, LoopProblem, TrainerOption
    from rlsize.planner.outlook import Outlook
    from rlsize.shell.inputs import Inputs

_SECONDS_PER_HOUR = 3600.0
_SEEDS = 2**63  # generators take no negative seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Posed:
    """
    A problem as it was posed.

    Args:
        outlook: The problem, and how its placements are worked out.
        fleet: The instance as the scenario has it.
        trainer: The trainer as the scenario has it.
        pools: Mode and GPUs as the scenario has them.
        plan: The loop as `predict step` sees it; None where only rates are known.
        known: The rates that are known.
        rollout: One instance as it was asked for; None where only rates are known.
        fits: The smallest tensor parallelism at which an instance fits; None where none does, or nobody knows.
    """

    outlook: Outlook
    fleet: FleetOption
    trainer: TrainerOption
    pools: Pools
    plan: LoopPlan | None
    known: KnownRates
    rollout: EngineQuestion | None = None
    fits: int | None = None

    @property
    def problem(self) -> LoopProblem:
        """The loop that is planned."""
        return self.outlook.problem


def posed(inputs: Inputs, said: PlanFlags, pools: Pools) -> Posed:
    """
    The problem.

    Raises:
        InputError: All faults.
    """
    from rlsize.planner.outlook import outlook_of

    asking.random_for(said, said.seed)  # refuses a seed that is no whole number
    known = known_rates(inputs, said)
    prices = asking.gpu_hours(
        inputs, said.prices.gpu_hour, said.prices.rollout_gpu_hour, said.prices.trainer_gpu_hour, said.prices.price
    )
    waste = asking.waste(inputs, None)
    steps = inputs.number("steps", "--steps", said.steps, flags.POSITIVE)
    plan, belief, rollout, fits = _modelled(inputs, said, pools, known)
    problem = replace(
        _with_model(plan) if plan is not None else _with_rates(inputs, said, known),
        waste=waste,
        headroom=known.headroom,
        available=_available(inputs),
        losses_per_hour=float(inputs.said("trouble.losses_per_hour") or 0.0),
        restart_seconds=float(inputs.said("trouble.restart_seconds") or 0.0),
        sync_seconds=known.sync_seconds,
        swap_seconds=_swap(inputs),
        steps=steps,
        sync_every=float(inputs.said("weight_sync.every") or 1),
        gpus_per_node=_node(inputs, plan),
    )
    if inputs.said("prices.as_of") is not None:
        where = f", {inputs.said('prices.region')}" if inputs.said("prices.region") else ""
        inputs.notes.append(f"Prices are as of {inputs.said('prices.as_of')}{where}.")
    inputs.settle()
    seed = int(said.seed) % _SEEDS
    return Posed(
        outlook=outlook_of(problem, belief, seed),
        fleet=_fleet(plan, known, prices[0]),
        trainer=_trainer(plan, known, prices[1]),
        pools=pools,
        plan=plan,
        known=known,
        rollout=rollout,
        fits=fits,
    )


def _modelled(
    inputs: Inputs, said: PlanFlags, pools: Pools, known: KnownRates
) -> tuple[LoopPlan | None, Belief | None, EngineQuestion | None, int | None]:
    """
    The loop of a named model on named GPUs; nothing where both sides are known and no model is named.

    Raises:
        InputError: What is missing, where something must be predicted.
    """
    model = said.step.named[0] or inputs.said("model")
    gpu = said.step.named[1] or inputs.said("cluster.gpu") or inputs.said("cluster.profile")
    if known.both and not (isinstance(model, str) and gpu is not None):
        return None, None, None, None
    from rlsize.commands.predict_step import calibration_setting
    from rlsize.commands.predict_step_inputs import asked_stages, loop_plan
    from rlsize.estimates.step_outlook import STAGES
    from rlsize.shell.beliefs import belief_of

    before = list(inputs.faults)
    try:
        asked = asked_stages(inputs, said.step, pools)
    except InputError as error:
        if not known.both:
            raise
        told = "; ".join(fault.what for fault in error.faults)
        inputs.faults[:] = before
        inputs.notes.append(f"Memory, sync and overheads are not predicted: {told}.")
        return None, None, None, None
    belief = belief_of(inputs, said.calibration, *STAGES, planned=calibration_setting(asked))
    plan, fits = loop_plan(inputs, asked, pools, belief.central())
    return plan, belief, asked.rollout.engine, fits


def _with_model(plan: LoopPlan) -> LoopProblem:
    from rlsize.planner.options import LoopProblem

    return LoopProblem(
        samples=plan.samples,
        group_size=plan.group_size,
        prompt_tokens=plan.prompt_tokens,
        response_tokens=plan.response_tokens,
        response_cv=plan.response_cv,
        max_tokens=plan.max_tokens,
        wire_dtype=plan.wire_dtype,
        model=plan.train.model,
    )


def _with_rates(inputs: Inputs, said: PlanFlags, known: KnownRates) -> LoopProblem:
    """The work of a step where only rates are known."""
    from rlsize.planner.options import LoopProblem

    one = Figure(key="group_size", value=1.0, provenance="default", source="not said")
    samples = asking.samples(inputs, said.step.work.samples)
    response = inputs.used.get("response_tokens", absent("response_tokens", "--response-tokens"))
    if not (samples.known and response.known):
        inputs.need(known.batch, "give --batch-tokens, or prompts, group and response tokens")
        samples = Figure(key="samples_per_step", value=1.0, provenance="default", source="a batch counts as a whole")
        response = replace(known.batch, key="response_tokens")
    return LoopProblem(samples=samples, group_size=inputs.used.get("group_size", one), response_tokens=response)


def _available(inputs: Inputs) -> Figure:
    """Share of the time that an instance is there, by the losses that the scenario names."""
    lost, restart = inputs.said("trouble.losses_per_hour"), inputs.said("trouble.restart_seconds")
    key = "available_fraction"
    if not lost:
        return Figure(key=key, value=1.0, provenance="default", source="no losses are named")
    up = Figure(key="up_seconds", value=_SECONDS_PER_HOUR / float(lost), source=inputs.where("trouble.losses_per_hour"))
    down = Figure(key="down_seconds", value=float(restart or 0.0), source=inputs.where("trouble.restart_seconds"))
    return inputs.keep(apply(key, planning.availability, up_seconds=up, down_seconds=down))


def _swap(inputs: Inputs) -> Figure:
    return inputs.number(
        "swap_seconds",
        "--swap-seconds",
        None,
        flags.SECONDS_OR_NONE,
        scenario="weight_sync.swap_seconds",
        default=0.0,
        why="not said",
    )


def _node(inputs: Inputs, plan: LoopPlan | None) -> float | None:
    """GPUs of a node: the scenario's, else the GPU profile's; None where nodes do not matter."""
    said = inputs.said("cluster.gpus_per_node")
    if said:
        return float(said)
    return None if plan is None else float(plan.train.gpu.specification.gpus_per_node.value)


def _fleet(plan: LoopPlan | None, known: KnownRates, price: Figure) -> FleetOption:
    """The instance as it is written; at the measured rate where there is one."""
    if plan is None:
        from rlsize.planner.options import FleetOption

        size = known.size.number
        return FleetOption(
            name=f"{size:g} GPU{'' if size == 1 else 's'}",
            gpu="",
            gpus=size,
            layout={},
            engines={},
            rate=known.rate,
            gpu_hour=price,
        )
    from rlsize.planner.choices import fleet_of
    from rlsize.planner.offers import Offer

    ready = next((engine for engine in plan.engines.values() if not isinstance(engine, str)), None)
    size = known.size.number if known.rate.known else 1.0 if ready is None else ready.numbers.gpus
    return fleet_of(plan.engines, size, Offer(gpu=plan.train.gpu, gpu_hour=price), known.rate)


def _trainer(plan: LoopPlan | None, known: KnownRates, price: Figure) -> TrainerOption:
    from rlsize.planner.options import TrainerOption

    question = None if plan is None else plan.train
    return TrainerOption(
        name="as measured" if known.train_seconds.known else "as asked",
        gpu="" if question is None else question.gpu.name,
        question=question,
        seconds=known.train_seconds,
        measured_gpus=known.measured_gpus,
        gpu_hour=price,
    )


def refuse_without_gpus(inputs: Inputs, pools: Pools) -> None:
    """
    Go on if the GPUs of both sides are known.

    Raises:
        InputError: They are not.
    """
    if not pools.gpus.known:
        raise InputError(*inputs.faults or [Fault("the GPUs are not known", "--gpus", "say how many there are")])
