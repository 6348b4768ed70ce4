"""
What a model weighs: parameters in total and per token, part by part, and the cache that its layers keep.

Counts are exact for the architecture as the profile gives it. Multi-token-prediction layers and vision towers are not
counted: engines and RL trainers do without them, unless told otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import kv_cache, mixture_of_experts, parameters, recurrent
from rlsize.estimates.figures import apply, total
from rlsize.estimates.remembered import remembered
from rlsize.facts.figure import Figure
from rlsize.facts.model import Computed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlsize.equations._ops import Real
    from rlsize.facts.model import Architecture, Attention, LatentAttention, LinearAttention, Mamba, Model, Moe

BF16_BYTES = 2.0
FP32_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    One kind of weights, over all layers that have it.

    Args:
        name: What it is.
        params: All its parameters.
        active_params: Those that work on each token.
    """

    name: str
    params: Figure
    active_params: Figure


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

    def apply(self, key: str, equation: Callable[..., Any], /, **inputs: Figure | float) -> Figure:
        """The result of an equation; plain numbers are numbers of the architecture."""
        named = {
            name: value if isinstance(value, Figure) else self.figure(name, value) for name, value in inputs.items()
        }
        return apply(key, equation, **named)


def stated(model: Model) -> Stated:
    """How numbers of this model are quoted."""
    shape = model.architecture
    return Stated(f"model profile {model.name}: {model.sources[shape.source]}", shape.verified)


def model_parts(model: Model) -> tuple[Part, ...]:
    """The parts of a model, from the input embedding to the norms; together they are all of it."""
    says, shape = stated(model), model.architecture
    return (*_embeddings(shape, says), *_mixers(shape, says), *_feeders(shape, says), _norms(shape, says))


def _embeddings(shape: Architecture, says: Stated) -> Iterator[Part]:
    matrix = says.apply(
        "embedding_params", parameters.embedding_params, vocab_size=shape.vocab_size, hidden_size=shape.hidden_size
    )
    if shape.tied_embeddings:
        yield Part(name="embedding", params=matrix, active_params=matrix)
    else:
        idle = "a row is looked up, nothing is multiplied"
        looked_up = Figure(key="embedding_active_params", value=0, provenance="default", source=idle)
        yield Part(name="embedding", params=matrix, active_params=looked_up)
        yield Part(name="output_head", params=matrix, active_params=matrix)


def _mixers(shape: Architecture, says: Stated) -> Iterator[Part]:
    hidden = shape.hidden_size
    if shape.attention:
        sliding = shape.sliding.layers if shape.sliding else 0
        layers = shape.attention.layers + sliding
        yield _stack("attention", layers, says, _attention(shape.attention, hidden, says))
    if shape.latent_attention:
        latent = shape.latent_attention
        yield _stack("latent_attention", latent.layers, says, _latent_attention(latent, hidden, says))
    if shape.linear_attention:
        linear = shape.linear_attention
        yield _stack("linear_attention", linear.layers, says, [_linear_attention(linear, hidden, says)])
    if shape.mamba:
        yield _stack("mamba", shape.mamba.layers, says, [_mamba(shape.mamba, hidden, says)])


def _feeders(shape: Architecture, says: Stated) -> Iterator[Part]:
    dense = shape.feed_forward
    if dense:
        sizes = (shape.hidden_size, dense.intermediate_size, dense.matrices)
        yield _stack("feed_forward", dense.layers, says, _mlp(*sizes, biased=dense.bias, says=says))
    if shape.moe:
        yield _moe(shape.moe, shape.hidden_size, says)


def _norms(shape: Architecture, says: Stated) -> Part:
    norms = says.apply(
        "norm_params",
        parameters.norm_params,
        hidden_size=shape.hidden_size,
        norms=shape.layers * shape.norms_per_layer + 1,  # and one before the output head
        vectors_per_norm=2 if shape.norm_bias else 1,
    )
    return Part(name="norms", params=norms, active_params=norms)


def _stack(name: str, layers: int, says: Stated, each: list[Figure]) -> Part:
    stack = _stacked(f"{name}_params", layers, says, total("layer_params", each))
    return Part(name=name, params=stack, active_params=stack)


