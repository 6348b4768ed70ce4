"""`rlsize memory`: what each tenant needs in memory, and which GPU count fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.commands import memory_flags as of
from rlsize.commands.memory_hardware import engine_at_start, instance, memory_hardware
from rlsize.commands.memory_rollout import RolloutFlags, RolloutSide, longest_tokens, rollout_side
from rlsize.commands.predict_train_flags import LayoutFlags
from rlsize.commands.predict_train_inputs import MICRO_BATCH
from rlsize.commands.tenants import TenantFlags, tenants
from rlsize.commands.trainer_layout import check_heads, trainer_layout
from rlsize.estimates.constants_memory import STAGE, constant_figures
from rlsize.estimates.memory import bill_memory
from rlsize.estimates.memory_question import MemoryQuestion
from rlsize.estimates.memory_shape import MemoryShape, memory_shape, shapeless
from rlsize.facts.algorithm import BYTES_PER_GRADIENT, OPTIMIZERS, RECOMPUTATIONS
from rlsize.facts.figure import Figure
from rlsize.planner.memory_fit import fit_memory
from rlsize.reports.memory import memory_report
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile, belief_of
from rlsize.shell.inputs import Inputs
from rlsize.shell.models import model_params, model_profile

if TYPE_CHECKING:
    from rlsize.facts.algorithm import Optimizer, Recomputation


def memory(
    scenario: flags.ScenarioFile = None,
    model: of.ModelName = None,
    params: of.Params = None,
    algorithm: of.AlgorithmName = None,
    critic: of.Critic = None,
    reference: of.Reference = None,
    reward_model: of.RewardModel = None,
    critic_params: of.CriticParams = None,
    reference_params: of.ReferenceParams = None,
    reward_params: of.RewardParams = None,
    optimizer: of.OptimizerName = None,
    gradients: of.Gradients = None,
    lora_rank: of.LoraRank = None,
    fsdp: of.Fsdp = None,
    zero: of.Zero = None,
    data_parallel: of.DataParallel = None,
    tensor_parallel: of.TensorParallel = None,
    pipeline_parallel: of.PipelineParallel = None,
    context_parallel: of.ContextParallel = None,
    expert_parallel: of.ExpertParallel = None,
    trainer_gpus: of.TrainerGpus = None,
    micro_batch_tokens: of.MicroBatchTokens = None,
    recompute: of.Recompute = None,
    instances: of.Instances = None,
    rollout_tensor_parallel: of.RolloutTensorParallel = None,
    rollout_pipeline_parallel: of.RolloutPipelineParallel = None,
    rollout_dtype: of.RolloutDtype = None,
    kv_dtype: of.KvDtype = None,
    concurrency: of.Concurrency = None,
    context: of.Context = None,
    prompt_tokens: of.PromptTokens = None,
    response_tokens: of.ResponseTokens = None,
    response_cv: of.ResponseCv = None,
    gpu: of.GpuName = None,
    memory_fraction: of.MemoryFraction = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    What each tenant needs in memory, and which GPU count fits.

    Example:  rlsize memory --params 70e9 --algorithm grpo --reward-model
    """
    inputs = Inputs(scenario, profiles)
    models = TenantFlags(
        algorithm=algorithm,
        critic=critic,
        reference=reference,
        reward_model=reward_model,
        critic_params=critic_params,
        reference_params=reference_params,
        reward_params=reward_params,
    )
    training = TrainingFlags(
        optimizer=optimizer,
        gradients=gradients,
        lora_rank=lora_rank,
        micro_batch_tokens=micro_batch_tokens,
        recompute=recompute,
    )
    layout = LayoutFlags(
        fsdp=fsdp,
        zero=zero,
        data=data_parallel,
        tensor=tensor_parallel,
        pipeline=pipeline_parallel,
        context=context_parallel,
        expert=expert_parallel,
        gpus=trainer_gpus,
    )
    rollout = RolloutFlags(
        instances=instances,
        tensor_parallel=rollout_tensor_parallel,
        pipeline_parallel=rollout_pipeline_parallel,
        dtype=rollout_dtype,
        kv_dtype=kv_dtype,
        concurrency=concurrency,
        context=context,
        prompt_tokens=prompt_tokens,
        response_tokens=response_tokens,
        response_cv=response_cv,
    )
    question = _question(inputs, (model, params), models, training, layout, rollout)
    profile, hardware = memory_hardware(inputs, question, gpu, memory_fraction)
    inputs.settle()
    belief = belief_of(inputs, calibration, STAGE)
    policy = model_profile(inputs, model)
    question = replace(
        question,
        constants=constant_figures(belief.central()),
        engine=instance(inputs, question, policy, (profile, hardware)),
    )
    answer = bill_memory(question, asking.random_for(question, seed))
    fit = fit_memory(question, hardware) if hardware else None
    start = engine_at_start(question, fit, belief, seed)
    return memory_report(question, answer, fit, inputs.shown(), inputs.warnings, inputs.notes, start)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFlags:
    """What the flags say about the training state; None where one was not given."""

    optimizer: str | None = None
    gradients: str | None = None
    lora_rank: str | None = None
    micro_batch_tokens: str | None = None
    recompute: str | None = None


