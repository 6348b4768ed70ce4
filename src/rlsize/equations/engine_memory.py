"""The memory of an inference engine's GPU at start-up: weights, the profiling run, and what is left for the KV cache."""

from __future__ import annotations

from rlsize.equations._ops import Real, floor, maximum, minimum, where


def visible_memory(memory: Real, binary_share: Real, visible_share: Real) -> Real:
    """
    Memory of a GPU that a process sees.

    M = M_0 u v

    Args:
        memory: Memory as the data sheet or the driver states it, M_0. [B]
        binary_share: What a stated gigabyte holds over a decimal one, u: 1.0737 where chips of binary size are sold
            by the GB, 1 where the number is exact. [1]
        visible_share: Share that driver and error correction leave, v. [1]

    Returns:
        M. [B]

    Assumes no other process on the GPU.
    Source: logs of vLLM, total_gpu_memory: 39.38 GiB of an A100 40 GB (vllm-project/vllm issue 16570).

    >>> visible_memory(memory=80e9, binary_share=1.0, visible_share=0.99)
    79200000000.0
    """
    return memory * binary_share * visible_share


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
    return params + head_params * (maximum(tensor_parallel / kv_heads, 1.0) - 1.0) + whole_params * (tensor_parallel - 1.0)


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


def engine_other_bytes(process_bytes: Real, communicator_bytes: Real, gpus: Real) -> Real:
    """
    Memory that an engine loses on each GPU to libraries, and to communicators where it has several GPUs.

    O = o + c [g > 1]

    Args:
        process_bytes: Workspaces of libraries, and for engines that count it the CUDA context, o. [B]
        communicator_bytes: Buffers of NCCL and of custom collectives, c. [B]
        gpus: GPUs of the engine, g. [1]

    Returns:
        O. [B]

    Assumes the communicators' size does not depend on their number of ranks.
    Source: ai-dynamo/aiconfigurator, systems: 342 to 392 MiB of NCCL for 2 to 8 GPUs.

    >>> engine_other_bytes(process_bytes=2e8, communicator_bytes=4e8, gpus=8)
    600000000.0
    """
    return process_bytes + where(gpus > 1, communicator_bytes, 0.0)


def profiled_kv_budget(
    memory: Real,
    memory_fraction: Real,
    weight_bytes: Real,
    activation_bytes: Real,
    graph_bytes: Real,
    other_bytes: Real,
) -> Real:
    """
    KV cache of an engine that measures what it needs and caches in the rest of its share (vLLM).

    K = max(f M - W - A - G - O, 0)

    Args:
        memory: Memory that the process sees, M. [B]
        memory_fraction: Share of it that the engine may use, f. [1]
        weight_bytes: Weights on the GPU, W. [B]
        activation_bytes: Peak of temporary tensors in the profiling run, A. [B]
        graph_bytes: CUDA graphs, G; 0 where the version does not count them. [B]
        other_bytes: Libraries and communicators, O. [B]

    Returns:
        K. [B]

    Assumes an otherwise empty GPU.
    Source: vLLM 0.32, v1/worker/gpu_worker.py (determine_available_memory).

    >>> profiled_kv_budget(memory=80e9, memory_fraction=0.9, weight_bytes=16e9, activation_bytes=2e9, graph_bytes=1e9,
    ...                    other_bytes=1e9)
    52000000000.0
    """
    return maximum(
        memory_fraction * memory - weight_bytes - activation_bytes - graph_bytes - other_bytes, 0.0 * weight_bytes
    )


def static_kv_budget(memory: Real, memory_fraction: Real, weight_bytes: Real, other_bytes: Real) -> Real:
    """
    KV cache of an engine whose share holds weights and cache, while activations and graphs stay outside it (SGLang).

    K = max(f (M - O) - W, 0)

    Args:
        memory: Memory that the process sees, M. [B]
        memory_fraction: Share for weights and cache, f (mem_fraction_static). [1]
        weight_bytes: Weights on the GPU, W. [B]
        other_bytes: CUDA context, libraries and communicators, gone before the weights are loaded, O. [B]

    Returns:
        K. [B]

    Assumes an otherwise empty GPU.
    Source: SGLang, model_runner.py (profile_max_num_token).

    >>> static_kv_budget(memory=80e9, memory_fraction=0.8, weight_bytes=16e9, other_bytes=0)
    48000000000.0
    """
    return maximum(memory_fraction * (memory - other_bytes) - weight_bytes, 0.0 * weight_bytes)


def leftover_kv_budget(
    memory: Real, memory_fraction: Real, weight_bytes: Real, activation_bytes: Real, other_bytes: Real
) -> Real:
    """
    KV cache of an engine that takes a share of what is free once the model is loaded (TensorRT-LLM).

    K = f max(M - W - A - O, 0)

    Args:
        memory: Memory that the process sees, M. [B]
        memory_fraction: Share of the free memory, f (free_gpu_memory_fraction). [1]
        weight_bytes: Weights on the GPU, W. [B]
        activation_bytes: Peak of temporary tensors, A. [B]
        other_bytes: CUDA context, libraries and communicators, O. [B]

    Returns:
        K. [B]

    Assumes an otherwise empty GPU.
    Source: TensorRT-LLM documentation, memory usage (free_gpu_memory_fraction, 0.9 of the free memory).

    >>> leftover_kv_budget(memory=80e9, memory_fraction=0.9, weight_bytes=16e9, activation_bytes=2e9, other_bytes=2e9)
    54000000000.0
    """
    return memory_fraction * maximum(memory - weight_bytes - activation_bytes - other_bytes, 0.0 * weight_bytes)