def _stacked(key: str, layers: int, says: Stated, layer: Figure) -> Figure:
    return says.apply(key, parameters.stacked_params, layers=layers, layer_params=layer)


def _attention(attention: Attention, hidden: int, says: Stated) -> list[Figure]:
    heads, kv_heads, head_dim = attention.heads, attention.kv_heads, attention.head_dim
    shape = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    found = [says.apply("projection_params", parameters.attention_params, hidden_size=hidden, **shape)]
    if attention.qkv_bias:
        found.append(says.apply("qkv_bias_params", parameters.qkv_bias_params, **shape))
    if attention.output_bias:
        found.append(says.figure("output_bias_params", hidden))
    if attention.qk_norm != "none":
        queries, keys = (heads, kv_heads) if attention.qk_norm == "full" else (1, 1)
        widths = {"query_width": queries * head_dim, "key_width": keys * head_dim}
        found.append(says.apply("qk_norm_params", parameters.qk_norm_params, **widths))
    if attention.output_gate:
        gate = {"hidden_size": hidden, "heads": heads, "head_dim": head_dim}
        found.append(says.apply("output_gate_params", parameters.output_gate_params, **gate))
    if attention.sinks:
        found.append(says.figure("sink_params", heads))
    return found


def _latent_attention(latent: LatentAttention, hidden: int, says: Stated) -> list[Figure]:
    found = [
        says.apply(
            "latent_params",
            parameters.latent_attention_params,
            hidden_size=hidden,
            heads=latent.heads,
            q_lora_rank=latent.q_lora_rank,
            kv_lora_rank=latent.kv_lora_rank,
            qk_nope_head_dim=latent.qk_nope_head_dim,
            qk_rope_head_dim=latent.qk_rope_head_dim,
            v_head_dim=latent.v_head_dim,
        )
    ]
    if latent.index_heads:
        found.append(
            says.apply(
                "indexer_params",
                parameters.indexer_params,
                hidden_size=hidden,
                q_lora_rank=latent.q_lora_rank,
                index_heads=latent.index_heads,
                index_head_dim=latent.index_head_dim,
            )
        )
    return found


def _linear_attention(linear: LinearAttention, hidden: int, says: Stated) -> Figure:
    if linear.kind == "lightning":
        heads = {"heads": linear.value_heads, "head_dim": linear.value_head_dim}
        return says.apply("lightning_params", recurrent.lightning_attention_params, hidden_size=hidden, **heads)
    return says.apply(
        "gated_deltanet_params",
        recurrent.gated_deltanet_params,
        hidden_size=hidden,
        key_heads=linear.key_heads,
        value_heads=linear.value_heads,
        key_head_dim=linear.key_head_dim,
        value_head_dim=linear.value_head_dim,
        conv_kernel=linear.conv_kernel,
    )


def _mamba(mamba: Mamba, hidden: int, says: Stated) -> Figure:
    return says.apply(
        "mamba_params",
        recurrent.mamba_params,
        hidden_size=hidden,
        heads=mamba.heads,
        head_dim=mamba.head_dim,
        state_size=mamba.state_size,
        groups=mamba.groups,
        conv_kernel=mamba.conv_kernel,
        conv_biases=int(mamba.conv_bias),
    )


def working_width(moe: Moe, says: Stated, *, routed: bool = True) -> Figure:
    """Inner width of the experts that work on a token, side by side as one MLP; the shared ones alone if not routed."""
    return says.apply(
        "working_width",
        mixture_of_experts.working_width,
        experts_per_token=moe.experts_per_token if routed else 0,
        intermediate_size=moe.intermediate_size,
        shared_experts=moe.shared_experts,
        shared_intermediate_size=moe.shared_intermediate_size,
    )


def _mlp(hidden: int, intermediate: Figure | int, matrices: int, *, biased: bool, says: Stated) -> list[Figure]:
    sizes: dict[str, Figure | float] = {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "matrices": matrices,
    }
    found = [says.apply("mlp_params", parameters.mlp_params, **sizes)]
    if biased:
        found.append(says.apply("mlp_bias_params", parameters.mlp_bias_params, **sizes))
    return found


