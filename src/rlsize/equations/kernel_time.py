"""Times of the kernels of an engine step or a prefill, from work, achieved rates and fixed times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import maximum

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def achieved_rate(peak: Real, fraction: Real, slowdown: Real) -> Real:
    """
    Rate that kernels reach, of a memory's bandwidth or of a peak of FLOP/s.

    r = f P / s

    Args:
        peak: What the data sheet says, P. [FLOP/s]
        fraction: Share that the kernel reaches alone, f. [1]
        slowdown: How much slower it is inside an engine, s; 1 where it is as measured alone. [1]

    Returns:
        r. [FLOP/s]

    Assumes the share holds for all sizes; fixed times are counted beside it. A bandwidth works alike, in its own unit.
    Source: definition.

    >>> achieved_rate(peak=989e12, fraction=0.8, slowdown=1)
    791200000000000.0
    """
    return fraction * peak / slowdown


def slowed(seconds: Real, slowdown: Real) -> Real:
    """
    A fixed time inside an engine, from the one measured alone.

    t' = s t

    Args:
        seconds: Measured alone, t. [s]
        slowdown: How much slower it is inside an engine, s. [1]

    Returns:
        t'. [s]

    Assumes one factor for all kernels of a kind.
    Source: definition.

    >>> slowed(seconds=4e-6, slowdown=1.5)
    6e-06
    """
    return slowdown * seconds


def matmul_time(
    launches: Real,
    launch_seconds: Real,
    bytes_moved: Real,
    memory_rate: Real,
    flops: Real,
    compute_rate: Real,
    sharpness: Real,
) -> Real:
    """
    Time of matrix products that are bound by memory when narrow and by compute when wide.

    t = n t_0 + ((W / r_B)^p + (F / r_F)^p)^(1/p)

    Args:
        launches: Products, n. [1]
        launch_seconds: Time of a product without work, t_0. [s]
        bytes_moved: Weights that are read, of all products, W. [B]
        memory_rate: Bandwidth that the kernels reach, r_B. [B/s]
        flops: Work of all products, F. [FLOP]
        compute_rate: FLOP/s that the kernels reach, r_F. [FLOP/s]
        sharpness: How sharply one bound passes into the other, p: 1 adds both times, large ones take the longer. [1]

    Returns:
        t. [s]

    Assumes all products of the step have the same ratio of work to bytes, which is the number of tokens.
    Source: fits to measured GEMM and mixture-of-experts kernels, ai-dynamo/aiconfigurator@095f58a5, systems data.

    >>> round(matmul_time(launches=4, launch_seconds=4e-6, bytes_moved=1e9, memory_rate=2e12, flops=1e11,
    ...                   compute_rate=8e14, sharpness=2), 9)
    0.000531388
    """
    read, computed = bytes_moved / memory_rate, flops / compute_rate
    return launches * launch_seconds + (read**sharpness + computed**sharpness) ** (1.0 / sharpness)


def gemm_launch_seconds(fixed_seconds: Real, seconds_per_thousand: Real, inner_width: Real) -> Real:
    """
    Time of a matrix product without work: its start, and the sums along the inner dimension.

    t_0 = t_f + t_k k / 1000

    Args:
        fixed_seconds: Start of the kernel, t_f. [s]
        seconds_per_thousand: Time for each thousand of the inner dimension, t_k. [s]
        inner_width: Inner dimension, k. [1]

    Returns:
        t_0. [s]

    Assumes the inner dimension of all products of a layer is about its hidden size.
    Source: fits to measured GEMM kernels, ai-dynamo/aiconfigurator@095f58a5, systems data.

    >>> gemm_launch_seconds(fixed_seconds=4e-6, seconds_per_thousand=5e-7, inner_width=4000)
    6e-06
    """
    return fixed_seconds + seconds_per_thousand * inner_width / 1000


def quantise_time(passes: Real, tokens: Real, bytes_per_token: Real, bandwidth: Real) -> Real:
    """
    Time to quantise activations before low-precision products.

    t = c b A / B

    Args:
        passes: Passes over the activations, c; 0 where the format needs none. [1]
        tokens: Tokens in the step on this GPU, b. [token]
        bytes_per_token: Activations that are quantised, of all products, A. [B/token]
        bandwidth: Peak memory bandwidth, B. [B/s]

    Returns:
        t. [s]

    Assumes a kernel of its own for each product, bound by memory.
    Source: fits to measured fp8 GEMM kernels, ai-dynamo/aiconfigurator@095f58a5, systems data.

    >>> quantise_time(passes=2.5, tokens=128, bytes_per_token=3e6, bandwidth=3e12)
    0.00032
    """
    return passes * tokens * bytes_per_token / bandwidth


def decode_attention_time(
    layers: Real,
    fixed_seconds: Real,
    kv_bytes: Real,
    memory_rate: Real,
    flops: Real,
    compute_rate: Real,
    seconds_per_sequence: Real,
    sequences: Real,
) -> Real:
    """
    Time of attention in a decode step: every key and value of the live contexts is read once.

    t = L t_0 + max(K / r_B, F / r_F) + t_s b

    Args:
        layers: Layers that attend, L. [1]
        fixed_seconds: Start of one layer's kernels, t_0. [s]
        kv_bytes: Keys and values read on this GPU, all layers, K. [B]
        memory_rate: Bandwidth that the kernel reaches, r_B. [B/s]
        flops: Work on this GPU, F; matters for latent attention only. [FLOP]
        compute_rate: FLOP/s that the kernel reaches, r_F. [FLOP/s]
        seconds_per_sequence: Time of each sequence, all layers and KV heads on this GPU, t_s. [s]
        sequences: Sequences on this GPU, b. [1]

    Returns:
        t. [s]

    Assumes contexts of similar length; at equal bytes, the number of KV heads hardly matters.
    Source: fits to measured decode attention, ai-dynamo/aiconfigurator@095f58a5, systems data; bound as in the book of
    Austin et al., How to scale your model, chapter on inference.

    >>> decode_attention_time(layers=64, fixed_seconds=1e-5, kv_bytes=8e9, memory_rate=2e12, flops=0,
    ...                       compute_rate=5e14, seconds_per_sequence=5e-6, sequences=64)
    0.00496
    """
    work = maximum(kv_bytes / memory_rate, flops / compute_rate)
    return layers * fixed_seconds + work + seconds_per_sequence * sequences
