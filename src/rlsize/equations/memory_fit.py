"""Whether a bill of memory fits: sums over a fleet, shares of a GPU, what is left for the KV cache, adapter widths."""

from __future__ import annotations

from rlsize.equations._ops import Real, ceil, where


def fleet_weight_bytes(instances: Real, instance_weight_bytes: Real) -> Real:
    """
    Bytes of rollout weights over the fleet.

    S = n s

    Args:
        instances: Rollout instances, n. [instance]
        instance_weight_bytes: Weights of one instance over all its GPUs, s. [B/instance]

    Returns:
        S. [B]

    Assumes every instance holds a whole copy of its own.
    Source: Designing an RL post-training system, section 1 (a separate copy for inference).

    >>> fleet_weight_bytes(instances=4, instance_weight_bytes=140e9)
    560000000000.0
    """
    return instances * instance_weight_bytes


def fleet_kv_bytes(instances: Real, concurrency: Real, sample_kv_bytes: Real) -> Real:
    """
    Bytes of KV cache that the samples in flight take over the fleet.

    M = n b m

    Args:
        instances: Rollout instances, n. [instance]
        concurrency: Samples generated at the same time on one instance, b. [sample/instance]
        sample_kv_bytes: Cache of one sample at its mean live length, m. [B/sample]

    Returns:
        M. [B]

    Assumes no sample shares blocks with another, the safe side: prefix caching stores the prompt of a group once.
    Engines reserve the rest of the memory for the cache as well, used or not.
    Source: own sum; Kwon et al., PagedAttention, section 3.

    >>> fleet_kv_bytes(instances=4, concurrency=64, sample_kv_bytes=0.5e9)
    128000000000.0
    """
    return instances * concurrency * sample_kv_bytes


def budget_left(gpu_memory: Real, usable_fraction: Real, held_bytes: Real) -> Real:
    """
    Memory left on each GPU; below zero where the bill does not fit.

    f = u M - s

    Args:
        gpu_memory: Memory of one GPU, M. [B/gpu]
        usable_fraction: Share of it that may be planned with, u. [1]
        held_bytes: Bytes held on each GPU, s: weights, states, activations, what the runtime keeps. [B/gpu]

    Returns:
        f. [B/gpu]

    Assumes no fragmentation beyond what u leaves out.
    Source: own sum; vLLM's gpu_memory_utilization has the same meaning.

    >>> budget_left(gpu_memory=80e9, usable_fraction=0.9, held_bytes=40e9)
    32000000000.0
    """
    return usable_fraction * gpu_memory - held_bytes


def trainer_gpus(data_parallel: Real, tensor_parallel: Real, pipeline_parallel: Real, context_parallel: Real) -> Real:
    """
    GPUs of a trainer from its degrees of parallelism.

    N = d t p c

    Args:
        data_parallel: Data-parallel ranks, d. [1]
        tensor_parallel: Tensor-parallel ranks, t. [1]
        pipeline_parallel: Pipeline stages, p. [1]
        context_parallel: Context-parallel ranks, c. [1]

    Returns:
        N. [1]

    Assumes expert parallelism reuses these ranks and adds none.
    Source: Megatron Core MoE parallel folding (arXiv:2504.14960).

    >>> trainer_gpus(data_parallel=4, tensor_parallel=8, pipeline_parallel=2, context_parallel=1)
    64
    """
    return data_parallel * tensor_parallel * pipeline_parallel * context_parallel


def data_parallel_ranks(gpus: Real, tensor_parallel: Real, pipeline_parallel: Real, context_parallel: Real) -> Real:
    """
    Data-parallel ranks that a trainer's GPUs leave room for.

    d = N / (t p c)

    Args:
        gpus: GPUs of the trainer, N. [gpu]
        tensor_parallel: Tensor-parallel ranks, t. [1]
        pipeline_parallel: Pipeline stages, p. [1]
        context_parallel: Context-parallel ranks, c. [1]

    Returns:
        d. [gpu]

    Assumes the product of the three divides the GPUs.
    Source: Megatron Core MoE parallel folding (arXiv:2504.14960).

    >>> data_parallel_ranks(gpus=64, tensor_parallel=8, pipeline_parallel=2, context_parallel=1)
    4.0
    """
    return gpus / (tensor_parallel * pipeline_parallel * context_parallel)


def layers_per_stage(layers: Real, pipeline_parallel: Real) -> Real:
    """
    Layers of the fullest pipeline stage.

    l = ⌈L / p⌉

    Args:
        layers: Layers of the model, L. [1]
        pipeline_parallel: Pipeline stages, p. [1]

    Returns:
        l. [1]

    Assumes that stages are as even as whole layers allow; the last one, which holds the head, has what is left.
    Source: Megatron-LM (arXiv:2104.04473), section 2.2; DeepSeek-V3 (arXiv:2412.19437) has 61 layers in 16 stages.

    >>> layers_per_stage(layers=80, pipeline_parallel=4)
    20.0
    >>> layers_per_stage(layers=61, pipeline_parallel=16)
    4.0
    """
    return ceil(layers / pipeline_parallel)


def even_stages(layers: Real, stage_layers: Real) -> Real:
    """
    Even pipeline stages that would each hold as much as the fullest of uneven ones.

    p' = L / l

    Args:
        layers: Layers of the model, L. [1]
        stage_layers: Layers of the fullest stage, l. [1]

    Returns:
        p'. [1]

    Assumes layers of equal size.
    Source: definition.

    >>> even_stages(layers=60, stage_layers=4)
    15.0
    """
    return layers / stage_layers


