"""FLOPs of training a model on sequences of given lengths: matrices, causal attention, and what a counter would say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import matching, training_flops
from rlsize.estimates.figures import apply, total
from rlsize.estimates.model_size import attending_layers, model_parts, model_size, stated
from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.facts.model import Architecture, Model

FORWARD_AND_BACKWARD = 3  # forward passes that both are worth: backward has two products for each one of forward


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFlops:
    """
    Work of forward and backward per token, nothing computed twice.

    Args:
        flops_per_token: In weight matrices: all but attention scores. [FLOP/token]
        attention_flops_per_token: In attention scores, causal and within windows. [FLOP/token]
        notes: What of the model is in none of them.
    """

    flops_per_token: Figure
    attention_flops_per_token: Figure
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
    vectors = [replace(part.vector_params, key=part.name) for part in model_parts(model)]
    matrices = apply(
        "flops_per_token",
        matching.training_flops_per_token,
        active_params=apply(
            "matmul_params",
            training_flops.matmul_params,
            active_params=model_size(model).active_params,
            vector_params=total("vector_params", vectors),
        ),
    )
    return TrainingFlops(
        flops_per_token=matrices,
        attention_flops_per_token=_attention(model, lengths),
        notes=tuple(_left_out(model.architecture)),
    )


def _attention(model: Model, lengths: Sequence[int]) -> Figure:
    says, key = stated(model), "attention_flops_per_token"
    found = []
    for kind in attending_layers(model.architecture):
        flops = says.apply(
            f"{kind.name}_{key}",
            training_flops.attention_flops_per_token,
            kind,
            keys_per_query=_keys_per_query(lengths, kind.window),
            passes=Figure(key="passes", value=FORWARD_AND_BACKWARD, provenance="default", source="forward, backward"),
        )
        found.append(flops)
    return replace(found[0], key=key) if len(found) == 1 else total(key, found)


def _keys_per_query(lengths: Sequence[int], window: int) -> Figure:
    pairs = sum(training_flops.causal_pairs(length, window or length) for length in lengths)
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
