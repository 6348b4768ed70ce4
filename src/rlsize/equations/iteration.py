"""Time of one optimizer step from its parts: rollout, training, weight sync, and how they overlap."""

from __future__ import annotations

from rlsize.equations._ops import Real, maximum
from rlsize.units import SECONDS_PER_DAY


def completions_per_second(instances: Real, group_size: Real, group_seconds: Real) -> Real:
    """
    Samples that a fleet finishes per second when each instance generates one group at a time.

    c = n G / t

    Args:
        instances: Rollout instances, n. [instance]
        group_size: Samples of one prompt, which an instance generates together, G. [sample/instance]
        group_seconds: Time until the last of them is done, t. [s]

    Returns:
        c. [sample/s]

    Assumes an instance starts its next group when the last sample of one is done; engines that refill slots at once do
    better.
    Source: Rollout engines (vLLM as RL backend), throughput math (8 replicas, groups of 8 in 3 s).

    >>> round(completions_per_second(instances=8, group_size=8, group_seconds=3.0), 4)
    21.3333
    """
    return instances * group_size / group_seconds


def rollout_seconds(samples_per_step: Real, completions_per_second: Real) -> Real:
    """
    Time to generate the samples of one optimizer step.

    t_r = B / c

    Args:
        samples_per_step: Samples, so prompts times group size, B. [sample]
        completions_per_second: Samples that the fleet finishes per second, c. [sample/s]

    Returns:
        t_r. [s]

    Assumes a steady rate; the wait for the last sample of the batch is not part of it.
    Source: Rollout engines (vLLM as RL backend), throughput math (256 samples in 12 s).

    >>> rollout_seconds(samples_per_step=256, completions_per_second=64 / 3)
    12.0
    """
    return samples_per_step / completions_per_second


def synchronous_iteration_time(rollout_seconds: Real, train_seconds: Real, exposed_sync_seconds: Real) -> Real:
    """
    Wall clock of one optimizer step when rollout, training and weight sync follow each other.

    t = t_r + t_t + t_x

    Args:
        rollout_seconds: Time to generate the batch, t_r. [s]
        train_seconds: Busy trainer seconds per optimizer step, t_t. [s]
        exposed_sync_seconds: Part of the weight sync that nothing hides, t_x. [s]

    Returns:
        t. [s]

    Assumes nothing overlaps.
    Source: Rollout engines (vLLM as RL backend), throughput math (12 s and 5 s make 17 s).

    >>> synchronous_iteration_time(rollout_seconds=12.0, train_seconds=5.0, exposed_sync_seconds=0.0)
    17.0
    """
    return rollout_seconds + train_seconds + exposed_sync_seconds


def overlapped_iteration_time(rollout_seconds: Real, train_seconds: Real, exposed_sync_seconds: Real) -> Real:
    """
    Wall clock of one optimizer step when the fleet generates the next batch while the trainer works on the last one.

    t = max(t_r, t_t) + t_x

    Args:
        rollout_seconds: Time to generate the batch, t_r. [s]
        train_seconds: Busy trainer seconds per optimizer step, t_t. [s]
        exposed_sync_seconds: Part of the weight sync that nothing hides, t_x. [s]

    Returns:
        t. [s]

    Assumes full overlap (one-step-off or more staleness) and that both sides wait for the sync.
    Source: Designing an RL post-training system, sections 4 and 5 (the loop runs at the speed of its slower half).

    >>> overlapped_iteration_time(rollout_seconds=12.0, train_seconds=5.0, exposed_sync_seconds=1.0)
    13.0
    """
    return maximum(rollout_seconds, train_seconds) + exposed_sync_seconds


def colocated_iteration_time(rollout_seconds: Real, train_seconds: Real, swap_seconds: Real) -> Real:
    """
    Wall clock of one optimizer step when rollout and training take turns on the same GPUs.

    t = t_r + t_t + t_w

    Args:
        rollout_seconds: Time to generate the batch on all GPUs, t_r. [s]
        train_seconds: Busy trainer seconds per optimizer step on all GPUs, t_t. [s]
        swap_seconds: Time that changing over takes per step, both ways together, t_w. [s]

    Returns:
        t. [s]

    Assumes nothing else runs during the two change-overs, to training and back; the hand-over of the weights is part of
    the second.
    Source: Designing an RL post-training system, section 2 (context switch twice per step).

    >>> colocated_iteration_time(rollout_seconds=6.0, train_seconds=2.5, swap_seconds=1.5)
    10.0
    """
    return rollout_seconds + train_seconds + swap_seconds


