"""What became of a result: the change, its band on common draws, and what can be said of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.figure import Figure, absent
from rlsize.verdicts.causes import Difference, bounded, differences

KEY = "step_seconds"
DRAWS = np.linspace(0.5, 1.5, 401)


def _figure(value: float | str | None, band: tuple[float, float] | None = None, key: str = KEY) -> Figure:
    return Figure(key=key, value=value, band=band, missing="" if value is not None else "--gpu-hour")


def _on_draws(before: float, after: float, scatter: float = 0.0) -> Difference:
    """Two sides that share what is uncertain; the second has some scatter of its own."""
    own = after * (1.0 + scatter * np.cos(np.arange(401)))
    (one,) = differences({KEY: _figure(before)}, {KEY: _figure(after)}, ({KEY: before * DRAWS}, {KEY: own * DRAWS}))
    return one


def test_what_is_uncertain_in_both_is_no_doubt() -> None:
    """A band of half the value on either side, and one tenth more in every draw: higher, by exactly a tenth."""
    one = _on_draws(10.0, 11.0)
    assert one.verdict == "higher"
    assert one.change.value == pytest.approx(1.0)
    assert one.change.band == pytest.approx((0.6, 1.4))
    assert one.change_fraction.value == pytest.approx(0.1)
    assert one.change_fraction.band is None or one.change_fraction.band == pytest.approx((0.1, 0.1))


@pytest.mark.parametrize(
    ("after", "scatter", "verdict"),
    [
        (10.5, 0.5, "too close to call"),
        (10.0, 0.0, "unchanged"),
        (9.0, 0.01, "lower"),
        (10.0, 0.1, "too close to call"),
    ],
)
def test_the_verdict_is_that_of_the_draws(after: float, scatter: float, verdict: str) -> None:
    """A change is called only where nine of ten draws agree on its side."""
    assert _on_draws(10.0, after, scatter).verdict == verdict


@given(st.floats(0.1, 1e3), st.floats(0.1, 1e3), st.floats(0.0, 0.9))
def test_too_close_is_where_the_ratio_holds_one(before: float, after: float, scatter: float) -> None:
    """The interval of the difference holds 0 where that of the ratio holds 1, and the other way round."""
    one = _on_draws(before, after, scatter)
    if one.verdict in {"higher", "lower"}:
        low, high = one.change_fraction.band or (one.change_fraction.number,) * 2
        assert low > 0 or high < 0
    else:
        low, high = one.change_fraction.band or (0.0, 0.0)
        assert low <= 1e-9
        assert high >= -1e-9


@given(st.floats(0.1, 1e3), st.floats(0.1, 1e3), st.floats(0.0, 0.5))
def test_the_other_way_round_the_signs_change(before: float, after: float, scatter: float) -> None:
    """Forwards and backwards agree: the change with its other sign, and the verdict that goes with it."""
    mirror = {"higher": "lower", "lower": "higher"}
    sides = ({KEY: _figure(before)}, {KEY: _figure(after)})
    own = after * (1.0 + scatter * np.cos(np.arange(401))) * DRAWS
    drawn = ({KEY: before * DRAWS}, {KEY: own})
    (there,), (back,) = differences(*sides, drawn), differences(*sides[::-1], drawn[::-1])
    assert back.change.number == -there.change.number
    assert back.verdict == mirror.get(there.verdict, there.verdict)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (_figure(10.0, (9.0, 11.0)), _figure(13.0, (12.0, 14.0)), "higher"),
        (_figure(10.0, (9.0, 11.0)), _figure(7.0, (6.0, 8.0)), "lower"),
        (_figure(10.0, (9.0, 11.0)), _figure(12.0, (10.5, 14.0)), "bands overlap"),
        (_figure(10.0, (9.0, 11.0)), _figure(10.0, (9.0, 11.0)), "unchanged"),
        (_figure(10.0, (9.0, 11.0)), _figure(10.0, (8.0, 12.0)), "bands overlap"),
        (_figure(8.0), _figure(4.0), "lower"),
        (_figure(8.0), _figure(8.0 + 1e-12), "unchanged"),
    ],
)
def test_bands_that_were_drawn_apart_tell_what_they_can(before: Figure, after: Figure, verdict: str) -> None:
    """Only bands that do not overlap tell a change, and points do."""
    (one,) = differences({KEY: before}, {KEY: after})
    assert one.verdict == verdict
    assert one.change.band is None


@pytest.mark.parametrize(
    ("before", "after", "bounds", "verdict"),
    [
        (10.0, 12.0, (False, True), "higher"),
        (10.0, 12.0, (True, False), "only a bound"),
        (10.0, 8.0, (False, True), "only a bound"),
        (10.0, 8.0, (False, False), "lower"),
        (10.0, 10.0, (True, True), "only a bound"),
    ],
)
def test_a_lower_bound_leaves_few_changes_certain(
    before: float, after: float, bounds: tuple[bool, bool], verdict: str
) -> None:
    """It may be higher than it says: only a bound above what was measured before tells anything."""
    (one,) = differences({KEY: _figure(before)}, {KEY: _figure(after)})
    assert bounded(one, before=bounds[0], after=bounds[1]).verdict == verdict


def test_a_result_on_one_side_only_is_told() -> None:
    """A price that only one side has; what neither has, or what is a word, is no result."""
    before = {
        "cost_per_step_usd": absent("cost_per_step_usd", "--gpu-hour"),
        KEY: _figure(1.0),
        "mode": _figure("async"),
    }
    after = {"cost_per_step_usd": _figure(2.0), KEY: absent(KEY, "--gpus"), "run_seconds": absent("run_seconds", "")}
    told = {one.quantity: (one.verdict, one.change.known) for one in differences(before, after)}
    assert told == {"cost_per_step_usd": ("only after", False), KEY: ("only before", False)}


def test_a_change_from_nothing_has_no_share() -> None:
    """Idle of 0 that becomes 5 %: a change, and no percentage of nothing."""
    key = "trainer_idle_fraction"
    before, after = ({key: _figure(value, key=key)} for value in (0.0, 0.05))
    (one,) = differences(before, after, ({key: np.zeros(400)}, {key: np.full(400, 0.05)}))
    assert (one.verdict, one.change.value, one.change_fraction.known) == ("higher", 0.05, False)
