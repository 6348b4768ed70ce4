"""What moves between the GPUs of a trainer in a step, and how long that takes."""

from __future__ import annotations

from rlsize.equations._ops import Real, maximum, minimum, where


def params_between_shards(dense: Real, experts: Real, dense_ranks: Real, expert_ranks: Real) -> Real:
    """
    Parameters that a group of ranks shares, once model parallelism has dealt them out.

    N = D / k + E / k_e

    Args:
        dense: Parameters that all tokens use, D. [param]
        experts: Parameters of routed experts, E. [param]
        dense_ranks: Ranks that deal out the former, k: tensor x pipeline. [1]
        expert_ranks: Ranks that deal out the latter, k_e: expert x pipeline, or tensor x pipeline. [1]

    Returns:
        N. [param]

    Assumes equal shares.
    Source: definition.

    >>> params_between_shards(dense=8e9, experts=64e9, dense_ranks=2, expert_ranks=8)
    12000000000.0
    """
    return dense / dense_ranks + experts / expert_ranks


def share_of_params(params: Real, ranks: Real) -> Real:
    """
    Parameters that one of the ranks that share them holds.

    n = N / k

    Args:
        params: Parameters, N. [param]
        ranks: Ranks that share them, k. [1]

    Returns:
        n. [param]

    Assumes equal shares.
    Source: definition.

    >>> share_of_params(params=8e9, ranks=64)
    125000000.0
    """
    return params / ranks


def network_bandwidth(
    scale_up: Real, scale_up_fraction: Real, nic: Real, nic_fraction: Real, domain_gpus: Real, stride: Real, ranks: Real
) -> Real:
    """
    Bandwidth that each rank of a collective over sharded weights sees.

    B = f W if t d <= D else min(f W, g X max(1, D / t))

    Args:
        scale_up: Bandwidth of one GPU inside the domain, one direction, W. [B/s]
        scale_up_fraction: Share of it that collectives reach, f. [1]
        nic: Bandwidth of one GPU's network adapter, one direction, X. [B/s]
        nic_fraction: Share of it that collectives reach, g. [1]
        domain_gpus: GPUs that share the fast network, D. [1]
        stride: Ranks of other kinds that lie between two of the group, t: the tensor-parallel ones. [1]
        ranks: Ranks of the group, d. [1]

    Returns:
        B. [B/s]

    Assumes rings over all adapters of a node: what the node lacks comes in once, over all of them, and goes round in
    it.
    Source: NCCL rings with one channel per adapter; rows with small micro-batches over many nodes agree.

    >>> network_bandwidth(scale_up=450e9, scale_up_fraction=0.6, nic=50e9, nic_fraction=0.8, domain_gpus=8,
    ...                   stride=1, ranks=8) / 1e9
    270.0
    >>> network_bandwidth(scale_up=450e9, scale_up_fraction=0.6, nic=50e9, nic_fraction=0.8, domain_gpus=8,
    ...                   stride=8, ranks=8) / 1e9
    40.0
    """
    inside = scale_up_fraction * scale_up
    across = minimum(inside, nic_fraction * nic * maximum(1.0, domain_gpus / stride))
    return where(stride * ranks <= domain_gpus, inside, across)


def sharding_bytes(params: Real, bytes_per_param: Real, collectives: Real, ranks: Real) -> Real:
    """
    Bytes that a rank receives to gather sharded weights, and to reduce and scatter their gradients.

    S = c b N (d - 1) / d

    Args:
        params: Parameters that the group shares, N. [param]
        bytes_per_param: Bytes of a weight or gradient on the wire, b. [B/param]
        collectives: Gathers, and scatters, of all parameters, c. [1]
        ranks: Ranks that share them, d. [1]

    Returns:
        S. [B]

    Assumes weights and gradients of the same width. Full sharding gathers for forward and for backward, and scatters
    once.
    Source: Rajbhandari et al., ZeRO (arXiv:1910.02054), section 7.

    >>> sharding_bytes(params=8e9, bytes_per_param=2, collectives=3, ranks=8) / 1e9
    42.0
    """
    return collectives * bytes_per_param * params * (ranks - 1) / ranks


def sharding_time(
    sharded_bytes: Real, bandwidth: Real, layers: Real, collectives: Real, ranks: Real, hop_seconds: Real
) -> Real:
    """
    Time of the collectives of sharded weights, layer by layer.

    t = S / B + c L (d - 1) a

    Args:
        sharded_bytes: Bytes that a rank receives, S. [B]
        bandwidth: Bandwidth of a rank, B. [B/s]
        layers: Layers, each gathered on its own, L. [1]
        collectives: Collectives for each layer, c. [1]
        ranks: Ranks, d. [1]
        hop_seconds: Time from one rank of the ring to the next, a. [s]

    Returns:
        t. [s]

    Assumes rings: latency grows with the number of ranks.
    Source: Hockney model of a ring (Thakur et al., Optimization of collective communication operations in MPICH).

    >>> sharding_time(sharded_bytes=42e9, bandwidth=300e9, layers=32, collectives=3, ranks=9, hop_seconds=2**-10)
    0.89
    """
    return sharded_bytes / bandwidth + collectives * layers * (ranks - 1) * hop_seconds


