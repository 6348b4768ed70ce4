"""
What a model weighs: parameters in total and per token, part by part, and the cache that its layers keep.

Counts are exact for the architecture as the profile gives it. Multi-token-prediction layers and vision towers are not
counted: engines and RL trainers do without them, unless told otherwise.
"""

from __future__ import annotations

from dataclasses import fields, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from rlsize.equations import kv_cache, mixture_of_experts, parameters, recurrent
from rlsize.estimates.figures import apply, total
from rlsize.estimates.remembered import remembered
from rlsize.facts.figure import Figure
from rlsize.facts.model import Computed
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rlsize.equations._ops import Real
    from rlsize.facts.model import Architecture, Attention, LinearAttention, Model, Moe

BF16_BYTES = 2.0
FP32_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart:
    """
    One kind of weights, over all layers that have it.

    Args:
        name: What it is.
        params: All its parameters.
        active_params: Those that work on each token.
        vector_params: Of these, norms and biases, which no matrix product is made of.
    """

    name: str
    params: Figure
    active_params: Figure
    vector_params: Figure


@dataclass(frozen=True, slots=True)
class Stated:
    """
    Numbers of one architecture as figures that name their profile and its source.

    Args:
        source: The profile and the document behind it.
        verified: False where nobody has read that document.
    """

    source: str
    verified: bool

    def figure(self, key: str, value: float) -> Figure:
        """One number of the architecture."""
        return Figure(key=key, value=value, source=self.source, verified=self.verified)

    def apply(self, key: str, equation: Callable[..., Any], /, *blocks: object, **inputs: Figure | float) -> Figure:
        """
        The result of an equation; plain numbers are numbers of the architecture.

        Args:
            key: The result's name.
            equation: A function of `rlsize.equations`.
            blocks: Parts of the architecture: the first that has a field of an input's name gives that input.
            inputs: The inputs that are no fields, or other than these.
        """
        names = list(signature(equation).parameters)
        held = {name: getattr(block, name) for name in names for block in reversed(blocks) if hasattr(block, name)}
        known = {**held, **inputs}
        named = {
            name: known[name] if isinstance(known[name], Figure) else self.figure(name, known[name])
            for name in sorted(known, key=names.index)
        }
        return apply(key, equation, **named)


def stated(model: Model) -> Stated:
    """How numbers of this model are quoted."""
    shape = model.architecture
    return Stated(f"model profile {model.name}: {model.sources[shape.source]}", shape.verified)


def model_parts(model: Model) -> tuple[ModelPart, ...]:
    """The parts of a model, from the input embedding to the norms; together they are all of it."""
    says, shape = stated(model), model.architecture
    return (*_embeddings(shape, says), *_mixers(shape, says), *_feeders(shape, says), _norms(shape, says))


def _embeddings(shape: Architecture, says: Stated) -> Iterator[ModelPart]:
    matrix = says.apply("embedding_params", parameters.embedding_params, shape)
    none = says.figure("vector_params", 0)
    idle = "a row is looked up, nothing is multiplied"
    looked_up = Figure(key="embedding_active_params", value=0, provenance="default", source=idle)
    if shape.layer_embedding_size:
        rows = says.apply("layer_embedding_params", parameters.layer_embedding_params, shape)
        yield ModelPart(name="layer_embedding", params=rows, active_params=looked_up, vector_params=none)
        taken = says.apply("layer_input_params", parameters.layer_input_params, shape)
        yield ModelPart(name="layer_inputs", params=taken, active_params=taken, vector_params=none)
    if shape.tied_embeddings:
        yield ModelPart(name="embedding", params=matrix, active_params=matrix, vector_params=none)
    else:
        yield ModelPart(name="embedding", params=matrix, active_params=looked_up, vector_params=none)
        yield ModelPart(name="output_head", params=matrix, active_params=matrix, vector_params=none)


