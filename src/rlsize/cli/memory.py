"""`rlsize memory`: what each tenant needs in memory, and which GPU count fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.cli import asking, flags
from rlsize.cli.command import quantity
from rlsize.cli.inputs import Inputs
from rlsize.cli.models import model_params, model_profile
from rlsize.cli.tenants import TenantFlags, Tenants, tenants
from rlsize.cli.trainer_layout import LayoutFlags, check_heads, trainer_layout
from rlsize.estimates.memory import bill_memory
from rlsize.estimates.memory_question import MemoryQuestion
from rlsize.estimates.memory_shape import MemoryShape, memory_shape, shapeless
from rlsize.estimates.rollout_memory import QUANTISED
from rlsize.facts.algorithm import BYTES_PER_GRADIENT, OPTIMIZERS, RECOMPUTATIONS
from rlsize.facts.dtype import BYTES_PER_PARAM
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure
from rlsize.planner.gpu_memory import GpuMemory, gpu_memory
from rlsize.planner.memory_fit import fit_memory
from rlsize.reports.memory import memory_report
from rlsize.reports.report import Report

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu

MODELS, TRAINER, ROLLOUT, HARDWARE = "Models", "Trainer", "Rollout", "GPU"
DEFAULT_FRACTION = 0.9
_CV = Quantity("1", least=0.0, most=20.0)
_MOST_SPREAD = 1.1  # a context this much longer than the model is made for is a slip


def _switch(flag: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(flag, help=text, rich_help_panel=MODELS, show_default=False)  # type: ignore[no-any-return]


def memory(
    scenario: flags.ScenarioFile = None,
    model: Annotated[
        str | None, quantity("--model", "A model profile or the path of a config.json.", MODELS, "NAME|FILE")
    ] = None,
    params: Annotated[str | None, quantity("--params", "Parameters, where there is no profile: 70B.", MODELS)] = None,
    algorithm: Annotated[
        str | None, quantity("--algorithm", "grpo, ppo, rloo, reinforce++, dapo or sft.", MODELS, "NAME")
    ] = None,
    critic: Annotated[bool | None, _switch("--critic/--no-critic", "Train a critic; ppo does.")] = None,
    reference: Annotated[
        bool | None, _switch("--reference/--no-reference", "Keep a frozen reference for a KL term.")
    ] = None,
    reward_model: Annotated[
        bool | None, _switch("--reward-model/--no-reward-model", "Keep a reward model; of the policy's size.")
    ] = None,
    critic_params: Annotated[str | None, quantity("--critic-params", "A critic of another size.", MODELS)] = None,
    reference_params: Annotated[
        str | None, quantity("--reference-params", "A reference of another size.", MODELS)
    ] = None,
    reward_params: Annotated[
        str | None, quantity("--reward-params", "A reward model of another size.", MODELS)
    ] = None,
    optimizer: Annotated[str | None, quantity("--optimizer", f"{', '.join(OPTIMIZERS)}.", TRAINER, "NAME")] = None,
    gradients: Annotated[
        str | None, quantity("--gradients", "bf16 (16 bytes a parameter with adamw) or fp32 (18).", TRAINER, "NAME")
    ] = None,
    lora_rank: Annotated[
        str | None, quantity("--lora-rank", "Train adapters of this rank; all parameters when not given.", TRAINER)
    ] = None,
    fsdp: Annotated[str | None, quantity("--fsdp", "Ranks that share all training states.", TRAINER)] = None,
    zero: Annotated[str | None, quantity("--zero", "ZeRO stage over data-parallel ranks: 0 to 3.", TRAINER)] = None,
    data_parallel: Annotated[str | None, quantity("--data-parallel", "Data-parallel ranks.", TRAINER)] = None,
    tensor_parallel: Annotated[str | None, quantity("--tensor-parallel", "Tensor-parallel ranks.", TRAINER)] = None,
    pipeline_parallel: Annotated[str | None, quantity("--pipeline-parallel", "Pipeline stages.", TRAINER)] = None,
    context_parallel: Annotated[str | None, quantity("--context-parallel", "Context-parallel ranks.", TRAINER)] = None,
    expert_parallel: Annotated[str | None, quantity("--expert-parallel", "Expert-parallel ranks.", TRAINER)] = None,
    trainer_gpus: Annotated[
        str | None, quantity("--trainer-gpus", "GPUs of the trainer, in place of --data-parallel.", TRAINER)
    ] = None,
    micro_batch_tokens: Annotated[
        str | None, quantity("--micro-batch-tokens", "Tokens of a pass of one data-parallel rank: 16k.", TRAINER)
    ] = None,
    recompute: Annotated[str | None, quantity("--recompute", "none, selective or full.", TRAINER, "NAME")] = None,
    instances: Annotated[str | None, quantity("--instances", "Rollout instances; 1 when not given.", ROLLOUT)] = None,
    rollout_tensor_parallel: Annotated[
        str | None, quantity("--rollout-tensor-parallel", "GPUs that share each layer of an instance.", ROLLOUT)
    ] = None,
    rollout_pipeline_parallel: Annotated[
        str | None, quantity("--rollout-pipeline-parallel", "Pipeline stages of an instance.", ROLLOUT)
    ] = None,
    rollout_dtype: Annotated[
        str | None, quantity("--rollout-dtype", "Width of the rollout weights: bf16, fp8, ...", ROLLOUT, "NAME")
    ] = None,
    kv_dtype: Annotated[
        str | None, quantity("--kv-dtype", "Width of the KV cache: bf16, fp8, ...", ROLLOUT, "NAME")
    ] = None,
    concurrency: Annotated[str | None, quantity("--concurrency", "Samples at once on one instance.", ROLLOUT)] = None,
    context: Annotated[
        str | None, quantity("--context", "Tokens of a sample in flight: prompt and mean live length.", ROLLOUT)
    ] = None,
    prompt_tokens: Annotated[str | None, quantity("--prompt-tokens", "Mean prompt length.", ROLLOUT)] = None,
    response_tokens: Annotated[str | None, quantity("--response-tokens", "Mean response length.", ROLLOUT)] = None,
    response_cv: Annotated[
        str | None, quantity("--response-cv", "Deviation of response lengths over their mean; 1.", ROLLOUT)
    ] = None,
    gpu: Annotated[str | None, quantity("--gpu", "A GPU profile, such as h100-sxm.", HARDWARE, "NAME")] = None,
    memory_fraction: Annotated[
        str | None, quantity("--memory-fraction", "Share of its memory to plan with; 0.9.", HARDWARE)
    ] = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    What each tenant needs in memory, and which GPU count fits.

    Example:  rlsize memory --params 70e9 --algorithm grpo --reward-model --gpu h100-sxm
    """
    inputs = Inputs(scenario, profiles)
    kept = tenants(
        inputs,
        TenantFlags(
            algorithm=algorithm,
            critic=critic,
            reference=reference,
            reward_model=reward_model,
            critic_params=critic_params,
            reference_params=reference_params,
            reward_params=reward_params,
        ),
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
    ...
    raise NotImplementedError
