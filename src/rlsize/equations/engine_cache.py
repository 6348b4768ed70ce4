"""What an engine's GPU has for its KV cache at start-up, and how much that holds."""

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


def with_drafter(amount: Real, layers: Real) -> Real:
    """
    Bytes of a model with a drafter beside it: one layer more.

    m' = m (1 + 1 / L)

    Args:
        amount: Of the model alone, m. [B]
        layers: Its layers, L. [1]

    Returns:
        m'. [B]

    Assumes the drafter shares embeddings and head with the model, and that its layer is like the others.
    Source: DeepSeek-V3 report (arXiv:2412.19437), section 2.2.

    >>> with_drafter(amount=64e9, layers=64)
    65000000000.0
    """
    return amount * (1 + 1 / layers)


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


def static_share(memory: Real, fixed_bytes: Real, batched_tokens: Real, bytes_per_token: Real) -> Real:
    """
    Share of the memory for weights and cache of an engine that sets the rest aside for its largest step (SGLang).

    f = 1 - (a + b T) / M

    Args:
        memory: Memory that the process sees, M. [B]
        fixed_bytes: Set aside whatever the step, a. [B]
        batched_tokens: Most tokens of a step, T. [token]
        bytes_per_token: Set aside for each of them, b. [B/token]

    Returns:
        f. [1]

    Assumes that nobody sets the share by hand.
    Source: SGLang, server_args.py, as recalled: 512 MB, 1.5 MB per token of a prefill chunk, 2 MB per graph sequence.

    >>> static_share(memory=80e9, fixed_bytes=1e9, batched_tokens=8192, bytes_per_token=1.5e6)
    0.8339
    """
    return 1.0 - (fixed_bytes + batched_tokens * bytes_per_token) / memory
