"""A budget's verdicts: what keeps a limit, what breaks it, and what cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rlsize.facts.budget import Budget, Change, Limit
from rlsize.facts.figure import Figure, absent
from rlsize.facts.plan import Plan, PlanFigure
from rlsize.verdicts.budget import Line, Status, judged, memory_line

KEY = "step_seconds"
HEADROOM = "trainer_memory_headroom_fraction"
RANK: Mapping[Status, int] = {"fail": 0, "warn": 1, "pass": 2}
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
SHARES = st.floats(0.0, 2.0, allow_subnormal=False)


def figure(value: float | None, low: float | None = None, high: float | None = None, key: str = KEY) -> Figure:
    """A predicted quantity, with a band where both of its ends are given."""
    band = None if low is None or high is None else (low, high)
    return Figure(key=key, value=value, band=band, provenance="predicted")


def plan(value: float | str | None, low: float | None = None, high: float | None = None) -> Plan:
    """A baseline that holds one quantity."""
    return Plan(
        command="check",
        rlsize_version="0",
        facts_digest="0",
        placement={},
        results={KEY: PlanFigure(value=value, low=low, high=high)},
    )


def line(value: Figure, limit: Limit, baseline: Plan | None = None) -> Line:
    """The verdict on one quantity with one limit."""
    (found,) = judged({value.key: value}, Budget(**{value.key: limit}), baseline)
    return found


def increase(share: float) -> Limit:
    """A limit on growth, as a share of the baseline."""
    return Limit(max_increase=Change(share, relative=True))


def decrease(share: float) -> Limit:
    """A limit on decline, as a share of the baseline."""
    return Limit(max_decrease=Change(share, relative=True))


@pytest.mark.parametrize(
    ("value", "limit", "status", "margin"),
    [
        (figure(50), Limit(max=60), "pass", 10),
        (figure(60), Limit(max=60), "pass", 0),
        (figure(61), Limit(max=60), "fail", -1),
        (figure(50, 45, 59), Limit(max=60), "pass", 10),
        (figure(50, 45, 60), Limit(max=60), "pass", 10),
        (figure(50, 45, 70), Limit(max=60), "warn", 10),
        (figure(61, 45, 70), Limit(max=60), "fail", -1),
        (figure(50), Limit(min=50), "pass", 0),
        (figure(49), Limit(min=50), "fail", -1),
        (figure(55, 45, 70), Limit(min=50), "warn", 5),
        (figure(55, 51, 70), Limit(min=50), "pass", 5),
        (figure(float("inf")), Limit(max=60), "fail", float("-inf")),
        (figure(float("inf")), Limit(min=60), "pass", float("inf")),
    ],
)
def test_the_whole_band_keeps_a_limit(value: Figure, limit: Limit, status: Status, margin: float) -> None:
    """A point passes or fails; a band warns where only an end of it is beyond."""
    found = line(value, limit)
    assert (found.status, found.margin.value) == (status, margin)
    assert found.refused(strict=False) == (status == "fail")
    assert found.refused(strict=True) == (status != "pass")


@pytest.mark.parametrize(
    ("value", "limit", "status", "at"),
    [
        (figure(2.5), increase(0.25), "pass", 2.5),
        (figure(2.51), increase(0.25), "fail", 2.5),
        (figure(1.5), decrease(0.25), "pass", 1.5),
        (figure(1.49), decrease(0.25), "fail", 1.5),
        (figure(2.0), Limit(max_increase=Change(0.0, relative=True)), "pass", 2.0),
        (figure(2.25), Limit(max_increase=Change(0.25, relative=False)), "pass", 2.25),
        (figure(2.26), Limit(max_increase=Change(0.25, relative=False)), "fail", 2.25),
        (figure(1.74), Limit(max_decrease=Change(0.25, relative=False)), "fail", 1.75),
        (figure(9.0), decrease(0.0), "pass", 2.0),
    ],
)
def test_a_change_is_limited_from_the_baseline(value: Figure, limit: Limit, status: Status, at: float) -> None:
    """By a share of it, or by an amount; the boundary itself passes, and the other way is free."""
    found = line(value, limit, plan(2.0))
    assert (found.status, found.limit.value) == (status, at)
    assert found.baseline is not None
    assert found.change.value == pytest.approx(value.number - 2.0)
    assert found.change_fraction.value == pytest.approx(value.number / 2.0 - 1.0)


def test_what_is_uncertain_in_both_is_no_change() -> None:
    """Low is compared with low and high with high: the same wide band, unmoved, passes a limit on its change."""
    same = line(figure(40, 30, 60), increase(0.05), plan(40, 30, 60))
    assert same.status == "pass"
    assert same.margin.band == pytest.approx((1.5, 3.0))
    wider = line(figure(40, 30, 70), increase(0.05), plan(40, 30, 60))
    assert wider.status == "warn"
    moved = line(figure(44, 33, 66), increase(0.05), plan(40, 30, 60))
    assert moved.status == "fail"


def test_what_another_processor_rounds_is_no_change() -> None:
    """A baseline that was worked out elsewhere differs in the last digit."""
    found = line(figure(0.1 + 0.2), increase(0.05), plan(0.3))
    assert found.value.value != 0.3
    assert (found.change.value, found.change_fraction.value) == (0.0, 0.0)


def test_a_band_against_a_point_is_compared_with_the_point() -> None:
    """A baseline that was measured has no band."""
    assert line(figure(40, 30, 60), increase(0.05), plan(40)).status == "warn"
    assert line(figure(40), increase(0.05), plan(40, 30, 60)).status == "warn"


@pytest.mark.parametrize(
    ("value", "limit", "baseline", "lacking"),
    [
        (absent(KEY, "--gpu-hour"), Limit(max=1), None, "value"),
        (absent(KEY, "--gpu-hour"), increase(0.1), plan(1.0), "value"),
        (figure(float("nan")), Limit(max=1), None, "value"),
        (Figure(key=KEY, value="soon"), Limit(max=1), None, "value"),
        (Figure(key=KEY, value=True), Limit(max=1), None, "value"),
        (figure(1.0), increase(0.1), None, "baseline"),
        (figure(1.0), increase(0.1), plan(None), "value in the baseline"),
        (figure(1.0), increase(0.1), plan("soon"), "value in the baseline"),
        (figure(1.0), increase(0.1), replace(plan(1.0), results={}), "value in the baseline"),
    ],
)
def test_what_is_not_known_is_not_judged(value: Figure, limit: Limit, baseline: Plan | None, lacking: str) -> None:
    """It neither passes nor fails, and says what it lacks."""
    found = line(value, limit, baseline)
    assert (found.status, found.lacking) == ("unknown", lacking)
    assert not found.margin.known
    assert not found.refused(strict=True)


def test_a_result_that_nobody_worked_out_is_not_known() -> None:
    """A key that is missing altogether is no pass."""
    (found,) = judged({}, Budget(gpus=Limit(max=1)))
    assert (found.quantity, found.status) == ("gpus", "unknown")


def test_every_limit_of_a_quantity_has_a_line() -> None:
    """In the order of the budget's quantities, and of the kinds of limits."""
    limit = Limit(max=9, min=1, max_increase=Change(0.1, relative=True), max_decrease=Change(0.1, relative=True))
    lines = judged(
        {KEY: figure(5), "gpus": figure(4, key="gpus")}, Budget(gpus=Limit(max=8), step_seconds=limit), plan(5)
    )
    assert [found.name for found in lines] == [
        "step_seconds max",
        "step_seconds min",
        "step_seconds max_increase",
        "step_seconds max_decrease",
        "gpus max",
    ]
    assert {found.status for found in lines} == {"pass"}


