"""
Parameters of the parts of a transformer, one layer at a time.

A parameter is one entry of a weight matrix or vector, so widths and counts alike are pure numbers here.
"""

from __future__ import annotations

from rlsize.equations._ops import Real, where


def attention_params(hidden_size: Real, heads: Real, kv_heads: Real, head_dim: Real, kv_projections: Real) -> Real:
    """
    Weights of one attention layer: query, key, value and output projection.

    N = h d (2 n + p k)

    Args:
        hidden_size: Width of the residual stream, h. [1]
        heads: Query heads, n. [1]
        kv_heads: Key and value heads, k; n for multi-head attention. [1]
        head_dim: Width of one head, d. [1]
        kv_projections: Projections to keys and values, p: 2; 1 where keys are values; 0 where a layer reads
            the cache of another. [1]

    Returns:
        N. [1]

    Assumes no biases, norms or gates; each has an equation of its own.
    Source: Ainslie et al., GQA: training generalized multi-query transformer models, section 2.

    >>> attention_params(hidden_size=4096, heads=32, kv_heads=8, head_dim=128, kv_projections=2)
    41943040
    """
    return hidden_size * head_dim * (2 * heads + kv_projections * kv_heads)


def layer_embedding_params(vocab_size: Real, layers: Real, layer_embedding_size: Real) -> Real:
    """
    Parameters of the embeddings that each layer has of its own, of which a token looks one row up.

    N = V L e

    Args:
        vocab_size: Rows, V. [1]
        layers: Layers, L. [1]
        layer_embedding_size: Width of a layer's own embedding, e. [1]

    Returns:
        N. [1]

    Assumes the vocabulary of the model.
    Source: modelling code of gemma4 in Hugging Face Transformers.

    >>> layer_embedding_params(vocab_size=262144, layers=30, layer_embedding_size=256)
    2013265920
    """
    return vocab_size * layers * layer_embedding_size


def layer_input_params(hidden_size: Real, layers: Real, layer_embedding_size: Real) -> Real:
    """
    Parameters by which layers take in embeddings of their own: a projection for all; gate, projection and norm each.

    N = L h (3 e + 1) + e

    Args:
        hidden_size: Width of the residual stream, h. [1]
        layers: Layers, L. [1]
        layer_embedding_size: Width of a layer's own embedding, e. [1]

    Returns:
        N. [1]

    Assumes no biases, and a norm over one such embedding that all layers share.
    Source: modelling code of gemma4 in Hugging Face Transformers.

    >>> layer_input_params(hidden_size=2304, layers=30, layer_embedding_size=256)
    53153536
    """
    return layers * hidden_size * (3 * layer_embedding_size + 1) + layer_embedding_size


def qkv_bias_params(heads: Real, kv_heads: Real, head_dim: Real) -> Real:
    """
    Biases of the query, key and value projections of one attention layer.

    N = d (n + 2 k)

    Args:
        heads: Query heads, n. [1]
        kv_heads: Key and value heads, k. [1]
        head_dim: Width of one head, d. [1]

    Returns:
        N. [1]

    Assumes one bias per output of each projection.
    Source: Qwen2.5 technical report, section 2 (QKV bias).

    >>> qkv_bias_params(heads=28, kv_heads=4, head_dim=128)
    4608
    """
    return head_dim * (heads + 2 * kv_heads)


def qk_norm_params(query_width: Real, key_width: Real) -> Real:
    """
    Scales of the norms of queries and keys of one attention layer.

    N = w_q + w_k

    Args:
        query_width: Entries that one query norm spans, w_q: one head, or all heads together. [1]
        key_width: Entries that one key norm spans, w_k: one head, or all KV heads together. [1]

    Returns:
        N. [1]

    Assumes RMSNorm (no bias), its scales shared by all heads where it spans one head.
    Source: Qwen3 technical report, section 2 (over a head); 2 OLMo 2 Furious, section 2 (over all heads).

    >>> qk_norm_params(query_width=128, key_width=128)
    256
    """
    return query_width + key_width


def output_gate_params(hidden_size: Real, heads: Real, head_dim: Real) -> Real:
    """
    Weights of the gate that a projection of the input puts on the output of one attention layer.

    N = h n d

    Args:
        hidden_size: Width of the residual stream, h. [1]
        heads: Query heads, n. [1]
        head_dim: Width of one head, d. [1]

    Returns:
        N. [1]

    Assumes one gate per entry of every head, without bias.
    Source: Qiu et al., Gated attention for large language models, section 2; modelling code of qwen3_next.

    >>> output_gate_params(hidden_size=2048, heads=16, head_dim=256)
    8388608
    """
    return hidden_size * heads * head_dim


def latent_attention_params(
    hidden_size: Real,
    heads: Real,
    q_lora_rank: Real,
    kv_lora_rank: Real,
    qk_nope_head_dim: Real,
    qk_rope_head_dim: Real,
    v_head_dim: Real,
) -> Real:
    """
    Parameters of one layer of multi-head latent attention: compressions, expansions, output projection and their norms.

    N = h r_q + r_q n (d_c + d_r) + r_q + h (r_k + d_r) + r_k n (d_c + d_v) + r_k + n d_v h;
    where the query is not compressed (r_q = 0), h n (d_c + d_r) stands for the first three terms

    Args:
        hidden_size: Width of the residual stream, h. [1]
        heads: Heads, n. [1]
        q_lora_rank: Width of the compressed query, r_q; 0 where it is not compressed. [1]
        kv_lora_rank: Width of the compressed key and value, r_k. [1]
        qk_nope_head_dim: Width of a head's query and key without position, d_c. [1]
        qk_rope_head_dim: Width of a head's query with rotary position, and of the one shared key, d_r. [1]
        v_head_dim: Width of a head's value, d_v. [1]

    Returns:
        N. [1]

    Assumes no biases, and one RMSNorm on each compressed vector.
    Source: DeepSeek-V2, section 2.1.2 and appendix C.

    >>> latent_attention_params(7168, 128, 1536, 512, 128, 64, 128)
    187107328
    """
    query_dim = heads * (qk_nope_head_dim + qk_rope_head_dim)
    compressed = hidden_size * q_lora_rank + q_lora_rank * query_dim + q_lora_rank
    query = where(q_lora_rank > 0, compressed, hidden_size * query_dim)
    key_value = hidden_size * (kv_lora_rank + qk_rope_head_dim) + kv_lora_rank
    expansion = kv_lora_rank * heads * (qk_nope_head_dim + v_head_dim)
    return query + key_value + expansion + heads * v_head_dim * hidden_size