def _moe(moe: Moe, hidden: int, says: Stated) -> Part:
    expert = total(
        "expert_params", _mlp(hidden, moe.intermediate_size, moe.matrices, biased=moe.expert_bias, says=says)
    )
    always = []
    if moe.shared_experts:
        width = working_width(moe, says, routed=False)
        always = _mlp(hidden, width, moe.matrices, biased=False, says=says)
    if moe.shared_gate:
        always.append(says.figure("shared_gate_params", hidden))
    router = [
        says.apply("router_weight_params", mixture_of_experts.router_params, hidden_size=hidden, experts=moe.experts)
    ]
    if moe.router_bias:
        router.append(says.figure("router_bias_params", moe.experts))
    common = {
        "expert_params": expert,
        "shared_params": total("shared_params", always) if always else says.figure("shared_params", 0),
        "router_params": total("router_params", router),
    }
    held = says.apply("moe_layer_params", mixture_of_experts.moe_layer_params, experts=moe.experts, **common)
    used = says.apply(
        "moe_layer_active_params",
        mixture_of_experts.moe_layer_active_params,
        experts_per_token=moe.experts_per_token,
        **common,
    )
    return Part(
        name="moe",
        params=_stacked("moe_params", moe.layers, says, held),
        active_params=_stacked("moe_active_params", moe.layers, says, used),
    )


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
    parts: tuple[Part, ...]
    kv_bytes_per_token: Figure
    index_bytes_per_token: Figure
    sliding_bytes_per_token: Figure
    window_tokens: Figure
    sliding_cap_bytes: Figure
    recurrent_state_bytes: Figure
    convolution_state_bytes: Figure


@remembered
def model_size(
    model: Model, bytes_per_kv_value: float = BF16_BYTES, bytes_per_state_value: float = FP32_BYTES
) -> ModelSize:
    """
    Size of a model.

    Args:
        model: Its profile.
        bytes_per_kv_value: Width of a cached key or value. [B]
        bytes_per_state_value: Width of an entry of a recurrent state. [B]

    Returns:
        Parameters and cache sizes, each figure with the equation and the numbers behind it.
    """
    says, shape, parts = stated(model), model.architecture, model_parts(model)
    cached = _width(bytes_per_kv_value, BF16_BYTES, "bf16 cache")
    state = _width(bytes_per_state_value, FP32_BYTES, "fp32 state")
    sliding = _attention_bytes(
        "sliding_bytes_per_token", shape.sliding.layers if shape.sliding else 0, shape, says, cached
    )
    window = says.figure("window_tokens", shape.sliding.window if shape.sliding else 0)
    return ModelSize(
        params=total("params", [replace(part.params, key=f"{part.name}_params") for part in parts]),
        active_params=total(
            "active_params", [replace(part.active_params, key=f"{part.name}_active_params") for part in parts]
        ),
        parts=parts,
        kv_bytes_per_token=_kv_bytes(shape, says, cached),
        index_bytes_per_token=_index_bytes(shape, says, cached),
        sliding_bytes_per_token=sliding,
        window_tokens=window,
        sliding_cap_bytes=_sliding_cap(sliding, window),
        recurrent_state_bytes=total("recurrent_state_bytes", _states(shape, says, state)),
        convolution_state_bytes=total("convolution_state_bytes", _convolutions(shape, says, cached)),
    )


def with_computed(model: Model) -> Model:
    """The model with its `computed` block worked out afresh: caches in bf16, recurrent states in fp32."""
    size = model_size(model)
    computed = Computed(
        params=round(size.params.number),
        active_params=round(size.active_params.number),
        kv_bytes_per_token=round(size.kv_bytes_per_token.number),
        index_bytes_per_token=round(size.index_bytes_per_token.number),
        sliding_cap_bytes=round(size.sliding_cap_bytes.number),
        recurrent_state_bytes=round(size.recurrent_state_bytes.number),
    )
    return replace(model, computed=computed)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    attention, sliding, latent = shape.attention, shape.sliding, shape.latent_attention
    if attention:
        full = AttendingLayers(
            name="full",
            layers=attention.layers,
            heads=attention.heads,
            query_key_dim=attention.head_dim,
            value_dim=attention.head_dim,
        )
        if attention.layers:
            yield full
        if sliding:
            yield replace(full, name="sliding", layers=sliding.layers, window=sliding.window)
    if latent:
        yield AttendingLayers(
            name="latent",
            layers=latent.layers,
            heads=latent.heads,
            query_key_dim=latent.qk_nope_head_dim + latent.qk_rope_head_dim,
            value_dim=latent.v_head_dim,
            window=latent.index_topk,
        )


