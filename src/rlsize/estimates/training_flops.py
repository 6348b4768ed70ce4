"""FLOPs of training a model on sequences of given lengths: matrices, causal attention, and what a counter would say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import matching, parameters, training_flops
from rlsize.estimates.figures import apply, total
from rlsize.estimates.model_size import attending_layers, model_size, stated
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.estimates.model_size import Stated
    from rlsize.facts.model import Architecture, Model

FORWARD_AND_BACKWARD = 3  # forward passes that both are worth: backward has two products for each one of forward


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFlops:
    """
    Work of forward and backward per token, nothing computed twice.

    Args:
        flops_per_token: In weight matrices: all but attention scores. [FLOP/token]
        attention_flops_per_token: In attention scores, causal and within windows. [FLOP/token]
        counted_flops_per_token: Of both, as torch's FlopCounterMode counts attention that is made of matrix products:
            masks save nothing there, so each sequence is a full square. [FLOP/token]
        notes: What of the model is in none of them.
    """

    flops_per_token: Figure
    attention_flops_per_token: Figure
    counted_flops_per_token: Figure
    notes: tuple[str, ...] = ()


def training_flops_per_token(model: Model, lengths: Sequence[int]) -> TrainingFlops:
    """
    Work of training on one token of a step.

    Args:
        model: Its profile.
        lengths: Tokens of each sequence of the step, prompt and response. [token]

    Returns:
        FLOPs per token, each figure with the equation and the numbers behind it.
    """
    matrices = apply("flops_per_token", matching.training_flops_per_token, active_params=_matmul_params(model))
    squares = _attention("attention_square_flops_per_token", model, lengths, causal=False)
    return TrainingFlops(
        flops_per_token=matrices,
        attention_flops_per_token=_attention("attention_flops_per_token", model, lengths, causal=True),
        counted_flops_per_token=total("counted_flops_per_token", [matrices, squares]),
        notes=tuple(_left_out(model.architecture)),
    )


def _matmul_params(model: Model) -> Figure:
    active = model_size(model).active_params
    vectors = total("vector_params", list(_vectors(model)))
    return apply("matmul_params", training_flops.matmul_params, active_params=active, vector_params=vectors)


def _vectors(model: Model) -> Iterator[Figure]:
    """Norms and biases that `model_parts` counts as active, kind by kind."""
    says, shape = stated(model), model.architecture
    norms = {"norms": shape.layers * shape.norms_per_layer + 1, "vectors_per_norm": 2 if shape.norm_bias else 1}
    yield says.apply("norm_params", parameters.norm_params, hidden_size=shape.hidden_size, **norms)
    for key, layers, size in (*_attention_vectors(shape, says), *_feeder_vectors(shape, says)):
        yield says.apply(key, parameters.stacked_params, layers=layers, layer_params=size)


def _attention_vectors(shape: Architecture, says: Stated) -> Iterator[tuple[str, int, Figure]]:
    attention, latent = shape.attention, shape.latent_attention
    if attention:
        layers = attention.layers + (shape.sliding.layers if shape.sliding else 0)
        heads = {"heads": attention.heads, "kv_heads": attention.kv_heads, "head_dim": attention.head_dim}
        if attention.qkv_bias:
            yield "qkv_bias_params", layers, says.apply("layer_params", parameters.qkv_bias_params, **heads)
        if attention.output_bias:
            yield "output_bias_params", layers, says.figure("layer_params", shape.hidden_size)
        if attention.qk_norm != "none":
            queries, keys = (attention.heads, attention.kv_heads) if attention.qk_norm == "full" else (1, 1)
            widths = {"query_width": queries * attention.head_dim, "key_width": keys * attention.head_dim}
            yield "qk_norm_params", layers, says.apply("layer_params", parameters.qk_norm_params, **widths)
        if attention.sinks:
            yield "sink_params", layers, says.figure("layer_params", attention.heads)
    if latent:
        compressed = latent.q_lora_rank + latent.kv_lora_rank  # each has a norm
        yield "latent_norm_params", latent.layers, says.figure("layer_params", compressed)


def _feeder_vectors(shape: Architecture, says: Stated) -> Iterator[tuple[str, int, Figure]]:
    dense, moe = shape.feed_forward, shape.moe
    if dense and dense.bias:
        sizes = {"intermediate_size": dense.intermediate_size, "matrices": dense.matrices}
        bias = says.apply("layer_params", parameters.mlp_bias_params, hidden_size=shape.hidden_size, **sizes)
        yield "mlp_bias_params", dense.layers, bias
    if moe and moe.expert_bias:
        sizes = {"intermediate_size": moe.intermediate_size, "matrices": moe.matrices}
        bias = says.apply("layer_params", parameters.mlp_bias_params, hidden_size=shape.hidden_size, **sizes)
        yield "expert_bias_params", moe.layers * moe.experts_per_token, bias
    if moe and moe.router_bias:
        yield "router_bias_params", moe.layers, says.figure("layer_params", moe.experts)


def _attention(key: str, model: Model, lengths: Sequence[int], *, causal: bool) -> Figure:
    says = stated(model)
    found = []
    for kind in attending_layers(model.architecture):
        flops = says.apply(
            f"{kind.name}_{key}",
            training_flops.attention_flops_per_token,
            keys_per_query=_keys_per_query(lengths, kind.window if causal else 0, causal=causal),
            passes=Figure(key="passes", value=FORWARD_AND_BACKWARD, provenance="default", source="forward, backward"),
            layers=kind.layers,
            heads=kind.heads,
            query_key_dim=kind.query_key_dim,
            value_dim=kind.value_dim,
        )
        found.append(flops)
    return replace(found[0], key=key) if len(found) == 1 else total(key, found)


def _keys_per_query(lengths: Sequence[int], window: int, *, causal: bool) -> Figure:
    if causal:
        pairs = sum(training_flops.causal_pairs(length, window or length) for length in lengths)
    else:
        pairs = sum(training_flops.square_pairs(length) for length in lengths)
    source = f"summed over {len(lengths)} sequences"
    return apply(
        "keys_per_query",
        training_flops.keys_per_query,
        pairs=Figure(key="pairs", value=pairs, provenance="given", source=source),
        tokens=Figure(key="tokens", value=sum(lengths), provenance="given", source=source),
    )


def _left_out(shape: Architecture) -> Iterator[str]:
    if shape.linear_attention:
        yield "the recurrence of linear-attention layers is in no attention FLOPs; their projections are counted"
    if shape.mamba:
        yield "the recurrence of Mamba layers is in no attention FLOPs; their projections are counted"
    if shape.latent_attention and shape.latent_attention.index_heads:
        yield "the scores of the sparse-attention indexer are in no attention FLOPs; its projections are counted"
