"""
What a model weighs: parameters in total and per token, part by part, and the cache that its layers keep.

Counts are exact for the architecture as the profile gives it. Multi-token-prediction layers and vision towers are not
counted: engines and RL trainers do without them, unless told otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import kv_cache, recurrent
from rlsize.estimates.figures import apply, total
from rlsize.estimates.model_parts import model_parts, stated
from rlsize.estimates.remembered import remembered
from rlsize.facts.figure import Figure
from rlsize.facts.model import Computed

if TYPE_CHECKING:
    from rlsize.estimates.model_parts import Part, Stated
    from rlsize.facts.model import Architecture, Model

BF16_BYTES = 2.0
FP32_BYTES = 4.0


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
