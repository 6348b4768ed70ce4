"""Published rates of inference engines: closed loops at fixed concurrency, and offline runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlsize.facts.quantisation import WeightTypes
from rlsize.facts.records.record import Layout, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRecord(Record):
    """
    One measured rate of one replica.

    Args:
        layout: How the replica is spread.
        laid_out: Whether the record says so; where it does not, the GPUs are dealt out to replicas that have room.
        weights: Number types of its weights.
        kv_dtype: Number type of its cache.
        prompt_tokens: Prompt length. [token]
        response_tokens: Response length. [token]
        concurrency: Requests in the system, for a closed loop; None for an offline run. [1]
        requests: Requests of an offline run; None where unknown. [1]
        served: Whether requests came through a server.
        experts: Whether the model is a mixture of experts, whose rates scatter more.
        unseen: Whether no record of its kind stands behind the constants; None where the shipped ones are asked.
    """

    layout: Layout = field(default_factory=Layout)
    laid_out: bool = True
    weights: WeightTypes = field(default_factory=WeightTypes)
    kv_dtype: str = "bf16"
    prompt_tokens: float
    response_tokens: float
    concurrency: float | None = None
    requests: float | None = None
    served: bool = False
    experts: bool = False
    unseen: bool | None = None