def _mixers(shape: Architecture, says: Stated) -> Iterator[ModelPart]:
    latent, linear, mamba = shape.latent_attention, shape.linear_attention, shape.mamba
    for name, attention in shape.attentions.items():
        vectors = list(_attention_vectors(attention, shape, says))
        each = [says.apply("projection_params", parameters.attention_params, attention, shape), *vectors]
        if attention.output_gate:
            each.append(says.apply("output_gate_params", parameters.output_gate_params, attention, shape))
        yield _stack(name, attention.layers, says, each, vectors)
    if latent:
        each = [says.apply("latent_params", parameters.latent_attention_params, latent, shape)]
        if latent.index_heads:
            each.append(says.apply("indexer_params", parameters.indexer_params, latent, shape))
        norms = says.figure("latent_norm_params", latent.q_lora_rank + latent.kv_lora_rank)  # each has a norm
        yield _stack("latent_attention", latent.layers, says, each, [norms])
    if linear:
        one = _linear_params(linear, shape, says)
        yield _stack("linear_attention", linear.layers, says, [one])
    if mamba:
        one = says.apply("mamba_params", recurrent.mamba_params, mamba, shape, conv_biases=int(mamba.conv_bias))
        yield _stack("mamba", mamba.layers, says, [one])


def _linear_params(linear: LinearAttention, shape: Architecture, says: Stated) -> Figure:
    """Parameters of one layer with a state, by its recurrence."""
    if linear.kind == "gated_deltanet":
        return says.apply("gated_deltanet_params", recurrent.gated_deltanet_params, linear, shape)
    if linear.kind == "short_conv":
        return says.apply("short_convolution_params", recurrent.short_convolution_params, linear, shape)
    heads = {"heads": linear.value_heads, "head_dim": linear.value_head_dim}
    if linear.kind == "lightning":
        return says.apply("lightning_params", recurrent.lightning_attention_params, shape, **heads)
    return says.apply("delta_attention_params", recurrent.kimi_delta_attention_params, linear, shape, **heads)


def _attention_vectors(attention: Attention, shape: Architecture, says: Stated) -> Iterator[Figure]:
    """Biases, norms and sinks of an attention layer."""
    if attention.qkv_bias:
        yield says.apply("qkv_bias_params", parameters.qkv_bias_params, attention)
    if attention.output_bias:
        yield says.figure("output_bias_params", shape.hidden_size)
    if attention.qk_norm != "none":
        queries, keys = (attention.heads, attention.kv_heads) if attention.qk_norm == "full" else (1, 1)
        widths = {"query_width": queries * attention.head_dim, "key_width": keys * attention.head_dim}
        yield says.apply("qk_norm_params", parameters.qk_norm_params, **widths)
    if attention.sinks:
        yield says.figure("sink_params", attention.heads)


def _feeders(shape: Architecture, says: Stated) -> Iterator[ModelPart]:
    dense = shape.feed_forward
    if dense:
        weights = says.apply("mlp_params", parameters.mlp_params, dense, shape)
        bias = [says.apply("mlp_bias_params", parameters.mlp_bias_params, dense, shape)] if dense.bias else []
        yield _stack("feed_forward", dense.layers, says, [weights, *bias], bias)
    if shape.moe:
        yield _moe(shape.moe, shape, says)


def _norms(shape: Architecture, says: Stated) -> ModelPart:
    norms = says.apply(
        "norm_params",
        parameters.norm_params,
        shape,
        norms=shape.layers * shape.norms_per_layer + 1,  # and one before the output head
        vectors_per_norm=2 if shape.norm_bias else 1,
    )
    return ModelPart(name="norms", params=norms, active_params=norms, vector_params=norms)


def _stack(name: str, layers: int, says: Stated, each: list[Figure], vectors: Sequence[Figure] = ()) -> ModelPart:
    """Layers of one kind, from what each of them holds, and what of that is vectors."""
    stack, of_vectors = (
        says.apply(key, parameters.stacked_params, layers=layers, layer_params=total("layer_params", found))
        for key, found in ((f"{name}_params", each), (f"{name}_vector_params", vectors))
    )
    return ModelPart(name=name, params=stack, active_params=stack, vector_params=of_vectors)


def working_width(moe: Moe, says: Stated, *, routed: bool = True) -> Figure:
    """Inner width of the experts that work on a token, side by side as one MLP; the shared ones alone if not routed."""
    working = moe.experts_per_token if routed else 0
    return says.apply("working_width", mixture_of_experts.working_width, moe, experts_per_token=working)


