"""
Weight sync: what one update sends, and how long it takes over one link.

Ways of sending it are in sync_transports, what it pauses is in sync_pause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def weight_bytes(params: Real, bytes_per_param: Real) -> Real:
    """
    Bytes of one full copy of the weights: what a full update sends, what an inference copy holds.

    S = b N

    Args:
        params: Weights, N. [param]
        bytes_per_param: Width, b; 2 for bf16, 1 for fp8. [B/param]

    Returns:
        S. [B]

    Assumes one width for all weights and that every weight is sent, changed or not.
    Source: Designing an RL post-training system, section 3 (2N bytes in bf16).

    >>> weight_bytes(params=70e9, bytes_per_param=2)
    140000000000.0
    """
    return params * bytes_per_param


def quantised_sync_bytes(params: Real, bytes_per_param: Real, bytes_per_scale: Real, params_per_scale: Real) -> Real:
    """
    Bytes of one update whose weights travel in a narrow type with scaling factors.

    S = N (b + s / g)

    Args:
        params: Weights to send, N. [param]
        bytes_per_param: Width on the wire, b; 1 for fp8, 0.5 for 4-bit. [B/param]
        bytes_per_scale: Width of one scaling factor, s; 0 without scales. [B]
        params_per_scale: Weights that share a scaling factor, g; 16384 for 128 x 128 blocks, 32 for mxfp4. [param]

    Returns:
        S. [B]

    Assumes the trainer casts before it sends, and that weights kept wide (norms, embeddings) are sent and counted
    apart.
    Source: Open Compute Project, microscaling formats specification 1.0 (block of 32, 8-bit scale); own sum.

    >>> quantised_sync_bytes(params=8e9, bytes_per_param=0.5, bytes_per_scale=1, params_per_scale=32)
    4250000000.0
    """
    return params * (bytes_per_param + bytes_per_scale / params_per_scale)


def delta_sync_bytes(params: Real, changed_fraction: Real, bytes_per_index: Real, bytes_per_param: Real) -> Real:
    """
    Bytes of one update that sends only the weights that changed, each with its position.

    S = f N (i + b)

    Args:
        params: Weights of the model, N. [param]
        changed_fraction: Share of weights that differ from the last update in the width on the wire, f. [1]
        bytes_per_index: Width of a position, i; 4 for a 32-bit index. [B/param]
        bytes_per_param: Width of a value, b; 2 for bf16. [B/param]

    Returns:
        S. [B]

    Assumes plain index and value pairs, not compressed. Small learning rates leave most bf16 weights as they were,
    because a step below half a unit in the last place rounds away; f depends on the run and has to be measured.
    Source: PULSE (arXiv:2602.03839) and SparseRL-Sync (arXiv:2605.07330) report f under 0.01; own sum.

    >>> delta_sync_bytes(params=70e9, changed_fraction=0.02, bytes_per_index=4, bytes_per_param=2)
    8400000000.0
    """
    return params * changed_fraction * (bytes_per_index + bytes_per_param)


def break_even_changed_fraction(bytes_per_index: Real, bytes_per_param: Real) -> Real:
    """
    Share of changed weights at which a delta update is as large as a full one.

    f* = b / (i + b)

    Args:
        bytes_per_index: Width of a position, i. [B/param]
        bytes_per_param: Width of a value, b. [B/param]

    Returns:
        f*. [1]

    Assumes index and value pairs without compression, and leaves the time to find the changes aside.
    Source: delta_sync_bytes set equal to weight_bytes.

    >>> break_even_changed_fraction(bytes_per_index=6, bytes_per_param=2)
    0.25
    """
    return bytes_per_param / (bytes_per_index + bytes_per_param)


def one_way_bandwidth(both_directions_bandwidth: Real) -> Real:
    """
    Bandwidth in one direction of a link that is advertised as the sum of both.

    B = B_2 / 2

    Args:
        both_directions_bandwidth: Advertised sum of both directions, B_2. [B/s]

    Returns:
        B. [B/s]

    Assumes a symmetric link; a weight update uses one direction of it.
    Source: NVIDIA H100 data sheet (NVLink 900 GB/s is 18 links of 25 GB/s each way).

    >>> one_way_bandwidth(both_directions_bandwidth=900e9)
    450000000000.0
    """
    return both_directions_bandwidth / 2.0


def achieved_bandwidth(bandwidth: Real, achievable_fraction: Real) -> Real:
    """
    Bandwidth that a transfer reaches on a link of a given specification.

    B_e = e B

    Args:
        bandwidth: Specified bandwidth, one direction, B. [B/s]
        achievable_fraction: Share of it that the software reaches, e. [1]

    Returns:
        B_e. [B/s]

    Assumes large messages; per-tensor sends reach a tenth or two of the link, bucketed ones most of it.
    Source: own definition; MoonshotAI/checkpoint-engine@59a3c4ffa2e1:README.md for bucketed transfers.

    >>> achieved_bandwidth(bandwidth=50e9, achievable_fraction=0.8)
    40000000000.0
    """
    return bandwidth * achievable_fraction


def weight_sync_time(params: Real, bytes_per_param: Real, bandwidth: Real) -> Real:
    """
    Time for one weight update to reach the rollout fleet.

    t_sync = b N / B

    Args:
        params: Weights to send, N. [param]
        bytes_per_param: Width on the wire, b; 2 for bf16. [B/param]
        bandwidth: Slowest link on the path, one direction, B. [B/s]

    Returns:
        t_sync. [s]

    Assumes one pipelined pass over the slowest link, so the number of receivers does not matter; no overlap with
    rollout.
    Source: Designing an RL post-training system, section 3.

    >>> weight_sync_time(params=70e9, bytes_per_param=2, bandwidth=50e9)
    2.8
    """
    return params * bytes_per_param / bandwidth


def transfer_time(sync_bytes: Real, bandwidth: Real, latency: Real) -> Real:
    """
    Time to move bytes over a link, set-up included.

    t = a + S / B

    Args:
        sync_bytes: Bytes to move, S. [B]
        bandwidth: Slowest link on the path, one direction, B. [B/s]
        latency: Time that passes whatever the size: calls, barriers, set-up, a. [s]

    Returns:
        t. [s]

    Assumes bandwidth does not depend on the size; a is measured, and may hold seconds of remote calls.
    Source: Hockney, The communication challenge for MPP (Parallel Computing 20, 1994).

    >>> transfer_time(sync_bytes=140e9, bandwidth=50e9, latency=0.2)
    3.0
    """
    return latency + sync_bytes / bandwidth
