"""A published memory reading: an engine at start-up, or the peak of a training pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rlsize.facts.records.record import Layout, Record

if TYPE_CHECKING:
    from rlsize.facts.quantisation import WeightTypes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord(Record):
    """
    One reading.

    Args:
        kind: engine (start-up of an inference engine) or training (peak of a pass).
        layout: How the model is spread.
        weights: Number types of an engine's weights; as published where None.
        kv_dtype: Number type of its cache.
        memory_fraction: Share of the memory that it plans with; its default where 0. [1]
        batched_tokens: Most tokens of its step; its default where 0. [token]
        max_sequences: Most sequences of its step; its default where 0. [1]
        sequence_tokens: Longest sequence that it is started for; the model's where 0. [token]
        graphs_counted: Whether it takes CUDA graphs off before it sizes the cache.
        windows_whole: Whether its sliding layers keep every token.
        sequences: Sequences of a training pass on a data-parallel rank. [1]
        trained_tokens: Tokens of such a sequence. [token]
        recompute: none, selective or full.
        widths: Bytes per parameter of weights, gradients, optimizer state, and of gathered weights. [B/param]
        traits: What else a training pass does: compiled, chunked_loss, activations_offloaded, state_offloaded,
            gradients_held, gathered_whole.
    """

    kind: Literal["engine", "training"] = "engine"
    layout: Layout = field(default_factory=Layout)
    weights: WeightTypes | None = None
    kv_dtype: str = "bf16"
    memory_fraction: float = 0.0
    batched_tokens: float = 0.0
    max_sequences: float = 0.0
    sequence_tokens: float = 0.0
    graphs_counted: bool = False
    windows_whole: bool = False
    sequences: float = 1.0
    trained_tokens: float = 0.0
    recompute: Literal["none", "selective", "full"] = "full"
    widths: tuple[float, float, float, float] = (2.0, 2.0, 12.0, 2.0)
    traits: frozenset[str] = frozenset()