def indexer_params(hidden_size: Real, q_lora_rank: Real, index_heads: Real, index_head_dim: Real) -> Real:
    """
    Parameters of one layer's indexer, which picks the tokens that sparse attention reads.

    N = r_q n_i d_i + h d_i + h n_i + 2 d_i

    Args:
        hidden_size: Width of the residual stream, h. [1]
        q_lora_rank: Width of the compressed query that it reads, r_q. [1]
        index_heads: Heads of the indexer, n_i. [1]
        index_head_dim: Width of one of them, d_i. [1]

    Returns:
        N. [1]

    Assumes one key for all heads with a LayerNorm (scale and bias), and one weight per head computed from the input.
    Source: DeepSeek-V3.2 report, section 2 (lightning indexer), and the inference code published with it.

    >>> indexer_params(hidden_size=7168, q_lora_rank=1536, index_heads=64, index_head_dim=128)
    13959424
    """
    queries = q_lora_rank * index_heads * index_head_dim
    return queries + hidden_size * index_head_dim + hidden_size * index_heads + 2 * index_head_dim


def mlp_params(hidden_size: Real, intermediate_size: Real, matrices: Real) -> Real:
    """
    Weights of one MLP, or of one expert.

    N = m h f

    Args:
        hidden_size: Width of the residual stream, h. [1]
        intermediate_size: Width inside the MLP, f. [1]
        matrices: Weight matrices, m: 3 for a gated MLP (SwiGLU), 2 for a plain one. [1]

    Returns:
        N. [1]

    Assumes no biases.
    Source: Shazeer, GLU variants improve transformer, section 2.

    >>> mlp_params(hidden_size=4096, intermediate_size=14336, matrices=3)
    176160768
    """
    return matrices * hidden_size * intermediate_size


def mlp_bias_params(hidden_size: Real, intermediate_size: Real, matrices: Real) -> Real:
    """
    Biases of one MLP, or of one expert.

    N = (m - 1) f + h

    Args:
        hidden_size: Width of the residual stream, h. [1]
        intermediate_size: Width inside the MLP, f. [1]
        matrices: Weight matrices, m: 3 for a gated MLP, 2 for a plain one. [1]

    Returns:
        N. [1]

    Assumes one bias per output of each matrix; one matrix leads back to the residual stream.
    Source: gpt-oss model card, section 2 (experts with biases).

    >>> mlp_bias_params(hidden_size=2880, intermediate_size=2880, matrices=3)
    8640
    """
    return (matrices - 1) * intermediate_size + hidden_size


def embedding_params(vocab_size: Real, hidden_size: Real) -> Real:
    """
    Weights of an input embedding, or of an output head.

    N = V h

    Args:
        vocab_size: Rows, V, padding included. [1]
        hidden_size: Width of the residual stream, h. [1]

    Returns:
        N. [1]

    Assumes a full matrix; with tied embeddings both are the same one and it counts once.
    Source: Press and Wolf, Using the output embedding to improve language models, section 3.

    >>> embedding_params(vocab_size=128256, hidden_size=4096)
    525336576
    """
    return vocab_size * hidden_size


def norm_params(hidden_size: Real, norms: Real, vectors_per_norm: Real) -> Real:
    """
    Parameters of norms over the residual stream.

    N = k v h

    Args:
        hidden_size: Width of the residual stream, h. [1]
        norms: Norms, k. [1]
        vectors_per_norm: Learned vectors of each, v: 1 for RMSNorm, 2 for LayerNorm with a bias. [1]

    Returns:
        N. [1]

    Assumes every norm spans the whole residual stream.
    Source: Zhang and Sennrich, Root mean square layer normalization, section 3.

    >>> norm_params(hidden_size=4096, norms=65, vectors_per_norm=1)
    266240
    """
    return norms * vectors_per_norm * hidden_size


def stacked_params(layers: Real, layer_params: Real) -> Real:
    """
    Parameters of a stack of like layers.

    N = L N_l

    Args:
        layers: Layers of the kind, L. [layer]
        layer_params: Parameters of one of them, N_l. [param/layer]

    Returns:
        N. [param]

    Assumes layers of one shape.
    Source: counting.

    >>> stacked_params(layers=32, layer_params=41943040)
    1342177280
    """
    return layers * layer_params


def lora_params(rank: Real, adapted_widths: Real) -> Real:
    """
    Trainable parameters of LoRA adapters.

    N = r sum(d_in + d_out)

    Args:
        rank: Rank of the adapters, r. [1]
        adapted_widths: Input width plus output width, summed over the adapted matrices. [1]

    Returns:
        N. [1]

    Assumes the same rank on every adapted matrix.
    Source: Hu et al., LoRA: low-rank adaptation of large language models, section 4.

    >>> lora_params(rank=16, adapted_widths=32 * (4096 + 4096))
    4194304
    """
    return rank * adapted_widths
