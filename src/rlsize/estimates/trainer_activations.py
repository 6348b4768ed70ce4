"""Activations and logits of the trainer at the peak of a backward pass, on each GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import activations, memory_fit
from rlsize.estimates.working import apply
from rlsize.facts.algorithm import BYTES_PER_LOGIT, GATED_MLP_COPIES_OUTSIDE, RECOMPUTATIONS
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.estimates.memory_shape import MemoryShape
    from rlsize.estimates.sharding import Layout
    from rlsize.facts.algorithm import Recomputation

_SOURCE = "stas00/ml-engineering, training memory"


def peak_activations(
    shape: MemoryShape, layout: Layout, micro_batch_tokens: Figure, recompute: Recomputation
) -> tuple[Figure, Figure]:
    """
    Activations and logits on the GPU that holds most of both.

    Without a pipeline every GPU has all layers and the logits. In a pipeline the first stage keeps as many micro
    batches as there are stages, so as much as all layers of one; the last stage keeps one micro batch, and the logits.

    Args:
        shape: The model's layers.
        layout: How the trainer is spread.
        micro_batch_tokens: Tokens of one forward and backward pass of a data-parallel rank. [token]
        recompute: What is thrown away and computed again.

    Returns:
        Activations and logits. [B]
    """
    tokens = _tokens_per_gpu(micro_batch_tokens, layout)
    logits = apply(
        "logits_bytes_per_gpu",
        activations.logits_bytes,
        tokens=tokens,
        vocab_size=shape.vocab_size,
        bytes_per_logit=_assumed("bytes_per_logit", BYTES_PER_LOGIT),
        tensor_parallel=layout.tensor_parallel,
    )
    first = _stack(shape, shape.layers, layout, tokens, recompute)
    stages = layout.pipeline_parallel
    if stages.number == 1 or not (first.known and logits.known):
        return first, logits
    layers = apply("stage_layers", memory_fit.layers_per_stage, layers=shape.layers, pipeline_parallel=stages)
    last = _stack(shape, layers, layout, tokens, recompute)
    if first.number >= last.number + logits.number:
        source = "on the last stage, which holds less"
        return first, Figure(key=logits.key, value=0.0, provenance="predicted", source=source)
    return last, logits


def _assumed(key: str, value: float) -> Figure:
    return Figure(key=key, value=value, provenance="default", source=_SOURCE)


def _tokens_per_gpu(tokens: Figure, layout: Layout) -> Figure:
    """Context parallelism deals out the tokens of a micro batch."""
    ranks = layout.context_parallel
    if not tokens.known or ranks.number == 1:
        return tokens
    shared = activations.tokens_per_context_rank
    return apply("rank_tokens", shared, micro_batch_tokens=tokens, context_parallel=ranks)


def _stack(shape: MemoryShape, layers: Figure, layout: Layout, tokens: Figure, recompute: Recomputation) -> Figure:
    """Activations of so many layers."""
    full = _layer(shape, layout, tokens, RECOMPUTATIONS["none"])
    kept = _layer(shape, layout, tokens, recompute) if recompute.recomputed else full
    nothing = Figure(key="working_bytes", value=0, provenance="default", source="nothing is recomputed")
    return apply(
        "activation_bytes_per_gpu",
        activations.activation_bytes,
        layers=layers,
        bytes_per_layer=kept,
        working_bytes=full if recompute.recomputed else nothing,
    )


def _layer(shape: MemoryShape, layout: Layout, tokens: Figure, recompute: Recomputation) -> Figure:
    """Bytes that a layer keeps; with flash attention, which keeps no scores, and sequence parallelism beside tensor."""
    replicated = Figure(
        key="replicated_copies", value=recompute.replicated_copies, provenance="default", source=recompute.source
    )
    if recompute.recomputed:
        sharded = Figure(key="sharded_copies", value=0, provenance="default", source=recompute.source)
    else:
        sharded = _sharded_copies(shape, replicated)
    return apply(
        "layer_bytes",
        activations.activation_bytes_per_layer,
        tokens=tokens,
        hidden_size=shape.hidden_size,
        bytes_per_activation=Figure(key="bytes_per_activation", value=2, provenance="default", source="bf16"),
        replicated_copies=replicated,
        sequence_parallel=layout.tensor_parallel,
        sharded_copies=sharded,
        tensor_parallel=layout.tensor_parallel,
    )


def _sharded_copies(shape: MemoryShape, replicated: Figure) -> Figure:
    """Copies of a gated layer beyond those that tensor parallelism alone leaves whole."""
    copies = apply(
        "hidden_copies",
        activations.gated_mlp_hidden_copies,
        attention_copies=_assumed("attention_copies", GATED_MLP_COPIES_OUTSIDE),
        intermediate_size=shape.mlp_width,
        hidden_size=shape.hidden_size,
    )
    return apply(
        "sharded_copies", activations.sharded_hidden_copies, hidden_copies=copies, replicated_copies=replicated
    )