def _width(value: float, usual: float, name: str) -> Figure:
    if value != usual:
        return Figure(key="bytes_per_value", value=value, source="the width asked for")
    return Figure(key="bytes_per_value", value=value, provenance="default", source=name)


def _attention_bytes(key: str, layers: int, shape: Architecture, says: Stated, width: Figure) -> Figure:
    heads = {"kv_heads": 0, "head_dim": 0}
    if shape.attention:
        heads = {"kv_heads": shape.attention.kv_heads, "head_dim": shape.attention.head_dim}
    return says.apply(key, kv_cache.kv_bytes_per_token, layers=layers, bytes_per_value=width, **heads)


def _kv_bytes(shape: Architecture, says: Stated, width: Figure) -> Figure:
    latent = shape.latent_attention
    if latent is None:
        full = shape.attention.layers if shape.attention else 0
        return _attention_bytes("kv_bytes_per_token", full, shape, says, width)
    return says.apply(
        "kv_bytes_per_token",
        kv_cache.latent_kv_bytes_per_token,
        layers=latent.layers,
        kv_lora_rank=latent.kv_lora_rank,
        qk_rope_head_dim=latent.qk_rope_head_dim,
        bytes_per_value=width,
    )


def _index_bytes(shape: Architecture, says: Stated, width: Figure) -> Figure:
    latent = shape.latent_attention
    return says.apply(
        "index_bytes_per_token",
        kv_cache.index_bytes_per_token,
        layers=latent.layers if latent else 0,
        index_head_dim=latent.index_head_dim if latent else 0,
        bytes_per_value=width,
    )


def _sliding_cap(sliding: Figure, window: Figure) -> Figure:
    return apply(
        "sliding_cap_bytes",
        kv_cache.sequence_kv_bytes,
        tokens=window,
        kv_bytes_per_token=0,
        sliding_bytes_per_token=sliding,
        window=window,
        state_bytes=0,
    )


def _states(shape: Architecture, says: Stated, width: Figure) -> list[Figure]:
    found = []
    linear, mamba = shape.linear_attention, shape.mamba
    if linear:
        state = {
            "layers": linear.layers,
            "heads": linear.value_heads,
            "key_dim": linear.key_head_dim,
            "value_dim": linear.value_head_dim,
        }
        found.append(("linear_attention_state_bytes", state))
    if mamba:
        state = {
            "layers": mamba.layers,
            "heads": mamba.heads,
            "key_dim": mamba.state_size,
            "value_dim": mamba.head_dim,
        }
        found.append(("mamba_state_bytes", state))
    return [says.apply(key, recurrent.recurrent_state_bytes, bytes_per_value=width, **state) for key, state in found]


def _convolutions(shape: Architecture, says: Stated, width: Figure) -> list[Figure]:
    found = []
    linear, mamba = shape.linear_attention, shape.mamba
    if linear and linear.conv_kernel:
        channels = says.apply(
            "convolution_channels",
            recurrent.deltanet_convolution_channels,
            key_heads=linear.key_heads,
            key_head_dim=linear.key_head_dim,
            value_heads=linear.value_heads,
            value_head_dim=linear.value_head_dim,
        )
        found.append(("linear_attention_convolution_bytes", linear.layers, channels, linear.conv_kernel))
    if mamba:
        channels = says.apply(
            "convolution_channels",
            recurrent.mamba_convolution_channels,
            heads=mamba.heads,
            head_dim=mamba.head_dim,
            groups=mamba.groups,
            state_size=mamba.state_size,
        )
        found.append(("mamba_convolution_bytes", mamba.layers, channels, mamba.conv_kernel))
    return [
        says.apply(
            key,
            recurrent.convolution_state_bytes,
            layers=layers,
            channels=channels,
            conv_kernel=kernel,
            bytes_per_value=width,
        )
        for key, layers, channels, kernel in found
    ]
