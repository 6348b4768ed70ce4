"""Working an answer out: provenance, missing inputs, bands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

from rlsize.equations.imbalance import seconds_until_oldest_is_stale
from rlsize.equations.matching import consumption, required_supply
from rlsize.estimates.figures import Draw, alike, apply, figures_in, in_draws, prior, rounded, total, with_bands
from rlsize.facts.figure import Figure, absent


@dataclass(frozen=True)
class Question:
    """A consumption from a batch and a time."""

    batch: Figure
    seconds: Figure


def answer(question: Question) -> list[Figure]:
    """The consumption."""
    return [apply("consumption", consumption, tokens_per_step=question.batch, train_seconds=question.seconds)]


def test_a_result_remembers_its_equation_and_inputs() -> None:
    """Every number has a provenance."""
    result = apply("c", consumption, tokens_per_step=Figure(key="d", value=100, source="--d"), train_seconds=20)
    assert (result.value, result.provenance, result.equation) == (5.0, "predicted", "matching.consumption")
    assert result.inputs["tokens_per_step"].source == "--d"


def test_a_missing_input_names_the_flag_that_fills_it() -> None:
    """Nothing is assumed: the result says what it needs, each flag once."""
    first = apply(
        "c", consumption, tokens_per_step=absent("d", "--batch-tokens"), train_seconds=absent("t", "--train-seconds")
    )
    second = apply(
        "r", required_supply, consumption=first, tokens_generated_per_trained_token=absent("w", "--batch-tokens")
    )
    assert second.value is None
    assert second.missing == "--batch-tokens, --train-seconds"


def test_an_unverified_fact_marks_what_follows_from_it() -> None:
    """What nobody verified says so, and so does everything worked out from it."""
    result = apply("c", consumption, tokens_per_step=Figure(key="d", value=1, verified=False), train_seconds=1)
    assert not result.verified
    assert not total("sum", [result, Figure(key="x", value=1)]).verified


def test_a_prior_lies_in_the_middle_of_its_draws_and_a_given_spread_has_the_given_mean() -> None:
    """Half of what others had lies above the prior; who says 100 ± 130 says a mean."""
    usual = prior("d", 100.0, 1.0, "others", most=1e9)
    given = Figure(key="d", value=100.0, deviation=usual.deviation)
    draws = [Draw(Random(seed)) for seed in range(2000)]
    others, own = (np.array(in_draws(figure, draws), dtype=float) for figure in (usual, given))
    assert np.median(others) == pytest.approx(100.0, rel=0.1)
    assert own.mean() == pytest.approx(100.0, rel=0.15)


def test_points_have_no_band() -> None:
    """Given numbers are points unless written with a ±."""
    question = Question(Figure(key="d", value=100.0), Figure(key="t", value=20.0))
    assert with_bands(answer(question), Random(0))[0].band is None


@pytest.mark.long
def test_a_band_is_an_80_percent_interval_of_the_draws() -> None:
    """For one lognormal input the band's ends are its 10 % and 90 % quantiles."""
    question = Question(Figure(key="d", value=100.0, deviation=10.0), Figure(key="t", value=1.0))
    low, high = with_bands(answer(question), Random(0), draws=20_000)[0].band or (0.0, 0.0)
    sigma = math.sqrt(math.log1p(0.01))
    median = 100.0 / math.sqrt(1.01)
    assert low == pytest.approx(median * math.exp(-1.2816 * sigma), rel=0.01)
    assert high == pytest.approx(median * math.exp(1.2816 * sigma), rel=0.01)


def test_the_same_seed_gives_the_same_band() -> None:
    """Alternatives are compared on the same draws."""
    question = Question(Figure(key="d", value=100.0, deviation=10.0), Figure(key="t", value=1.0))
    assert with_bands(answer(question), Random(7))[0].band == with_bands(answer(question), Random(7))[0].band


