"""A belief about constants: what measurements do to it, and what they cannot."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.belief import conditioned, interval, prior, scattered, sensitivity
from rlsize.estimates.constants import Constant, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def constant(name: str, value: float = 2.0, spread: float = 0.3) -> Constant:
    """A part of the tests below."""
    return Constant(
        name=name, value=value, spread=spread, unit="1", meaning="made up", basis="assumed", source="this test"
    )


STAGE = Stage(
    name="made-up", constants=(constant("a"), constant("b", 3.0, 0.2), constant("known", 5.0, 0.0)), noise=0.1
)


def product(values: Mapping[str, Any]) -> list[Any]:
    """A part of the tests below."""
    return [values["a"] * values["b"] * values["known"]]


def test_a_prior_keeps_values_and_spreads() -> None:
    """The central values are those of the constants, the spreads too."""
    belief = prior(STAGE)
    assert belief.central() == pytest.approx({"a": 2.0, "b": 3.0, "known": 5.0})
    assert [belief.spread(name) for name in belief.names] == pytest.approx([0.3, 0.2, 0.0])


def test_a_measurement_splits_its_surprise_by_variance() -> None:
    """By hand: ln 2 of surprise, variances 0.09, 0.04 and 0.01 of noise: gains 9/14 and 4/14."""
    belief = conditioned(prior(STAGE), product, [60.0], [0.1])
    assert math.log(belief.central()["a"] / 2) == pytest.approx(math.log(2) * 9 / 14, rel=1e-4)
    assert math.log(belief.central()["b"] / 3) == pytest.approx(math.log(2) * 4 / 14, rel=1e-4)
    assert belief.central()["known"] == pytest.approx(5.0)
    assert belief.spread("a") == pytest.approx(math.sqrt(0.09 - 0.09**2 / 0.14), rel=1e-4)


@given(measured=st.floats(1.0, 1000.0))
def test_a_measurement_without_worth_moves_nothing(measured: float) -> None:
    """Little data moves little: with noise of a factor of e^1000 the belief stays."""
    before = prior(STAGE)
    after = conditioned(before, product, [measured], [1000.0])
    assert np.allclose(before.mean, after.mean, atol=1e-4)
    assert np.allclose(before.covariance, after.covariance, atol=1e-6)


@given(factor=st.floats(0.3, 3.0), noise=st.floats(0.01, 0.5))
def test_a_calibrated_prediction_lies_between_prior_and_measurement(factor: float, noise: float) -> None:
    """And its spread never grows."""
    before = prior(STAGE)
    after = conditioned(before, product, [30.0 * factor], [noise])
    predicted = product(after.central())[0]
    assert min(1.0, factor) * 30 * (1 - 1e-6) <= predicted <= max(1.0, factor) * 30 * (1 + 1e-6)
    assert all(after.spread(name) <= before.spread(name) + 1e-9 for name in before.names)


def test_draws_after_a_measurement_lie_where_it_lies() -> None:
    """Of what bends: the median of what draws predict is what the mean predicts, to 0.5 %; else it is 2 % off."""

    def bent(values: Mapping[str, Any]) -> list[Any]:
        return [values["a"] ** 3 + 100.0 * values["b"] ** -4]

    after = conditioned(prior(STAGE), bent, [10.0], [0.02])
    central = bent(after.central())[0]
    assert np.median(bent(after.drawn(0))[0]) == pytest.approx(central, rel=0.005)
    assert np.median(bent(replace(after, lean=0.0).drawn(0))[0]) > 1.02 * central
    straight = conditioned(prior(STAGE), product, [60.0], [0.02])
    assert np.allclose(straight.lean, 0.0, atol=0.02)


def test_two_measurements_at_once_equal_one_after_the_other() -> None:
    """The order of sources does not matter for a product, whose logarithm is linear."""

    def both(values: Mapping[str, Any]) -> list[Any]:
        return [values["a"] * values["b"], values["a"] / values["b"]]

    together = conditioned(prior(STAGE), both, [7.0, 0.6], [0.1, 0.2])
    first = conditioned(prior(STAGE), lambda values: both(values)[:1], [7.0], [0.1])
    then = conditioned(first, lambda values: both(values)[1:], [0.6], [0.2])
    assert np.allclose(together.mean, then.mean, atol=1e-6)
    assert np.allclose(together.covariance, then.covariance, atol=1e-8)


def test_draws_have_the_belief_s_median_and_spread() -> None:
    """Logarithms of 4,000 draws: median within 2 %, standard deviation within 5 %."""
    drawn = prior(STAGE).drawn(seed=1, draws=4000)
    assert np.median(drawn["a"]) == pytest.approx(2.0, rel=0.02)
    assert np.std(np.log(drawn["a"])) == pytest.approx(0.3, rel=0.05)
    assert np.all(drawn["known"] == pytest.approx(5.0))


def test_the_same_seed_gives_the_same_draws_whatever_else_is_drawn() -> None:
    """Alternatives with other constants share the draws of those that they have in common."""
    alone = prior(Stage(name="one", constants=(constant("a"),), noise=0.1)).drawn(seed=3)
    among = prior(STAGE).drawn(seed=3)
    assert np.allclose(alone["a"], among["a"])
    assert not np.allclose(alone["a"], prior(STAGE).drawn(seed=4)["a"])


def test_sensitivity_is_the_exponent_of_a_power_law() -> None:
    """The derivative of ln(a^2 b) by ln a is 2, by ln b is 1; what is known has none."""
    slope = sensitivity(prior(STAGE), lambda values: [values["a"] ** 2 * values["b"]])
    assert slope[0] == pytest.approx([2.0, 1.0, 0.0], abs=1e-6)


def test_an_interval_holds_four_fifths_of_the_draws() -> None:
    """And scatter widens it."""
    drawn = prior(STAGE).drawn(seed=1)["a"]
    low, high = interval(drawn)
    assert np.mean((low <= drawn) & (drawn <= high)) == pytest.approx(0.8, abs=0.01)
    wide_low, wide_high = interval(scattered(drawn, 0.5, 1, "a measurement"))
    assert wide_low < low < high < wide_high


def test_a_constant_must_be_positive() -> None:
    """Its logarithm is what is uncertain."""
    with pytest.raises(ValueError, match="positive"):
        constant("zero", 0.0)
