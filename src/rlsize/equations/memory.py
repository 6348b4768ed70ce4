"""
Memory of the weights and the training state, whole and per GPU.

Activations are in activations, the KV cache is in kv_cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def training_bytes_per_param(
    bytes_per_param: Real, bytes_per_gradient: Real, bytes_per_master: Real, bytes_per_optimizer_state: Real
) -> Real:
    """
    Bytes of training state for each trained parameter.

    k = b + g + m + o

    Args:
        bytes_per_param: Width of a weight in the forward pass, b; 2 for bf16. [B/param]
        bytes_per_gradient: Width of a gradient as it is accumulated, g; 2 for bf16, 4 for fp32. [B/param]
        bytes_per_master: Width of the optimizer's own copy of the weight, m; 4 for fp32, 0 without. [B/param]
        bytes_per_optimizer_state: Optimizer state, o; 8 for Adam's two fp32 moments. [B/param]

    Returns:
        k. [B/param]

    Assumes nothing is offloaded; activations and temporary buffers come on top.
    Source: ZeRO (arXiv:1910.02054), section 3.1 (2 + 2 + 12 for Adam in mixed precision); 18 with fp32 gradients.

    >>> training_bytes_per_param(bytes_per_param=2, bytes_per_gradient=2, bytes_per_master=4,
    ...                          bytes_per_optimizer_state=8)
    16
    """
    return bytes_per_param + bytes_per_gradient + bytes_per_master + bytes_per_optimizer_state


def optimizer_bytes_per_param(bytes_per_master: Real, bytes_per_optimizer_state: Real) -> Real:
    """
    Bytes that an optimizer keeps for each trained parameter, sharded together from ZeRO-1 on.

    o = m + s

    Args:
        bytes_per_master: Width of its own copy of the weight, m; 4 for fp32, 0 without. [B/param]
        bytes_per_optimizer_state: Optimizer state, s; 8 for Adam's two fp32 moments. [B/param]

    Returns:
        o. [B/param]

    Assumes nothing is offloaded.
    Source: ZeRO (arXiv:1910.02054), section 3.1 (12 for Adam in mixed precision).

    >>> optimizer_bytes_per_param(bytes_per_master=4, bytes_per_optimizer_state=8)
    12
    """
    return bytes_per_master + bytes_per_optimizer_state


def trainer_state_bytes(params: Real, training_bytes_per_param: Real) -> Real:
    """
    Bytes of training state of one trained model (policy or critic) over all GPUs.

    S = k N

    Args:
        params: Trained parameters, N. [param]
        training_bytes_per_param: Bytes of training state for each, k; 16 for AdamW with bf16 gradients. [B/param]

    Returns:
        S. [B]

    Assumes one copy of the state, so sharded completely (ZeRO-3, FSDP); data-parallel copies multiply it.
    Source: Designing an RL post-training system, section 1 (16N).

    >>> trainer_state_bytes(params=70e9, training_bytes_per_param=16)
    1120000000000.0
    """
    return params * training_bytes_per_param


def inference_weight_bytes(
    params: Real, bytes_per_param: Real, unquantised_params: Real, bytes_per_unquantised_param: Real
) -> Real:
    """
    Bytes of a frozen copy of the weights: rollout instance, reference or reward model.

    S = b (N - N_u) + b_u N_u

    Args:
        params: Parameters of the model, N. [param]
        bytes_per_param: Width of a weight, b; 2 for bf16, 1 for fp8. [B/param]
        unquantised_params: Parameters that stay wide in a quantised copy (embeddings, norms), N_u; 0 where all are
            alike. [param]
        bytes_per_unquantised_param: Their width, b_u. [B/param]

    Returns:
        S. [B]

    Assumes scaling factors are negligible; every rollout instance holds one such copy.
    Source: Designing an RL post-training system, section 1 (2N); own sum for mixed widths.

    >>> inference_weight_bytes(params=70e9, bytes_per_param=2, unquantised_params=0, bytes_per_unquantised_param=2)
    140000000000.0
    """
    return bytes_per_param * (params - unquantised_params) + bytes_per_unquantised_param * unquantised_params


def mean_weight_width(
    params: Real, bytes_per_param: Real, unquantised_params: Real, bytes_per_unquantised_param: Real
) -> Real:
    """
    Mean bytes of a weight of a quantised copy.

    w = (b (N - N_u) + b_u N_u) / N

    Args:
        params: Parameters of the model, N. [param]
        bytes_per_param: Width of a quantised weight with its scales, b; 0.516 for 4-bit. [B/param]
        unquantised_params: Parameters that stay wide (embeddings, norms), N_u. [param]
        bytes_per_unquantised_param: Their width, b_u. [B/param]

    Returns:
        w. [B/param]

    Assumes parallel ranks cut both kinds alike.
    Source: own sum; QLoRA (arXiv:2305.14314), which quantises linear layers alone.

    >>> mean_weight_width(params=8e9, bytes_per_param=0.5, unquantised_params=1e9, bytes_per_unquantised_param=2)
    0.6875
    """
    return inference_weight_bytes(params, bytes_per_param, unquantised_params, bytes_per_unquantised_param) / params


def params_per_gpu(
    dense_params: Real,
    routed_params: Real,
    tensor_parallel: Real,
    pipeline_parallel: Real,
    expert_parallel: Real,
    expert_tensor_parallel: Real,
) -> Real:
    """
    Parameters that model parallelism leaves on each GPU, before data parallelism shards them.

    n = (N_d / t + N_e / (e t_e)) / p

    Args:
        dense_params: Parameters outside the routed experts, N_d. [param]
        routed_params: Parameters of all routed experts, N_e; 0 for a dense model. [param]
        tensor_parallel: Tensor-parallel degree outside the experts, t. [1]
        pipeline_parallel: Pipeline stages, p. [1]
        expert_parallel: Expert-parallel degree, e. [1]
        expert_tensor_parallel: Tensor-parallel degree within an expert, t_e. [1]

    Returns:
        n. [param]

    Assumes even stages and shards; the stages with the embedding and the output head hold more, and norms are
    replicated.
    Source: Megatron-LM (arXiv:2104.04473), section 3; Megatron Core MoE parallel folding (arXiv:2504.14960) for
    separate expert degrees.

    >>> params_per_gpu(dense_params=8e9, routed_params=64e9, tensor_parallel=4, pipeline_parallel=2, expert_parallel=8,
    ...                expert_tensor_parallel=1)
    5000000000.0
    """
    return (
        dense_params / tensor_parallel + routed_params / (expert_parallel * expert_tensor_parallel)
    ) / pipeline_parallel


def sharded_state_bytes(
    params: Real,
    bytes_per_param: Real,
    bytes_per_gradient: Real,
    bytes_per_optimizer: Real,
    weight_shards: Real,
    gradient_shards: Real,
    optimizer_shards: Real,
) -> Real:
    """
    Bytes of training state on each rank when data parallelism shards some of it: ZeRO-0/1/2/3, FSDP, HSDP.

    s = n (b / d_w + g / d_g + o / d_o)

    Args:
        params: Parameters that model parallelism leaves on the rank, n. [param]
        bytes_per_param: Width of a weight, b. [B/param]
        bytes_per_gradient: Width of a gradient, g. [B/param]
        bytes_per_optimizer: Master copy and optimizer state together, o; 12 for AdamW, 0 when offloaded. [B/param]
        weight_shards: Ranks that share the weights, d_w; 1 for ZeRO-0, 1 and 2. [1]
        gradient_shards: Ranks that share the gradients, d_g; 1 for ZeRO-0 and 1. [1]
        optimizer_shards: Ranks that share master copy and optimizer state, d_o; 1 for ZeRO-0. [1]

    Returns:
        s. [B]

    Assumes even shards. What is gathered for a layer while it runs comes on top (unsharded_layer_bytes).
    Source: ZeRO (arXiv:1910.02054), figure 1: stages 1, 2, 3 shard o, then g, then b.

    >>> sharded_state_bytes(params=7.5e9, bytes_per_param=2, bytes_per_gradient=2, bytes_per_optimizer=12,
    ...                     weight_shards=64, gradient_shards=64, optimizer_shards=64)
    1875000000.0
    """
    per_param = (
        bytes_per_param / weight_shards + bytes_per_gradient / gradient_shards + bytes_per_optimizer / optimizer_shards
    )
    return params * per_param


def unsharded_layer_bytes(
    layer_params: Real, bytes_per_param: Real, bytes_per_gradient: Real, prefetched_layers: Real
) -> Real:
    """
    Bytes that a rank holds unsharded while a layer runs backward under ZeRO-3 or FSDP.

    s = n_l ((1 + q) b + g)

    Args:
        layer_params: Parameters of the largest layer on a rank, n_l. [param]
        bytes_per_param: Width of a weight as gathered, b. [B/param]
        bytes_per_gradient: Width of a gradient before it is reduced, g. [B/param]
        prefetched_layers: Further layers gathered ahead, q. [1]

    Returns:
        s. [B]

    Assumes layers of one size, each its own FSDP unit; an embedding or output head outside the layers may be larger.
    Source: PyTorch FSDP (arXiv:2304.11277), parameter sharding and prefetching; own sum.

    >>> unsharded_layer_bytes(layer_params=0.5e9, bytes_per_param=2, bytes_per_gradient=2, prefetched_layers=1)
    3000000000.0
    """
    return layer_params * ((1.0 + prefetched_layers) * bytes_per_param + bytes_per_gradient)


def optimizer_offload_time(offloaded_bytes: Real, bandwidth: Real) -> Real:
    """
    Time per optimizer step to bring offloaded state from host memory to the GPU and back.

    t = 2 s / B

    Args:
        offloaded_bytes: Bytes kept in host memory for each GPU, s. [B/gpu]
        bandwidth: Link between host and GPU, one direction, B. [B/s/gpu]

    Returns:
        t. [s]

    Assumes the way in and the way out do not overlap and nothing else uses the link; an optimizer that runs on the CPU
    moves gradients and weights instead.
    Source: own derivation; ZeRO-Offload (arXiv:2101.06840) for the variant on the CPU.

    >>> optimizer_offload_time(offloaded_bytes=12e9, bandwidth=50e9)
    0.48
    """
    return 2.0 * offloaded_bytes / bandwidth


def weight_offload_time(
    params: Real, bytes_per_param: Real, bytes_per_gradient: Real, micro_batches: Real, bandwidth: Real
) -> Real:
    """
    Time of a step in which weights that live on the host come to the GPU, and their gradients go back.

    t = m N (2 b + g) / B

    Args:
        params: Parameters that a GPU has the shard of, N. [param/gpu]
        bytes_per_param: Width of a weight on its way, b. [B/param]
        bytes_per_gradient: Width of a gradient on its way, g. [B/param]
        micro_batches: Micro-batches of the step, m. [1]
        bandwidth: Link between host and GPU, one direction, B. [B/s/gpu]

    Returns:
        t. [s]

    Assumes that weights come once for forward and once for backward of each micro-batch, and nothing hides that.
    Source: ZeRO-Infinity (arXiv:2104.07857), section 4, whose reads of parameters and writes of gradients it counts.

    >>> weight_offload_time(params=1e9, bytes_per_param=2, bytes_per_gradient=2, micro_batches=4, bandwidth=48e9)
    0.5
    """
    return micro_batches * params * (2.0 * bytes_per_param + bytes_per_gradient) / bandwidth


def activation_offload_time(
    tokens: Real, layers: Real, hidden_size: Real, bytes_per_activation: Real, hidden_copies: Real, bandwidth: Real
) -> Real:
    """
    Time in which what layers keep goes to the host in forward and comes back in backward.

    t = 2 T L h c b / B

    Args:
        tokens: Tokens of a step on each GPU, T. [token/gpu]
        layers: Layers, L. [1]
        hidden_size: Width of the residual stream, h. [1]
        bytes_per_activation: Width of an activation, b. [B/token]
        hidden_copies: Hidden-sized tensors that a layer keeps of a token, c: 1 under full recomputation. [1]
        bandwidth: Link between host and GPU, one direction, B. [B/s/gpu]

    Returns:
        t. [s]

    Assumes that tensor parallelism shares out what is kept, so that a GPU moves its share of all tokens.
    Source: own derivation; ZeRO-Infinity (arXiv:2104.07857), section 4.2, for the bytes of activation checkpoints.

    >>> activation_offload_time(1e6, 8, hidden_size=4000, bytes_per_activation=2, hidden_copies=1, bandwidth=64e9)
    2.0
    """
    return 2.0 * tokens * layers * hidden_size * hidden_copies * bytes_per_activation / bandwidth


def gpus_needed(sharded_bytes: Real, bytes_on_every_gpu: Real, gpu_memory: Real, usable_fraction: Real) -> Real:
    """
    GPUs at which the bill first fits, before rounding to whole GPUs, nodes or parallel degrees.

    N* = S / (u M - r)

    Args:
        sharded_bytes: Bytes that more GPUs share, S. [B]
        bytes_on_every_gpu: Bytes that each GPU holds however many there are, r: activations, gathered layers, CUDA
            context. [B/gpu]
        gpu_memory: Memory of one GPU, M. [B/gpu]
        usable_fraction: Share of it that may be planned with, u. [1]

    Returns:
        N*. [gpu]

    Assumes even sharding and u M > r; where r alone exceeds the usable memory, no number of GPUs fits.
    Source: own derivation.

    >>> gpus_needed(sharded_bytes=1120e9, bytes_on_every_gpu=8e9, gpu_memory=80e9, usable_fraction=0.9)
    17.5
    """
    return sharded_bytes / (usable_fraction * gpu_memory - bytes_on_every_gpu)
