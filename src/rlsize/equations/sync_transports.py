"""Ways to bring an update to the fleet: broadcast, point-to-point RDMA, a store, or a hand-over on shared GPUs."""

from __future__ import annotations

from rlsize.equations._ops import Real, maximum, minimum


def broadcast_time(sync_bytes: Real, bucket_bytes: Real, bandwidth: Real, bucket_latency: Real, hops: Real) -> Real:
    """
    Time of a collective broadcast that sends the weights in buckets through a pipeline of receivers.

    t = (S / c + h - 1) (a + c / B), with c at most S

    Args:
        sync_bytes: Bytes of the update, S. [B]
        bucket_bytes: Bytes sent at once, c. [B]
        bandwidth: Slowest link of the pipeline, one direction, B. [B/s]
        bucket_latency: Time that each bucket costs whatever its size, a. [s]
        hops: Links from the first sender to the last receiver, h: 1 for one hop, receivers in a ring, their log2 in a
            tree. [1]

    Returns:
        t. [s]

    Assumes every hop sends one bucket while it receives the next; with many buckets the number of receivers hardly
    matters (16 times as many receivers took 11 % longer in the cited table).
    Source: van de Geijn and Watts, SUMMA (1997), pipelined broadcast;
    MoonshotAI/checkpoint-engine@59a3c4ffa2e1:README.md.

    >>> broadcast_time(sync_bytes=140e9, bucket_bytes=1e9, bandwidth=50e9, bucket_latency=0.0, hops=1)
    2.8000000000000003
    """
    bucket = minimum(bucket_bytes, sync_bytes)
    return (sync_bytes / bucket + hops - 1.0) * (bucket_latency + bucket / bandwidth)


def gather_time(sync_bytes: Real, shards: Real, bandwidth: Real) -> Real:
    """
    Time to assemble the full weights from the trainer's shards before they are sent (FSDP, ZeRO-3).

    t = S (d - 1) / (d B)

    Args:
        sync_bytes: Bytes of the full weights, S. [B]
        shards: Trainer ranks that hold a shard each, d. [1]
        bandwidth: Link into one rank, one direction, B. [B/s]

    Returns:
        t. [s]

    Assumes a ring all-gather, in which each rank receives all shards but its own; sent bucket by bucket it hides behind
    the sending.
    Source: Thakur et al., Optimization of collective communication operations in MPICH (2005), section 4.1.

    >>> gather_time(sync_bytes=140e9, shards=8, bandwidth=350e9)
    0.35
    """
    return sync_bytes * (shards - 1.0) / (shards * bandwidth)


def bytes_received_per_gpu(sync_bytes: Real, tensor_parallel: Real) -> Real:
    """
    Bytes that each rollout GPU receives when it is sent its own shard only.

    s_r = S / t

    Args:
        sync_bytes: Bytes of the full weights, S. [B]
        tensor_parallel: GPUs over which one rollout instance shards its weights, t. [gpu]

    Returns:
        s_r. [B/gpu]

    Assumes even shards; what tensor parallelism replicates (norms, few KV heads) is not counted.
    Source: own sum.

    >>> bytes_received_per_gpu(sync_bytes=140e9, tensor_parallel=4)
    35000000000.0
    """
    return sync_bytes / tensor_parallel


def bytes_sent_per_gpu(sync_bytes: Real, instances: Real, trainer_gpus: Real) -> Real:
    """
    Bytes that each trainer GPU sends when every rollout instance is sent a full copy.

    s_s = n S / T

    Args:
        sync_bytes: Bytes of the full weights, which one instance receives, S. [B/instance]
        instances: Rollout instances, n. [instance]
        trainer_gpus: Trainer GPUs that send, T. [gpu]

    Returns:
        s_s. [B/gpu]

    Assumes the sending is spread evenly and nobody forwards what it received.
    Source: own sum.

    >>> bytes_sent_per_gpu(sync_bytes=140e9, instances=8, trainer_gpus=32)
    35000000000.0
    """
    return sync_bytes * instances / trainer_gpus


def rdma_time(sent_bytes: Real, received_bytes: Real, sender_bandwidth: Real, receiver_bandwidth: Real) -> Real:
    """
    Time of point-to-point RDMA from many trainer GPUs to many rollout GPUs.

    t = max(s_s / B_s, s_r / B_r)

    Args:
        sent_bytes: Bytes that the busiest trainer GPU sends, s_s. [B/gpu]
        received_bytes: Bytes that the busiest rollout GPU receives, s_r. [B/gpu]
        sender_bandwidth: NIC of a trainer GPU, one direction, B_s. [B/s/gpu]
        receiver_bandwidth: NIC of a rollout GPU, one direction, B_r. [B/s/gpu]

    Returns:
        t. [s]

    Assumes all pairs send at once over a network that does not block, so that the busiest NIC decides.
    Source: the bottleneck bound of concurrent flows; own derivation.

    >>> rdma_time(sent_bytes=35e9, received_bytes=17.5e9, sender_bandwidth=50e9, receiver_bandwidth=50e9)
    0.7
    """
    return maximum(sent_bytes / sender_bandwidth, received_bytes / receiver_bandwidth)


def store_sync_time(
    sync_bytes: Real,
    write_bandwidth: Real,
    read_bandwidth: Real,
    readers: Real,
    reader_bandwidth: Real,
    reload_seconds: Real,
) -> Real:
    """
    Time of an update by checkpoint: written once to a disk or object store, then read by all.

    t = S / W + S / min(R / n, B) + t_load

    Args:
        sync_bytes: Bytes of the checkpoint, S. [B]
        write_bandwidth: What the trainer writes to the store, W. [B/s]
        read_bandwidth: What the store delivers to all readers together, R. [B/s]
        readers: Readers at the same time, n: nodes, or instances where each reads for itself. [1]
        reader_bandwidth: What one reader can take in, B. [B/s]
        reload_seconds: Time for an engine to load what it has read, t_load. [s]

    Returns:
        t. [s]

    Assumes reading begins when the whole checkpoint is written, and readers share the store evenly.
    Source: own derivation.

    >>> store_sync_time(sync_bytes=140e9, write_bandwidth=10e9, read_bandwidth=40e9, readers=8, reader_bandwidth=25e9,
    ...                 reload_seconds=5)
    47.0
    """
    return (
        sync_bytes / write_bandwidth + sync_bytes / minimum(read_bandwidth / readers, reader_bandwidth) + reload_seconds
    )


def reshard_time(sync_bytes: Real, tensor_parallel: Real, gpus: Real, bandwidth: Real) -> Real:
    """
    Time of a colocated hand-over in which each GPU gathers its rollout shard from its neighbours' trainer shards.

    t = S (1 / t_p - 1 / g) / B

    Args:
        sync_bytes: Bytes of the full weights, S. [B]
        tensor_parallel: GPUs over which one rollout instance shards its weights, t_p. [gpu]
        gpus: GPUs over which the trainer shards the same weights, g; at least t_p. [gpu]
        bandwidth: Link into one GPU, one direction, B. [B/s/gpu]

    Returns:
        t. [s]

    Assumes the shard a GPU holds as trainer is part of the one it needs as rollout, so only the rest moves.
    Source: HybridFlow (arXiv:2409.19256), transition overhead between training and generation.

    >>> reshard_time(sync_bytes=16e9, tensor_parallel=2, gpus=8, bandwidth=400e9)
    0.015
    """
    return sync_bytes * (1.0 / tensor_parallel - 1.0 / gpus) / bandwidth
