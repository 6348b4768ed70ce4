"""Published optimizer steps of RL loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rlsize.facts.records.record import Layout, Record

Placement = Literal["colocated", "disaggregated"]
Loop = Literal["synchronous", "one-step-off", "async"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord(Record):
    """
    One measured loop.

    Args:
        placement: Whether both sides share their GPUs.
        loop: Whether they take turns, overlap one step, or overlap with refill.
        rollout_gpus: GPUs that generate. [1]
        trainer_gpus: GPUs that train. [1]
        rollout: Layout of one engine.
        trainer: Layout of one model replica of the trainer.
        samples: Samples of a step. [1]
        group_size: Samples of one prompt. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        max_tokens: Longest sequence, prompt and response. [token]
        train_batch: Samples of one optimizer update; None where it is the whole step. [1]
        trained_samples: Samples that are trained on; None for all that are generated. [1]
        max_staleness: Staleness cap, in steps. [1]
        rollout_dtype: Number type of generation.
        train_dtype: Number type of training.
        memory_fraction: Share of the memory that engines use; None where unsaid. [1]
        passes: Extra forward passes of the trainer.
        reference: Profile of the reference model; empty where it is as large as the policy.
        recompute: What backward computes again.
        offload: What of the trainer lives on the host while engines generate: optimizer states, weights too.
        micro_batch_tokens: Tokens of a micro-batch of a replica; None where nobody says. [token]
        forward_micro_batch_tokens: The same of passes without backward. [token]
        lora: Whether adapters alone are trained.
        megatron: Whether the trainer shards optimizer states only (Megatron), in place of everything (FSDP).
        engine: The engine.
        graphs: Whether decode steps are CUDA graphs.
        synced: Whether engines keep weights of their own: not where the trainer's modules generate.
        unsure: Standard deviation of the step's logarithm that what was assumed brings. [1]
    """

    placement: Placement
    loop: Loop
    rollout_gpus: int
    trainer_gpus: int
    rollout: Layout = field(default_factory=Layout)
    trainer: Layout = field(default_factory=Layout)
    samples: float
    group_size: float
    prompt_tokens: float
    response_tokens: float
    max_tokens: float | None = None
    train_batch: float | None = None
    trained_samples: float | None = None
    max_staleness: float = 0.0
    rollout_dtype: str = "bf16"
    train_dtype: str = "bf16"
    memory_fraction: float | None = None
    passes: tuple[str, ...] = ()
    reference: str = ""
    recompute: str = "full"
    offload: tuple[str, ...] = ()
    micro_batch_tokens: float | None = None
    forward_micro_batch_tokens: float | None = None
    lora: bool = False
    megatron: bool = True
    engine: str = "vllm"
    graphs: bool = True
    synced: bool = True
    unsure: float = 0.0