def exposed_transfer_time(transfer: Real, exposed_fraction: Real, compute: Real) -> Real:
    """
    Time of a transfer beside computation that makes the step longer.

    t = x C + max(0, (1 - x) C - K)

    Args:
        transfer: Time that the transfer takes alone, C. [s]
        exposed_fraction: Share of it that costs time in any case, x: it slows the kernels beside it, and the first and
            last of a step have nothing to hide behind. [1]
        compute: Computation that it may hide behind, K. [s]

    Returns:
        t. [s]

    Assumes prefetching that is deep enough.
    Source: own derivation.

    >>> exposed_transfer_time(transfer=2.0, exposed_fraction=0.5, compute=10.0)
    1.0
    >>> exposed_transfer_time(transfer=20.0, exposed_fraction=0.5, compute=4.0)
    16.0
    """
    return exposed_fraction * transfer + maximum(0.0, (1 - exposed_fraction) * transfer - compute)


def tensor_parallel_bytes(
    tokens: Real, hidden_size: Real, layers: Real, reductions: Real, ranks: Real, bytes_per_value: Real
) -> Real:
    """
    Bytes that a GPU receives for tensor parallelism.

    S = 2 r L b h T (t - 1)

    Args:
        tokens: Tokens of the step for each GPU, T; a group of t ranks works on t times as many. [token]
        hidden_size: Width of the residual stream, h. [value/token]
        layers: Layers, L. [1]
        reductions: All-reduces of a layer, r: 2 forward, 2 backward, 2 more if forward is computed again. [1]
        ranks: Tensor-parallel ranks, t. [1]
        bytes_per_value: Bytes of a value, b. [B/value]

    Returns:
        S. [B]

    Assumes each all-reduce is a reduce-scatter and an all-gather, as sequence parallelism has them.
    Source: Korthikanti et al., Reducing activation recomputation (arXiv:2205.05198), section 4.2.2.

    >>> tensor_parallel_bytes(tokens=1024, hidden_size=4096, layers=32, reductions=4, ranks=8, bytes_per_value=2)
    15032385536
    """
    return 2 * reductions * layers * bytes_per_value * hidden_size * tokens * (ranks - 1)


def context_parallel_bytes(tokens: Real, kv_bytes_per_token: Real, passes: Real, ranks: Real) -> Real:
    """
    Bytes of keys and values that a GPU receives for context parallelism.

    S = p k T (c - 1)

    Args:
        tokens: Tokens of the step for each GPU, T. [token]
        kv_bytes_per_token: Keys and values of all layers for a token, k. [B/token]
        passes: Times that they go round, p: once forward, twice backward with their gradients. [1]
        ranks: Context-parallel ranks, c. [1]

    Returns:
        S. [B]

    Assumes a ring, or gathers, over all ranks of the context.
    Source: Liu et al., Ring attention (arXiv:2310.01889), section 3.

    >>> context_parallel_bytes(tokens=1024, kv_bytes_per_token=131072, passes=3, ranks=4)
    1207959552
    """
    return passes * kv_bytes_per_token * tokens * (ranks - 1)


def expert_parallel_bytes(
    tokens: Real, hidden_size: Real, layers: Real, copies: Real, exchanges: Real, bytes_per_value: Real
) -> Real:
    """
    Bytes that a GPU sends for expert parallelism.

    S = x L c b h T

    Args:
        tokens: Tokens of the step for each GPU, T. [token]
        hidden_size: Width of the residual stream, h. [value/token]
        layers: Layers with experts, L. [1]
        copies: Copies of each token that are sent, c. [1]
        exchanges: All-to-all exchanges of a layer, x: 2 forward, 2 backward. [1]
        bytes_per_value: Bytes of a value, b. [B/value]

    Returns:
        S. [B]

    Assumes what comes back is as large as what went out.
    Source: Lepikhin et al., GShard (arXiv:2006.16668), section 3.1.

    >>> expert_parallel_bytes(tokens=1024, hidden_size=2048, layers=48, copies=7.0, exchanges=4, bytes_per_value=2)
    5637144576.0
    """
    return exchanges * layers * copies * bytes_per_value * hidden_size * tokens


def repeated_time(seconds: Real, times: Real) -> Real:
    """
    Time of something that happens several times in a step.

    t = n T

    Args:
        seconds: Time of one, T. [s]
        times: How often, n. [1]

    Returns:
        t. [s]

    Assumes all are alike.
    Source: definition.

    >>> repeated_time(seconds=0.5, times=4)
    2.0
    """
    return times * seconds


def exposed_wire_time(sent_bytes: Real, bandwidth: Real, exposed_fraction: Real) -> Real:
    """
    Time that a transfer adds to the kernels on either side of it.

    t = x S / B

    Args:
        sent_bytes: Bytes of one GPU, S. [B]
        bandwidth: Bandwidth reached, B. [B/s]
        exposed_fraction: Share that matrix products beside it do not hide, x: 1 without overlap. [1]

    Returns:
        t. [s]

    Assumes messages large enough that latency does not count.
    Source: definition of a bandwidth.

    >>> exposed_wire_time(sent_bytes=45e9, bandwidth=225e9, exposed_fraction=0.5)
    0.1
    """
    return exposed_fraction * sent_bytes / bandwidth


def exchange_time(tensor: Real, context: Real, expert: Real) -> Real:
    """
    Time of all exchanges inside the layers.

    t = t_t + t_c + t_e

    Args:
        tensor: Of tensor parallelism, t_t. [s]
        context: Of context parallelism, t_c. [s]
        expert: Of expert parallelism, t_e. [s]

    Returns:
        t. [s]

    Assumes they follow each other.
    Source: definition.

    >>> exchange_time(tensor=1.0, context=0.5, expert=0.25)
    1.75
    """
    return tensor + context + expert
