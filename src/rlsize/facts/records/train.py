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
        row_scaling: Whether fp8 has a scale for each row.
        recompute: none, selective, alternate or full.
        sequences: Sequences of the step. [1]
        tokens: Tokens of a sequence. [token]
        micro_batch_tokens: Tokens of a micro-batch of one replica. [token]
        fused: Whether element-wise work is compiled or fused.
        overlapped: Whether tensor-parallel transfers overlap with matrix products.
        native_attention: Whether attention kernels are made for this generation of GPU.
        workload: pretraining or rl.
    """

    layout: Layout = field(default_factory=Layout)
    shards: int = 0
    sharding: Literal["full", "gradients", "optimizer", "none"] = "full"
    virtual_stages: int = 1
    dtype: str = "bf16"
    row_scaling: bool = False
    recompute: str = "full"
    sequences: float
    tokens: float
    micro_batch_tokens: float
    fused: bool = False
    overlapped: bool = False
    native_attention: bool = False
    workload: Literal["pretraining", "rl"] = "pretraining"
