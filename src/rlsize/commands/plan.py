"""`rlsize plan`: which mode, split and layouts are best, and what stands around the choice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.commands import memory_flags as memory
from rlsize.commands import plan_flags as of
from rlsize.commands import predict_rollout_flags as engine_flags
from rlsize.commands import predict_step_flags as step_flags
from rlsize.commands.plan_asked import NOTHING_SAID, PlanFlags, PriceFlags, RateFlags
from rlsize.commands.plan_flags import SearchFlags
from rlsize.commands.predict_rollout_flags import EngineFlags
from rlsize.commands.predict_step_flags import LoopFlags
from rlsize.commands.predict_train_flags import Models, Trainer, Work
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from rlsize.commands.plan_problem import Posed
    from rlsize.commands.predict_step_gpus import Pools
    from rlsize.planner.options import Placement
    from rlsize.planner.plan import Planned


def plan(
    scenario: flags.ScenarioFile = None,
    model: memory.ModelName = None,
    gpu: memory.GpuName = None,
    gpus: step_flags.Gpus = None,
    objective: of.Objective = None,
    steps_per_day: of.StepsPerDay = None,
    finish_by: of.FinishBy = None,
    budget: of.BudgetFile = None,
    memory_margin: of.MemoryMargin = None,
    mode: of.Modes = None,
    rollout_gpus: of.RolloutGpus = None,
    trainer_gpus: of.TrainerGpus = None,
    max_staleness: of.MaxStaleness = None,
    transport: of.Transports = None,
    rollout_tensor_parallel: of.RolloutTensor = None,
    rollout_data_parallel: of.RolloutData = None,
    tensor_parallel: of.Tensor = None,
    pipeline_parallel: of.Pipeline = None,
    context_parallel: of.Context = None,
    expert_parallel: of.Expert = None,
    recompute: of.Recompute = None,
    micro_batch_tokens: of.MicroBatches = None,
    whole_nodes: of.WholeNodes = False,
    rollout_pool: of.RolloutPool = None,
    trainer_pool: of.TrainerPool = None,
    simulate: of.Simulate = None,
    save: of.Save = None,
    prompts: engine_flags.Prompts = None,
    group: engine_flags.Group = None,
    samples: engine_flags.Samples = None,
    prompt_tokens: engine_flags.PromptTokens = None,
    response_tokens: engine_flags.ResponseTokens = None,
    response_cv: step_flags.ResponseCv = None,
    max_response_tokens: engine_flags.MaxResponseTokens = None,
    engine: engine_flags.EngineName = None,
    rollout_dtype: memory.RolloutDtype = None,
    algorithm: step_flags.Algorithm = None,
    optimizer: memory.OptimizerName = None,
    offload: step_flags.Offload = False,
    per_instance: of.PerInstance = None,
    accept_lower_bound: flags.AcceptLowerBound = False,
    gpus_per_instance: of.GpusPerInstance = None,
    headroom: of.Headroom = None,
    rollout_rate: of.RolloutRate = None,
    trainer_rate: of.TrainerRate = None,
    train_seconds: of.TrainSeconds = None,
    consume: of.Consume = None,
    measured_trainer_gpus: of.MeasuredTrainerGpus = None,
    sync_seconds: of.SyncSeconds = None,
    batch_tokens: of.BatchTokens = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    steps: of.Steps = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    force: of.Force = False,
    profiles: flags.Profiles = None,
) -> Report:
    """
    Which mode, split and layouts are best, at what cost, and what if.

    Example:  rlsize plan --model qwen3-8b --gpu h100-sxm --gpus 32 --prompts 64 --group 16 --response-tokens 2k
    """
    said = PlanFlags(
        step=replace(
            NOTHING_SAID,
            named=(model, gpu),
            loop=LoopFlags(gpus=gpus),
            engine=EngineFlags(engine=engine, dtype=rollout_dtype),
            work=Work(
                prompts=prompts, group=group, samples=samples, prompt_tokens=prompt_tokens,
                response_tokens=response_tokens, response_cv=response_cv,
            ),
            cap=max_response_tokens,
            trainer=Trainer(optimizer=optimizer, offload=offload),
            models=Models(algorithm=algorithm),
        ),
        rates=RateFlags(
            per_instance=per_instance, accept_lower_bound=accept_lower_bound, headroom=headroom, consume=consume,
            gpus_per_instance=gpus_per_instance, train_seconds=train_seconds, rollout_rate=rollout_rate,
            measured_trainer_gpus=measured_trainer_gpus, trainer_rate=trainer_rate, sync_seconds=sync_seconds,
            batch_tokens=batch_tokens,
        ),
        prices=PriceFlags(
            gpu_hour=gpu_hour, rollout_gpu_hour=rollout_gpu_hour, trainer_gpu_hour=trainer_gpu_hour, price=price
        ),
        steps=steps,
        calibration=calibration,
        seed=seed,
    )  # fmt: skip
    search = SearchFlags(
        objective=objective,
        steps_per_day=steps_per_day,
        finish_by=finish_by,
        budget=budget,
        memory_margin=memory_margin,
        modes=mode,
        rollout_gpus=rollout_gpus,
        trainer_gpus=trainer_gpus,
        max_staleness=max_staleness,
        transports=transport,
        rollout_tensor=rollout_tensor_parallel,
        rollout_data=rollout_data_parallel,
        tensor=tensor_parallel,
        pipeline=pipeline_parallel,
        context=context_parallel,
        expert=expert_parallel,
        recompute=recompute,
        micro_batches=micro_batch_tokens,
        whole_nodes=whole_nodes,
        rollout_pools=tuple(rollout_pool or ()),
        trainer_pools=tuple(trainer_pool or ()),
    )
    return _answer(Inputs(scenario, profiles), said, search, (simulate, save, force))


def _answer(inputs: Inputs, said: PlanFlags, search: SearchFlags, extra: tuple[str | None, str | None, bool]) -> Report:
    from rlsize.commands.plan_saving import check_save, save_plan
    from rlsize.commands.plan_simulating import asked_count, ranked_by_simulation
    from rlsize.reports.plan import plan_report

    simulate, save, force = extra
    check_save(save, force=force)
    count = asked_count(inputs, simulate)
    problem, answer = planned_of(inputs, said, search)
    ranked = ranked_by_simulation(inputs, problem, answer, count)
    report = plan_report(answer, inputs.shown(), inputs.warnings, inputs.notes, ranked)
    if answer.chosen is not None and save is not None:
        save_plan(save, inputs, answer.chosen, force=force)
    return report


def planned_of(inputs: Inputs, said: PlanFlags, search: SearchFlags) -> tuple[Posed, Planned]:
    """
    The problem that flags and scenario pose, and its plan.

    Raises:
        InputError: All that is missing or wrong.
    """
    from rlsize.commands.plan_limits import objective_of
    from rlsize.commands.plan_problem import posed
    from rlsize.commands.plan_space import space_of
    from rlsize.planner.plan import planned
    from rlsize.planner.tables import Rejections
    from rlsize.shell.progress import late_progress

    found, stated = searched_pools(inputs, said, search)
    problem = posed(inputs, said, found)
    rejected = Rejections()
    objective = objective_of(inputs, search)
    space = space_of(inputs, search, problem, rejected)
    written = _written(inputs, problem) if stated else None
    _drop_searched(inputs, problem)
    with late_progress("searching") as tell:
        answer = planned(problem.outlook, space, objective, written, tell)
    for reason, count in rejected.counts.items():
        answer.found.rejected.add(reason, count)
    return problem, answer


_SEARCHED = {  # by whether it is of the fleet
    True: ("rollout_tensor_parallel", "rollout_pipeline_parallel", "rollout_data_parallel", "rollout_expert_parallel"),
    False: (
        *("fsdp", "zero", "data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel"),
        *("expert_parallel", "recompute", "micro_batch_tokens", "trainer_gpus", "rollout_gpus", "mode"),
    ),
}


def _drop_searched(inputs: Inputs, problem: Posed) -> None:
    """What is searched is no input, whatever the scenario has in its place."""
    known = problem.known
    for key in (*(_SEARCHED[True] if not known.rate.known else ()), *_SEARCHED[False]):
        inputs.used.pop(key, None)


def searched_pools(inputs: Inputs, said: PlanFlags, search: SearchFlags) -> tuple[Pools, bool]:
    """
    The GPUs of both sides, and whether the scenario has a plan of its own, which is judged beside the best one.

    Raises:
        InputError: They are not known, or contradict each other.
    """
    from rlsize.commands.plan_problem import refuse_without_gpus
    from rlsize.commands.predict_step_gpus import Pools, pools
    from rlsize.facts.figure import Figure, absent

    stated = any(inputs.said(f"placement.{key}") is not None for key in ("mode", "rollout_gpus", "trainer_gpus"))
    side = inputs.apart()
    if search.rollout_pools or search.trainer_pools:
        stock = inputs.number("gpus", "--gpus", said.step.loop.gpus, flags.COUNT, scenario="cluster.gpus")
        if not stock.known and not (search.rollout_pools and search.trainer_pools):
            lacking = "--trainer-pool" if search.rollout_pools else "--rollout-pool"
            inputs.fault("the other side has no GPUs", lacking, "offer some, or say with --gpus how many there are")
        everything = stock if stock.known else Figure(key="gpus", value=1, provenance="default", source="the pools")
        none = (absent("rollout_gpus", ""), absent("trainer_gpus", ""))
        return Pools(loop="async", gpus=everything, rollout=none[0], trainer=none[1]), False
    found = pools(side, said.step.loop)
    inputs.faults += side.faults
    refuse_without_gpus(inputs, found)
    inputs.settle()
    inputs.keep(found.gpus)
    stated = stated and (found.split or found.loop == "colocated")
    return (found, True) if stated else (replace(found, loop="async"), False)


def _written(inputs: Inputs, problem: Posed) -> Placement | None:
    """The plan as the scenario has it; None where it cannot run, which is noted."""
    from rlsize.commands.evaluation import written_placement
    from rlsize.facts.records.record import Refused
    from rlsize.planner.evaluation import worked

    try:
        place = written_placement(inputs, problem)
        worked(problem.outlook.central, place)
    except Refused as refusal:
        inputs.warnings.append(f"the scenario's own plan cannot run: {refusal}")
        return None
    return place