def _moe(moe: Moe, shape: Architecture, says: Stated) -> ModelPart:
    expert = [says.apply("mlp_params", parameters.mlp_params, moe, shape)]
    if moe.expert_bias:
        expert.append(says.apply("mlp_bias_params", parameters.mlp_bias_params, moe, shape))
    always = []
    if moe.shared_experts:
        width = working_width(moe, says, routed=False)
        always = [says.apply("mlp_params", parameters.mlp_params, moe, shape, intermediate_size=width)]
    if moe.shared_gate:
        always.append(says.figure("shared_gate_params", shape.hidden_size))
    router = [says.apply("router_weight_params", mixture_of_experts.router_params, moe, shape)]
    if moe.router_bias:
        router.append(says.figure("router_bias_params", moe.experts))
    common = {
        "expert_params": total("expert_params", expert),
        "shared_params": total("shared_params", always) if always else says.figure("shared_params", 0),
        "router_params": total("router_params", router),
    }
    vectors = {
        "expert_params": total("expert_params", expert[1:]),
        "shared_params": says.figure("shared_params", 0),
        "router_params": total("router_params", router[1:]),
    }
    held, active = mixture_of_experts.moe_layer_params, mixture_of_experts.moe_layer_active_params
    kinds = (("moe", held, common), ("moe_active", active, common), ("moe_vector", active, vectors))
    layers = [
        says.apply(
            f"{name}_params",
            parameters.stacked_params,
            moe,
            layer_params=says.apply(name.replace("moe", "moe_layer") + "_params", equation, moe, **parts),
        )
        for name, equation, parts in kinds
    ]
    return ModelPart(name="moe", params=layers[0], active_params=layers[1], vector_params=layers[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """
    What a model weighs and keeps.

    Args:
        params: Parameters in total.
        active_params: Parameters that work on each token; the input embedding only where it is the output head.
        parts: The bill, part by part.
        kv_bytes_per_token: KV cache per token in layers that attend to the whole context.
        index_bytes_per_token: Indexer keys per token.
        sliding_bytes_per_token: KV cache per token in sliding layers, up to the window.
        window_tokens: Tokens that sliding layers keep; 0 without any.
        sliding_cap_bytes: KV cache of the sliding layers for a sequence that fills the window.
        recurrent_state_bytes: State of linear-attention and Mamba layers per sequence.
        convolution_state_bytes: Inputs that their short convolutions keep per sequence.
    """

    params: Figure
    active_params: Figure
    parts: tuple[ModelPart, ...]
    kv_bytes_per_token: Figure
    index_bytes_per_token: Figure
    sliding_bytes_per_token: Figure
    window_tokens: Figure
    sliding_cap_bytes: Figure
    recurrent_state_bytes: Figure
    convolution_state_bytes: Figure


@remembered
def model_size(model: Model, bytes_per_kv_value: float = BF16_BYTES) -> ModelSize:
    """
    Size of a model.

    Args:
        model: Its profile.
        bytes_per_kv_value: Width of a cached key or value. [B]

    Returns:
        Parameters and cache sizes, each figure with the equation and the numbers behind it.
    """
    says, shape, parts = stated(model), model.architecture, model_parts(model)
    latent = shape.latent_attention
    cached = Figure(key="bytes_per_value", value=bytes_per_kv_value, source="the width asked for")
    if bytes_per_kv_value == BF16_BYTES:
        cached = replace(cached, provenance="default", source="bf16 cache")
    state = Figure(key="bytes_per_value", value=FP32_BYTES, provenance="default", source="fp32 state")
    sliding = _attention_bytes("sliding_bytes_per_token", shape.windowed, says, cached)
    window = says.figure("window_tokens", shape.sliding.window if shape.sliding else 0)
    return ModelSize(
        params=total("params", [replace(part.params, key=f"{part.name}_params") for part in parts]),
        active_params=total(
            "active_params", [replace(part.active_params, key=f"{part.name}_active_params") for part in parts]
        ),
        parts=parts,
        kv_bytes_per_token=_kv_bytes(shape, says, cached),
        index_bytes_per_token=says.apply(
            "index_bytes_per_token",
            kv_cache.index_bytes_per_token,
            layers=latent.layers if latent else 0,
            index_head_dim=latent.index_head_dim if latent else 0,
            bytes_per_value=cached,
        ),
        sliding_bytes_per_token=sliding,
        window_tokens=window,
        sliding_cap_bytes=apply(
            "sliding_cap_bytes",
            kv_cache.sequence_kv_bytes,
            tokens=window,
            kv_bytes_per_token=0,
            sliding_bytes_per_token=sliding,
            window=window,
            state_bytes=0,
        ),
        recurrent_state_bytes=total("recurrent_state_bytes", list(_states(shape, says, state))),
        convolution_state_bytes=total("convolution_state_bytes", list(_convolutions(shape, says, cached))),
    )


def with_computed(model: Model) -> Model:
    """The model with its `computed` block worked out afresh: caches in bf16, recurrent states in fp32."""
    size = model_size(model)
    computed = Computed(**{one.name: round(getattr(size, one.name).number) for one in fields(Computed)})
    return replace(model, computed=computed)


@dataclass(frozen=True, slots=True)
class AttendingLayers:
    """
    Layers that attend in one way; numbers, or figures.

    Args:
        name: Which way.
        layers: How many. [1]
        heads: Query heads. [1]
        query_key_dim: Width of a head's query and key. [1]
        value_dim: Width of a head's value. [1]
        window: Tokens that a query sees at most; 0 where it sees all before it. [token]
    """

    name: str
    layers: Real
    heads: Real
    query_key_dim: Real
    value_dim: Real
    window: int = 0


def attending_layers(shape: Architecture) -> Iterator[AttendingLayers]:
    """The ways in which layers attend, in numbers."""
    latent, window = shape.latent_attention, shape.sliding.window if shape.sliding else 0
    for name, one in (("full", shape.attention), ("sliding", shape.windowed)):
        if one and one.layers:
            wide = one.head_dim
            yield AttendingLayers(name, one.layers, one.heads, wide, wide, window if name == "sliding" else 0)
    if latent:
        keys = latent.qk_nope_head_dim + latent.qk_rope_head_dim
        yield AttendingLayers("latent", latent.layers, latent.heads, keys, latent.v_head_dim, latent.index_topk)


def _attention_bytes(key: str, attention: Attention | None, says: Stated, width: Figure) -> Figure:
    return apply(
        key,
        kv_cache.kv_bytes_per_token,
        layers=says.figure("layers", attention.layers - attention.sharing if attention else 0),
        bytes_per_value=width,
        kv_heads=says.figure("kv_heads", attention.kv_heads if attention else 0),
        head_dim=says.figure("head_dim", attention.head_dim if attention else 0),
    )


def _kv_bytes(shape: Architecture, says: Stated, width: Figure) -> Figure:
    key, latent = "kv_bytes_per_token", shape.latent_attention
    if latent is not None:
        return says.apply(key, kv_cache.latent_kv_bytes_per_token, latent, bytes_per_value=width)
    return _attention_bytes(key, shape.attention, says, width)


def _states(shape: Architecture, says: Stated, width: Figure) -> Iterator[Figure]:
    """Recurrent states of a sequence, kind by kind."""
    linear, mamba, equation = shape.linear_attention, shape.mamba, recurrent.recurrent_state_bytes
    if linear:
        dims = {"heads": linear.value_heads, "key_dim": linear.key_head_dim, "value_dim": linear.value_head_dim}
        yield says.apply("linear_attention_state_bytes", equation, linear, bytes_per_value=width, **dims)
    if mamba:
        dims = {"key_dim": mamba.state_size, "value_dim": mamba.head_dim}
        yield says.apply("mamba_state_bytes", equation, mamba, bytes_per_value=width, **dims)


def _convolutions(shape: Architecture, says: Stated, width: Figure) -> Iterator[Figure]:
    """Inputs that short convolutions keep of a sequence, kind by kind."""
    linear, mamba, equation = shape.linear_attention, shape.mamba, recurrent.convolution_state_bytes
    if linear and linear.conv_kernel:
        channels = says.apply("convolution_channels", recurrent.deltanet_convolution_channels, linear)
        given = {"channels": channels, "bytes_per_value": width}
        yield says.apply("linear_attention_convolution_bytes", equation, linear, **given)
    if mamba:
        channels = says.apply("convolution_channels", recurrent.mamba_convolution_channels, mamba)
        given = {"channels": channels, "bytes_per_value": width}
        yield says.apply("mamba_convolution_bytes", equation, mamba, **given)
