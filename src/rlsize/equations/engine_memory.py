"""What an engine's GPU holds before its KV cache: weights, and the temporary tensors of its profiling run."""

from __future__ import annotations

from rlsize.equations._ops import Real, maximum


def params_with_copies(
    params: Real, head_params: Real, kv_heads: Real, whole_params: Real, tensor_parallel: Real
) -> Real:
    """
    Parameters that a tensor-parallel group holds, what it holds more than once included.

    N' = N + N_k (max(t / k, 1) - 1) + N_r (t - 1)

    Args:
        params: Parameters, each counted once, N. [param]
        head_params: Of these, the projections to keys and values, N_k. [param]
        kv_heads: KV heads, k: with more ranks than those, each head is held by several. [1]
        whole_params: Of these, what every rank holds whole: projections into latents, routers, N_r. [param]
        tensor_parallel: Ranks, t. [1]

    Returns:
        N'. [param]

    Assumes whole heads.
    Source: vLLM 0.32, model_executor/layers/linear.py (QKVParallelLinear, ReplicatedLinear).

    >>> params_with_copies(params=9e9, head_params=1e9, kv_heads=4, whole_params=0, tensor_parallel=8)
    10000000000.0
    """
    return (
        params + head_params * (maximum(tensor_parallel / kv_heads, 1.0) - 1.0) + whole_params * (tensor_parallel - 1.0)
    )


def engine_weight_bytes(
    attention_params: Real,
    attention_width: Real,
    dense_params: Real,
    dense_width: Real,
    wide_params: Real,
    wide_width: Real,
    routed_params: Real,
    routed_width: Real,
    tensor_parallel: Real,
    data_parallel: Real,
    pipeline_parallel: Real,
    overhead: Real,
) -> Real:
    """
    Bytes of the weights on each GPU of an engine.

    W = u ((b_a N_a + b_d N_d + b_w N_w) / t + b_e N_e / (t d)) / p

    Args:
        attention_params: Parameters of token mixing, copies included, N_a. [param]
        attention_width: Their width, b_a. [B/param]
        dense_params: Parameters of MLPs that every token uses, N_d. [param]
        dense_width: Their width, b_d. [B/param]
        wide_params: Embedding, output head, norms and routers, copies included, N_w. [param]
        wide_width: Their width, b_w. [B/param]
        routed_params: Parameters of routed experts, N_e. [param]
        routed_width: Their width, scaling factors included, b_e. [B/param]
        tensor_parallel: Tensor-parallel ranks, t. [1]
        data_parallel: Data-parallel ranks of attention within the engine, d; they share the experts. [1]
        pipeline_parallel: Pipeline stages, p. [1]
        overhead: Padding and buffers, as a factor, u. [1]

    Returns:
        W. [B]

    Assumes even stages, and experts dealt out over all ranks of a stage, whole or sliced.
    Source: own sum over Megatron-LM (arXiv:2104.04473), section 3, and vLLM's documentation of expert parallelism.

    >>> engine_weight_bytes(attention_params=1e9, attention_width=2, dense_params=5e9, dense_width=2, wide_params=1e9,
    ...                     wide_width=2, routed_params=0, routed_width=2, tensor_parallel=2, data_parallel=1,
    ...                     pipeline_parallel=1, overhead=1.0)
    7000000000.0
    """
    shared = attention_width * attention_params + dense_width * dense_params + wide_width * wide_params
    experts = routed_width * routed_params / (tensor_parallel * data_parallel)
    return overhead * (shared / tensor_parallel + experts) / pipeline_parallel


def profiled_activation_bytes(
    batched_tokens: Real,
    bytes_per_activation: Real,
    hidden_size: Real,
    hidden_copies: Real,
    mlp_width: Real,
    tensor_parallel: Real,
    sequences: Real,
    vocab_size: Real,
    bytes_per_logit: Real,
) -> Real:
    """
    Peak of temporary tensors in an engine's profiling run: one layer at its largest batch, or the sampler after it.

    A = max(T b (c h + 3 f / t), R V b_l)

    Args:
        batched_tokens: Most tokens of one step, T. [token]
        bytes_per_activation: Width of an activation, b; 2 for bf16. [B/token]
        hidden_size: Width of the residual stream, h. [1]
        hidden_copies: Tensors of that width alive at once, c; for a mixture of experts also one for each expert of
            a token. [1]
        mlp_width: Inner width that works on a token, f: gate, up and their product are alive at once. [1]
        tensor_parallel: Tensor-parallel ranks, t. [1]
        sequences: Most sequences of one step, R. [1]
        vocab_size: Entries of the vocabulary, V; gathered on every rank. [1]
        bytes_per_logit: Logits in bf16 and fp32, sorted, their places and their probabilities, b_l. [B]

    Returns:
        A. [B]

    Assumes no layer keeps anything for a backward pass, and no vision tower.
    Source: vLLM 0.32, v1/worker/gpu_model_runner.py (profile_run, _dummy_sampler_run); own count of tensors.

    >>> profiled_activation_bytes(batched_tokens=8192, bytes_per_activation=2, hidden_size=4096, hidden_copies=4,
    ...                           mlp_width=14336, tensor_parallel=1, sequences=256, vocab_size=128256,
    ...                           bytes_per_logit=24)
    973078528.0
    """
    layer = batched_tokens * bytes_per_activation * (hidden_copies * hidden_size + 3.0 * mlp_width / tensor_parallel)
    return maximum(layer, sequences * vocab_size * bytes_per_logit)


