"""Errors on records that no constant was fitted to."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.holdout import held_out

from rlsize.estimates.constants import Constant, Stage

MODELS = ("qwen3-8b", "qwen3-14b", "qwen3-32b")


@pytest.fixture
def fitted(made_up: Any) -> Any:
    """The made-up class, whose slowness is fitted to records."""
    stage = made_up.STAGES[0]
    slowness, start = stage.constants
    made_up.STAGES = (replace(stage, constants=(replace(slowness, basis="fitted"), start)),)
    return made_up


def without_own(fitted: Any, predict: Any, silent: Any, *rows: dict[str, Any]) -> Any:
    """The rows predicted without their own fold."""
    return held_out(predict(*rows).records, {"made_up": fitted}, lambda _: None, 0, silent)  # type: ignore[arg-type, return-value]  # needs no profiles


def test_a_fold_is_predicted_by_what_the_others_say(fitted: Any, predict: Any, silent: Any) -> None:
    """All run at 4 s where 2 s are believed: a fold's own rows are not needed to learn it."""
    rows = [{"run_time_s": 4.0 * work + 1, "work": work, "model": model} for model in MODELS for work in (50, 80)]
    found = without_own(fitted, predict, silent, *rows)
    assert len(found) == 6
    for record in found:
        assert record.fields[0].predicted == pytest.approx(record.fields[0].measured, rel=0.05)
        assert record.fields[0].low < record.fields[0].measured < record.fields[0].high


def test_a_fold_does_not_see_its_own_rows(fitted: Any, predict: Any, silent: Any) -> None:
    """One model is three times as slow as the others: left out, it is predicted as they are."""
    rows = [{"run_time_s": 100.0, "work": 50, "model": model} for model in MODELS for _ in range(3)]
    rows += [{"run_time_s": 300.0, "work": 50, "model": "qwen3-4b"}] * 3
    found = without_own(fitted, predict, silent, *rows)
    odd = [record for record in found if record.record.model == "qwen3-4b"]
    assert all(record.fields[0].predicted < 120.0 for record in odd)


def test_a_caller_may_leave_out_sources(fitted: Any, predict: Any, silent: Any) -> None:
    """Of one model, the second source is predicted by the first, and the other way round."""
    rows = [{"run_time_s": 100.0, "work": 50, "source_id": "a"}, {"run_time_s": 300.0, "work": 50, "source_id": "b"}]
    records = predict(*rows).records
    found = held_out(records, {"made_up": fitted}, lambda _: None, 0, silent, lambda _, run: run.source_id)  # type: ignore[arg-type, return-value]  # needs no profiles
    assert found[0].fields[0].predicted > 150.0 > found[1].fields[0].predicted


def test_a_long_table_counts_as_a_few_rows(fitted: Any, predict: Any, silent: Any) -> None:
    """Twenty rows of one table do not outvote two tables of six."""
    rows = [{"run_time_s": 100.0, "work": 50, "model": MODELS[0]}] * 20
    rows += [{"run_time_s": 400.0, "work": 50, "model": model} for model in MODELS[1:] for _ in range(6)]
    rows += [{"run_time_s": 100.0, "work": 50, "model": "qwen3-4b"}]
    last = without_own(fitted, predict, silent, *rows)[-1]
    assert last.fields[0].predicted > 300.0


def test_rows_that_contradict_their_neighbours_fit_nothing(fitted: Any, predict: Any, silent: Any) -> None:
    """They are not graded either."""
    fitted.contradictions = lambda runs: {
        place: "odd" for place, run in enumerate(runs) if run.measured["run_time_s"] > 1e3
    }
    rows = [{"run_time_s": 100.0, "work": 50, "model": model} for model in MODELS[:2]]
    rows += [{"run_time_s": 1e4, "work": 50, "model": MODELS[2]}] * 5
    found = without_own(fitted, predict, silent, *rows)
    assert len(found) == 2
    assert all(record.fields[0].predicted == pytest.approx(100.0, rel=0.1) for record in found)


def test_a_class_fits_its_first_stage(fitted: Any, predict: Any, silent: Any) -> None:
    """It takes another class's constants as they ship."""
    step = Constant(name="step", value=1.0, spread=0.5, unit="1", meaning="", basis="fitted", source="")
    larger = SimpleNamespace(**vars(fitted))
    larger.STAGES = (Stage(name="step", constants=(step,), noise=0.05), *fitted.STAGES)
    larger.predict = lambda run, profiles, values: {
        "run_time_s": fitted.predict(run, profiles, values)["run_time_s"] * values["step"]
    }
    rows = [{"run_time_s": 100.0 * (1 + place % 2), "work": 50, "model": MODELS[place // 2]} for place in range(6)]
    records = [
        replace(record, class_name="larger" if record.place % 2 else "made_up") for record in predict(*rows).records
    ]
    found = held_out(records, {"made_up": fitted, "larger": larger}, lambda _: None, 0, silent)  # type: ignore[arg-type, return-value]  # needs no profiles
    assert [round(record.fields[0].predicted, -1) for record in found] == [100.0, 200.0] * 3


def test_one_fold_or_nothing_fitted_leaves_nothing_out(made_up: Any, fitted: Any, predict: Any, silent: Any) -> None:
    """There is no error of this kind to tell."""
    rows = [{"run_time_s": 100.0, "work": 50, "model": model} for model in MODELS]
    assert not without_own(fitted, predict, silent, rows[0], {**rows[0], "work": 60})
    stage = fitted.STAGES[0]
    assumed = tuple(replace(constant, basis="assumed") for constant in stage.constants)
    made_up.STAGES = (replace(stage, constants=assumed),)
    assert not without_own(made_up, predict, silent, *rows)
