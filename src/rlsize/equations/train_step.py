"""
Time of an optimizer step beside its kernels: micro-batches, pipeline bubble, host, optimizer, stragglers; and the sums.

The kernels are in `train_step_kernels`, what moves between GPUs in `train_step_traffic`.
"""

from __future__ import annotations

from rlsize.equations._ops import Real, log, maximum


def micro_batches(replica_tokens: Real, micro_batch_tokens: Real) -> Real:
    """
    Micro-batches of a step on one model replica, one at least.

    M = max(1, T / m)

    Args:
        replica_tokens: Tokens of the step for each data-parallel replica, T. [token]
        micro_batch_tokens: Tokens of a micro-batch, m. [token]

    Returns:
        M. [1]

    Assumes micro-batches that are packed full, so that their number need not be whole.
    Source: definition.

    >>> micro_batches(replica_tokens=65536, micro_batch_tokens=16384)
    4.0
    """
    return maximum(1.0, replica_tokens / micro_batch_tokens)


def pipeline_bubble_time(
    busy: Real, stages: Real, even_stages: Real, micro_batches: Real, virtual_stages: Real
) -> Real:
    """
    Time that a pipeline stage of mean work waits: for the first and the last micro-batch, and for the fullest stage.

    t = T (e - 1) + e T (p - 1) / (v M), e = p / p'

    Args:
        busy: Time that it works, T. [s]
        stages: Pipeline stages, p. [1]
        even_stages: Even stages that would be as full as the fullest, p'. [1]
        micro_batches: Micro-batches, M. [1]
        virtual_stages: Chunks of layers that each stage holds, v: 1 unless interleaved. [1]

    Returns:
        t. [s]

    Assumes the 1F1B schedule, at the pace of the fullest stage.
    Source: Narayanan et al., Efficient large-scale language model training (arXiv:2104.04473), section 2.2; uneven
    stages: own count.

    >>> pipeline_bubble_time(busy=8.0, stages=8, even_stages=8, micro_batches=14, virtual_stages=2)
    2.0
    >>> pipeline_bubble_time(busy=8.0, stages=4, even_stages=3.2, micro_batches=10, virtual_stages=1)
    5.0
    """
    fullest = stages / even_stages
    return busy * (fullest - 1) + fullest * busy * (stages - 1) / (virtual_stages * micro_batches)


def kernel_launch_time(micro_batches: Real, layers: Real, passes: Real, seconds_per_layer: Real) -> Real:
    """
    Time that the host takes to launch the kernels of a step.

    t = M L p a

    Args:
        micro_batches: Micro-batches, M. [1]
        layers: Layers on the GPU, L. [1]
        passes: Passes, backward counted as two, p. [1]
        seconds_per_layer: To launch one layer's kernels of one pass, a. [s]

    Returns:
        t. [s]

    Assumes the GPU waits where the host is slower, and else hides it.
    Source: own derivation; ai-dynamo/aiconfigurator@095f58a5 measures 20 us for a launch outside of graphs.

    >>> kernel_launch_time(micro_batches=4, layers=32, passes=3, seconds_per_layer=0.00025)
    0.096
    """
    return micro_batches * layers * passes * seconds_per_layer


def experts_launch_time(experts: Real, ranks: Real, seconds_per_expert: Real) -> Real:
    """
    Time of the host to launch the kernels of a layer's experts that are launched one by one.

    t = E / e a

    Args:
        experts: Routed experts of a layer, E. [1]
        ranks: Expert-parallel ranks, e. [1]
        seconds_per_expert: Time for the kernels of one in one pass, a. [s]

    Returns:
        t. [s]

    Assumes an equal share of the experts on each rank.
    Source: definition.

    >>> experts_launch_time(experts=128, ranks=8, seconds_per_expert=0.25)
    4.0
    """
    return experts / ranks * seconds_per_expert


def host_wait(host: Real, busy: Real) -> Real:
    """
    Time that the GPU waits for the host.

    w = max(0, H - T)

    Args:
        host: Time that the host takes to launch the work, H. [s]
        busy: Time that the GPU takes to do it, T. [s]

    Returns:
        w. [s]

    Assumes launches run ahead of the GPU as far as it takes.
    Source: definition.

    >>> host_wait(host=3.0, busy=2.0), host_wait(host=1.0, busy=2.0)
    (1.0, 0.0)
    """
    return maximum(0.0, host - busy)