@pytest.mark.long
def test_draws_keep_the_mean_and_stay_positive() -> None:
    """However wide the spread, no rate turns negative."""
    random = Random(1)
    values = [Draw(random).value(Figure(key="r", value=10.0, deviation=20.0)) for _ in range(50_000)]
    assert min(values) > 0
    assert sum(values) / len(values) == pytest.approx(10.0, rel=0.05)


def test_an_input_used_twice_is_drawn_once() -> None:
    """A price for both pools is one price: drawing it twice would make the cost look surer than it is."""
    price = Figure(key="gpu_hour_usd", value=2.5, deviation=0.5, source="--gpu-hour")
    draw = Draw(Random(3))
    assert draw.value(price) == draw.value(price)


def test_what_was_worked_out_is_worked_out_again_in_every_draw() -> None:
    """A consumption from an uncertain batch follows the batch: batch over consumption is the train time, exactly."""
    batch = Figure(key="batch_tokens", value=100.0, deviation=30.0, source="--batch-tokens")
    derived = apply("c", consumption, tokens_per_step=batch, train_seconds=Figure(key="t", value=20.0))
    (drawn,), (again,) = (in_draws(figure, [Draw(Random(5))]) for figure in (batch, derived))
    assert drawn != batch.value
    assert again == pytest.approx(float(str(drawn)) / 20.0)


def test_draws_stay_inside_the_limits_of_their_input() -> None:
    """A share of 0.9 ± 0.3 is never over 1, an instance never less than none."""
    share = Figure(key="share", value=0.9, deviation=0.3, least=0.0, most=1.0)
    values = [Draw(Random(seed)).value(share) for seed in range(500)]
    assert min(values) >= 0.0
    assert max(values) <= 1.0


def test_a_figure_that_is_often_missing_has_no_band() -> None:
    """A cap that half of the draws never reach has no honest interval; one that few miss has that of the others."""
    supply = Figure(key="supply_tokens_per_second", value=101.0, deviation=10.0)
    certain = {"max_staleness": 1, "seconds_per_step": 20.0}
    for required, banded in ((100.0, False), (60.0, True)):
        cap = apply("cap", seconds_until_oldest_is_stale, **certain, supply=supply, required_supply=required)
        assert (with_bands([cap], Random(0))[0].band is not None) == banded


def test_a_rounded_figure_keeps_the_exact_one_in_sight() -> None:
    """13 instances say that they come from 12.288."""
    exact = apply("exact", consumption, tokens_per_step=12.288, train_seconds=1.0)
    whole = rounded(exact, "instances", math.ceil)
    assert (whole.value, whole.source) == (13, "12.288, in whole numbers")
    assert rounded(absent("x", "--x"), "instances", math.ceil).value is None


def test_the_band_of_a_rounded_figure_is_of_whole_numbers() -> None:
    """What is rounded follows its inputs too, and is rounded in every draw."""
    exact = apply("exact", consumption, tokens_per_step=Figure(key="d", value=12.0, deviation=3.0), train_seconds=1.0)
    values = in_draws(rounded(exact, "instances", math.ceil), [Draw(Random(seed)) for seed in range(20)])
    assert len({*values}) > 1
    assert all(isinstance(value, int) for value in values)


def test_what_two_kinds_carry_alike_is_handed_on_by_name() -> None:
    """Names that another kind has too, of a dataclass or of a mapping, and nothing else."""
    size = Figure(key="batch", value=8.0)

    @dataclass(frozen=True)
    class Other:
        batch: Figure
        steps: int

    assert alike(Other(batch=size, steps=3), Question) == {"batch": size}
    assert alike({"seconds": size, "steps": 3}, Question) == {"seconds": size}


def test_the_figures_of_a_question_leave_plain_values_out() -> None:
    """Only figures are told, whether they are known or not."""
    known, lacking = Figure(key="a", value=1.0), Figure(key="b", value=None, missing="--b")
    assert figures_in({"a": known, "b": lacking, "c": 2.0}) == {"a": known, "b": lacking}
