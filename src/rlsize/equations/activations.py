"""Activation memory of the trainer: what a layer keeps for the backward pass, attention scores, logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def gated_mlp_hidden_copies(attention_copies: Real, intermediate_size: Real, hidden_size: Real) -> Real:
    """
    Hidden-sized tensors that a layer with a gated MLP (SwiGLU) keeps for the backward pass.

    c = c_0 + 4 f / h

    Args:
        attention_copies: Copies outside the MLP's inner width, c_0; about 14. [1]
        intermediate_size: Inner width of the MLP that works on a token, f: for MoE, experts per token times their
            width. [1]
        hidden_size: Width of the residual stream, h. [1]

    Returns:
        c. [1]

    Assumes four inner tensors are kept (gate, up, activated gate, product) and flash attention; c_0 is set so that
    Llama-3.1-8B (f / h = 3.5) has the 28 copies measured for it.
    Source: stas00/ml-engineering, training memory of Llama-3.1-8B at 32k tokens (28 copies); own split into two terms.

    >>> gated_mlp_hidden_copies(attention_copies=14, intermediate_size=14336, hidden_size=4096)
    28.0
    """
    return attention_copies + 4.0 * intermediate_size / hidden_size


def mean_mlp_width(
    layers: Real,
    dense_layers: Real,
    dense_width: Real,
    dense_matrices: Real,
    moe_layers: Real,
    working_width: Real,
    moe_matrices: Real,
) -> Real:
    """
    Inner width of the MLP that works on a token, averaged over the layers and counted as that of a gated one.

    f = (L_d f_d (m_d - 1) + L_m f_m (m_m - 1)) / (2 L)

    Args:
        layers: Layers of the model, L. [layer]
        dense_layers: Layers with a dense MLP, L_d; 0 without. [layer]
        dense_width: Inner width of a dense MLP, f_d. [1]
        dense_matrices: Weight matrices of a dense MLP, m_d: 3 for a gated one, 2 for a plain one. [1]
        moe_layers: Layers with experts, L_m; 0 without. [layer]
        working_width: Inner width of the experts that work on a token, f_m. [1]
        moe_matrices: Weight matrices of an expert, m_m. [1]

    Returns:
        f. [1]

    Assumes a plain MLP keeps half of the inner tensors of a gated one: it has no gate and no product.
    Source: own count of the tensors in gated_mlp_hidden_copies.

    >>> mean_mlp_width(layers=61, dense_layers=3, dense_width=18432, dense_matrices=3, moe_layers=58,
    ...                working_width=18432, moe_matrices=3)
    18432.0
    """
    inner = dense_layers * dense_width * (dense_matrices - 1) + moe_layers * working_width * (moe_matrices - 1)
    return inner / (2.0 * layers)


def tokens_per_context_rank(micro_batch_tokens: Real, context_parallel: Real) -> Real:
    """
    Tokens of a micro batch on each of the ranks that share its sequences.

    T = T_m / c

    Args:
        micro_batch_tokens: Tokens of the micro batch, T_m. [token]
        context_parallel: Context-parallel ranks, c. [1]

    Returns:
        T. [token]

    Assumes even shares, as context parallelism deals them out by zigzag.
    Source: Llama 3 (arXiv:2407.21783), section 3.3.2.

    >>> tokens_per_context_rank(micro_batch_tokens=131072, context_parallel=16)
    8192.0
    """
    return micro_batch_tokens / context_parallel


def activation_bytes_per_layer(
    tokens: Real,
    hidden_size: Real,
    bytes_per_activation: Real,
    replicated_copies: Real,
    sequence_parallel: Real,
    sharded_copies: Real,
    tensor_parallel: Real,
) -> Real:
    """
    Bytes that one layer keeps on each GPU for the backward pass, attention scores not counted.

    s = T h b (c_r / q + c_s / t)

    Args:
        tokens: Tokens of the micro batch on this GPU's data-parallel rank, T. [token]
        hidden_size: Width of the residual stream, h. [1]
        bytes_per_activation: Width of an activation, b; 2 for bf16. [B/token]
        replicated_copies: Hidden-sized tensors that tensor parallelism alone does not shard, c_r. [1]
        sequence_parallel: Ways in which sequence parallelism shards those, q; 1 without, t with. [1]
        sharded_copies: Hidden-sized tensors that tensor parallelism shards, c_s. [1]
        tensor_parallel: Tensor-parallel degree, t. [1]

    Returns:
        s. [B]

    Assumes flash attention or selective recomputation. A GELU layer with dropout has c_r = 5 and c_s = 12; full
    recomputation keeps the layer's input only: c_r = 1 and c_s = 0.
    Source: Korthikanti et al. (arXiv:2205.05198), table 2: s b h (10 + 24 / t), 34 s b h / t with sequence parallelism,
    2 s b h.

    >>> activation_bytes_per_layer(tokens=2048, hidden_size=12288, bytes_per_activation=2,
    ...                            replicated_copies=5, sequence_parallel=8, sharded_copies=12, tensor_parallel=8)
    106954752.0
    """
    return (
        tokens
        * hidden_size
        * bytes_per_activation
        * (replicated_copies / sequence_parallel + sharded_copies / tensor_parallel)
    )


def activation_bytes(layers: Real, bytes_per_layer: Real, working_bytes: Real) -> Real:
    """
    Bytes of activations on one GPU at the peak of the backward pass.

    A = L s + w

    Args:
        layers: Layers on this GPU, L. [layer]
        bytes_per_layer: Bytes that each keeps until its backward pass, s. [B/layer]
        working_bytes: Bytes of the layer being recomputed, w; 0 without recomputation. [B]

    Returns:
        A. [B]

    Assumes one micro batch in flight; pipeline stages hold up to as many as there are stages behind them.
    Source: Chen et al., Training deep nets with sublinear memory cost (arXiv:1604.06174), section 4.

    >>> activation_bytes(layers=32, bytes_per_layer=268e6, working_bytes=7.5e9)
    16076000000.0
    """
    return layers * bytes_per_layer + working_bytes


def logits_bytes(tokens: Real, vocab_size: Real, bytes_per_logit: Real, tensor_parallel: Real) -> Real:
    """
    Bytes of the logits and of what the loss keeps beside them.

    s = T V b / t

    Args:
        tokens: Tokens whose logits exist at the same time, T: the micro batch, or a chunk of it where the loss is
            chunked. [token]
        vocab_size: Entries of the vocabulary, V. [1]
        bytes_per_logit: bf16 logits, their fp32 copy and its gradient, b: 2 + 4 + 4 = 10; less where fused. [B/token]
        tensor_parallel: Degree in which the vocabulary is sharded, t. [1]

    Returns:
        s. [B]

    Assumes all logits are materialised; a fused or chunked loss keeps a chunk only.
    Source: stas00/ml-engineering, training memory, logits; own sum of widths.

    >>> logits_bytes(tokens=8192, vocab_size=128256, bytes_per_logit=10, tensor_parallel=1)
    10506731520.0
    """
    return tokens * vocab_size * bytes_per_logit / tensor_parallel


def logit_width(bytes_per_logit: Real, kept_share: Real, entropy_share: Real) -> Real:
    """
    Bytes of a logit where the loss keeps less of it than usual, or an entropy more.

    b' = b (k + e)

    Args:
        bytes_per_logit: Bytes that a loss which is not fused keeps of each logit, b. [B/token]
        kept_share: Share of it that this pass keeps, k: 0.4 where one kernel works the loss out in place. [1]
        entropy_share: What the graph of an entropy adds, e; 0 without one. [1]

    Returns:
        b'. [B/token]

    Assumes the entropy is worked out on whole logits, not on chunks of them.
    Source: stas00/ml-engineering, training memory, logits (2 + 4 + 4); flash-attn, ops/triton/cross_entropy.py (2 + 2);
    own sum.

    >>> logit_width(bytes_per_logit=10, kept_share=0.4, entropy_share=0)
    4.0
    """
    return bytes_per_logit * (kept_share + entropy_share)
