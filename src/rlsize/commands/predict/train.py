"""`rlsize predict train`: how long the trainer works on an optimizer step, and where the time goes."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.commands import asking, flags
from rlsize.commands import memory_flags as of
from rlsize.commands.predict_train_flags import LayoutFlags, Models, Trainer, Work
from rlsize.commands.predict_train_inputs import response_batch, train_question
from rlsize.reports.predict_train import predict_train_report
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile, belief_of
from rlsize.shell.command import quantity
from rlsize.shell.inputs import Inputs

WORKLOAD, PASSES, SPEED = "Workload", "Passes", "Kernels and overlap"
_SEEDS = 2**63  # generators take no negative seed


def predict_train(
    scenario: flags.ScenarioFile = None,
    model: of.ModelName = None,
    gpu: of.GpuName = None,
    prompts: Annotated[str | None, quantity("--prompts", "Prompts per optimizer step.", WORKLOAD)] = None,
    group: Annotated[str | None, quantity("--group|--group-size", "Samples of one prompt, G.", WORKLOAD)] = None,
    samples: Annotated[str | None, quantity("--samples", "Samples of a step, for prompts x group.", WORKLOAD)] = None,
    prompt_tokens: Annotated[str | None, quantity("--prompt-tokens", "Mean prompt length in tokens.", WORKLOAD)] = None,
    response_tokens: Annotated[
        str | None, quantity("--response-tokens", "Mean response length in tokens.", WORKLOAD)
    ] = None,
    response_cv: Annotated[
        str | None, quantity("--response-cv", "Deviation of response lengths over their mean.", WORKLOAD)
    ] = None,
    updates: Annotated[
        str | None, quantity("--updates", "Times that a step's tokens are trained on (PPO epochs).", WORKLOAD)
    ] = None,
    mini_batches: Annotated[
        str | None, quantity("--mini-batches", "Optimizer updates for that each time.", WORKLOAD)
    ] = None,
    trainer_gpus: of.TrainerGpus = None,
    fsdp: of.Fsdp = None,
    zero: of.Zero = None,
    data_parallel: of.DataParallel = None,
    tensor_parallel: of.TensorParallel = None,
    pipeline_parallel: of.PipelineParallel = None,
    context_parallel: of.ContextParallel = None,
    expert_parallel: of.ExpertParallel = None,
    virtual_stages: Annotated[
        str | None, quantity("--virtual-stages", "Chunks of layers of each pipeline stage (interleaved).", of.TRAINER)
    ] = None,
    micro_batch_tokens: of.MicroBatchTokens = None,
    recompute: of.Recompute = None,
    optimizer: of.OptimizerName = None,
    gradients: of.Gradients = None,
    offload: Annotated[
        bool, typer.Option("--offload", help="Optimizer states live on the host.", rich_help_panel=of.TRAINER)
    ] = False,
    algorithm: Annotated[
        str | None, quantity("--algorithm", "grpo, ppo, rloo, reinforce++, dapo or sft.", PASSES, "NAME")
    ] = None,
    old_logprob: Annotated[
        bool | None,
        typer.Option(
            "--old-logprob/--no-old-logprob",
            help="Whether old log-probabilities are computed; not where rollout's are used.",
            rich_help_panel=PASSES,
            show_default=False,
        ),
    ] = None,
    reference: of.Reference = None,
    critic: of.Critic = None,
    reward_model: of.RewardModel = None,
    dtype: Annotated[str | None, quantity("--dtype", "Type of linear layers: bf16 or fp8.", SPEED, "NAME")] = None,
    fp8_scaling: Annotated[
        str | None, quantity("--fp8-scaling", "One scale for each tensor or row.", SPEED, "NAME")
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Element-wise work is compiled or fused.", rich_help_panel=SPEED)
    ] = False,
    async_tensor_parallel: Annotated[
        bool,
        typer.Option(
            "--async-tensor-parallel", help="Tensor-parallel transfers overlap with products.", rich_help_panel=SPEED
        ),
    ] = False,
    native_attention: Annotated[
        bool,
        typer.Option(
            "--native-attention",
            help="Attention kernels made for the GPU: FlashAttention-3 or cuDNN on Hopper, not FlashAttention-2.",
            rich_help_panel=SPEED,
        ),
    ] = False,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How long the trainer works on an optimizer step, and where the time goes.

    Example:  rlsize predict train --model qwen3-32b --gpu h100-sxm --trainer-gpus 32 --samples 512 --response-tokens 4k
    """
    inputs = Inputs(scenario, profiles)
    work = Work(
        prompts=prompts,
        group=group,
        samples=samples,
        prompt_tokens=prompt_tokens,
        response_tokens=response_tokens,
        response_cv=response_cv,
        updates=updates,
        mini_batches=mini_batches,
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
    trainer = Trainer(
        virtual_stages=virtual_stages,
        micro_batch_tokens=micro_batch_tokens,
        recompute=recompute,
        optimizer=optimizer,
        gradients=gradients,
        offload=offload,
        dtype=dtype,
        fp8_scaling=fp8_scaling,
        compiled=compiled,
        overlapped=async_tensor_parallel,
        native_attention=native_attention,
    )
    models = Models(
        algorithm=algorithm, old_logprob=old_logprob, reference=reference, critic=critic, reward_model=reward_model
    )
    question = train_question(inputs, (model, gpu), work, layout, trainer, models)
    asking.random_for(question, seed)  # refuses a seed that is no whole number
    from rlsize.estimates.constants_train import STAGE
    from rlsize.estimates.train_prediction_bands import predicted_train_step

    belief = belief_of(inputs, calibration, STAGE)
    answer = predicted_train_step(question, belief, int(seed) % _SEEDS, response_batch(inputs))
    return predict_train_report(question, answer, inputs.shown(), inputs.warnings, inputs.notes)
