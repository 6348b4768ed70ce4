"""How stale the samples of an asynchronous loop are on average, to first order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import maximum, minimum, where

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def mean_staleness(
    rate_ratio: Real, concurrent_samples: Real, samples_per_step: Real, longest_over_mean: Real, queue_samples: Real
) -> Real:
    """
    Mean staleness of the samples of an asynchronous loop.

    s = C M / B + rho for rho < 1, else C M / (rho B) + (2 Q / B + rho - 1) / (2 rho)

    Args:
        rate_ratio: What the fleet supplies over what the trainer consumes, rho. [1]
        concurrent_samples: Samples in flight, C. [1]
        samples_per_step: Samples per optimizer step, B. [1]
        longest_over_mean: Longest response of a group over the mean response, M. [1]
        queue_samples: Samples that wait where the fleet is the faster side, Q. [1]

    Returns:
        s. [1]

    Assumes steady rates and no cap on staleness; at rho = 1 the two branches differ.
    Source: notes on Applied Compute's account of asynchronous RL (2026), not read in the original; six of its measured
    runs lie 5 to 10 % below the formula.

    >>> mean_staleness(rate_ratio=0.5, concurrent_samples=1024, samples_per_step=512, longest_over_mean=1.5,
    ...                queue_samples=0)
    3.5
    """
    in_flight = concurrent_samples * longest_over_mean / samples_per_step
    bound = where(rate_ratio < 1.0, 1.0, rate_ratio)
    queue = 2.0 * queue_samples / samples_per_step
    waiting = where(rate_ratio < 1.0, rate_ratio, (queue + rate_ratio - 1.0) / (2.0 * bound))
    return in_flight / bound + waiting


def staleness_of_cadence(sync_every: Real) -> Real:
    """
    Mean staleness that comes of syncing weights every few optimizer steps only.

    s = (m - 1) / 2

    Args:
        sync_every: Optimizer steps between syncs, m. [1]

    Returns:
        s. [1]

    Assumes every step between two syncs trains as many samples, all generated with the weights of the first.
    Source: mean of 0, 1, ..., m - 1.

    >>> staleness_of_cadence(sync_every=4)
    1.5
    """
    return (sync_every - 1.0) / 2.0


def cap_in_syncs(max_staleness: Real, sync_every: Real) -> Real:
    """
    Staleness cap of a loop that syncs weights every few optimizer steps, counted in the steps between two syncs.

    c = max(0, (k + 1) / m - 1)

    Args:
        max_staleness: The cap in optimizer steps, k. [1]
        sync_every: Optimizer steps between syncs, m. [1]

    Returns:
        c. [1]

    Assumes k + 1 batches may be under way at a sync, of which m are trained on until the next.
    Source: the admission rule (AReaL, Fu et al., equation 3), with m steps as one.

    >>> cap_in_syncs(max_staleness=5, sync_every=4)
    0.5
    """
    return maximum(0.0, (max_staleness + 1.0) / sync_every - 1.0)


def capped_staleness(mean_staleness: Real, max_staleness: Real) -> Real:
    """
    Mean staleness under a cap.

    s = min(s_0, k)

    Args:
        mean_staleness: Without the cap, s_0. [1]
        max_staleness: The cap, k. [1]

    Returns:
        s. [1]

    Assumes the cap keeps what would be staler from being generated.
    Source: definition of the cap.

    >>> capped_staleness(mean_staleness=3.5, max_staleness=2)
    2
    """
    return minimum(mean_staleness, max_staleness)
