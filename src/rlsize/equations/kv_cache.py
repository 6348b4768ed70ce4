"""The KV cache: bytes per token by kind of attention, bytes of a sequence and of a group, and how many samples fit."""

from __future__ import annotations

from rlsize.equations._ops import Real, minimum


def kv_bytes_per_token(layers: Real, kv_heads: Real, head_dim: Real, bytes_per_value: Real) -> Real:
    """
    KV cache that one token takes in layers of ordinary attention (MHA, GQA, MQA).

    m = 2 L k d b

    Args:
        layers: Layers that keep keys and values, L. [layer]
        kv_heads: Key and value heads per layer, k. [head/layer]
        head_dim: Width of one head, d. [value/head/token]
        bytes_per_value: Width of a cached value, b; 2 for bf16, 1 for fp8. [B/value]

    Returns:
        m. [B/token]

    Assumes one key and one value per KV head, of the same width, without quantisation scales.
    Source: Austin et al., How to scale your model (scaling-book), inference chapter.

    >>> kv_bytes_per_token(layers=32, kv_heads=8, head_dim=128, bytes_per_value=2)
    131072
    """
    return 2 * layers * kv_heads * head_dim * bytes_per_value


def latent_kv_bytes_per_token(layers: Real, kv_lora_rank: Real, qk_rope_head_dim: Real, bytes_per_value: Real) -> Real:
    """
    KV cache that one token takes in layers of multi-head latent attention.

    m = L (r + d_r) b

    Args:
        layers: Layers that keep a latent, L. [layer]
        kv_lora_rank: Width of the compressed key and value, r. [value/token/layer]
        qk_rope_head_dim: Width of the shared rotary key, d_r. [value/token/layer]
        bytes_per_value: Width of a cached value, b; 2 for bf16, 1 for fp8. [B/value]

    Returns:
        m. [B/token]

    Assumes one latent for key and value and for all heads; tensor parallelism does not divide it.
    Source: DeepSeek-V2, section 2.1.4 (table 1).

    >>> latent_kv_bytes_per_token(layers=61, kv_lora_rank=512, qk_rope_head_dim=64, bytes_per_value=2)
    70272
    """
    return layers * (kv_lora_rank + qk_rope_head_dim) * bytes_per_value


def index_bytes_per_token(layers: Real, index_head_dim: Real, bytes_per_value: Real) -> Real:
    """
    Indexer keys that one token adds to the cache under sparse attention.

    m = L d_i b

    Args:
        layers: Layers with an indexer, L. [layer]
        index_head_dim: Width of the one indexer key, d_i. [value/token/layer]
        bytes_per_value: Width of a cached value, b; 2 for bf16, 1 for fp8. [B/value]

    Returns:
        m. [B/token]

    Assumes one key for all indexer heads. Sparse attention reads fewer tokens, yet keeps all of them.
    Source: DeepSeek-V3.2 report, section 2.

    >>> index_bytes_per_token(layers=61, index_head_dim=128, bytes_per_value=2)
    15616
    """
    return layers * index_head_dim * bytes_per_value


def sequence_kv_bytes(
    tokens: Real, kv_bytes_per_token: Real, sliding_bytes_per_token: Real, window: Real, state_bytes: Real
) -> Real:
    """
    Cache of one sequence: all its tokens in full layers, the last ones in sliding layers, a state in recurrent layers.

    M = m s + m_w min(s, w) + M_0

    Args:
        tokens: Length of the sequence, prompt and response, s. [token]
        kv_bytes_per_token: Bytes per token in layers that keep every token, m. [B/token]
        sliding_bytes_per_token: Bytes per token in sliding layers, m_w; 0 without any. [B/token]
        window: Tokens that a sliding layer keeps, w. [token]
        state_bytes: State of the recurrent layers, M_0; 0 without any. [B]

    Returns:
        M. [B]

    Assumes an engine that frees what has left the window, and no rounding up to whole blocks. At a mean length it
    overstates the mean of sliding layers a little, because min(s, w) is concave.
    Source: Beltagy et al., Longformer, section 3.1 (window); Kwon et al., PagedAttention, section 4 (blocks).

    >>> sequence_kv_bytes(4096, kv_bytes_per_token=24576, sliding_bytes_per_token=24576, window=128, state_bytes=0)
    103809024
    """
    return kv_bytes_per_token * tokens + sliding_bytes_per_token * minimum(tokens, window) + state_bytes


def mean_live_tokens(prompt_tokens: Real, response_tokens: Real, response_cv: Real) -> Real:
    """
    Mean length of a sample in flight, at a random moment of steady generation.

    s = p + l (1 + c^2) / 2

    Args:
        prompt_tokens: Mean prompt length, p. [token]
        response_tokens: Mean response length of finished samples, l. [token]
        response_cv: Coefficient of variation of response lengths, c. [1]

    Returns:
        s. [token]

    Assumes slots refilled at once and the same time per token for all; long samples are seen in flight more often than
    short ones, so this exceeds p + l / 2 as soon as lengths vary.
    Source: renewal theory, mean age E[X^2] / (2 E[X]) (Cox, Renewal theory, section 5.4).

    >>> mean_live_tokens(prompt_tokens=300, response_tokens=3200, response_cv=0.8)
    2924.0
    """
    return prompt_tokens + response_tokens * (1.0 + response_cv**2) / 2.0


def max_concurrency(kv_budget_bytes: Real, sequence_kv_bytes: Real) -> Real:
    """
    Samples that an instance can generate at the same time before its KV cache is full, before rounding down.

    b = M_kv / M

    Args:
        kv_budget_bytes: Memory left for the cache on the instance, M_kv. [B]
        sequence_kv_bytes: Cache of one sample at its mean live length, M. [B/sample]

    Returns:
        b. [sample]

    Assumes an even mix of young and old samples; live lengths fluctuate, so plan with about 90 % of the budget, or
    expect preemptions.
    Source: Kwon et al., PagedAttention, section 3 (the cache limits the batch).

    >>> max_concurrency(kv_budget_bytes=40e9, sequence_kv_bytes=0.4e9)
    100.0
    """
    return kv_budget_bytes / sequence_kv_bytes
