"""`rlsize predict step`: how long an optimizer step takes, where it goes, and which mode is the quickest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.cli import asking, flags
from rlsize.cli import memory_flags as memory
from rlsize.cli import predict_rollout_flags as engine_flags
from rlsize.cli import predict_step_flags as of
from rlsize.cli.beliefs import CalibrationFile, belief_of, rollout_layout, trainer_layout
from rlsize.cli.inputs import Inputs
from rlsize.cli.predict_rollout_flags import EngineFlags
from rlsize.cli.predict_step_flags import LoopFlags, StepFlags
from rlsize.cli.predict_step_gpus import Pools, pools
from rlsize.cli.predict_step_inputs import Asked, asked_stages, loop_plan
from rlsize.cli.predict_train_flags import LayoutFlags, Models, Trainer, Work
from rlsize.errors import Fault, InputError
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.figure import Figure
from rlsize.facts.records.record import Refused
from rlsize.reports.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.step_loops import LoopPlan, Way

_SEEDS = 2**63  # generators take no negative seed


def predict_step(
    scenario: flags.ScenarioFile = None,
    model: memory.ModelName = None,
    gpu: memory.GpuName = None,
    mode: of.Mode = None,
    gpus: of.Gpus = None,
    rollout_gpus: of.RolloutGpus = None,
    trainer_gpus: of.TrainerGpus = None,
    max_staleness: of.MaxStaleness = None,
    transport: of.Transport = None,
    prompts: engine_flags.Prompts = None,
    group: engine_flags.Group = None,
    samples: engine_flags.Samples = None,
    prompt_tokens: engine_flags.PromptTokens = None,
    response_tokens: engine_flags.ResponseTokens = None,
    response_cv: of.ResponseCv = None,
    max_response_tokens: engine_flags.MaxResponseTokens = None,
    updates: of.Updates = None,
    mini_batches: of.MiniBatches = None,
    engine: engine_flags.EngineName = None,
    engine_version: engine_flags.EngineVersion = None,
    rollout_tensor_parallel: memory.RolloutTensorParallel = None,
    rollout_pipeline_parallel: memory.RolloutPipelineParallel = None,
    rollout_data_parallel: of.RolloutDataParallel = None,
    rollout_expert_parallel: of.RolloutExpertParallel = None,
    rollout_dtype: memory.RolloutDtype = None,
    kv_dtype: memory.KvDtype = None,
    memory_fraction: of.MemoryFraction = None,
    max_num_seqs: engine_flags.MaxNumSeqs = None,
    fsdp: memory.Fsdp = None,
    zero: memory.Zero = None,
    data_parallel: memory.DataParallel = None,
    tensor_parallel: memory.TensorParallel = None,
    pipeline_parallel: memory.PipelineParallel = None,
    context_parallel: memory.ContextParallel = None,
    expert_parallel: memory.ExpertParallel = None,
    micro_batch_tokens: memory.MicroBatchTokens = None,
    recompute: memory.Recompute = None,
    optimizer: memory.OptimizerName = None,
    gradients: memory.Gradients = None,
    offload: of.Offload = False,
    dtype: of.Dtype = None,
    compiled: of.Compiled = False,
    native_attention: of.NativeAttention = False,
    algorithm: of.Algorithm = None,
    old_logprob: of.OldLogprob = None,
    reference: memory.Reference = None,
    critic: memory.Critic = None,
    reward_model: memory.RewardModel = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How long an optimizer step of an RL loop takes, where it goes, and which mode is the quickest.

    Example:  rlsize predict step --model qwen3-8b --gpu h100-sxm --mode async --rollout-gpus 8 --trainer-gpus 8
    --prompts 64 --group 16 --response-tokens 2k
    """
    said = StepFlags(
        named=(model, gpu),
        loop=LoopFlags(
            mode=mode,
            gpus=gpus,
            rollout_gpus=rollout_gpus,
            trainer_gpus=trainer_gpus,
            max_staleness=max_staleness,
            transport=transport,
        ),
        engine=EngineFlags(
            engine=engine,
            version=engine_version,
            tensor=rollout_tensor_parallel,
            pipeline=rollout_pipeline_parallel,
            data=rollout_data_parallel,
            expert=rollout_expert_parallel,
            dtype=rollout_dtype,
            kv_dtype=kv_dtype,
            memory_fraction=memory_fraction,
            max_num_seqs=max_num_seqs,
        ),
        work=Work(
            prompts=prompts,
            group=group,
            samples=samples,
            prompt_tokens=prompt_tokens,
            response_tokens=response_tokens,
            response_cv=response_cv,
            updates=updates,
            mini_batches=mini_batches,
        ),
        cap=max_response_tokens,
        layout=LayoutFlags(
            fsdp=fsdp,
            zero=zero,
            data=data_parallel,
            tensor=tensor_parallel,
            pipeline=pipeline_parallel,
            context=context_parallel,
            expert=expert_parallel,
        ),
        trainer=Trainer(
            micro_batch_tokens=micro_batch_tokens,
            recompute=recompute,
            optimizer=optimizer,
            gradients=gradients,
            offload=offload,
            dtype=dtype,
            compiled=compiled,
            native_attention=native_attention,
        ),
        models=Models(
            algorithm=algorithm, old_logprob=old_logprob, reference=reference, critic=critic, reward_model=reward_model
        ),
    )
    return _answer(Inputs(scenario, profiles), said, (calibration, seed))


