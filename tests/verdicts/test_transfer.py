"""Calibration on one record and prediction of another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.verdicts.contests import time_as_gpus, time_unchanged
from rlsize.verdicts.grading import transfer_grades
from rlsize.verdicts.transfer import Transfer, calibrated, transfer


@pytest.fixture
def moved(made_up: Any, predict: Any, silent: Any) -> Callable[..., Transfer]:
    """Pairs of rows of the made-up class."""

    def pairs(*rows: dict[str, Any], most: int = 400, seed: int = 0, together: int = 1) -> Transfer:
        records = predict(*rows).records
        return transfer(records, {"made_up": made_up}, lambda _: None, seed, silent, most, together)  # type: ignore[arg-type, return-value]  # needs no profiles

    return pairs


def test_a_slow_machine_is_known_after_one_run(moved: Callable[..., Transfer]) -> None:
    """Both runs take three times as long as believed: after one, the other is known to a tenth; before, it was not."""
    found = moved({"run_time_s": 301.0, "work": 50}, {"run_time_s": 151.0, "work": 50, "gpus": 2})
    assert [(pair.calibrated_on, pair.id) for pair in found.pairs] == [("r0", "r1"), ("r1", "r0")]
    for pair in found.pairs:
        assert pair.after.predicted == pytest.approx(pair.after.measured, rel=0.1)
        assert pair.before < 0.5 * pair.after.measured
        assert math.log(pair.after.high / pair.after.low) < 0.5  # type: ignore[operator]  # there is a band


def test_what_a_record_says_of_itself_moves_the_belief_by_its_noise_only(made_up: Any, predict: Any) -> None:
    """A measurement that is as predicted narrows the constants and moves nothing."""
    entry = predict({"run_time_s": 21.0, "work": 10}).records[0]
    before = prior(*made_up.STAGES)
    after = calibrated(before, made_up, [entry.record], lambda _: None)  # type: ignore[arg-type, return-value]  # needs no profiles
    assert after.central() == pytest.approx(before.central(), rel=1e-6)
    assert after.spread("slowness") < 0.2 < before.spread("slowness")


def test_what_a_family_leaves_unsaid_is_learnt_of_one_record(
    made_up: Any, moved: Callable[..., Transfer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the noise of rows is what all of them lack, one row tells it; where it is each row's own, little."""
    rows = {"run_time_s": 301.0, "work": 50}, {"run_time_s": 151.0, "work": 50, "gpus": 2}
    noise = made_up.noise
    monkeypatch.setattr(made_up, "noise", lambda record: math.hypot(noise(record), 2.0))
    alone = moved(*rows).pairs
    monkeypatch.setattr(made_up, "unstated", lambda _: 2.0, raising=False)
    for own, shared in zip(alone, moved(*rows).pairs, strict=True):
        assert shared.after.predicted == pytest.approx(shared.after.measured, rel=0.1)
        assert own.after.predicted < 0.7 * own.after.measured


def test_records_of_low_trust_calibrate_nothing(moved: Callable[..., Transfer]) -> None:
    """Nor are they predicted; a record alone in its family is counted, and another family is another."""
    found = moved(
        {"run_time_s": 21.0, "work": 10},
        {"run_time_s": 21.0, "work": 10, "trust": "low"},
        {"run_time_s": 21.0, "work": 10, "gpu": "l4"},
    )
    assert not found.pairs
    assert found.alone == {"made_up": 2}


def test_large_families_give_a_seeded_choice(moved: Callable[..., Transfer]) -> None:
    """At most so many ordered pairs, the same for the same seed."""
    rows = [{"run_time_s": 20.0 + i, "work": 10} for i in range(6)]
    one, again, other = (moved(*rows, most=10, seed=seed) for seed in (0, 0, 1))
    names = [[(pair.calibrated_on, pair.id) for pair in found.pairs] for found in (one, again, other)]
    assert len(names[0]) == 10
    assert names[0] == names[1] != names[2]
    assert one.chosen == {"made_up": 1}


def test_two_runs_together_tell_slope_from_start(moved: Callable[..., Transfer]) -> None:
    """Every set of two predicts every third: a start that is larger than believed shows only beside another size."""
    rows = [{"run_time_s": 4.0 * work + 1.2, "work": work} for work in (0.2, 5, 20)]
    one, two = (moved(*rows, together=together) for together in (1, 2))
    assert (len(one.pairs), len(two.pairs)) == (6, 3)
    errors = [max(abs(p.after.predicted / p.after.measured - 1) for p in found.pairs) for found in (one, two)]
    assert errors[1] < errors[0]
    assert moved(*rows, together=3).alone == {"made_up": 3}


def test_pairs_are_grouped_by_how_they_differ(made_up: Any, moved: Callable[..., Transfer]) -> None:
    """By layout, unless the class says more; families count once each in the second score."""
    rows = [
        {"run_time_s": 21.0, "work": 10},
        {"run_time_s": 31.0, "work": 15},
        {"run_time_s": 11.0, "work": 10, "gpus": 2},
    ]
    grades = transfer_grades(moved(*rows).pairs)
    assert [(grade.relation, grade.after.n) for grade in grades] == [("same layout", 2), ("other layout", 4)]
    made_up.relation = lambda one, other: "same work" if one.work == other.work else "other work"
    assert [grade.relation for grade in transfer_grades(moved(*rows).pairs)] == ["same work", "other work"]


def test_a_calibration_that_cannot_be_done_loses_its_pairs_only(made_up: Any, moved: Callable[..., Transfer]) -> None:
    """They are counted."""
    central = made_up.predict

    def fragile(run: Any, profiles: Any, values: Any) -> Any:
        if run.work == 11 and not isinstance(values["slowness"], float) and len(values["slowness"]) < 10:
            raise Refused("out of reach")
        return central(run, profiles, values)

    made_up.predict = fragile
    found = moved({"run_time_s": 30.0, "work": 11}, {"run_time_s": 30.0, "work": 12}, {"run_time_s": 30.0, "work": 13})
    assert found.left_out == {"made_up": 2}
    assert {pair.calibrated_on for pair in found.pairs} == {"r1", "r2"}


def test_a_record_that_contradicts_its_neighbours_calibrates_nothing(
    made_up: Any, moved: Callable[..., Transfer]
) -> None:
    """Nor is it what others are tested on."""
    made_up.contradictions = lambda runs: {place: "odd" for place, run in enumerate(runs) if run.work == 11}
    found = moved({"run_time_s": 30.0, "work": 11}, {"run_time_s": 30.0, "work": 12}, {"run_time_s": 30.0, "work": 13})
    assert found.odd == {"made_up": 1}
    assert {pair.calibrated_on for pair in found.pairs} == {"r1", "r2"}
    assert {pair.id for pair in found.pairs} == {"r1", "r2"}


@pytest.mark.parametrize("field", ["step_time_s", "tokens_per_s_per_gpu", "output_tok_s_total", "peak_gib_per_gpu"])
def test_on_as_many_gpus_the_guesses_are_the_measurement(field: str) -> None:
    """And there and back again is where it was."""
    for guess in (time_as_gpus, time_unchanged):
        assert guess(field, 7.0, 8, 8) == 7.0
        assert guess(field, guess(field, 7.0, 8, 32), 32, 8) == pytest.approx(7.0)
