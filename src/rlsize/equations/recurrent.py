"""Layers with a state in place of a KV cache: their parameters, and the state of one sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def gated_deltanet_params(
    hidden_size: Real, key_heads: Real, value_heads: Real, key_head_dim: Real, value_head_dim: Real, conv_kernel: Real
) -> Real:
    """
    Parameters of one Gated DeltaNet layer.

    N = h (2 K + 2 V + 2 n_v) + c (2 K + V) + 2 n_v + d_v + V h, with K = n_k d_k and V = n_v d_v

    Args:
        hidden_size: Width of the residual stream, h. [1]
        key_heads: Query and key heads, n_k. [1]
        value_heads: Value heads, n_v. [1]
        key_head_dim: Width of a key head, d_k. [1]
        value_head_dim: Width of a value head, d_v. [1]
        conv_kernel: Taps of the short convolution over queries, keys and values, c. [1]

    Returns:
        N. [1]

    Assumes projections for query, key, value, output gate, decay and write strength without biases; a decay rate and an
    offset per value head; a norm over one value head.
    Source: Yang et al., Gated delta networks, section 3; modelling code of qwen3_next in Hugging Face Transformers.

    >>> gated_deltanet_params(2048, 16, 32, 128, 128, 4)
    33718464
    """
    keys, values = key_heads * key_head_dim, value_heads * value_head_dim
    channels = deltanet_convolution_channels(key_heads, key_head_dim, value_heads, value_head_dim)
    projections = hidden_size * (2 * keys + 2 * values + 2 * value_heads) + values * hidden_size
    return projections + conv_kernel * channels + 2 * value_heads + value_head_dim


def kimi_delta_attention_params(hidden_size: Real, heads: Real, head_dim: Real, conv_kernel: Real) -> Real:
    """
    Parameters of one layer of Kimi delta attention, whose decay is per channel of a key.

    N = 4 h I + 3 c I + 2 d (h + I) + n (h + 1) + I + d, with I = n d

    Args:
        hidden_size: Width of the residual stream, h. [1]
        heads: Heads, n. [1]
        head_dim: Width of one head, d; of the bottlenecks of decay and output gate too. [1]
        conv_kernel: Taps of the short convolution over queries, keys and values, c. [1]

    Returns:
        N. [1]

    Assumes query, key, value, output and write-strength projections without biases; decay and output gate through a
    bottleneck each; a decay rate per head, an offset per channel, and a norm over one head.
    Source: Kimi Linear, section 4; modelling code of kimi_linear in Hugging Face Transformers.

    >>> kimi_delta_attention_params(hidden_size=2304, heads=32, head_dim=128, conv_kernel=4)
    39514272
    """
    inner = heads * head_dim
    projections = 4 * hidden_size * inner + 2 * head_dim * (hidden_size + inner) + hidden_size * heads
    return projections + 3 * conv_kernel * inner + heads + inner + head_dim


def short_convolution_params(hidden_size: Real, conv_kernel: Real) -> Real:
    """
    Parameters of one layer that mixes tokens by a gated short convolution.

    N = 4 h^2 + c h

    Args:
        hidden_size: Width of the residual stream, h. [1]
        conv_kernel: Taps of the convolution, c. [1]

    Returns:
        N. [1]

    Assumes one projection to two gates and the convolution's input, one back, and no biases.
    Source: modelling code of lfm2 in Hugging Face Transformers.

    >>> short_convolution_params(hidden_size=2048, conv_kernel=3)
    16783360
    """
    return 4 * hidden_size * hidden_size + conv_kernel * hidden_size


def lightning_attention_params(hidden_size: Real, heads: Real, head_dim: Real) -> Real:
    """
    Parameters of one lightning-attention layer.

    N = 5 h n d + n d

    Args:
        hidden_size: Width of the residual stream, h. [1]
        heads: Heads, n. [1]
        head_dim: Width of one head, d. [1]

    Returns:
        N. [1]

    Assumes query, key, value, output gate and output projections without biases, and a norm over all heads together.
    Source: MiniMax-01, section 2.2, and the modelling code published with it.

    >>> lightning_attention_params(hidden_size=6144, heads=64, head_dim=128)
    251666432
    """
    return 5 * hidden_size * heads * head_dim + heads * head_dim


def mamba_params(
    hidden_size: Real, heads: Real, head_dim: Real, state_size: Real, groups: Real, conv_kernel: Real, conv_biases: Real
) -> Real:
    """
    Parameters of one Mamba-2 layer.

    N = h (I + C + n) + C (c + b) + 3 n + I + I h, with I = n d and C = I + 2 g s

    Args:
        hidden_size: Width of the residual stream, h. [1]
        heads: Heads, n. [1]
        head_dim: Width of one head, d. [1]
        state_size: State entries per channel, s. [1]
        groups: Groups that share input and output matrices, g. [1]
        conv_kernel: Taps of the short convolution, c. [1]
        conv_biases: Biases per channel of the convolution, b: 1 or 0. [1]

    Returns:
        N. [1]

    Assumes projections without biases; a decay rate, an offset and a skip weight per head; a gated norm over the inner
    width.
    Source: Dao and Gu, Transformers are SSMs, section 7; modelling code of nemotron_h in Hugging Face Transformers.

    >>> mamba_params(2688, 64, 64, 128, 8, 4, 1)
    38742208
    """
    inner = heads * head_dim
    channels = mamba_convolution_channels(heads, head_dim, groups, state_size)
    projections = hidden_size * (inner + channels + heads) + inner * hidden_size
    return projections + channels * (conv_kernel + conv_biases) + 3 * heads + inner


def recurrent_state_bytes(layers: Real, heads: Real, key_dim: Real, value_dim: Real, bytes_per_value: Real) -> Real:
    """
    State that the linear-attention or Mamba layers keep for one sequence, whatever its length.

    M = L n d_k d_v b

    Args:
        layers: Layers that keep a state, L. [layer]
        heads: Heads with a state of their own, n: value heads, or Mamba heads. [1/layer]
        key_dim: Rows of a head's state, d_k: width of a key, or Mamba's state size. [1]
        value_dim: Columns of a head's state, d_v: width of a value, or of a Mamba head. [1]
        bytes_per_value: Width of an entry, b; 4 for fp32, in which engines keep it. [B]

    Returns:
        M. [B]

    Assumes that only the last state is kept: no snapshots for prefix caching or speculative decoding.
    Source: Yang et al., Gated delta networks, section 3; Dao and Gu, Transformers are SSMs, section 2.

    >>> recurrent_state_bytes(layers=36, heads=32, key_dim=128, value_dim=128, bytes_per_value=4)
    75497472
    """
    return layers * heads * key_dim * value_dim * bytes_per_value


def deltanet_convolution_channels(key_heads: Real, key_head_dim: Real, value_heads: Real, value_head_dim: Real) -> Real:
    """
    Channels of the short convolution of a Gated DeltaNet layer.

    C = 2 n_k d_k + n_v d_v

    Args:
        key_heads: Query and key heads, n_k. [head]
        key_head_dim: Width of a key head, d_k. [1/head]
        value_heads: Value heads, n_v. [head]
        value_head_dim: Width of a value head, d_v. [1/head]

    Returns:
        C. [1]

    Assumes that it runs over queries, keys and values together.
    Source: Yang et al., Gated delta networks, section 3; modelling code of qwen3_next in Hugging Face Transformers.

    >>> deltanet_convolution_channels(key_heads=16, key_head_dim=128, value_heads=32, value_head_dim=128)
    8192
    """
    return 2 * key_heads * key_head_dim + value_heads * value_head_dim


def mamba_convolution_channels(heads: Real, head_dim: Real, groups: Real, state_size: Real) -> Real:
    """
    Channels of the short convolution of a Mamba-2 layer.

    C = n d + 2 g s

    Args:
        heads: Heads, n. [head]
        head_dim: Width of one head, d. [1/head]
        groups: Groups that share input and output matrices, g. [head]
        state_size: State entries per channel, s. [1/head]

    Returns:
        C. [1]

    Assumes that it runs over the inner width and over the input and output matrices of each group.
    Source: Dao and Gu, Transformers are SSMs, section 7; modelling code of nemotron_h in Hugging Face Transformers.

    >>> mamba_convolution_channels(heads=64, head_dim=64, groups=8, state_size=128)
    6144
    """
    return heads * head_dim + 2 * groups * state_size


def convolution_state_bytes(layers: Real, channels: Real, conv_kernel: Real, bytes_per_value: Real) -> Real:
    """
    Inputs that the short convolutions keep for one sequence.

    M = L C (c - 1) b

    Args:
        layers: Layers with a short convolution, L. [layer]
        channels: Channels of the convolution, C. [1/layer]
        conv_kernel: Taps of the convolution, c; the next token brings the last of its inputs itself. [1]
        bytes_per_value: Width of an entry, b; 2 for bf16. [B]

    Returns:
        M. [B]

    Assumes one convolution per layer.
    Source: Gu and Dao, Mamba: linear-time sequence modeling with selective state spaces, section 3.4.

    >>> convolution_state_bytes(layers=36, channels=8192, conv_kernel=4, bytes_per_value=2)
    1769472
    """
    return layers * channels * (conv_kernel - 1) * bytes_per_value