def _answer(inputs: Inputs, said: StepFlags, beliefs: tuple[str | None, str]) -> Report:
    from rlsize.estimates.step_assumptions import assumptions
    from rlsize.estimates.step_outlook import STAGES, step_outlook
    from rlsize.planner.step_ways import other_ways
    from rlsize.reports.predict_step import predict_step_report, step_does_not_fit_report

    found = pools(inputs, said.loop)
    asked = asked_stages(inputs, said, found)
    belief = belief_of(inputs, beliefs[0], *STAGES, planned=calibration_setting(asked))
    values = belief.central()
    plan, fits = loop_plan(inputs, asked, found, values)
    asking.random_for(plan, beliefs[1])  # refuses a seed that is no whole number
    own = plan.engines[found.loop == "colocated"]
    if isinstance(own, str):
        way_out = f"It would fit with --rollout-tensor-parallel {fits}." if fits else "No tensor parallelism holds it."
        return step_does_not_fit_report(plan, own, way_out, inputs.shown(), inputs.warnings)
    way, reason = chosen_way(inputs, plan, found, values)
    if reason:
        return step_does_not_fit_report(plan, reason, _larger(plan, values), inputs.shown(), inputs.warnings)
    plan = replace(plan, way=way)
    try:
        others = other_ways(plan, found.gpus.number, values, split=found.split)
        outlook = step_outlook(plan, others, belief, int(beliefs[1]) % _SEEDS)
        assumed = assumptions(plan, values, _assumed(inputs, said))
    except Refused as refusal:
        raise InputError(Fault(str(refusal), "--gpus", "change GPUs or layout")) from None
    return predict_step_report(outlook, assumed, inputs.shown(), inputs.warnings, inputs.notes)


def _larger(plan: LoopPlan, values: Mapping[str, float]) -> str:
    """What a trainer that does not fit needs."""
    from rlsize.planner.step_ways import fitting_trainer

    gpus = fitting_trainer(plan, values)
    if gpus is None:
        return "More trainer GPUs alone do not help: shard it further, or offload the optimizer (--offload)."
    return f"It fits on {gpus:g} trainer GPUs, or with --offload on fewer; rlsize memory bills all of it."


def calibration_setting(asked: Asked) -> CalibrationSetting:
    """What is predicted, as calibrations name it."""
    layout, train = asked.rollout.engine.layout, asked.train
    return CalibrationSetting(
        model=train.model.name,
        gpu=train.gpu.name,
        engine=asked.rollout.engine.engine,
        rollout_layout=rollout_layout(layout.tensor, layout.pipeline, layout.data) if asked.stated else None,
        trainer_layout=trainer_layout(train.tensor, train.pipeline, train.context, train.expert),
    )


def chosen_way(inputs: Inputs, plan: LoopPlan, found: Pools, values: Mapping[str, float]) -> tuple[Way, str]:
    """
    How the loop is run: as said, or with the split that suits its mode best; and why its trainer does not fit.

    Raises:
        InputError: The GPUs hold no instance.
    """
    from rlsize.estimates.step_loops import Way, check_way
    from rlsize.planner.step_ways import best_split, colocated_way

    if found.loop == "colocated":
        way = colocated_way(plan, found.gpus.number)
    elif found.split:
        way = Way(
            loop=found.loop, rollout_gpus=_whole_instances(inputs, plan, found), trainer_gpus=found.trainer.number
        )
    else:
        best = best_split(plan, found.loop, found.gpus.number, values)
        if best is None:
            half = replace(plan.way, rollout_gpus=found.gpus.number, trainer_gpus=found.gpus.number)
            return half, f"{plan.train.model.name} does not fit beside its fleet on {found.gpus.number:g} GPUs"
        for key, value in (("rollout_gpus", best.rollout_gpus), ("trainer_gpus", best.trainer_gpus)):
            source = "the split that is the quickest"
            inputs.keep(Figure(key=key, value=int(value), provenance="default", source=source))
        split = f"{best.rollout_gpus:g} + {best.trainer_gpus:g}"
        inputs.notes.append(f"Nobody said how the GPUs are split: {split} is the quickest.")
        return best, ""
    try:
        check_way(plan, way, values)
    except Refused as refusal:
        return way, str(refusal)
    return way, ""


def _whole_instances(inputs: Inputs, plan: LoopPlan, found: Pools) -> float:
    """
    Rollout GPUs that make whole instances.

    Raises:
        InputError: They do not make one.
    """
    from rlsize.planner.rounding import rounded_down

    size, said = float(plan.engine(plan.way).numbers.gpus), found.rollout
    whole = rounded_down(said.number / size) * size
    if whole < size:
        what = f"{said.number:g} rollout GPUs do not hold an instance of {size:g}"
        raise InputError(Fault(what, said.source, "give more, or a smaller --rollout-tensor-parallel"))
    if whole < said.number:
        inputs.warnings.append(f"{said.number - whole:g} rollout GPUs make no whole instance of {size:g}")
    return whole


def _assumed(inputs: Inputs, said: StepFlags) -> frozenset[str]:
    """Keys of inputs that matter and that nobody gave."""
    asked = ("memory_fraction", "rollout_tensor_parallel", "kv_dtype", "response_cv", "max_staleness", "mode")
    keys = {key for key in asked if key in inputs.used and inputs.used[key].provenance == "default"}
    keys |= set() if "max_response_tokens" in inputs.used else {"max_response_tokens"}
    passes = (said.models.old_logprob, said.models.reference, inputs.said("trainer.logprob_passes"))
    keys |= {"logprob_passes"} if all(one is None for one in passes) else set()
    keys |= set() if said.trainer.offload else {"offload"}
    keys |= set() if said.trainer.compiled or said.trainer.native_attention else {"compiled"}
    return frozenset(keys)
