"""Samples dealt over ranks and packed: nothing is lost, nothing is split, and every rank has as many micro-batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.measure.workers.train_plan import affordable, another, group_advantages, step_plan

LENGTHS = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 400)), min_size=1, max_size=60)


@given(lengths=LENGTHS, ranks=st.integers(1, 8), room=st.integers(450, 2000))
def test_every_sample_is_trained_once(lengths: list[tuple[int, int]], ranks: int, room: int) -> None:
    """Each sample stands in one micro-batch of one rank, no micro-batch overflows, and ranks have as many."""
    plan = step_plan(lengths, ranks, room)
    assert plan.samples() == list(range(len(lengths)))
    assert len(plan.ranks) == ranks
    for rank in plan.ranks:
        assert len(rank) == plan.micro_batches
        assert all(sum(sum(lengths[sample]) for sample in batch) <= room for batch in rank)


@given(lengths=LENGTHS, ranks=st.integers(1, 8))
def test_ranks_differ_by_a_sample_at_most(lengths: list[tuple[int, int]], ranks: int) -> None:
    """Longest first to the emptiest leaves no two ranks further apart than the longest sample is long."""
    plan = step_plan(lengths, ranks, 10_000)
    held = [sum(sum(lengths[sample]) for batch in rank for sample in batch) for rank in plan.ranks]
    assert max(held) - min(held) <= max(sum(length) for length in lengths)


def test_micro_batches_are_few() -> None:
    """Eight samples of 100 tokens fill two micro-batches of 400, not three."""
    assert step_plan([(10, 90)] * 8, 1, 400).micro_batches == 2


def test_a_rank_without_samples_keeps_the_others_company() -> None:
    """One sample over two ranks: the second has an empty micro-batch, as forward and backward are collective."""
    assert step_plan([(5, 5)], 2, 10).ranks == (((0,),), ((),))


def test_a_part_of_a_step_is_spread_over_it() -> None:
    """Two of four micro-batches are the first and the third, on every rank."""
    plan = step_plan([(10, 90 - sample) for sample in range(8)], 2, 100)
    part = plan.every(2)
    assert [rank == (whole[0], whole[2]) for rank, whole in zip(part.ranks, plan.ranks, strict=True)] == [True, True]
    assert plan.every(4) == plan


@given(groups=st.integers(1, 10), size=st.integers(2, 16), seed=st.integers(0, 5))
def test_advantages_are_normalised_within_groups(groups: int, size: int, seed: int) -> None:
    """Each group has mean 0 and deviation 1."""
    found = group_advantages(groups * size, size, seed)
    for start in range(0, len(found), size):
        group = found[start : start + size]
        assert sum(group) == pytest.approx(0.0, abs=1e-6)
        assert sum(value**2 for value in group) / size == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("samples", "size"), [(8, 1), (1, 1), (1, 4)])
def test_there_is_always_something_to_learn(samples: int, size: int) -> None:
    """Groups of one would have advantages of zero throughout, and a loss that cannot fall."""
    assert all(abs(value) > 1e-3 for value in group_advantages(samples, size, 0))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(1e9, 40), (100.0, 20), (3.0, 1), (-5.0, 1)],
    ids=["all fit", "half fit", "hardly one fits", "no time is left"],
)
def test_what_there_is_time_for(seconds: float, expected: int) -> None:
    """Four steps of so many micro-batches of a second each, in 80 % of the time."""
    assert affordable(seconds, 1.0, 40, 4) == expected


@pytest.mark.parametrize(
    ("done", "elapsed", "expected"),
    [(0, 99.0, True), (1, 8.0, True), (2, 12.0, False), (4, 8.0, True), (4, 9.5, False), (5, 1.0, False)],
    ids=["one is timed anyway", "too few", "too few, too late", "time left", "the next would overrun", "all done"],
)
def test_when_to_stop(done: int, elapsed: float, expected: bool) -> None:
    """Ten seconds for five steps of one second each."""
    assert another(done, 5, elapsed, 1.0, 10.0) is expected
