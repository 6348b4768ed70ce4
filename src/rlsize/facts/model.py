"""
A model: the shape of its layers, what its authors say about its size, and what the program computed from the shape.

Dimensions come in one piece from one document, so a block names its source once instead of once per number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

from rlsize.facts.fields import (
    Quantity,
    Says,
    Sourced,
)
from rlsize.facts.kinds import COUNT, COUNT_OR_NONE, PARAMS, WHOLE_BYTES, WHOLE_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

QkNorm = Literal["none", "head", "full"]
LinearKind = Literal["gated_deltanet", "lightning", "kda", "short_conv"]

Sharing = Annotated[int, COUNT_OR_NONE.saying("Of the layers, those that read the cache of another.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Attention with a key and a value per KV head: MHA, GQA or MQA. Sliding layers are alike but for what they say."""

    layers: Annotated[int, COUNT_OR_NONE.saying("Layers that attend to the whole context.")]
    heads: Annotated[int, COUNT.saying("Query heads.")]
    kv_heads: Annotated[int, COUNT.saying("Key and value heads.")]
    head_dim: Annotated[int, COUNT.saying("Width of one head.")]
    qkv_bias: Annotated[bool, Says("Whether the query, key and value projections have a bias.")] = False
    output_bias: Annotated[bool, Says("Whether the output projection has a bias.")] = False
    qk_norm: Annotated[
        QkNorm, Says("Norm of queries and keys: none, over each head, or over all heads together (full).")
    ] = "none"
    output_gate: Annotated[bool, Says("Whether a projection of the input gates the output.")] = False
    sinks: Annotated[bool, Says("Whether each head learns an attention sink.")] = False
    kv_projections: Annotated[
        int,
        Quantity(
            "count",
            "Projections to keys and values: 2, 1 where keys are values, 0 where the cache of another layer is read.",
            least=0,
            most=2,
            whole=True,
        ),
    ] = 2
    sharing: Sharing = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (MLA); with an indexer, DeepSeek sparse attention (DSA)."""

    layers: Annotated[int, COUNT.saying("Layers of this kind.")]
    heads: Annotated[int, COUNT.saying("Query heads.")]
    q_lora_rank: Annotated[int, COUNT_OR_NONE.saying("Width of the compressed query; 0 where it is not compressed.")]
    kv_lora_rank: Annotated[int, COUNT.saying("Width of the compressed key and value.")]
    qk_nope_head_dim: Annotated[int, COUNT.saying("Width of a head's query without position.")]
    qk_rope_head_dim: Annotated[int, COUNT.saying("Width of a head's query with rotary position.")]
    v_head_dim: Annotated[int, COUNT.saying("Width of a head's value.")]
    index_heads: Annotated[int, COUNT_OR_NONE.saying("Heads of the indexer; 0 without one.")] = 0
    index_head_dim: Annotated[int, COUNT_OR_NONE.saying("Width of an indexer head.")] = 0
    index_topk: Annotated[int, Quantity("token", "Tokens that the indexer lets through.", least=0, whole=True)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliding:
    """Layers that attend to the last tokens only."""

    layers: Annotated[int, COUNT.saying("Layers of this kind.")]
    window: Annotated[int, WHOLE_TOKENS.saying("Tokens that such a layer sees and keeps.")]
    kv_heads: Annotated[int, COUNT_OR_NONE.saying("Key and value heads; 0 where they have those of full layers.")] = 0
    head_dim: Annotated[int, COUNT_OR_NONE.saying("Width of one head; 0 where it is that of full layers.")] = 0
    sharing: Sharing = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Layers with a state of constant size in place of a KV cache."""

    layers: Annotated[int, COUNT.saying("Layers of this kind.")]
    kind: Annotated[LinearKind, Says("The recurrence.")]
    key_heads: Annotated[int, COUNT.saying("Query and key heads.")]
    value_heads: Annotated[int, COUNT.saying("Value heads.")]
    key_head_dim: Annotated[int, COUNT.saying("Width of a key head.")]
    value_head_dim: Annotated[int, COUNT.saying("Width of a value head.")]
    conv_kernel: Annotated[int, COUNT_OR_NONE.saying("Taps of the short convolution; 0 without.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba:
    """Mamba-2 layers."""

    layers: Annotated[int, COUNT.saying("Layers of this kind.")]
    heads: Annotated[int, COUNT.saying("Heads.")]
    head_dim: Annotated[int, COUNT.saying("Width of one head.")]
    state_size: Annotated[int, COUNT.saying("State entries per channel.")]
    groups: Annotated[int, COUNT.saying("Groups that share input and output matrices.")]
    conv_kernel: Annotated[int, COUNT.saying("Taps of the short convolution.")]
    conv_bias: Annotated[bool, Says("Whether the convolution has a bias.")] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """Dense MLP layers."""

    layers: Annotated[int, COUNT.saying("Layers of this kind.")]
    intermediate_size: Annotated[int, COUNT.saying("Width inside the MLP.")]
    matrices: Annotated[
        int, Quantity("count", "Weight matrices: 3 if gated, 2 if not.", least=2, most=3, whole=True)
    ] = 3
    bias: Annotated[bool, Says("Whether each matrix has a bias.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe:
    """Mixture-of-experts layers."""

    layers: Annotated[int, COUNT.saying("Layers of this kind.")]
    experts: Annotated[int, COUNT.saying("Routed experts per layer.")]
    experts_per_token: Annotated[int, COUNT.saying("Routed experts that work on each token (top-k).")]
    intermediate_size: Annotated[int, COUNT.saying("Width inside a routed expert.")]
    shared_experts: Annotated[int, COUNT_OR_NONE.saying("Experts that work on every token; 0 without.")] = 0
    shared_intermediate_size: Annotated[int, COUNT_OR_NONE.saying("Width inside a shared expert; 0 without.")] = 0
    shared_gate: Annotated[bool, Says("Whether a learned gate scales the shared expert.")] = False
    matrices: Annotated[
        int, Quantity("count", "Weight matrices: 3 if gated, 2 if not.", least=2, most=3, whole=True)
    ] = 3
    expert_bias: Annotated[bool, Says("Whether each matrix of a routed expert has a bias.")] = False
    router_bias: Annotated[bool, Says("Whether the router has a bias, or a correction, per expert.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """
    The shape of a model, as far as it decides parameters, cache and work.

    Multi-token-prediction layers and vision towers are not part of it; the profile's notes say where a model has them.
    """

    source: Annotated[str, Says("The key of `sources` that names the document with these dimensions.")]
    verified: Annotated[bool, Says("False where no stored copy of that document was read.")] = True
    layers: Annotated[int, COUNT.saying("Blocks of the stack.")]
    hidden_size: Annotated[int, COUNT.saying("Width of the residual stream.")]
    vocab_size: Annotated[int, COUNT.saying("Rows of the embedding, padding included.")]
    tied_embeddings: Annotated[bool, Says("Whether the output head is the input embedding.")]
    max_context: Annotated[int, WHOLE_TOKENS.saying("Longest sequence that the model is made for.")]
    norms_per_layer: Annotated[int, COUNT_OR_NONE.saying("Norms of a block.")] = 2
    norm_bias: Annotated[bool, Says("Whether norms have a bias (LayerNorm).")] = False
    layer_embedding_size: Annotated[
        int, COUNT_OR_NONE.saying("Width of the embedding that each layer has of its own; 0 without.")
    ] = 0
    attention: Annotated[Attention | None, Says("Attention with a key and a value per KV head.")] = None
    latent_attention: Annotated[LatentAttention | None, Says("Multi-head latent attention.")] = None
    sliding: Annotated[Sliding | None, Says("Layers that attend to the last tokens only.")] = None
    linear_attention: Annotated[LinearAttention | None, Says("Linear-attention layers.")] = None
    mamba: Annotated[Mamba | None, Says("Mamba-2 layers.")] = None
    feed_forward: Annotated[FeedForward | None, Says("Dense MLP layers.")] = None
    moe: Annotated[Moe | None, Says("Mixture-of-experts layers.")] = None

    @property
    def windowed(self) -> Attention | None:
        """Attention of the sliding layers; None without any."""
        own, full = self.sliding, self.attention
        if own is None or full is None:
            return None
        if not (own.kv_heads or own.head_dim):
            return replace(full, layers=own.layers, sharing=own.sharing)
        return replace(
            full,
            layers=own.layers,
            kv_heads=own.kv_heads or full.kv_heads,
            head_dim=own.head_dim or full.head_dim,
            kv_projections=2,
            sharing=own.sharing,
        )

    @property
    def attentions(self) -> dict[str, Attention]:
        """Attention by shape: all layers together where those that slide are as the others; what shares apart."""
        full, sliding = self.attention, self.windowed
        if full is None:
            return {}
        if sliding is not None and sliding == replace(full, layers=sliding.layers):
            return {"attention": replace(full, layers=full.layers + sliding.layers)}
        found = {}
        for name, one in (("attention", full), ("sliding_attention", sliding)):
            if one is not None:
                found[name] = replace(one, layers=one.layers - one.sharing, sharing=0)
                if one.sharing:
                    found[f"sharing_{name}"] = replace(one, layers=one.sharing, kv_projections=0)
        return found

    def __post_init__(self) -> None:
        contradictions = list(_contradictions(self))
        if contradictions:
            raise ValueError("; ".join(contradictions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """What the program worked out from the architecture, never typed by hand; caches are in bf16."""

    params: Annotated[int, Quantity("param", "Parameters in total.", whole=True)]
    active_params: Annotated[
        int,
        Quantity(
            "param", "Parameters that work on each token; the input embedding only where it is the head.", whole=True
        ),
    ]
    kv_bytes_per_token: Annotated[
        int, WHOLE_BYTES.saying("KV cache per token, layers that attend to the whole context.")
    ]
    index_bytes_per_token: Annotated[int, WHOLE_BYTES.saying("Indexer keys per token.")] = 0
    sliding_cap_bytes: Annotated[
        int, WHOLE_BYTES.saying("KV cache of the sliding layers, per sequence at least as long as the window.")
    ] = 0
    recurrent_state_bytes: Annotated[
        int, WHOLE_BYTES.saying("State of linear-attention and Mamba layers per sequence, in fp32.")
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model profile."""

    name: Annotated[str, Says("Name of the profile, and of its file.")]
    title: Annotated[str, Says("Full name, for tables.")]
    hf_repo: Annotated[str, Says("Repository on Hugging Face, where there is one.")] = ""
    aliases: Annotated[tuple[str, ...], Says("Other names that people type.")] = ()
    family: Annotated[str, Says("Hugging Face model_type of the language model.")]
    architecture: Annotated[Architecture, Says("The shape of its layers.")]
    published_params: Annotated[Sourced | None, PARAMS.saying("Parameters in total, as its authors state them.")] = None
    published_active_params: Annotated[
        Sourced | None, PARAMS.saying("Active parameters, as its authors state them.")
    ] = None
    computed: Annotated[Computed | None, Says("What the program computed from the architecture.")] = None
    sources: Annotated[dict[str, str], Says("The documents, by the key that numbers name.")] = field(
        default_factory=dict
    )
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()

    def __post_init__(self) -> None:
        if self.architecture.source not in self.sources:
            raise ValueError(f"the architecture names the source {self.architecture.source!r}, which sources lacks")


def attending_layers(architecture: Architecture) -> int:
    """Layers that keep keys and values of any kind: full, sliding or latent."""
    blocks = (architecture.attention, architecture.sliding, architecture.latent_attention)
    return sum(block.layers for block in blocks if block)


def _contradictions(shape: Architecture) -> Iterator[str]:
    attention, moe = shape.attention, shape.moe
    if attention and shape.latent_attention:
        yield "attention and latent_attention exclude each other"
    if shape.sliding and not attention:
        yield "sliding layers need attention, which has the shape of their heads"
    if attention and not shape.sliding and not attention.layers:
        yield "attention has no layers"
    uneven = (one for one in shape.attentions.values() if one.heads % one.kv_heads)
    yield from (f"{one.heads} heads cannot share {one.kv_heads} kv_heads evenly" for one in uneven)
    if moe and moe.experts_per_token > moe.experts:
        yield f"{moe.experts_per_token} experts_per_token are more than {moe.experts} experts"
    if moe and bool(moe.shared_experts) != bool(moe.shared_intermediate_size):
        yield "shared_experts and shared_intermediate_size go together"
    mixing = attending_layers(shape) + sum(block.layers for block in (shape.linear_attention, shape.mamba) if block)
    if not mixing:
        yield "there is no attention, linear_attention or mamba"
    feeding = sum(block.layers for block in (shape.feed_forward, shape.moe) if block)
    if not (mixing == feeding == shape.layers or mixing + feeding == shape.layers):
        yield (
            f"{shape.layers} layers do not agree with {mixing} attention, linear-attention and mamba layers "
            f"and {feeding} feed_forward and moe layers: either both are {shape.layers}, or together they are"
        )
