"""The flags of `rlsize memory`: models, trainer, rollout instances, GPU."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.shell.command import quantity

MODELS, TRAINER, ROLLOUT, HARDWARE = "Models", "Trainer", "Rollout instances", "GPU"

ModelName = Annotated[
    str | None, quantity("--model", "A model profile or the path of a config.json.", MODELS, "NAME|FILE")
]
Params = Annotated[str | None, quantity("--params", "Parameters, where there is no profile: 70B.", MODELS)]
AlgorithmName = Annotated[
    str | None, quantity("--algorithm", "grpo, ppo, rloo, reinforce++, dapo or sft.", MODELS, "NAME")
]
CriticParams = Annotated[str | None, quantity("--critic-params", "Parameters of a critic of another size.", MODELS)]
ReferenceParams = Annotated[
    str | None, quantity("--reference-params", "Parameters of a reference of another size.", MODELS)
]
RewardParams = Annotated[
    str | None, quantity("--reward-params", "Parameters of a reward model of another size.", MODELS)
]
Critic = Annotated[
    bool | None,
    typer.Option(
        "--critic/--no-critic",
        help="Whether a critic is trained; ppo does.",
        rich_help_panel=MODELS,
        show_default=False,
    ),
]
Reference = Annotated[
    bool | None,
    typer.Option(
        "--reference/--no-reference",
        help="Whether a frozen reference is kept for a KL term.",
        rich_help_panel=MODELS,
        show_default=False,
    ),
]
RewardModel = Annotated[
    bool | None,
    typer.Option(
        "--reward-model/--no-reward-model",
        help="Whether a reward model is kept.",
        rich_help_panel=MODELS,
        show_default=False,
    ),
]

OptimizerName = Annotated[
    str | None, quantity("--optimizer", "adamw, adam-8bit, adamw-bf16-states, sgd-momentum or muon.", TRAINER, "NAME")
]
Gradients = Annotated[
    str | None, quantity("--gradients", "bf16 (16 bytes a parameter with adamw) or fp32 (18).", TRAINER, "NAME")
]
LoraRank = Annotated[
    str | None, quantity("--lora-rank", "Rank of LoRA adapters; all parameters are trained without.", TRAINER)
]
Fsdp = Annotated[str | None, quantity("--fsdp", "Ranks that share all training states (ZeRO-3).", TRAINER)]
Zero = Annotated[str | None, quantity("--zero", "ZeRO stage over the data-parallel ranks: 0 to 3.", TRAINER)]
DataParallel = Annotated[str | None, quantity("--data-parallel", "Data-parallel ranks.", TRAINER)]
TensorParallel = Annotated[str | None, quantity("--tensor-parallel", "Tensor-parallel ranks.", TRAINER)]
PipelineParallel = Annotated[str | None, quantity("--pipeline-parallel", "Pipeline stages.", TRAINER)]
ContextParallel = Annotated[str | None, quantity("--context-parallel", "Context-parallel ranks.", TRAINER)]
ExpertParallel = Annotated[
    str | None, quantity("--expert-parallel", "Expert-parallel ranks, among those above.", TRAINER)
]
TrainerGpus = Annotated[
    str | None, quantity("--trainer-gpus", "GPUs of the trainer, in place of --data-parallel.", TRAINER)
]
MicroBatchTokens = Annotated[
    str | None, quantity("--micro-batch-tokens", "Tokens of one pass of a data-parallel rank: 16k.", TRAINER)
]
Recompute = Annotated[
    str | None, quantity("--recompute", "none, selective (the same with flash attention) or full.", TRAINER, "NAME")
]

Instances = Annotated[str | None, quantity("--instances", "Rollout instances; 1 when not given.", ROLLOUT)]
RolloutTensorParallel = Annotated[
    str | None, quantity("--rollout-tensor-parallel", "GPUs that share each layer of an instance.", ROLLOUT)
]
RolloutPipelineParallel = Annotated[
    str | None, quantity("--rollout-pipeline-parallel", "Pipeline stages of an instance.", ROLLOUT)
]
RolloutDtype = Annotated[
    str | None, quantity("--rollout-dtype", "Width of the rollout weights: bf16, fp8, ...", ROLLOUT, "NAME")
]
KvDtype = Annotated[str | None, quantity("--kv-dtype", "Width of the KV cache: bf16, fp8, ...", ROLLOUT, "NAME")]
Concurrency = Annotated[str | None, quantity("--concurrency", "Samples at once on one instance.", ROLLOUT)]
Context = Annotated[
    str | None, quantity("--context", "Tokens of a sample in flight: prompt and mean live length.", ROLLOUT)
]
PromptTokens = Annotated[str | None, quantity("--prompt-tokens", "Mean prompt length in tokens.", ROLLOUT)]
ResponseTokens = Annotated[str | None, quantity("--response-tokens", "Mean response length in tokens.", ROLLOUT)]
ResponseCv = Annotated[
    str | None, quantity("--response-cv", "Deviation of response lengths over their mean; 1 when not given.", ROLLOUT)
]

GpuName = Annotated[str | None, quantity("--gpu", "A GPU profile, such as h100-sxm.", HARDWARE, "NAME")]
MemoryFraction = Annotated[
    str | None, quantity("--memory-fraction", "Share of its memory to plan with; 0.9 when not given.", HARDWARE)
]
