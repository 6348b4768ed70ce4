"""A published weight update from trainer to rollout."""

from __future__ import annotations

from dataclasses import dataclass

from rlsize.facts.records.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRecord(Record):
    """
    One weight update.

    Args:
        transport: Class of its transport.
        method: What the publication calls it.
        dtype: Number type on the wire.
        trainer_gpus: GPUs that hold the trainer's shards. [1]
        rollout_gpus: GPUs of the fleet. [1]
        instance_gpus: GPUs of one rollout instance. [1]
        bucket_bytes: Bytes sent at once. [B]
        converted: Whether weights are quantised on the way; None where the transport and the type decide.
    """

    transport: str
    method: str = ""
    dtype: str = "bf16"
    trainer_gpus: int = 8
    rollout_gpus: int = 8
    instance_gpus: int = 1
    bucket_bytes: float = 1e9
    converted: bool | None = None
