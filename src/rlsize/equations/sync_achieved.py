"""What a measured weight sync says about the path that it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def achieved_sync_bandwidth(sync_bytes: Real, sync_seconds: Real) -> Real:
    """
    Bandwidth that a measured sync amounts to.

    B_e = S / t_sync

    Args:
        sync_bytes: Bytes of the update, S. [B]
        sync_seconds: Time that it took, t_sync. [s]

    Returns:
        B_e. [B/s]

    Assumes nothing else is in the measured time; remote calls, a drain or a reload make it look slower than its link.
    Source: own definition.

    >>> achieved_sync_bandwidth(sync_bytes=140e9, sync_seconds=7.0)
    20000000000.0
    """
    return sync_bytes / sync_seconds


def achieved_link_fraction(sync_bytes: Real, sync_seconds: Real, bandwidth: Real) -> Real:
    """
    Share of a link's bandwidth that a measured sync reached.

    e = S / (t_sync B)

    Args:
        sync_bytes: Bytes of the update, S. [B]
        sync_seconds: Time that it took, t_sync. [s]
        bandwidth: Specified bandwidth of the slowest link, one direction, B. [B/s]

    Returns:
        e. [1]

    Assumes the whole update went over one such link; over 1 says that it did not, or that the link is another.
    Source: achieved_bandwidth solved for the fraction.

    >>> achieved_link_fraction(sync_bytes=140e9, sync_seconds=7.0, bandwidth=50e9)
    0.4
    """
    return sync_bytes / (sync_seconds * bandwidth)