def phase_time_on(phase_seconds: Real, pool_gpus: Real, gpus: Real) -> Real:
    """
    Time of a phase when its work moves from one pool to another number of GPUs.

    t' = t N_p / N

    Args:
        phase_seconds: Time of the phase on its pool, t. [s]
        pool_gpus: GPUs of that pool, N_p. [gpu]
        gpus: GPUs that it moves to, N. [gpu]

    Returns:
        t'. [s]

    Assumes speed in proportion to GPUs of one kind; long tails and small batches scale worse.
    Source: Designing an RL post-training system, section 2; own derivation.

    >>> phase_time_on(phase_seconds=12.0, pool_gpus=32, gpus=64)
    6.0
    """
    return phase_seconds * pool_gpus / gpus


def break_even_swap_time(overlapped_seconds: Real, rollout_seconds: Real, train_seconds: Real) -> Real:
    """
    Time of changing over, both ways together, below which colocation beats an overlapped loop on as many GPUs.

    t_w* = t - t_r - t_t

    Args:
        overlapped_seconds: Wall clock of one step of the disaggregated loop, t. [s]
        rollout_seconds: Time to generate the batch on all GPUs, t_r. [s]
        train_seconds: Busy trainer seconds per optimizer step on all GPUs, t_t. [s]

    Returns:
        t_w*. [s]

    Assumes full overlap on the disaggregated side. Zero or less where the split is balanced and its sync hidden: no
    swap is quick enough then.
    Source: overlapped_iteration_time set equal to colocated_iteration_time.

    >>> break_even_swap_time(overlapped_seconds=13.0, rollout_seconds=6.0, train_seconds=2.5)
    4.5
    """
    return overlapped_seconds - rollout_seconds - train_seconds


def iterations_per_day(iteration_seconds: Real) -> Real:
    """
    Optimizer steps in a day.

    i = 86400 / t

    Args:
        iteration_seconds: Wall clock of one optimizer step, t. [s/step]

    Returns:
        i. [step/day]

    Assumes no restarts, no evaluation and no checkpoints in between.
    Source: Rollout engines (vLLM as RL backend), throughput math (about 5000 a day).

    >>> round(iterations_per_day(iteration_seconds=17.0), 2)
    5082.35
    """
    return SECONDS_PER_DAY / iteration_seconds


def rollout_share(rollout_seconds: Real, iteration_seconds: Real) -> Real:
    """
    Share of the wall clock during which the fleet generates.

    s = t_r / t

    Args:
        rollout_seconds: Time to generate the batch, t_r. [s]
        iteration_seconds: Wall clock of one optimizer step, t. [s]

    Returns:
        s. [1]

    Assumes one batch is generated per step; in an overlapped loop a share of 1 says that rollout is the slower half.
    Source: Designing an RL post-training system, section 4 (time both phases, take the split).

    >>> rollout_share(rollout_seconds=12.0, iteration_seconds=16.0)
    0.75
    """
    return rollout_seconds / iteration_seconds


def samples_per_second(samples_per_step: Real, iteration_seconds: Real) -> Real:
    """
    Samples that the loop trains per second.

    x = B / t

    Args:
        samples_per_step: Samples per optimizer step, B. [sample]
        iteration_seconds: Wall clock of one optimizer step, t. [s]

    Returns:
        x. [sample/s]

    Assumes every sample of the batch is trained once.
    Source: own definition.

    >>> samples_per_second(samples_per_step=256, iteration_seconds=16.0)
    16.0
    """
    return samples_per_step / iteration_seconds


def verifier_workers(samples_per_second: Real, verify_seconds: Real) -> Real:
    """
    Reward or verifier workers that keep up with the samples, before rounding up.

    w = x t_v

    Args:
        samples_per_second: Samples to score per second, x. [sample/s]
        verify_seconds: Time of one worker for one sample, t_v. [worker*s/sample]

    Returns:
        w. [worker]

    Assumes samples arrive evenly and workers are always busy; bursts at the end of a batch need more or a queue.
    Source: Little, A proof for the queuing formula L = lambda W (Operations Research 9, 1961).

    >>> verifier_workers(samples_per_second=16.0, verify_seconds=2.5)
    40.0
    """
    return samples_per_second * verify_seconds
