"""Bars and lines of a simulation: few enough to draw, and true to what happened."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.commands.simulate import chart
from rlsize.commands.simulate.chart import MOST_POINTS, bars_of, gantt, over_steps
from rlsize.reports.chart import Bar
from rlsize.simulator.ledger import COLUMNS, Ledger, Span


def runs(instances: int, count: int) -> list[Span]:
    """Runs of many instances that follow each other, each with another batch than the last."""
    return [
        Span(f"instance {one}", "", float(run), run + 1.0, 1 + (7 * run + 13 * one) % 64)
        for one in range(instances)
        for run in range(count)
    ]


def filled(bars: Sequence[Bar]) -> float:
    """Shade times seconds."""
    return sum((bar.shade or 0.0) * (bar.end - bar.start) for bar in bars)


def test_runs_with_the_same_batch_become_one() -> None:
    """Touching runs of one batch are one bar; another batch, a gap or another instance begins anew."""
    spans = [
        Span("instance 0", "batch 8", 0.0, 1.0, 8),
        Span("instance 0", "batch 8", 1.0, 2.0, 8),
        Span("instance 0", "batch 4", 2.0, 3.0, 4),
        Span("instance 0", "batch 4", 3.5, 4.0, 4),
        Span("instance 1", "batch 4", 4.0, 5.0, 4),
    ]
    found = [(bar.lane, bar.start, bar.end, bar.shade) for bar in bars_of(spans, 8, 1.0)]
    assert found == [
        ("instance 0", 0.0, 2.0, 1.0),
        ("instance 0", 2.0, 3.0, 0.5),
        ("instance 0", 3.5, 4.0, 0.5),
        ("instance 1", 4.0, 5.0, 0.5),
    ]


def test_phases_keep_their_names_and_syncs_their_versions() -> None:
    """In any order of recording; a phase that nobody knows is drawn, too."""
    spans = [
        Span("trainer", "update", 5.0, 9.0),
        Span("trainer", "waiting", 0.0, 5.0),
        Span("trainer", "daydream", 9.0, 10.0),
        Span("sync", "version 1", 10.0, 11.0),
        Span("sync", "version 2", 11.0, 12.0),
    ]
    found = [(bar.lane, bar.name, bar.role, bar.label) for bar in bars_of(spans, 8, 1.0)]
    assert found == [
        ("trainer", "waiting", "waiting", ""),
        ("trainer", "update", "update", ""),
        ("trainer", "daydream", "other", ""),
        ("sync", "sync", "sync", "v1"),
        ("sync", "sync", "sync", "v2"),
    ]


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(("instances", "count"), [(1, 3_000), (300, 150)])
def test_long_histories_are_thinned_without_losing_work(instances: int, count: int) -> None:
    """There are few enough bars, and the area below them is what it was."""
    spans = runs(instances, count)
    phases = [Span("trainer", ("update", "waiting")[n % 2], n / 100, (n + 1) / 100) for n in range(100 * count // 10)]
    found = bars_of([*spans, *phases], 64, 1.0)
    assert len(found) <= chart.MOST_BARS
    work = sum(span.batch * (span.end - span.start) for span in spans) / 64
    assert filled(found) == pytest.approx(work)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 80),
)
def test_thinned_bars_never_overlap(parts: list[tuple[int, int, bool]], most: int) -> None:
    """However many may be drawn, bars follow each other, and their area is the work done."""
    spans, now = [], 0.0
    for gap, batch, instance in parts:
        now += gap
        spans.append(Span("instance 0" if instance else "trainer", f"batch {batch}", now, now + 1.0, batch))
        now += 1.0
    before = chart.MOST_BARS
    chart.MOST_BARS = most
    try:
        found = bars_of(spans, 8, 1.0)
    finally:
        chart.MOST_BARS = before
    for lane in ("instance 0", "trainer"):
        own = [bar for bar in found if bar.lane == lane]
        assert all(one.end <= after.start for one, after in pairwise(own))
    work = sum(span.batch for span in spans if span.track == "instance 0") / 8
    assert filled(found) == pytest.approx(work)


def test_every_instance_has_a_lane_in_the_order_of_numbers() -> None:
    """Instances that never ran in between are lanes, too."""
    spans = [
        Span("instance 10", "b", 0.0, 1.0, 1),
        Span("instance 2", "b", 0.0, 1.0, 1),
        Span("trainer", "w", 0.0, 1.0),
    ]
    assert gantt(spans, 8, "T").lanes == ("trainer", *(f"instance {number}" for number in range(11)))


@pytest.mark.parametrize(("seconds", "label", "end"), [(600.0, "s", 600.0), (3600.0, "min", 60.0), (36e3, "h", 10.0)])
def test_times_are_in_a_unit_that_suits_them(seconds: float, label: str, end: float) -> None:
    """Seconds, minutes, hours."""
    chart = gantt([Span("trainer", "update", 0.0, seconds)], 8, "T")
    assert (chart.x_label, chart.spans[0].end) == (f"time ({label})", end)


def ledger(steps: int, max_staleness: int | None = None) -> Ledger:
    """Accounts in which step n takes n + 3 seconds and its worst sample is n steps old."""
    found = Ledger(max_staleness)
    for step in range(1, steps + 1):
        row = dict.fromkeys(COLUMNS, 0.0) | {"backlog_samples": 2.0 * step, "oldest_age_steps": step}
        row |= {"train_seconds": float(step), "waiting_seconds": 2.0, "sync_seconds": 1.0, "trained_samples": 4.0}
        found.close(row)
        found.columns["staleness_sum"][-1], found.columns["most_stale"][-1] = 2.0 * step, step
    return found


def test_panels_say_what_the_ledger_says() -> None:
    """Backlog, staleness, and seconds by cause; causes that never were are left out."""
    backlog, staleness, seconds = over_steps(ledger(5, 3), 2, "T").charts
    assert backlog.series[0].xs == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert backlog.series[0].ys == (2.0, 4.0, 6.0, 8.0, 10.0)
    assert {series.name: series.ys[-1] for series in staleness.series} == {
        "waiting, oldest": 5.0, "trained, most": 5.0, "trained, mean": 2.5,
    }  # fmt: skip
    assert [(mark.axis, mark.at) for mark in staleness.marks] == [("x", 2.5), ("y", 3)]
    assert {series.name: series.ys[0] for series in seconds.series} == {
        "training": 1.0, "waiting for samples": 2.0, "weight sync": 1.0,
    }  # fmt: skip


def test_long_runs_are_drawn_in_parts() -> None:
    """The mean of each part where sizes count, the largest where extremes do."""
    steps = 2 * MOST_POINTS + 1
    backlog, staleness, _ = over_steps(ledger(steps), 0, "T").charts
    assert len(backlog.series[0].xs) <= MOST_POINTS
    assert "3 steps" in backlog.x_label
    assert (backlog.series[0].xs[0], backlog.series[0].ys[0]) == (2.0, 4.0)
    assert staleness.series[1].ys[0] == 3.0
    assert backlog.marks == staleness.marks == ()
