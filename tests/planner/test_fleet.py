"""The matched fleet."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize import Figure, FleetQuestion, InputError, size_fleet


def question(
    consume: float = 39321.6, rate: float = 4000.0, headroom: float = 0.8, waste: float = 1.0, **more: Figure
) -> FleetQuestion:
    """A fleet question of plain numbers."""
    return FleetQuestion(
        consumption=Figure(key="consumption_tokens_per_second", value=consume),
        instance_rate=Figure(key="instance_tokens_per_second", value=rate),
        headroom=Figure(key="headroom", value=headroom),
        tokens_generated_per_trained_token=Figure(key="waste", value=waste),
        **more,
    )


def found(asked: FleetQuestion) -> dict[str, Figure]:
    """The results by key."""
    return {figure.key: figure for figure in size_fleet(asked).results}


def test_the_runbooks_worked_example() -> None:
    """512 samples of 1536 tokens in 20 s against 4000 tok/s an instance: 13 at headroom 0.8, 10 at nameplate."""
    results = found(question())
    assert results["matched_instances"].value == 13
    assert results["nameplate_matched_instances"].value == 10


@given(
    st.floats(min_value=1.0, max_value=5e5),  # more of it, at the least rate, is a fleet that is refused
    st.floats(min_value=100.0, max_value=1e6),
    st.floats(min_value=0.05, max_value=1.0),
    st.floats(min_value=1.0, max_value=10.0),
)
def test_the_match_covers_and_one_fewer_does_not(consume: float, rate: float, headroom: float, waste: float) -> None:
    """At the match the expected trainer never waits; with one instance fewer it does."""
    results = found(question(consume, rate, headroom, waste))
    matched = int(results["matched_instances"].number)
    assert results["expected_trainer_idle_fraction"].number <= 1e-8
    if matched > 1:
        fewer = found(question(consume, rate, headroom, waste, instances=Figure(key="instances", value=matched - 1)))
        assert fewer["expected_trainer_idle_fraction"].number > 0


@given(st.floats(min_value=1e-2, max_value=1e6), st.floats(min_value=10.0, max_value=1e9))
def test_the_match_never_falls_when_the_trainer_gets_faster(consume: float, rate: float) -> None:
    """More consumption needs at least as many instances."""
    slow, fast = found(question(consume, rate)), found(question(consume * 1.5, rate))
    assert fast["matched_instances"].number >= slow["matched_instances"].number


def test_cost_names_every_input_it_lacks() -> None:
    """No price is ever assumed."""
    cost = found(question())["expected_cost_per_step_usd"]
    assert cost.value is None
    for flag in ("--gpu-hour", "--trainer-gpus", "--gpus-per-instance", "--batch-tokens"):
        assert flag in cost.missing


def test_an_uncertain_rate_gives_the_match_a_band() -> None:
    """A spread of the instance rate reaches the matched count and the idle fraction."""
    asked = question()
    uncertain = FleetQuestion(
        consumption=asked.consumption,
        instance_rate=Figure(key="instance_tokens_per_second", value=4000.0, deviation=400.0),
        headroom=asked.headroom,
        tokens_generated_per_trained_token=asked.tokens_generated_per_trained_token,
    )
    results = {figure.key: figure for figure in size_fleet(uncertain, Random(0)).results}
    low, high = results["matched_instances"].band or (0.0, 0.0)
    assert low <= 12
    assert high >= 13
    assert results["instances"].band is None


def test_neighbours_hold_the_match_the_nameplate_match_and_the_asked_count() -> None:
    """The reader sees what one more or one fewer does, and where the asked count stands."""
    answer = size_fleet(question(instances=Figure(key="instances", value=30)))
    counts = [row["instances"].value for row in answer.neighbours]
    assert counts == [10, 11, 12, 13, 14, 15, 16, 29, 30, 31]
    assert answer.matched == 13
    assert answer.judged == 30


def test_a_neighbour_row_equals_the_answer_for_that_count() -> None:
    """Rows and results come from the same equations."""
    answer = size_fleet(question())
    row = next(row for row in answer.neighbours if row["instances"].value == 12)
    alone = found(question(instances=Figure(key="instances", value=12)))
    assert row["expected_trainer_idle_fraction"].value == pytest.approx(alone["expected_trainer_idle_fraction"].value)


def test_a_held_back_fleet_that_met_the_demand_is_large_enough() -> None:
    """13 instances at 3,025 tok/s met 39,321.6 tok/s: sizing from what they were asked for must not add to them."""
    observed = Figure(key="observed_instances", value=13)
    answer = size_fleet(question(rate=3025.0, observed_instances=observed))
    assert (answer.matched, answer.held_back) == (13, True)
    short = size_fleet(question(rate=2000.0, observed_instances=observed))
    assert (short.matched, short.held_back) == (25, False)


def test_a_fleet_that_nobody_can_build_is_refused() -> None:
    """A rate in the wrong unit does not become a count of billions."""
    with pytest.raises(InputError, match="no such fleet"):
        size_fleet(question(rate=1e-6))
