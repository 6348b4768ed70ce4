"""
Floating-point work of a training step over sequences of mixed lengths: matrices, attention scores, recomputation.

Matrices cost `matching.generation_flops_per_token` forward, and `matching.training_flops_per_token` forward and
backward, over the parameters that are multiplied; what is here comes on top.
"""

from __future__ import annotations

from rlsize.equations._ops import Real, minimum


def matmul_params(active_params: Real, vector_params: Real) -> Real:
    """
    Parameters that a token is multiplied with as a matrix.

    N_mm = N_act - N_v

    Args:
        active_params: Parameters that work on each token, the looked-up input embedding left out, N_act. [param]
        vector_params: Of which norms and biases, which scale or shift, N_v. [param]

    Returns:
        N_mm. [param]

    Assumes the output head works on every token; short convolutions count as matrices, as they take the same FLOPs.
    Source: Kaplan et al., Scaling laws for neural language models, section 2.1, table 1.

    >>> matmul_params(active_params=7504924672, vector_params=266240)
    7504658432
    """
    return active_params - vector_params


def causal_pairs(length: Real, window: Real) -> Real:
    """
    Pairs of a query and a key that it may see, in one sequence.

    P = w s - w^2 / 2, w = min(W, s)

    Args:
        length: Tokens of the sequence, s. [token]
        window: Tokens that a query sees at most, W; the length or more where it sees all before it. [token]

    Returns:
        P. [token^2]

    Assumes the diagonal counts half, so that full attention has s^2 / 2 pairs; the exact count has s / 2 more.
    Source: Dao, FlashAttention-2, section 4.1 (causal attention counts half of the square).

    >>> causal_pairs(length=1000.0, window=1000.0)
    500000.0
    >>> causal_pairs(length=1000.0, window=100.0)
    95000.0
    """
    seen = minimum(window, length)
    return seen * length - seen**2 / 2


def keys_per_query(pairs: Real, tokens: Real) -> Real:
    """
    Keys that the mean token of a mix of sequences is multiplied with.

    c = P / T

    Args:
        pairs: Pairs of a query and a key, over all sequences, P. [token^2]
        tokens: Tokens of all sequences, T. [token]

    Returns:
        c. [token]

    Assumes sequences that see nothing of each other. With all pairs of each, c is sum s^2 / sum s, which long
    sequences dominate: it is more than the mean length.
    Source: Definition: a mean over tokens.

    >>> keys_per_query(pairs=100.0**2 + 300.0**2, tokens=400.0)
    250.0
    """
    return pairs / tokens


def attention_flops_per_token(
    layers: Real, heads: Real, query_key_dim: Real, value_dim: Real, keys_per_query: Real, passes: Real
) -> Real:
    """
    Floating-point work of attention scores, and of the values that they weigh, for one token.

    F = 2 p L n (d_k + d_v) c

    Args:
        layers: Layers that attend, L. [1]
        heads: Query heads, n; sharing keys and values saves none of this work. [1]
        query_key_dim: Width of a head's query and key, d_k. [1]
        value_dim: Width of a head's value, d_v. [1]
        keys_per_query: Keys that the mean token is multiplied with, c. [token]
        passes: Forward passes that it is worth, p: 1 forward, 3 forward and backward. [1]

    Returns:
        F. [FLOP/token]

    Assumes 2 FLOP for each multiplication and addition, and none for softmax, mask and rotary positions. Forward and
    backward with c = s / 2 it is the 6 L n d s of causal attention; with c = s the 12 L n d s of the full square.
    Source: scaling-book, transformers (12 L n d s); Dao, FlashAttention-2, section 4.1 (half of it if causal).

    >>> attention_flops_per_token(
    ...     layers=32, heads=32, query_key_dim=128, value_dim=128, keys_per_query=1024.0, passes=3
    ... )
    1610612736.0
    """
    return 2 * passes * layers * heads * (query_key_dim + value_dim) * keys_per_query
