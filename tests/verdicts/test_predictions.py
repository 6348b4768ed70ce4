"""Predictions of records: centre, band, and refusals that stop nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlsize.errors import Fault, InputError, Refused
from rlsize.verdicts.predictions import predictions


def test_the_centre_is_the_prediction_at_the_central_constants(predict: Callable[..., Any]) -> None:
    """2 s of work times 10 and 1 s to start; the band holds it, and the field that counts comes first."""
    fields = predict({"work_per_s_total": 0.5, "run_time_s": 25.0, "work": 10}).records[0].fields
    assert [field.name for field in fields] == ["run_time_s", "work_per_s_total"]
    assert fields[0].predicted == pytest.approx(21.0)
    assert fields[0].low < 21.0 < fields[0].high


def test_the_band_is_that_of_the_spread_and_the_noise(predict: Callable[..., Any]) -> None:
    """With much work the time is the slowness', whose logarithm scatters by 0.5, with 0.05 of noise."""
    field = predict({"run_time_s": 25.0, "work": 1e6}).records[0].fields[0]
    assert math.log(field.high / field.low) == pytest.approx(2 * 1.2816 * math.hypot(0.5, 0.05), rel=0.12)


def test_the_same_seed_gives_the_same_bands(predict: Callable[..., Any]) -> None:
    """And another seed others, a little apart."""
    row = {"run_time_s": 25.0, "work": 10}
    first, again, other = (predict(row, seed=seed).records[0].fields[0] for seed in (0, 0, 1))
    assert first == again
    assert first.low != other.low
    assert first.low == pytest.approx(other.low, rel=0.2)


def test_one_bad_record_stops_no_other(predict: Callable[..., Any]) -> None:
    """What cannot be predicted, or was not measured, is refused with a reason."""
    found = predict(
        {"run_time_s": 25.0, "work": -1},
        {"run_time_s": 0.0, "work": 1},
        {"work": 1},
        {"run_time_s": 25.0, "work": 10},
        {"run_time_s": 25.0, "work": 10, "gpus": 0},
    )
    assert [record.record.id for record in found.records] == ["r3"]
    reasons = {row.id: row.reason for row in found.refused}
    assert reasons["r0"] == "does less than nothing"
    assert reasons["r1"] == reasons["r2"] == "has no measured run_time_s"
    assert "ZeroDivisionError" in reasons["r4"]


@pytest.mark.parametrize(
    "error", [Refused("no"), InputError(Fault("no")), KeyError("no"), ValueError("no"), TypeError("no")]
)
def test_whatever_a_predictor_stumbles_over_is_a_refusal(
    made_up: Any, runs: Any, silent: Any, error: Exception
) -> None:
    """A record from elsewhere ends in a reason, never in a traceback."""

    def stumble(*_: Any) -> Any:
        raise error

    made_up.predict = stumble
    listed = runs({"run_time_s": 1.0, "work": 1.0})
    found = predictions(listed, {"made_up": made_up}, lambda _: None, 0, silent)  # type: ignore[arg-type, return-value]  # needs no profiles
    assert not found.records
    assert "no" in found.refused[0].reason


def test_draws_that_cannot_be_predicted_leave_the_centre_without_a_band(made_up: Any, runs: Any, silent: Any) -> None:
    """The point stands; it counts for no coverage."""
    central = made_up.predict

    def only_central(run: Any, profiles: Any, values: Any) -> Any:
        if isinstance(values["slowness"], np.ndarray):
            raise Refused("no memory")
        return central(run, profiles, values)

    made_up.predict = only_central
    listed = runs({"run_time_s": 1.0, "work": 1.0})
    found = predictions(listed, {"made_up": made_up}, lambda _: None, 0, silent)  # type: ignore[arg-type, return-value]  # needs no profiles
    assert (found.records[0].fields[0].low, found.records[0].fields[0].high) == (None, None)


def test_a_class_that_nothing_predicts_is_told(runs: Any, silent: Any) -> None:
    """Its records are refused."""
    found = predictions(runs({"run_time_s": 1.0, "work": 1.0}), {}, lambda _: None, 0, silent)  # type: ignore[arg-type, return-value]  # never asked
    assert found.refused[0].reason == "nothing predicts records of its class"
