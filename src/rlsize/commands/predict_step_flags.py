"""The flags of `rlsize predict step` that other commands do not have, and what its flags say by topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from rlsize.commands.memory_flags import ROLLOUT, TRAINER
from rlsize.commands.predict_rollout_flags import EngineFlags
from rlsize.commands.predict_train_flags import LayoutFlags, Models, Trainer, Work
from rlsize.shell.command import quantity

LOOP, WORKLOAD, PASSES = "Loop", "Workload", "Passes"

Mode = Annotated[
    str | None,
    quantity("--mode", "colocated, disaggregated (in turn), one-step-off or async.", LOOP, "NAME"),
]
Gpus = Annotated[str | None, quantity("--gpus", "GPUs of both sides; shared ones where colocated.", LOOP)]
RolloutGpus = Annotated[str | None, quantity("--rollout-gpus", "GPUs of the rollout fleet.", LOOP)]
TrainerGpus = Annotated[str | None, quantity("--trainer-gpus", "GPUs of the trainer.", LOOP)]
MaxStaleness = Annotated[
    str | None, quantity("--max-staleness", "Staleness cap in optimizer steps; 1 when not given.", LOOP)
]
Transport = Annotated[
    str | None, quantity("--transport", "Class of the weight sync, as in rlsize predict sync.", LOOP, "NAME")
]

Updates = Annotated[
    str | None, quantity("--updates", "Times that a step's tokens are trained on (PPO epochs).", WORKLOAD)
]
MiniBatches = Annotated[str | None, quantity("--mini-batches", "Optimizer updates for that each time.", WORKLOAD)]
ResponseCv = Annotated[
    str | None,
    quantity("--response-cv", "Deviation of response lengths over their mean; 0.6 when not given.", WORKLOAD),
]

Algorithm = Annotated[str | None, quantity("--algorithm", "grpo, ppo, rloo, reinforce++ or dapo.", PASSES, "NAME")]
OldLogprob = Annotated[
    bool | None,
    typer.Option(
        "--old-logprob/--no-old-logprob",
        help="Whether old log-probabilities are computed; not where rollout's are used.",
        rich_help_panel=PASSES,
        show_default=False,
    ),
]

RolloutExpertParallel = Annotated[
    str | None, quantity("--rollout-expert-parallel", "Ranks of an instance that share the experts.", ROLLOUT)
]
RolloutDataParallel = Annotated[
    str | None, quantity("--rollout-data-parallel", "Data-parallel ranks of attention within an instance.", ROLLOUT)
]
MemoryFraction = Annotated[
    str | None,
    quantity("--memory-fraction", "Share of GPU memory of an engine; 0.6 on shared GPUs when not given.", ROLLOUT),
]

Offload = Annotated[bool, typer.Option("--offload", help="Optimizer states live on the host.", rich_help_panel=TRAINER)]
Dtype = Annotated[str | None, quantity("--dtype", "Type of the trainer's linear layers: bf16 or fp8.", TRAINER, "NAME")]
Compiled = Annotated[
    bool, typer.Option("--compiled", help="Element-wise work is compiled or fused (Megatron).", rich_help_panel=TRAINER)
]
NativeAttention = Annotated[
    bool,
    typer.Option(
        "--native-attention",
        help="Attention kernels made for the GPU: FlashAttention-3, cuDNN.",
        rich_help_panel=TRAINER,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFlags:
    """What the flags say about the loop; None where one was not given."""

    mode: str | None = None
    gpus: str | None = None
    rollout_gpus: str | None = None
    trainer_gpus: str | None = None
    max_staleness: str | None = None
    transport: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFlags:
    """
    What the flags say, by topic.

    Args:
        named: What `--model` and `--gpu` say.
        loop: Mode, GPUs and weight sync.
        engine: One rollout instance.
        work: The samples of a step.
        cap: What `--max-response-tokens` says.
        layout: How the trainer is spread.
        trainer: How it works.
        models: Which models there are beside the policy.
    """

    named: tuple[str | None, str | None]
    loop: LoopFlags
    engine: EngineFlags
    work: Work
    cap: str | None
    layout: LayoutFlags
    trainer: Trainer
    models: Models
