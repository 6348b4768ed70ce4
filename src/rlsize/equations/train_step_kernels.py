"""
Time of a training step's kernels on one GPU: matrices, attention scores, element-wise work, experts read.

How many FLOPs a token costs is in `training_flops`; what a step takes beside its kernels in `train_step`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real

_SHARPNESS = 4  # of the step from one limit to the other; between 3 and 8 the figures do not tell


def power_limited_rate(peak: Real, compute_fraction: Real, power: Real, joules_per_flop: Real) -> Real:
    """
    Rate of matrix products over a long run, held down by the kernels and by the power that the board may draw.

    R = ((f F)^-4 + (P / e)^-4)^(-1/4)

    Args:
        peak: Peak rate of the number type, F. [FLOP/s]
        compute_fraction: Share of it that large matrix products reach when they run alone, f. [1]
        power: Board power, P. [J/s]
        joules_per_flop: Energy of one floating-point operation, the rest of the board included, e. [J/FLOP]

    Returns:
        R. [FLOP/s]

    Assumes a long run settles at the board's power limit, where a kernel timed alone does not. The exponent only rounds
    the corner between both limits.
    Source: own derivation; clocks fall under the power limit in long matrix products (NVIDIA, GPU performance
    background user guide; stas00/ml-engineering, accelerators, on MAMF and power).

    >>> round(power_limited_rate(peak=1e15, compute_fraction=0.8, power=700.0, joules_per_flop=0.7e-12) / 1e12)
    734
    """
    alone, powered = compute_fraction * peak, power / joules_per_flop
    return (alone**-_SHARPNESS + powered**-_SHARPNESS) ** (-1 / _SHARPNESS)


def scaled_fraction(fraction: Real, scale: Real) -> Real:
    """
    Share of a peak that training reaches, from the share that kernels reach alone.

    g = x f

    Args:
        fraction: Share that kernels reach when they run alone, f. [1]
        scale: Share of that which training keeps, x. [1]

    Returns:
        g. [1]

    Assumes the loss does not depend on the size of the work.
    Source: definition.

    >>> scaled_fraction(fraction=0.8, scale=0.5)
    0.4
    """
    return scale * fraction


def lower_energy(joules_per_flop: Real, energy_fraction: Real) -> Real:
    """
    Energy of an operation in a narrower number type, or on a newer generation.

    e' = x e

    Args:
        joules_per_flop: Energy of one in bf16, e. [J/FLOP]
        energy_fraction: Share of it that the other takes, x. [1]

    Returns:
        e'. [J/FLOP]

    Assumes a share that does not depend on the work.
    Source: definition.

    >>> lower_energy(joules_per_flop=1e-12, energy_fraction=0.5)
    5e-13
    """
    return energy_fraction * joules_per_flop


def saturating_rate(peak: Real, compute_fraction: Real, length: Real, half_length: Real) -> Real:
    """
    Rate of attention scores, which long sequences approach and short ones do not.

    R = f F s / (s + h)

    Args:
        peak: Peak rate of the number type, F. [FLOP/s]
        compute_fraction: Share of it that long sequences reach, f. [1]
        length: Tokens of the sequence, s. [token]
        half_length: Tokens at which half of that share is reached, h. [token]

    Returns:
        R. [FLOP/s]

    Assumes one causal sequence fills the GPU; a batch of short ones does a little better.
    Source: fit of prefill attention kernels, ai-dynamo/aiconfigurator@095f58a5, context_attention_perf.

    >>> saturating_rate(peak=1000.0, compute_fraction=0.5, length=3000.0, half_length=1000.0)
    375.0
    """
    return compute_fraction * peak * length / (length + half_length)


def length_seen_by_tokens(length: Real, length_cv: Real) -> Real:
    """
    Length of the sequence in which the mean token of a mix of sequences stands.

    m = s (1 + v^2)

    Args:
        length: Mean length of the sequences, s. [token]
        length_cv: Standard deviation of the length over its mean, v. [1]

    Returns:
        m. [token]

    Assumes nothing: it is sum s^2 / sum s, which long sequences dominate.
    Source: definition of the coefficient of variation.

    >>> length_seen_by_tokens(length=200.0, length_cv=0.5)
    250.0
    """
    return length * (1 + length_cv**2)


def tokens_per_gpu(sequences: Real, length: Real, gpus: Real) -> Real:
    """
    Tokens of a step for each GPU of the trainer.

    T = n s / G

    Args:
        sequences: Sequences of the step, n. [1]
        length: Mean tokens of one, prompt and response, s. [token]
        gpus: GPUs of the trainer, G. [1]

    Returns:
        T. [token]

    Assumes the work is dealt out evenly; model parallelism deals out each token's work instead of tokens.
    Source: definition.

    >>> tokens_per_gpu(sequences=512, length=2048.0, gpus=64)
    16384.0
    """
    return sequences * length / gpus


def product_time(flops_per_token: Real, passes: Real, tokens: Real, rate: Real) -> Real:
    """
    Time of floating-point work.

    t = p F T / R

    Args:
        flops_per_token: Work of one forward pass, F. [FLOP/token]
        passes: Forward passes that the work is worth, p: 3 with backward, 4 with full recomputation too. [1]
        tokens: Tokens, T. [token]
        rate: Rate reached, R. [FLOP/s]

    Returns:
        t. [s]

    Assumes a rate that does not depend on the pass.
    Source: definition of a rate.

    >>> product_time(flops_per_token=16e9, passes=3, tokens=8192, rate=400e12)
    0.98304
    """
    return passes * flops_per_token * tokens / rate


def elementwise_bytes_per_token(
    hidden_size: Real,
    layers: Real,
    hidden_copies: Real,
    dense_layers: Real,
    dense_width: Real,
    expert_layers: Real,
    expert_width: Real,
    experts_per_token: Real,
    mlp_copies: Real,
    bytes_per_value: Real,
) -> Real:
    """
    Bytes that norms, residuals, positions and activation functions move in one forward pass, for one token.

    S = b (h (c L + 4 k L_e) + m (L_d w_d + L_e w_e))

    Args:
        hidden_size: Width of the residual stream, h. [value/token]
        layers: Layers, L. [1]
        hidden_copies: Times that this width is read or written in a layer, c. [1]
        dense_layers: Layers with a dense MLP, L_d. [1]
        dense_width: Width inside it, w_d. [value/token]
        expert_layers: Layers with experts, L_e. [1]
        expert_width: Width inside the experts that work on the token, w_e. [value/token]
        experts_per_token: Experts that work on the token, k; it is read and written for each on the way in and out. [1]
        mlp_copies: Times that the width inside is read or written, m. [1]
        bytes_per_value: Bytes of a value, b. [B/value]

    Returns:
        S. [B/token]

    Assumes fused kernels: each operation reads its inputs and writes its outputs once. Eager code does more.
    Source: own count of a transformer block (two norms, two residuals, rotary positions, the gate of the MLP).

    >>> elementwise_bytes_per_token(
    ...     hidden_size=4096, layers=32, hidden_copies=14, dense_layers=32, dense_width=14336, expert_layers=0,
    ...     expert_width=0, experts_per_token=0, mlp_copies=3, bytes_per_value=2
    ... )
    6422528
    """
    streams = hidden_copies * layers + 4 * experts_per_token * expert_layers
    inside = dense_layers * dense_width + expert_layers * expert_width
    return bytes_per_value * (hidden_size * streams + mlp_copies * inside)


def eager_bytes_per_token(fused: Real, factor: Real) -> Real:
    """
    Bytes that element-wise work moves for one token where nothing fuses it.

    S_e = x S

    Args:
        fused: Bytes with fused kernels, S. [B/token]
        factor: How many times more eager code moves, x. [1]

    Returns:
        S_e. [B/token]

    Assumes one factor for all operations: each writes results that a fused kernel keeps on the chip.
    Source: definition.

    >>> eager_bytes_per_token(fused=6e6, factor=1.5)
    9000000.0
    """
    return factor * fused


def adapter_bytes_per_token(values: Real, bytes_per_value: Real) -> Real:
    """
    Bytes that adapters beside linear layers move in one forward pass, for one token.

    S = b w

    Args:
        values: What goes into and comes out of all matrices that carry one, w: parameters of adapters of rank 1.
            [value/token]
        bytes_per_value: Bytes moved for each of them, b. [B/value]

    Returns:
        S. [B/token]

    Assumes a rank so small that its products wait for memory.
    Source: own count: the input is read again; the sum with what comes out reads two values and writes one.

    >>> adapter_bytes_per_token(values=8192, bytes_per_value=5)
    40960
    """
    return bytes_per_value * values


def quantising_bytes_per_token(
    layers: Real, hidden_size: Real, attention_width: Real, mlp_width: Real, tensor_ranks: Real, bytes_per_value: Real
) -> Real:
    """
    Bytes that quantising the inputs of linear layers moves in one forward pass, for one token of a GPU.

    S = b L (2 t h + a + w)

    Args:
        layers: Layers, L. [1]
        hidden_size: Width of the residual stream, h. [value/token]
        attention_width: Width of all query heads, a. [value/token]
        mlp_width: Width inside the MLP that works on the token, w. [value/token]
        tensor_ranks: Tensor-parallel ranks, each of which quantises the whole input of the first matrices, t. [1]
        bytes_per_value: Bytes read and written for a value, b: 3 from bf16 to fp8. [B/value]

    Returns:
        S. [B/token]

    Assumes four inputs in a layer: of attention, of its output projection, of the MLP and of its last matrix.
    Source: own count; ai-dynamo/aiconfigurator@095f58a5, fits of fp8 GEMMs (3 m k bytes).

    >>> quantising_bytes_per_token(
    ...     layers=1, hidden_size=100, attention_width=100, mlp_width=400, tensor_ranks=2, bytes_per_value=3
    ... )
    2700
    """
    return bytes_per_value * layers * (2 * tensor_ranks * hidden_size + attention_width + mlp_width)


def logit_bytes_per_token(vocabulary: Real, bytes_per_logit: Real) -> Real:
    """
    Bytes that the loss moves for one token.

    S = b V

    Args:
        vocabulary: Rows of the output head, V. [value/token]
        bytes_per_logit: Bytes read and written for each logit, b. [B/value]

    Returns:
        S. [B/token]

    Assumes logits that are written to memory; a fused loss keeps most of them on the chip.
    Source: own count; stas00/ml-engineering, training memory (bf16 logits, an fp32 copy, its gradient).

    >>> logit_bytes_per_token(vocabulary=128256, bytes_per_logit=20)
    2565120
    """
    return bytes_per_logit * vocabulary


def streaming_time(bytes_per_token: Real, passes: Real, tokens: Real, bandwidth: Real, memory_fraction: Real) -> Real:
    """
    Time of work that the memory bandwidth bounds.

    t = p S T / (f B)

    Args:
        bytes_per_token: Bytes moved for a token in one pass, S. [B/token]
        passes: Passes, p. [1]
        tokens: Tokens, T. [token]
        bandwidth: Memory bandwidth, B. [B/s]
        memory_fraction: Share of it that such kernels reach, f. [1]

    Returns:
        t. [s]

    Assumes nothing stays in a cache from one kernel to the next.
    Source: roofline of kernels that compute little.

    >>> streaming_time(bytes_per_token=6e6, passes=3, tokens=8192, bandwidth=3e12, memory_fraction=0.8)
    0.06144
    """
    return passes * bytes_per_token * tokens / (memory_fraction * bandwidth)


def weight_reading_time(
    params: Real, bytes_per_param: Real, passes: Real, micro_batches: Real, bandwidth: Real, memory_fraction: Real
) -> Real:
    """
    Time to read weights that few tokens use, once for each pass over each micro-batch.

    t = p M b N / (f B)

    Args:
        params: Parameters on the GPU, N. [param]
        bytes_per_param: Bytes of one, b. [B/param]
        passes: Passes over them, p. [1]
        micro_batches: Micro-batches, M. [1]
        bandwidth: Memory bandwidth, B. [B/s]
        memory_fraction: Share of it that such kernels reach, f. [1]

    Returns:
        t. [s]

    Assumes every expert gets a token of each micro-batch. The time comes on top of the multiplications, as measured
    kernels of grouped experts are a sum and not the larger of both.
    Source: ai-dynamo/aiconfigurator@095f58a5, fits of mixture-of-experts kernels.

    >>> weight_reading_time(
    ...     params=1e9, bytes_per_param=2, passes=3, micro_batches=4, bandwidth=3e12, memory_fraction=0.8
    ... )
    0.01
    """
    return passes * micro_batches * bytes_per_param * params / (memory_fraction * bandwidth)