def test_a_limit_of_nothing_has_no_share() -> None:
    """Room to a limit of 0, and a change from 0, are amounts only."""
    found = line(figure(0.0), Limit(max=0.0), plan(0.0))
    assert (found.status, found.margin_fraction.known, found.change_fraction.known) == ("pass", False, False)
    assert found.change.value == 0.0


@pytest.mark.parametrize(
    ("held", "status"),
    [(figure(70e9, 60e9, 79e9), "pass"), (figure(70e9, 60e9, 90e9), "warn"), (figure(90e9, 85e9, 95e9), "fail")],
)
def test_memory_that_is_there_is_a_limit_that_nobody_sets(held: Figure, status: Status) -> None:
    """It is kept where the high end fits, and broken where the centre does not."""
    found = memory_line(held, 80e9)
    assert (found.quantity, found.status, found.implied, found.limit.number) == (held.key, status, True, 80e9)


# ---- what holds for all numbers ----


@st.composite
def banded(draw: st.DrawFn) -> Figure:
    """A quantity with a band around it, or a point."""
    value = draw(NUMBERS)
    if draw(st.booleans()):
        return figure(value)
    return figure(value, value - draw(st.floats(0, 1e3)), value + draw(st.floats(0, 1e3)))


def mirrored(one: Figure) -> Figure:
    """The quantity with its sign turned."""
    return figure(-one.number, *((-one.band[1], -one.band[0]) if one.band else ()))