def _question(
    inputs: Inputs,
    policy: tuple[str | None, str | None],
    models: TenantFlags,
    training: TrainingFlags,
    layout: LayoutFlags,
    rollout: RolloutFlags,
) -> MemoryQuestion:
    """All that was said, as figures; faults are noted, not raised."""
    params = inputs.keep(model_params(inputs, *policy)[0])
    if not inputs.faults:  # a model that is named and cannot be read is a fault already
        inputs.need(params, "give --model or --params")
    profile = model_profile(inputs, policy[0]) if policy[1] is None and params.known else None
    kept = tenants(inputs, models)
    side = rollout_side(inputs, rollout, cached=profile is not None)
    shape = memory_shape(profile, params, side.bytes_per_kv_value) if profile else None
    trained = _training(inputs, training, shaped=shape is not None or (profile is None and not params.known))
    if trained.lora_rank.known and kept.reference is None and kept.algorithm.reference:
        inputs.notes.append("The reference is the policy with its adapters off: no copy (--reference counts one).")
    if inputs.said("placement.mode") == "colocated":
        inputs.notes.append("Colocated: each side is judged alone, as if the other were offloaded while it runs.")
    habit = kept.algorithm.reference and not trained.lora_rank.known
    question = MemoryQuestion(
        algorithm=kept.algorithm,
        critic=kept.critic,
        reference=habit if kept.reference is None else kept.reference,
        reward=kept.reward,
        params=params,
        critic_params=kept.critic_params,
        reference_params=kept.reference_params,
        reward_params=kept.reward_params,
        known_shape=shape,
        optimizer=trained.optimizer,
        bytes_per_gradient=trained.bytes_per_gradient,
        lora_rank=trained.lora_rank,
        micro_batch_tokens=trained.micro_batch_tokens,
        recompute=trained.recompute,
        layout=trainer_layout(inputs, layout, shape or (shapeless(params) if params.known else None)),
        instances=side.instances,
        rollout_dtype=side.rollout_dtype,
        rollout_tensor_parallel=side.rollout_tensor_parallel,
        rollout_pipeline_parallel=side.rollout_pipeline_parallel,
        concurrency=side.concurrency,
        context_tokens=side.context_tokens,
        prompt_tokens=side.prompt_tokens,
        response_tokens=side.response_tokens,
        response_cv=side.response_cv,
        longest_tokens=longest_tokens(inputs, side),
    )
    if shape is not None:
        _check_instance(inputs, question, side, shape)
    return question


@dataclass(frozen=True, slots=True, kw_only=True)
class _Training:
    optimizer: Optimizer
    bytes_per_gradient: Figure
    lora_rank: Figure
    micro_batch_tokens: Figure
    recompute: Recomputation


def _training(inputs: Inputs, said: TrainingFlags, *, shaped: bool) -> _Training:
    """What is kept for each trained parameter, and what of the activations."""
    name = inputs.word(
        "optimizer", "--optimizer", said.optimizer, OPTIMIZERS, scenario="trainer.optimizer", default="adamw"
    )
    width = inputs.word(
        "gradients", "--gradients", said.gradients, BYTES_PER_GRADIENT, scenario="trainer.gradients", default="bf16"
    )
    chosen = inputs.used.get("gradients", Figure(key="gradients", value="bf16", provenance="default"))
    rank = inputs.number("lora_rank", "--lora-rank", said.lora_rank, flags.COUNT, scenario="trainer.lora_rank")
    if rank.known and not shaped:
        inputs.fault("the size of adapters depends on the model's layers", rank.source, "name --model, not --params")
    tokens = inputs.number(
        "micro_batch_tokens",
        "--micro-batch-tokens",
        said.micro_batch_tokens,
        flags.TOKENS,
        scenario="trainer.micro_batch_tokens",
        default=MICRO_BATCH if shaped else None,
        why="assumed: samples packed to 16k tokens",
    )
    policy = "full"
    if tokens.known or said.recompute is not None:
        policy = inputs.word(
            "recompute", "--recompute", said.recompute, RECOMPUTATIONS, scenario="trainer.recompute", default="full"
        )
    return _Training(
        optimizer=OPTIMIZERS[name or "adamw"],
        bytes_per_gradient=Figure(
            key="bytes_per_gradient",
            value=BYTES_PER_GRADIENT[width or "bf16"],
            provenance=chosen.provenance,
            source=f"{chosen.value} gradients: {chosen.source}",
        ),
        lora_rank=rank,
        micro_batch_tokens=tokens,
        recompute=RECOMPUTATIONS[policy or "full"],
    )


def _check_instance(inputs: Inputs, question: MemoryQuestion, side: RolloutSide, shape: MemoryShape) -> None:
    """Faults and warnings about the rollout side that only the model's layers can tell."""
    tensor = side.rollout_tensor_parallel
    if tensor.known:
        check_heads(inputs, tensor.source, int(tensor.number), shape)
    longest = shape.architecture.max_context if shape.architecture else 0
    tokens = question.context
    if tokens.known and tokens.number > longest:
        inputs.warnings.append(f"{tokens.number:,.0f} tokens of a sample are more than the model's {longest:,}")