def optimizer_update_time(params: Real, bytes_per_param: Real, bandwidth: Real, memory_fraction: Real) -> Real:
    """
    Time of the optimizer's update on one GPU.

    t = b N / (f B)

    Args:
        params: Parameters that the GPU updates, N. [param]
        bytes_per_param: Bytes of gradient, weight and states, read and written, b. [B/param]
        bandwidth: Memory bandwidth, B. [B/s]
        memory_fraction: Share of it that such kernels reach, f. [1]

    Returns:
        t. [s]

    Assumes fused kernels that touch each state once.
    Source: roofline of kernels that compute little.

    >>> optimizer_update_time(params=1e9, bytes_per_param=30, bandwidth=3e12, memory_fraction=0.8)
    0.0125
    """
    return bytes_per_param * params / (memory_fraction * bandwidth)


def update_bytes_per_param(bytes_per_gradient: Real, bytes_per_weight: Real, bytes_per_state: Real) -> Real:
    """
    Bytes that the update of a parameter reads and writes.

    S = g + w + 2 o

    Args:
        bytes_per_gradient: Bytes of the gradient, read, g. [B/param]
        bytes_per_weight: Bytes of the weight, written, w. [B/param]
        bytes_per_state: Bytes of the optimizer's copy and moments, read and written, o. [B/param]

    Returns:
        S. [B/param]

    Assumes nothing is read twice.
    Source: definition.

    >>> update_bytes_per_param(bytes_per_gradient=4, bytes_per_weight=2, bytes_per_state=12)
    30
    """
    return bytes_per_gradient + bytes_per_weight + 2 * bytes_per_state


def straggling_time(busy: Real, nodes: Real, fraction_per_doubling: Real) -> Real:
    """
    Time that all nodes wait for the slowest.

    t = x T max(0, log2 n)

    Args:
        busy: Time that a node works on the step, T. [s]
        nodes: Nodes, n. [1]
        fraction_per_doubling: Share of the time that each doubling of the nodes adds, x. [1]

    Returns:
        t. [s]

    Assumes nodes that vary a little and independently: the slowest of many is later with the logarithm of their number.
    Source: order statistics of a light-tailed spread.

    >>> round(straggling_time(busy=10.0, nodes=8, fraction_per_doubling=0.005), 6)
    0.15
    """
    return fraction_per_doubling * busy * maximum(0.0, log(nodes) / log(2.0))


def pass_time(
    matmul: Real, attention: Real, elementwise: Real, exchanged: Real, host_wait: Real, gathering: Real, bubble: Real
) -> Real:
    """
    Time of one pass over the tokens of a step: forward and backward, or forward alone.

    T = m + a + e + x + h + g + b

    Args:
        matmul: Matrix products, the reading of experts included, m. [s]
        attention: Attention scores, a. [s]
        elementwise: Norms, activation functions, quantisation, loss, e. [s]
        exchanged: What tensor, context and expert parallelism exchange, x. [s]
        host_wait: Waiting for the host, h. [s]
        gathering: Collectives of sharded weights and gradients that nothing hides, g. [s]
        bubble: Waiting in the pipeline, b. [s]

    Returns:
        T. [s]

    Assumes they follow each other on the GPU; what overlaps was taken off before.
    Source: definition.

    >>> pass_time(matmul=5.0, attention=1.0, elementwise=1.0, exchanged=0.5, host_wait=0.0, gathering=0.5, bubble=0.0)
    8.0
    """
    return matmul + attention + elementwise + exchanged + host_wait + gathering + bubble


def update_time(pass_seconds: Real, loss: Real, straggling: Real, optimizer: Real, offload: Real, fixed: Real) -> Real:
    """
    Time of the update: forward and backward over all micro-batches, then the optimizer.

    U = T + l + s + o + f + c

    Args:
        pass_seconds: Forward and backward, T. [s]
        loss: What is lost on top of it, l. [s]
        straggling: Waiting for the slowest node, s. [s]
        optimizer: The optimizer's own work, o. [s]
        offload: Moving its states from and to the host, f. [s]
        fixed: What does not depend on the tokens: logging, norms of gradients, the loader, c. [s]

    Returns:
        U. [s]

    Assumes the optimizer waits for the last gradient.
    Source: definition.

    >>> update_time(pass_seconds=8.0, loss=0.0, straggling=0.25, optimizer=0.5, offload=0.0, fixed=0.25)
    9.0
    """
    return pass_seconds + loss + straggling + optimizer + offload + fixed


