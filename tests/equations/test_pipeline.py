"""The pipelined broadcast against a pipeline that is played through bucket by bucket."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.equations.sync_transports import broadcast_time


def played(buckets: int, hops: int, seconds_per_bucket: float) -> float:
    """When the last bucket leaves the last hop, if a hop sends one bucket at a time and only what it has received."""
    arrived = [0.0] * buckets
    for _ in range(hops):
        free = 0.0
        for bucket in range(buckets):
            free = max(free, arrived[bucket]) + seconds_per_bucket
            arrived[bucket] = free
    return arrived[-1]


@given(buckets=st.integers(1, 50), hops=st.integers(1, 20), latency=st.floats(0.0, 1.0))
def test_the_pipeline_takes_what_the_formula_says(buckets: int, hops: int, latency: float) -> None:
    """Whole buckets through any number of hops."""
    bucket_bytes, bandwidth = 1e9, 50e9
    expected = played(buckets, hops, latency + bucket_bytes / bandwidth)
    assert broadcast_time(buckets * bucket_bytes, bucket_bytes, bandwidth, latency, hops) == pytest.approx(expected)