def ranks_with_same_slice(
    data_parallel: Real,
    context_parallel: Real,
    tensor_parallel: Real,
    expert_parallel: Real,
    expert_tensor_parallel: Real,
) -> Real:
    """
    Ranks that hold the same slice of the weights, over which ZeRO and FSDP can shard the training state.

    r = d c t / (e t_e)

    Args:
        data_parallel: Data-parallel ranks that shard together, d. [1]
        context_parallel: Context-parallel ranks, c; they hold the same weights. [1]
        tensor_parallel: Tensor-parallel ranks, t. [1]
        expert_parallel: Expert-parallel ranks, e; 1 for weights outside the experts. [1]
        expert_tensor_parallel: Ways in which tensor parallelism slices these weights, t_e; t outside the experts. [1]

    Returns:
        r. [1]

    Assumes expert parallelism reuses the ranks of data, context and tensor parallelism.
    Source: Megatron Core MoE parallel folding (arXiv:2504.14960); torchtitan shards over data and context ranks alike.

    >>> ranks_with_same_slice(data_parallel=8, context_parallel=2, tensor_parallel=4, expert_parallel=8,
    ...                       expert_tensor_parallel=1)
    8.0
    """
    return data_parallel * context_parallel * tensor_parallel / (expert_parallel * expert_tensor_parallel)


def params_outside_experts(params: Real, routed_params: Real) -> Real:
    """
    Parameters outside the routed experts.

    N_d = N - N_e

    Args:
        params: Parameters in total, N. [param]
        routed_params: Parameters of all routed experts, N_e. [param]

    Returns:
        N_d. [param]

    Assumes nothing.
    Source: counting.

    >>> params_outside_experts(params=72e9, routed_params=64e9)
    8000000000.0
    """
    return params - routed_params


def mean_layer_params(params: Real, outer_params: Real, layers: Real) -> Real:
    """
    Parameters of a layer, on average.

    n_l = (N - N_o) / L

    Args:
        params: Parameters of all layers and of what stands outside them, N. [param]
        outer_params: Parameters outside the layers (embedding, output head), N_o. [param]
        layers: Layers, L. [layer]

    Returns:
        n_l. [param/layer]

    Assumes layers of about one size.
    Source: counting.

    >>> mean_layer_params(params=8.03e9, outer_params=1.05e9, layers=32)
    218125000.0
    """
    return (params - outer_params) / layers


def attention_adapted_widths(hidden_size: Real, heads: Real, kv_heads: Real, head_dim: Real) -> Real:
    """
    Input plus output widths of the four projections of an attention layer, for adapters on all of them.

    w = 4 h + 2 d (n + k)

    Args:
        hidden_size: Width of the residual stream, h. [1]
        heads: Query heads, n. [1]
        kv_heads: Key and value heads, k. [1]
        head_dim: Width of one head, d. [1]

    Returns:
        w. [1]

    Assumes one matrix each for query, key, value and output.
    Source: Hu et al., LoRA, section 4.2; own sum.

    >>> attention_adapted_widths(hidden_size=4096, heads=32, kv_heads=8, head_dim=128)
    26624
    """
    return 4 * hidden_size + 2 * head_dim * (heads + kv_heads)


def latent_attention_adapted_widths(
    hidden_size: Real,
    heads: Real,
    q_lora_rank: Real,
    kv_lora_rank: Real,
    qk_nope_head_dim: Real,
    qk_rope_head_dim: Real,
    v_head_dim: Real,
) -> Real:
    """
    Input plus output widths of the projections of a layer of multi-head latent attention, for adapters on all of them.

    w = h + 2 r_q + n (d_c + d_r) + h + 2 r_k + d_r + n (d_c + d_v) + n d_v + h;
    where the query is not compressed (r_q = 0), one matrix of h and n (d_c + d_r) stands for the first two

    Args:
        hidden_size: Width of the residual stream, h. [1]
        heads: Heads, n. [1]
        q_lora_rank: Width of the compressed query, r_q; 0 where it is not compressed. [1]
        kv_lora_rank: Width of the compressed key and value, r_k. [1]
        qk_nope_head_dim: Width of a head's query and key without position, d_c. [1]
        qk_rope_head_dim: Width of a head's query with rotary position, and of the one shared key, d_r. [1]
        v_head_dim: Width of a head's value, d_v. [1]

    Returns:
        w. [1]

    Assumes adapters on compressions and expansions alike.
    Source: DeepSeek-V2, section 2.1.2 (the matrices); own sum.

    >>> latent_attention_adapted_widths(7168, 128, 1536, 512, 128, 64, 128)
    99392
    """
    query_width = heads * (qk_nope_head_dim + qk_rope_head_dim)
    query = hidden_size + query_width + where(q_lora_rank > 0, 2 * q_lora_rank, 0)
    compression = hidden_size + kv_lora_rank + qk_rope_head_dim
    expansion = kv_lora_rank + heads * (qk_nope_head_dim + v_head_dim)
    return query + compression + expansion + heads * v_head_dim + hidden_size


def mlp_adapted_widths(hidden_size: Real, intermediate_size: Real, matrices: Real) -> Real:
    """
    Input plus output widths of the matrices of an MLP, for adapters on all of them.

    w = m (h + f)

    Args:
        hidden_size: Width of the residual stream, h. [1]
        intermediate_size: Width inside the MLP, f. [1]
        matrices: Weight matrices, m: 3 for a gated MLP, 2 for a plain one. [1]

    Returns:
        w. [1]

    Assumes each matrix leads from one width to the other.
    Source: Hu et al., LoRA, section 4.2; own sum.

    >>> mlp_adapted_widths(hidden_size=4096, intermediate_size=14336, matrices=3)
    55296
    """
    return matrices * (hidden_size + intermediate_size)