def trainer_busy_time(update: Real, updates: Real, forwards: Real) -> Real:
    """
    Time that the trainer works on an optimizer step, its extra forward passes included.

    t = E U + F

    Args:
        update: Time of one update over the tokens of the step, U. [s]
        updates: Times that the tokens are trained on, E. [1]
        forwards: Passes that only read the weights: old and reference log-probabilities, values, rewards, F. [s]

    Returns:
        t. [s]

    Assumes each extra pass runs once, whatever the number of updates.
    Source: definition; Schulman et al., PPO (arXiv:1707.06347), algorithm 1.

    >>> trainer_busy_time(update=20.0, updates=2, forwards=10.0)
    50.0
    """
    return update * updates + forwards


def slowdown_loss(seconds: Real, slowdown: Real) -> Real:
    """
    Time lost on top of a time, for reasons that no single term accounts for.

    t = (x - 1) T

    Args:
        seconds: The time without, T. [s]
        slowdown: How many times longer it takes, x. [1]

    Returns:
        t. [s]

    Assumes the loss grows with the work: ragged micro-batches, uneven ranks, small kernels.
    Source: definition.

    >>> slowdown_loss(seconds=10.0, slowdown=1.25)
    2.5
    """
    return (slowdown - 1) * seconds


def model_replicas(gpus: Real, gpus_per_replica: Real) -> Real:
    """
    Data-parallel replicas of the model.

    d = G / r

    Args:
        gpus: GPUs of the trainer, G. [1]
        gpus_per_replica: GPUs of one replica, tensor x pipeline x context parallel, r. [1]

    Returns:
        d. [1]

    Assumes all GPUs are used.
    Source: definition.

    >>> model_replicas(gpus=64, gpus_per_replica=16)
    4.0
    """
    return gpus / gpus_per_replica


def trained_sequence_tokens(prompt_tokens: Real, response_tokens: Real) -> Real:
    """
    Tokens of a sequence that the trainer works on.

    s = p + r

    Args:
        prompt_tokens: Mean length of prompts, p. [token]
        response_tokens: Mean length of responses, r. [token]

    Returns:
        s. [token]

    Assumes each sample carries its own prompt; trainers do not share prefixes.
    Source: definition.

    >>> trained_sequence_tokens(prompt_tokens=500.0, response_tokens=1500.0)
    2000.0
    """
    return prompt_tokens + response_tokens


def trained_sequence_cv(response_cv: Real, prompt_tokens: Real, response_tokens: Real) -> Real:
    """
    Standard deviation of the lengths of trained sequences over their mean.

    v = v_r r / (p + r)

    Args:
        response_cv: Standard deviation of response lengths over their mean, v_r. [1]
        prompt_tokens: Mean length of prompts, p. [token]
        response_tokens: Mean length of responses, r. [token]

    Returns:
        v. [1]

    Assumes prompts of one length.
    Source: definition of the coefficient of variation.

    >>> trained_sequence_cv(response_cv=1.0, prompt_tokens=500.0, response_tokens=1500.0)
    0.75
    """
    return response_cv * response_tokens / (prompt_tokens + response_tokens)


def forward_share_time(update: Real, passes: Real) -> Real:
    """
    Time of passes that only read the weights, by what an update of the same tokens takes.

    T = F u / 3

    Args:
        update: Time of the update, u. [s]
        passes: Passes that only read the weights, F. [1]

    Returns:
        T. [s]

    Assumes that nothing is recomputed, so that an update is a forward pass and a backward one of twice its work, and
    that both keep the GPUs as busy. Recomputing makes the share smaller.
    Source: 2 N operations a token forward, 4 N backward (Kaplan et al., arXiv:2001.08361, section 2.1).

    >>> forward_share_time(update=30.0, passes=2.0)
    20.0
    """
    return passes * update / 3.0


def time_share(part: Real, whole: Real) -> Real:
    """
    Share of a time that one of its parts takes.

    x = t / T

    Args:
        part: Time of the part, t. [s]
        whole: The time, T. [s]

    Returns:
        x. [1]

    Assumes the part lies within the whole.
    Source: definition.

    >>> time_share(part=5.0, whole=20.0)
    0.25
    """
    return part / whole
