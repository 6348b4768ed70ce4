"""The cadence that keeps the pause under its target share."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.equations.sync_pause import sync_pause_fraction
from rlsize.estimates.sync import LinkFigures, SyncQuestion
from rlsize.facts.figure import Figure
from rlsize.planner.sync_cadence import plan_sync


def question(seconds: float, step: float, target: float, deviation: float = 0.0) -> SyncQuestion:
    """A sync that was measured, in steps of so long, to pause at most so much."""
    return SyncQuestion(
        method="nccl-broadcast",
        params=Figure(key="params", value=70e9),
        bytes_per_param=Figure(key="bytes_per_param", value=2.0),
        path=LinkFigures(),
        handover=LinkFigures(),
        changed_fraction=Figure(key="changed_fraction", value=0.02),
        reload_seconds=Figure(key="reload_seconds", value=0.0),
        hidden_seconds=Figure(key="hidden_seconds", value=0.0),
        sync_every=Figure(key="sync_every", value=1),
        target_fraction=Figure(key="target_fraction", value=target),
        measured_seconds=Figure(key="measured_sync_seconds", value=seconds, deviation=deviation),
        step_seconds=Figure(key="step_seconds_without_sync", value=step),
    )


def cadence(asked: SyncQuestion) -> int:
    """Steps between syncs, for the measured sync."""
    return int({figure.key: figure for figure in plan_sync(asked).results}["expected_sync_every_steps"].number)


@pytest.mark.parametrize(("seconds", "step", "steps"), [(5.0, 19.0, 5), (1.0, 19.0, 1), (9.5, 20.0, 10)])
def test_the_cadence_by_hand(seconds: float, step: float, steps: int) -> None:
    """5 s in 19 s steps stay under a twentieth from every fifth step on: 5 / (5 x 19 + 5)."""
    assert cadence(question(seconds, step, 0.05)) == steps


@given(
    st.floats(min_value=1e-3, max_value=1e3),
    st.floats(min_value=1e-2, max_value=1e4),
    st.floats(min_value=1e-3, max_value=0.9),
)
def test_the_cadence_keeps_the_target_and_one_step_fewer_does_not(seconds: float, step: float, target: float) -> None:
    """The fewest whole steps, so that no more staleness is bought than needed."""
    steps = cadence(question(seconds, step, target))
    assert sync_pause_fraction(seconds, step, steps) <= target * (1 + 1e-6)
    if steps > 1:
        assert sync_pause_fraction(seconds, step, steps - 1) > target * (1 - 1e-6)


def test_an_uncertain_sync_gives_bands() -> None:
    """Of its pause and of the cadence, but not of the bytes."""
    answer = plan_sync(question(6.0, 40.0, 0.05, deviation=1.0), random=Random(0))
    found = {figure.key: figure for figure in answer.results}
    band = found["expected_sync_pause_fraction"].band
    assert band is not None
    assert band[0] < found["expected_sync_pause_fraction"].number < band[1]
    assert found["transfer_bytes"].band is None


def test_without_a_link_the_plain_time_is_missing_and_the_measured_one_is_there() -> None:
    """Each result stands on what it has."""
    found = {figure.key: figure for figure in plan_sync(question(6.0, 40.0, 0.05)).results}
    assert not found["transfer_seconds"].known
    assert not found["sync_every_steps"].known
    assert found["expected_transfer_seconds"].value == 6.0
