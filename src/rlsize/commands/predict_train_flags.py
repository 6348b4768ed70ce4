"""What the flags of `rlsize predict train` say, by topic; text as it was typed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the flags say about a step's tokens; None where one was not given."""

    prompts: str | None = None
    group: str | None = None
    samples: str | None = None
    prompt_tokens: str | None = None
    response_tokens: str | None = None
    response_cv: str | None = None
    updates: str | None = None
    mini_batches: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """What the flags say about how the trainer works; None where one was not given."""

    virtual_stages: str | None = None
    micro_batch_tokens: str | None = None
    recompute: str | None = None
    optimizer: str | None = None
    gradients: str | None = None
    offload: bool = False
    dtype: str | None = None
    fp8_scaling: str | None = None
    compiled: bool = False
    overlapped: bool = False
    native_attention: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What the flags say about the models beside the policy; None where one was not given."""

    algorithm: str | None = None
    old_logprob: bool | None = None
    reference: bool | None = None
    critic: bool | None = None
    reward_model: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutFlags:
    """What the flags say about the trainer's parallelism; None where one was not given."""

    fsdp: str | None = None
    zero: str | None = None
    data: str | None = None
    tensor: str | None = None
    pipeline: str | None = None
    context: str | None = None
    expert: str | None = None
    gpus: str | None = None