@given(banded(), NUMBERS, st.floats(0, 1e6))
def test_a_tighter_limit_never_helps(value: Figure, limit: float, tighter: float) -> None:
    """Neither from fail to warn nor from warn to pass, of the most and of the least."""
    loose, tight = line(value, Limit(max=limit)), line(value, Limit(max=limit - tighter))
    assert RANK[tight.status] <= RANK[loose.status]
    loose, tight = line(value, Limit(min=limit)), line(value, Limit(min=limit + tighter))
    assert RANK[tight.status] <= RANK[loose.status]


@given(banded(), st.floats(0.01, 1e6), SHARES, SHARES)
def test_a_tighter_change_never_helps(value: Figure, before: float, one: float, other: float) -> None:
    """The same of limits on a change."""
    loose, tight = max(one, other), min(one, other)
    for change in (increase, decrease):
        found = [RANK[line(value, change(share), plan(before)).status] for share in (tight, loose)]
        assert found[0] <= found[1]


@given(banded(), NUMBERS)
def test_the_most_and_the_least_mirror_each_other(value: Figure, limit: float) -> None:
    """A quantity below a limit is its negative above the negative limit."""
    most, least = line(value, Limit(max=limit)), line(mirrored(value), Limit(min=-limit))
    assert (most.status, most.margin.value) == (least.status, least.margin.value)


@given(banded(), banded(), SHARES)
def test_growth_and_decline_mirror_each_other(value: Figure, before: Figure, share: float) -> None:
    """What may grow by 5 % is judged as its negative that may fall by 5 %."""
    grown = line(value, increase(share), plan(before.number, *(before.band or ())))
    turned = mirrored(before)
    fallen = line(mirrored(value), decrease(share), plan(turned.number, *(turned.band or ())))
    assert grown.status == fallen.status
    assert grown.margin.number == pytest.approx(fallen.margin.number)


@given(banded(), NUMBERS)
def test_a_band_on_one_side_never_warns(value: Figure, limit: float) -> None:
    """Inside it passes, outside it fails; a warning needs an end on each side."""
    low, high = value.band or (value.number, value.number)
    assume(abs(limit - low) > 1e-3 and abs(limit - high) > 1e-3)
    found = line(value, Limit(max=limit))
    assert found.status == ("pass" if high < limit else "fail" if value.number > limit else "warn")
    if found.status == "warn":
        assert low <= value.number <= limit < high


@given(NUMBERS)
def test_the_limit_itself_is_kept(value: float) -> None:
    """Of the most, of the least, and of a change of nothing."""
    for limit in (Limit(max=value), Limit(min=value), increase(0.0), decrease(0.0)):
        assert line(figure(value), limit, plan(value)).status == "pass"


@given(st.floats(0.01, 1e6), SHARES)
def test_exactly_the_change_that_is_allowed_passes(before: float, share: float) -> None:
    """However the sum of floats is rounded."""
    assert line(figure(before * (1 + share)), increase(share), plan(before)).status == "pass"
    assert line(figure(before * (1 - share)), decrease(share), plan(before)).status == "pass"
    assert line(figure(before * (1 + share) * 1.001), increase(share), plan(before)).status == "fail"


@given(banded(), NUMBERS, NUMBERS)
def test_without_limits_on_a_change_a_baseline_decides_nothing(value: Figure, limit: float, before: float) -> None:
    """It is told beside the verdict."""
    alone, beside = line(value, Limit(max=limit)), line(value, Limit(max=limit), plan(before))
    assert (alone.status, alone.margin) == (beside.status, beside.margin)
    assert beside.change.known
