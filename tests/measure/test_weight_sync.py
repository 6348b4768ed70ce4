"""What is said about a weight sync: doubts, and jobs that cannot be."""

from __future__ import annotations

import pytest

from rlsize.errors import InputError
from rlsize.facts.measured import Scatter, SyncMethod
from rlsize.measure.weight_sync import SyncJob, sync_doubts


def way(cv: float = 0.01, parts: int = 9, *, identical: bool = True) -> SyncMethod:
    """A way to send that was measured."""
    return SyncMethod(
        method="bucketed",
        bucket_bytes=2**26,
        messages=3,
        seconds=1.0,
        scatter=Scatter(parts=parts, cv=cv, p10=0.9, p50=1.0, p90=1.1),
        bytes_per_second=1e9,
        identical=identical,
    )


def test_a_steady_and_identical_sync_is_not_doubted() -> None:
    """Nothing to say."""
    assert not list(sync_doubts(way()))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (way(cv=0.2), "scatter by 20 %"),
        (way(parts=3), "3 repeats"),
        (way(identical=False), "differ from the sender's"),
    ],
)
def test_each_doubt_names_the_way_and_the_value(found: SyncMethod, said: str) -> None:
    """One sentence, which says which way it is about."""
    [doubt] = sync_doubts(found)
    assert doubt.startswith("bucketed in buckets of 64 MiB: ")
    assert said in doubt


@pytest.mark.parametrize("changed", [{"trainer_ranks": 0}, {"receiver_ranks": 0}, {"bucket_bytes": (0,)}])
def test_a_job_that_cannot_be_is_refused(changed: dict[str, object]) -> None:
    """Before any process starts."""
    with pytest.raises(InputError, match="weight sync"):
        SyncJob(model="somewhere", **changed)  # type: ignore[arg-type]  # wrong values are the point
