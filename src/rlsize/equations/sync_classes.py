"""What a weight update takes by the class of its transport: set-up, pieces, handling of bytes, links, quantisation."""

from __future__ import annotations

from rlsize.equations._ops import Real, ceil, log, maximum


def handled_sync_time(
    fixed_seconds: Real,
    pieces: Real,
    seconds_per_piece: Real,
    sync_bytes: Real,
    handling_rate: Real,
    link_seconds: Real,
    quantised_bytes: Real,
    quantising_rate: Real,
    handling_ratio: Real,
) -> Real:
    """
    Time of one weight update, affine in its bytes.

    t = k (a + n c + S / R + S_q / Q) + t_l

    Args:
        fixed_seconds: Time whatever the size: remote calls, barriers, waking engines, a. [s]
        pieces: Tensors or buckets that are sent one by one, n. [1]
        seconds_per_piece: Time that each costs whatever its size, c. [s]
        sync_bytes: Bytes of one copy on the wire, S. [B]
        handling_rate: Bytes that gathering, renaming and loading get through, R. [B/s]
        link_seconds: Time on the slowest link, t_l. [s]
        quantised_bytes: Bytes of the weights before a conversion on the way, S_q; 0 without. [B]
        quantising_rate: Bytes that this conversion gets through, Q. [B/s]
        handling_ratio: Times longer that a stack takes for all but the link, k. [1]

    Returns:
        t. [s]

    Assumes the parts follow each other; where they overlap a fitted rate R has that in it.
    Source: Hockney, The communication challenge for MPP (Parallel Computing 20, 1994), for the affine form; own sum.

    >>> handled_sync_time(fixed_seconds=3, pieces=0, seconds_per_piece=0, sync_bytes=140e9, handling_rate=10e9,
    ...                   link_seconds=3, quantised_bytes=0, quantising_rate=20e9, handling_ratio=1)
    20.0
    """
    handled = (
        fixed_seconds + pieces * seconds_per_piece + sync_bytes / handling_rate + quantised_bytes / quantising_rate
    )
    return handling_ratio * handled + link_seconds


def weight_tensors(layers: Real, tensors_per_layer: Real, moe_layers: Real, experts: Real, matrices: Real) -> Real:
    """
    Tensors of a checkpoint, each expert's matrices counted one by one.

    n = L a + L_m E m + 3

    Args:
        layers: Layers, L. [1]
        tensors_per_layer: Tensors of a layer beside routed experts, a. [1]
        moe_layers: Layers with experts, L_m. [1]
        experts: Routed experts per layer, E. [1]
        matrices: Matrices of an expert, m. [1]

    Returns:
        n. [1]

    Assumes names as Hugging Face checkpoints have them, with embedding, final norm and output head.
    Source: counted from the modelling code of Qwen3-MoE in Hugging Face Transformers.

    >>> weight_tensors(layers=48, tensors_per_layer=9, moe_layers=48, experts=128, matrices=3)
    18867
    """
    return layers * tensors_per_layer + moe_layers * experts * matrices + 3


def buckets(sync_bytes: Real, bucket_bytes: Real) -> Real:
    """
    Buckets into which an update is packed.

    n = ceil(S / c)

    Args:
        sync_bytes: Bytes of the update, S. [B]
        bucket_bytes: Bytes of a bucket, c. [B]

    Returns:
        n. [1]

    Assumes full buckets but the last.
    Source: counting.

    >>> buckets(sync_bytes=16e9, bucket_bytes=1e9)
    16.0
    """
    return ceil(sync_bytes / bucket_bytes)


def tree_hops(nodes: Real) -> Real:
    """
    Hops of a tree broadcast from the first node to the last.

    h = 1 + log2(n)

    Args:
        nodes: Nodes that receive, n; at least one. [1]

    Returns:
        h. [1]

    Assumes a binary tree of nodes, each with one hop inside.
    Source: Thakur et al., Optimization of collective communication operations in MPICH (2005), section 4.2.

    >>> tree_hops(nodes=8)
    4.0
    """
    return 1.0 + log(maximum(nodes, 1.0)) / log(2.0)


def node_count(gpus: Real, gpus_per_node: Real) -> Real:
    """
    Nodes that so many GPUs fill.

    n = ceil(g / m)

    Args:
        gpus: GPUs, g. [1]
        gpus_per_node: GPUs of a node, m. [1]

    Returns:
        n. [1]

    Assumes nodes filled one after the other.
    Source: counting.

    >>> node_count(gpus=12, gpus_per_node=8)
    2.0
    """
    return ceil(gpus / gpus_per_node)


def node_bandwidth(adapter_bandwidth: Real, gpus_per_node: Real) -> Real:
    """
    Bandwidth of a node whose adapters all take part.

    B_n = m B

    Args:
        adapter_bandwidth: Adapter of one GPU, one direction, B. [B/s]
        gpus_per_node: GPUs of a node, each with its adapter, m. [1]

    Returns:
        B_n. [B/s]

    Assumes one adapter per GPU and shares of a message on all of them.
    Source: counting.

    >>> node_bandwidth(adapter_bandwidth=50e9, gpus_per_node=8)
    400000000000.0
    """
    return adapter_bandwidth * gpus_per_node
