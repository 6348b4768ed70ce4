"""What a weight sync costs the fleet: the part that nothing hides, the share of a step it pauses, how often to sync."""

from __future__ import annotations

from rlsize.equations._ops import Real, maximum


def exposed_sync_time(sync_seconds: Real, hidden_seconds: Real) -> Real:
    """
    The part of a weight sync during which the fleet stands still.

    t_x = max(0, t_sync - t_h)

    Args:
        sync_seconds: Time of one weight sync, t_sync. [s]
        hidden_seconds: Part of it that runs beside generation or training, t_h. [s]

    Returns:
        t_x. [s]

    Assumes the hidden part slows nothing else down; a transfer that shares links or memory bandwidth does.
    Source: Designing an RL post-training system, section 3 (the sync overlaps the next rollout's prefill).

    >>> exposed_sync_time(sync_seconds=9.5, hidden_seconds=8.0)
    1.5
    """
    return maximum(0.0, sync_seconds - hidden_seconds)


def sync_pause_fraction(exposed_sync_seconds: Real, step_seconds_without_sync: Real, sync_every: Real) -> Real:
    """
    Share of the wall clock that weight syncs pause.

    f = t_x / (m t_step + t_x)

    Args:
        exposed_sync_seconds: Part of one sync that nothing hides, t_x. [s]
        step_seconds_without_sync: Wall clock of one optimizer step, syncs not counted, t_step. [s]
        sync_every: Optimizer steps from one sync to the next, m. [1]

    Returns:
        f. [1]

    Assumes the loop waits for the pause: one period is m steps and one exposed sync.
    Source: own definition; runbook, pre-checks (measure the pause separately).

    >>> sync_pause_fraction(exposed_sync_seconds=2.5, step_seconds_without_sync=22.5, sync_every=1)
    0.1
    """
    return exposed_sync_seconds / (sync_every * step_seconds_without_sync + exposed_sync_seconds)


def sync_cadence(exposed_sync_seconds: Real, step_seconds_without_sync: Real, target_fraction: Real) -> Real:
    """
    Optimizer steps between two syncs at which the pause is just the target share, before rounding up.

    m* = max(1, t_x (1 - f) / (f t_step))

    Args:
        exposed_sync_seconds: Part of one sync that nothing hides, t_x. [s]
        step_seconds_without_sync: Wall clock of one optimizer step, syncs not counted, t_step. [s]
        target_fraction: Largest share of the wall clock that may be paused, f. [1]

    Returns:
        m*. [1]

    Assumes the loop waits for the pause, and no more than one sync per step. Each step more between syncs adds up to
    one step of staleness.
    Source: sync_pause_fraction solved for the cadence.

    >>> sync_cadence(exposed_sync_seconds=5.0, step_seconds_without_sync=20.0, target_fraction=0.0625)
    3.75
    """
    return maximum(1.0, exposed_sync_seconds * (1.0 - target_fraction) / (target_fraction * step_seconds_without_sync))


def sync_seconds_per_step(exposed_sync_seconds: Real, sync_every: Real) -> Real:
    """
    Pause for weight syncs that falls on one optimizer step.

    t = t_x / m

    Args:
        exposed_sync_seconds: Part of one sync that nothing hides, t_x. [s]
        sync_every: Optimizer steps from one sync to the next, m. [1]

    Returns:
        t. [s]

    Assumes the loop waits for the pause.
    Source: own definition.

    >>> sync_seconds_per_step(exposed_sync_seconds=5.0, sync_every=2)
    2.5
    """
    return exposed_sync_seconds / sync_every
