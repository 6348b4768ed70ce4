"""Points move what is believed as far as they can be trusted, in any order; contradictions are named."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.estimates.calibrating import EDGE, Measurable, Point, calibrated, contradiction, half_band, outlooks
from rlsize.estimates.constants import Constant, Stage

Predict = Callable[[Mapping[str, Any]], Any]


def constant(name: str, value: float, spread: float) -> Constant:
    """A constant of an invented stage."""
    return Constant(name=name, value=value, spread=spread, unit="s", meaning=name, basis="assumed", source="invented")


STAGE = Stage(
    name="work",
    constants=(constant("fixed", 2.0, 0.3), constant("each", 0.5, 0.4), constant("known", 1.0, 0.0)),
    noise=0.05,
)


def point(size: float, measured: float, noise: float = 0.05, series: str = "") -> Point:
    """Seconds of work of some size: fixed + each x size, times what is known."""

    def predict(values: Mapping[str, Any]) -> Any:
        return (values["fixed"] + values["each"] * size) * values["known"]

    work = Measurable(what=f"work of {size:g}", predict=predict, stages=(STAGE,), noise=noise)
    return Point(of=work, source="test", measured=measured, scatter=0.0, series=series, place=size)


sizes = st.floats(0.1, 100.0)
seconds = st.floats(0.5, 200.0)
points = st.lists(st.builds(point, sizes, seconds, st.floats(0.02, 0.5)), min_size=1, max_size=5)


@given(points, st.randoms())
def test_the_order_of_sources_does_not_matter(found: list[Point], random: Any) -> None:
    """All points go in at once."""
    mixed = list(found)
    random.shuffle(mixed)
    one, other = calibrated(found).after, calibrated(mixed).after
    assert one.mean == pytest.approx(other.mean, abs=1e-6)
    assert one.covariance == pytest.approx(other.covariance, abs=1e-6)


@given(points)
def test_no_measurement_widens_what_is_believed(found: list[Point]) -> None:
    """The covariance after is at most that before, in every direction."""
    made = calibrated(found)
    assert np.linalg.eigvalsh(made.before.covariance - made.after.covariance).min() > -1e-9


@given(sizes, seconds)
def test_a_measurement_of_huge_noise_changes_nothing(size: float, measured: float) -> None:
    """Little data moves little."""
    made = calibrated([point(size, measured, noise=100.0)])
    assert made.after.mean == pytest.approx(made.before.mean, abs=1e-3)
    assert made.after.covariance == pytest.approx(made.before.covariance, abs=1e-3)


@given(sizes, st.floats(0.02, 0.5))
def test_what_was_predicted_exactly_narrows_without_moving(size: float, noise: float) -> None:
    """And a repetition narrows further."""
    exact = 2.0 + 0.5 * size
    once, twice = calibrated([point(size, exact, noise)]), calibrated([point(size, exact, noise)] * 2)
    assert once.after.mean == pytest.approx(once.before.mean, abs=1e-6)
    assert np.trace(twice.after.covariance) < np.trace(once.after.covariance) < np.trace(once.before.covariance)


@given(sizes, seconds, st.floats(0.02, 0.5))
def test_the_calibrated_prediction_lies_between_measured_and_predicted(size: float, at: float, noise: float) -> None:
    """A single point pulls its own prediction towards it, never beyond."""
    (one,) = calibrated([point(size, at, noise)]).compared
    low, high = sorted((one.before, at))
    assert low * (1 - 1e-6) <= one.after <= high * (1 + 1e-6)


def test_a_constant_that_is_known_stays() -> None:
    """A spread of zero is not moved."""
    made = calibrated([point(1.0, 100.0)])
    assert made.after.central()["known"] == 1.0
    assert made.after.spread("known") == 0.0


def test_a_point_far_from_what_was_believed_is_doubted() -> None:
    """Ten times what was predicted is no matter of constants."""
    (one,) = calibrated([point(1.0, 25.0)]).compared
    assert one.doubtful
    assert one.odd > 3
    (usual,) = calibrated([point(1.0, 2.6)]).compared
    assert not usual.doubtful
    assert usual.band[0] < usual.before < usual.band[1]


def test_the_band_before_holds_the_scatter_of_the_measurement() -> None:
    """Its width, squared, is that of the constants and of the measurement together."""
    narrow, wide = (calibrated([point(1.0, 2.6, noise)]).compared[0].band for noise in (0.1, 0.3))
    widths = [math.log(high / low) / (2 * EDGE) for low, high in (narrow, wide)]
    assert widths[1] ** 2 - widths[0] ** 2 == pytest.approx(0.3**2 - 0.1**2)


def test_what_cannot_be_predicted_is_refused_by_name() -> None:
    """A prediction of zero has no logarithm."""
    nothing = Measurable(what="nothing", predict=lambda _: 0.0, stages=(STAGE,), noise=0.1)
    odd = Point(of=nothing, source="test", measured=1.0)
    with pytest.raises(Refused, match="nothing"):
        calibrated([odd])


def test_a_point_that_falls_where_its_neighbours_rise_is_named() -> None:
    """The one that the others and the prediction fit worse."""
    series = [point(size, 2.0 + 0.5 * size, series="s") for size in (1.0, 10.0, 20.0, 40.0)]
    assert contradiction(series) is None
    broken = [*series[:2], point(20.0, 3.0, series="s"), series[3]]
    found = contradiction(broken)
    assert found is not None
    assert found[0].of.what == "work of 20"
    assert "7 s" in found[1]
    assert "22 s" in found[1]


def test_what_scatter_explains_is_no_contradiction() -> None:
    """A rate that falls by two percent is level; points of no series have no neighbours."""
    assert contradiction([point(1.0, 10.0, series="s"), point(2.0, 9.8, series="s")]) is None
    assert contradiction([point(1.0, 10.0), point(2.0, 5.0)]) is None


def candidate(what: str, predict: Predict, noise: float = 0.05) -> Measurable:
    """Something to measure."""
    return Measurable(what=what, predict=predict, stages=(STAGE,), noise=noise)


def test_what_tells_about_the_target_narrows_it_most() -> None:
    """The cost of each piece decides large work; the fixed cost does not, and what is known tells nothing."""
    belief = calibrated([point(1.0, 2.5, noise=10.0)]).after
    target = candidate("target", lambda v: v["fixed"] + 50.0 * v["each"])
    names = ("known", "fixed", "each")
    told = outlooks(belief, target, [candidate(name, itemgetter(name)) for name in names])
    assert [one.what for one in told][:2] == ["each", "fixed"]
    assert told[0].after < told[0].before / 2
    assert told[-1].after == pytest.approx(told[-1].before, rel=1e-3)


@given(sizes, st.floats(0.02, 0.5))
def test_an_outlook_says_what_the_measurement_then_does(size: float, noise: float) -> None:
    """The closed form agrees with the update, where the measurement shows what was predicted."""
    before = calibrated([point(1.0, 2.5, noise=100.0)]).after
    target = candidate("target", lambda v: v["fixed"] + 3.0 * v["each"], noise=0.0)
    (told,) = outlooks(before, target, [candidate("more", lambda v: v["fixed"] + v["each"] * size, noise)])
    total = float(np.hypot(noise, 0.02))
    after = calibrated([point(1.0, 2.5, noise=100.0), point(size, 2.0 + 0.5 * size, total)]).after
    row = np.array([2.0 / 3.5, 1.5 / 3.5, 0.0])
    assert told.after == pytest.approx(half_band(float(np.sqrt(row @ after.covariance @ row))), rel=2e-2)