def working_copies(stream_copies: Real, experts_per_token: Real) -> Real:
    """
    Tensors of the residual stream's width that one layer of an engine holds at once.

    c = c_0 + k

    Args:
        stream_copies: Those of any layer, c_0. [1]
        experts_per_token: Experts that work on a token, k: each returns a row of its own; 0 for a dense model. [1]

    Returns:
        c. [1]

    Assumes the rows of all experts of a token exist before they are summed.
    Source: vLLM 0.32, model_executor/layers/fused_moe (intermediate_cache3).

    >>> working_copies(stream_copies=4, experts_per_token=8)
    12
    """
    return stream_copies + experts_per_token


def kv_projection_params(layers: Real, hidden_size: Real, kv_heads: Real, head_dim: Real, kv_projections: Real) -> Real:
    """
    Parameters of the projections to keys and values, which are copied where ranks outnumber KV heads.

    N = p L h k d

    Args:
        layers: Layers with such attention, L. [1]
        hidden_size: Width of the residual stream, h. [1]
        kv_heads: KV heads per layer, k. [1]
        head_dim: Width of one head, d. [1]
        kv_projections: Projections of a layer, p: 2; 1 where keys are values; 0 where a layer reads the cache of
            another. [1]

    Returns:
        N. [1]

    Assumes no bias.
    Source: Ainslie et al., GQA (arXiv:2305.13245), section 2.

    >>> kv_projection_params(layers=32, hidden_size=4096, kv_heads=8, head_dim=128, kv_projections=2)
    268435456
    """
    return kv_projections * layers * hidden_size * kv_heads * head_dim


def latent_projection_params(
    layers: Real, hidden_size: Real, q_lora_rank: Real, kv_lora_rank: Real, qk_rope_head_dim: Real
) -> Real:
    """
    Parameters of the projections into latents, which every tensor-parallel rank holds whole.

    N = L h (r_q + r + d_r)

    Args:
        layers: Layers of latent attention, L. [1]
        hidden_size: Width of the residual stream, h. [1]
        q_lora_rank: Width of the compressed query, r_q; 0 where it is not compressed. [1]
        kv_lora_rank: Width of the compressed key and value, r. [1]
        qk_rope_head_dim: Width of the shared rotary key, d_r. [1]

    Returns:
        N. [1]

    Assumes no bias; the indexer of sparse attention is not counted.
    Source: DeepSeek-V2, section 2.1.2; vLLM 0.32, model_executor/models/deepseek_v2.py (replicated projections).

    >>> latent_projection_params(layers=61, hidden_size=7168, q_lora_rank=1536, kv_lora_rank=512, qk_rope_head_dim=64)
    923467776
    """
    return layers * hidden_size * (q_lora_rank + kv_lora_rank + qk_rope_head_dim)


def engine_gpus(tensor: Real, pipeline: Real, data: Real) -> Real:
    """
    GPUs of one replica of an engine.

    g = t p d

    Args:
        tensor: Tensor-parallel ranks, t. [1]
        pipeline: Pipeline stages, p. [1]
        data: Data-parallel ranks of attention, d. [1]

    Returns:
        g. [1]

    Assumes expert parallelism uses these same GPUs.
    Source: vLLM documentation, data parallel deployment.

    >>> engine_gpus(tensor=2, pipeline=1, data=4)
    8
    """
    return tensor * pipeline * data


def both(one: Real, other: Real) -> Real:
    """
    Two parts of one thing together.

    s = a + b

    Args:
        one: The one part, a. [B]
        other: The other part, b. [B]

    Returns:
        s. [B]

    Assumes neither is contained in the other.
    Source: counting.

    >>> both(one=3, other=4)
    7
    """
    return one + other


def in_gib(size: Real) -> Real:
    """
    A size in binary gigabytes, as engines log it.

    g = M / 2^30

    Args:
        size: Size, M. [B]

    Returns:
        g. [B]

    Assumes nothing.
    Source: IEC 80000-13.

    >>> in_gib(size=2**31)
    2.0
    """
    return size / 2.0**30


def attention_ranks(tensor_parallel: Real, data_parallel: Real, expert_parallel: Real) -> Real:
    """
    Data-parallel ranks of attention within an engine.

    d' = max(d, e / t)

    Args:
        tensor_parallel: Tensor-parallel ranks, t. [1]
        data_parallel: Data-parallel ranks as stated, d. [1]
        expert_parallel: Expert-parallel ranks, e. [1]

    Returns:
        d'. [1]

    Assumes that expert parallelism beyond the tensor-parallel ranks means attention in data parallel over the others.
    Source: vLLM documentation, expert parallel deployment (EP size = TP size x DP size).

    >>> attention_ranks(tensor_parallel=2, data_parallel=1, expert_parallel=8)
    4.0
    """
    return maximum(data_parallel, expert_parallel / tensor_parallel)
