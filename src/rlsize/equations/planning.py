"""What a plan adds to the equations of its parts: memory that is left, lent GPUs, nodes, and deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import ceil, floor, maximum, minimum

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def memory_headroom(gpu_memory: Real, held_bytes: Real) -> Real:
    """
    Share of a GPU's memory that is left.

    f = 1 - H / M

    Args:
        gpu_memory: Memory of the GPU, M. [B]
        held_bytes: What is held on it at its peak, H. [B]

    Returns:
        f. [1]

    Assumes nothing; it is below 0 where too much is held.
    Source: definition.

    >>> memory_headroom(gpu_memory=80e9, held_bytes=60e9)
    0.25
    """
    return 1.0 - held_bytes / gpu_memory


def cache_headroom(kv_bytes: Real, sequence_bytes: Real, gpu_memory: Real) -> Real:
    """
    Share of a GPU's memory that a KV cache has beyond one sample.

    f = (K - s) / M

    Args:
        kv_bytes: What the engine leaves for its cache on each GPU, K. [B]
        sequence_bytes: What the longest sample takes of it, s. [B]
        gpu_memory: Memory of the GPU, M. [B]

    Returns:
        f. [1]

    Assumes an engine runs once a single sample fits; it is below 0 where none does.
    Source: definition.

    >>> cache_headroom(kv_bytes=42e9, sequence_bytes=2e9, gpu_memory=80e9)
    0.5
    """
    return (kv_bytes - sequence_bytes) / gpu_memory


def generation_with_lent_gpus(
    generation_seconds: Real, train_seconds: Real, swap_seconds: Real, lent_ratio: Real
) -> Real:
    """
    Time to generate a batch when the trainer's GPUs help for as long as they would wait.

    t = min(t_g, (t_g + f (t_t + w)) / (1 + f))

    Args:
        generation_seconds: Time of the fleet by itself, t_g. [s]
        train_seconds: Busy trainer seconds of a step, t_t. [s]
        swap_seconds: Time in which lent GPUs change over, both ways, w. [s]
        lent_ratio: What lent GPUs generate over what the fleet generates, f. [1]

    Returns:
        t. [s]

    Assumes GPUs are lent from the end of an update to the end of the batch, and samples spread over both at once.
    Source: own derivation: the fleet's rate for t, and the lent rate for t - t_t - w, make the batch.

    >>> generation_with_lent_gpus(generation_seconds=60.0, train_seconds=20.0, swap_seconds=10.0, lent_ratio=0.5)
    50.0
    """
    helped = (generation_seconds + lent_ratio * (train_seconds + swap_seconds)) / (1.0 + lent_ratio)
    return minimum(generation_seconds, helped)


def instances_in_nodes(gpus: Real, trainer_gpus: Real, gpus_per_node: Real, gpus_per_instance: Real) -> Real:
    """
    Instances that whole nodes hold beside a trainer, none of them over the border of a node that it would fit into.

    n = (G/d - ceil(T/d)) floor(d/s) + floor((d ceil(T/d) - T) / s), or floor(G/d - ceil(T/d) over ceil(s/d)) for s > d

    Args:
        gpus: GPUs of both pools, in nodes, G. [1]
        trainer_gpus: GPUs of the trainer, from the first node on, T. [1]
        gpus_per_node: GPUs of a node, d. [1]
        gpus_per_instance: GPUs of one instance, s. [1]

    Returns:
        n. [1, integer]

    Assumes the last node may be partly there; an instance larger than a node takes whole nodes.
    Source: own derivation.

    >>> instances_in_nodes(gpus=16, trainer_gpus=6, gpus_per_node=8, gpus_per_instance=4)
    2.0
    """
    begun = ceil(trainer_gpus / gpus_per_node)
    there = minimum(gpus, begun * gpus_per_node)
    beside = floor(maximum(there - trainer_gpus, 0) / gpus_per_instance)
    free = maximum(floor(gpus / gpus_per_node) - begun, 0)
    rest = maximum(gpus - there - free * gpus_per_node, 0)
    small = free * floor(gpus_per_node / gpus_per_instance) + beside + floor(rest / gpus_per_instance)
    large = floor(free / ceil(gpus_per_instance / gpus_per_node))
    fits = minimum(floor(gpus_per_node / gpus_per_instance), 1)
    return fits * small + (1 - fits) * large


def step_time_limit(run_seconds: Real, steps: Real) -> Real:
    """
    Longest step with which a run ends in time.

    T = D / n

    Args:
        run_seconds: Time until the deadline, D. [s]
        steps: Optimizer steps of the run, n. [step]

    Returns:
        T. [s/step]

    Assumes all steps take the same time.
    Source: definition.

    >>> step_time_limit(run_seconds=86400.0, steps=1000)
    86.4
    """
    return run_seconds / steps


def relative_yield(tokens: Real, cost: Real, usual_tokens: Real, usual_cost: Real) -> Real:
    """
    Trained tokens for what they cost, over those of the usual way.

    y = (n / c) / (n_0 / c_0)

    Args:
        tokens: Tokens that a step trains, n. [token]
        cost: What it costs, in dollars or in GPU-hours, c. [usd]
        usual_tokens: The same of the usual way, n_0. [token]
        usual_cost: What that costs, in the same unit, c_0. [usd]

    Returns:
        y. [1]

    Assumes a token is worth the same in both, which holds for the time that it takes and not for what it teaches.
    Source: definition.

    >>> relative_yield(tokens=2e6, cost=3.0, usual_tokens=1e6, usual_cost=2.0)
    1.3333333333333333
    """
    return tokens / cost / (usual_tokens / usual_cost)


def lengthened_cost(cost: Real, step_seconds: Real, added_seconds: Real) -> Real:
    """
    Cost of a step that takes longer than what was costed.

    c' = c (1 + a / t)

    Args:
        cost: What it costs as it is, in dollars or in GPU-hours, c. [usd]
        step_seconds: Its time, t. [s]
        added_seconds: What comes to that; below 0 for what goes, a. [s]

    Returns:
        c'. [usd]

    Assumes all that is paid for is paid by time.
    Source: definition.

    >>> lengthened_cost(cost=4.0, step_seconds=80.0, added_seconds=20.0)
    5.0
    """
    return cost * (1.0 + added_seconds / step_seconds)


def overshoot(value: Real, limit: Real) -> Real:
    """
    How far a value lies beyond a limit.

    x = v / l - 1

    Args:
        value: The value, v. [B]
        limit: The limit, l. [B]

    Returns:
        x. [1]

    Assumes nothing; it is below 0 within the limit.
    Source: definition.

    >>> overshoot(value=110.0, limit=100.0)
    0.10000000000000009
    """
    return value / limit - 1.0


def availability(up_seconds: Real, down_seconds: Real) -> Real:
    """
    Share of the time that an instance is there, when it is lost and started again now and then.

    a = u / (u + d)

    Args:
        up_seconds: Mean time between a start and the next loss, u. [s]
        down_seconds: Time until it is back, d. [s]

    Returns:
        a. [1]

    Assumes losses do not come together.
    Source: renewal theory.

    >>> availability(up_seconds=3600.0, down_seconds=400.0)
    0.9
    """
    return up_seconds / (up_seconds + down_seconds)


def supply_that_is_there(rate: Real, available_fraction: Real) -> Real:
    """
    Mean rate of instances that are lost now and then.

    r = a r_0

    Args:
        rate: With all of them, r_0. [token/s]
        available_fraction: Share of the time that each is there, a. [1]

    Returns:
        r. [token/s]

    Assumes what was under way on a lost instance goes on elsewhere.
    Source: definition.

    >>> supply_that_is_there(rate=4000.0, available_fraction=0.75)
    3000.0
    """
    return rate * available_fraction