def sequence_bytes_per_gpu(
    attention_bytes: Real,
    kv_heads: Real,
    index_bytes: Real,
    state_bytes: Real,
    state_heads: Real,
    tensor_parallel: Real,
    pipeline_parallel: Real,
) -> Real:
    """
    Cache of one sequence on each GPU of its instance.

    m = (M_a / min(t, k) + M_i + M_s / min(t, n)) / p

    Args:
        attention_bytes: Keys and values of the sequence, M_a. [B]
        kv_heads: KV heads, k; 1 for a latent, which every rank holds whole. [1]
        index_bytes: Indexer keys, held whole by every rank, M_i. [B]
        state_bytes: Recurrent and convolution states, M_s. [B]
        state_heads: Heads of those states, n. [1]
        tensor_parallel: Tensor-parallel ranks, t. [1]
        pipeline_parallel: Pipeline stages, p. [1]

    Returns:
        m. [B]

    Assumes heads dealt out evenly and kept more than once beyond their number, and even stages.
    Source: Pope et al., Efficiently scaling transformer inference, section 3.3; own sum.

    >>> sequence_bytes_per_gpu(attention_bytes=4e9, kv_heads=4, index_bytes=0, state_bytes=8e8, state_heads=32,
    ...                        tensor_parallel=8, pipeline_parallel=1)
    1100000000.0
    """
    attention = attention_bytes / minimum(tensor_parallel, kv_heads)
    return (attention + index_bytes + state_bytes / minimum(tensor_parallel, state_heads)) / pipeline_parallel


def cache_tokens(
    kv_budget: Real, sequence_bytes: Real, sequence_tokens: Real, block_tokens: Real, data_parallel: Real
) -> Real:
    """
    Tokens that the KV cache of a replica holds, as sequences of one length.

    n = d g floor(K s / (m g))

    Args:
        kv_budget: Cache on each GPU, K. [B]
        sequence_bytes: Cache of one sequence on each GPU, m. [B]
        sequence_tokens: Tokens of such a sequence, s. [token]
        block_tokens: Tokens of a block, g. [token]
        data_parallel: Data-parallel ranks of attention, each with a cache of its own, d. [1]

    Returns:
        n. [token]

    Assumes whole blocks. Where every layer sees the whole context, the length does not matter.
    Source: vLLM 0.32, v1/core/kv_cache_utils.py (get_kv_cache_capacity); Kwon et al., PagedAttention, section 4.

    >>> cache_tokens(kv_budget=60e9, sequence_bytes=1e9, sequence_tokens=8192, block_tokens=16, data_parallel=1)
    491520.0
    """
    return data_parallel * block_tokens * floor(kv_budget * sequence_tokens / (sequence_bytes * block_tokens))


def held_sequences(kv_budget: Real, sequence_bytes: Real, data_parallel: Real, most_sequences: Real) -> Real:
    """
    Sequences that a replica can work on at once: as its cache holds, and as its scheduler allows.

    b = d min(floor(K / m), R)

    Args:
        kv_budget: Cache on each GPU, K. [B]
        sequence_bytes: Cache of one sequence at its mean live length on each GPU, m. [B]
        data_parallel: Data-parallel ranks of attention, each with cache and scheduler of its own, d. [1]
        most_sequences: Most sequences that one scheduler runs, R. [1]

    Returns:
        b. [1]

    Assumes an even mix of young and old sequences.
    Source: Kwon et al., PagedAttention, section 3; vLLM, max_num_seqs.

    >>> held_sequences(kv_budget=60e9, sequence_bytes=1e9, data_parallel=2, most_sequences=256)
    120.0
    """
    return data_parallel * minimum(floor(kv_budget / sequence_bytes), most_sequences)


def kv_projection_params(layers: Real, hidden_size: Real, kv_heads: Real, head_dim: Real) -> Real:
    """
    Parameters of the projections to keys and values, which are copied where ranks outnumber KV heads.

    N = 2 L h k d

    Args:
        layers: Layers with such attention, L. [1]
        hidden_size: Width of the residual stream, h. [1]
        kv_heads: KV heads per layer, k. [1]
        head_dim: Width of one head, d. [1]

    Returns:
        N. [1]

    Assumes no bias.
    Source: Ainslie et al., GQA (arXiv:2305.13245), section 2.

    >>> kv_projection_params(layers=32, hidden_size=4096, kv_heads=8, head_dim=128)
    268435456
    """
    return 2 * layers * hidden_size * kv_heads * head_dim


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
