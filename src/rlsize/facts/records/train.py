"""A published throughput, or time, of a training step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rlsize.facts.records.record import Layout, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRecord(Record):
    """
    One measured training setup.

    Args:
        layout: Degrees of parallelism of a model replica; its data ranks are what the GPUs leave.
        shards: Ranks over which weights or states are sharded; 0: all data and context ranks. [1]
        sharding: full (ZeRO-3, FSDP), gradients (ZeRO-2), optimizer (ZeRO-1) or none.
        virtual_stages: Chunks of layers of each pipeline stage. [1]
        dtype: Number type of linear layers.
        scaling: What has a scale of its own in fp8: tensor, block or row.
        recompute: none, selective, alternate or full.
        sequences: Sequences of the step. [1]
        tokens: Tokens of a sequence. [token]
        micro_batch_tokens: Tokens of a micro-batch of one replica. [token]
        fused: Whether element-wise work is compiled or fused.
        overlapped: Whether tensor-parallel transfers overlap with matrix products.
        native_attention: Whether attention kernels are made for this generation of GPU.
        early_attention: Whether they are older than FlashAttention-2.
        dropping: Whether experts drop tokens beyond a capacity.
        offload: Whether optimizer states live on the host.
        lora_rank: Rank of adapters that alone are trained; 0 for full training. [1]
        activation_offload: Whether what the layers keep goes to the host.
        workload: pretraining or rl.
    """

    layout: Layout = field(default_factory=Layout)
    shards: int = 0
    sharding: Literal["full", "gradients", "optimizer", "none"] = "full"
    virtual_stages: int = 1
    dtype: str = "bf16"
    scaling: str = "tensor"
    recompute: str = "full"
    sequences: float
    tokens: float
    micro_batch_tokens: float
    fused: bool = False
    overlapped: bool = False
    native_attention: bool = False
    early_attention: bool = False
    dropping: bool = False
    offload: bool = False
    activation_offload: bool = False
    lora_rank: int = 0
    workload: Literal["pretraining", "rl"] = "pretraining"
