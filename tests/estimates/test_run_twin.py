"""What a run's phases teach: constants up to the ends of their bands, and times of its own beyond."""

from __future__ import annotations

import math

import pytest

from rlsize.estimates.calibrating import EDGE, Measurable, Point, calibrated
from rlsize.estimates.constants import Constant, Stage
from rlsize.estimates.run_twin import left_of_step, measured_phases, own_phases, twin_points, without_tools
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.figure import Figure
from rlsize.facts.run_log import RunSummary

SPEED = Constant(
    name="speed", value=10.0, spread=0.2, unit="s", meaning="time of a phase", basis="assumed", source="this test"
)
STAGE = Stage(name="one", constants=(SPEED,), noise=0.0)


def run(**seconds: float) -> RunSummary:
    """A log that times some things."""
    told = {f"{name}_seconds": value for name, value in seconds.items()}
    figures = {key: Figure(key=key, value=value, deviation=0.02 * value) for key, value in told.items()}
    return RunSummary(source="run.log", figures=figures)


def test_a_log_in_which_phases_take_turns_says_what_is_left_of_its_step() -> None:
    """The rest is a phase of its own there; where phases overlap, the step as a whole is one in its place."""
    log = run(step=100.0, generation=60.0, update=30.0, other=10.0)
    found = measured_phases(log, overlapping=False)
    assert {phase: seconds for phase, (seconds, _) in found.items()} == {
        "generation": 60.0,
        "update": 30.0,
        "overhead": 10.0,
    }
    assert [scatter for _, scatter in found.values()] == pytest.approx([0.02] * 3)
    assert "step" in measured_phases(log, overlapping=True)
    assert "overhead" not in measured_phases(log, overlapping=True)
    assert set(measured_phases(run(step=100.0), overlapping=False)) == {"step"}


@pytest.mark.parametrize("seconds", [11.0, 25.0, 4.0])
def test_constants_explain_a_phase_up_to_the_end_of_its_band(seconds: float) -> None:
    """Within the band they go all the way; beyond it they stop there."""
    parts = twin_points(
        {"update": (seconds, 0.0)}, lambda values: {"update": values["speed"]}, (STAGE,), ("log", CalibrationSetting())
    )
    found = calibrated(parts).compared[0]
    low, high = found.band
    assert found.after == pytest.approx(min(max(seconds, low), high), rel=0.03)
    assert (found.point.measured, found.point.source) == (seconds, "log")


def test_a_measurement_without_a_limit_moves_constants_as_far_as_it_says() -> None:
    """What is not of a run is believed as it was before."""
    what = Measurable(what="x", predict=lambda values: values["speed"], stages=(STAGE,), noise=0.001)
    free, held = (
        calibrated([Point(of=what, source="s", measured=40.0, scatter=0.0, limit=limit)]).compared[0].after
        for limit in (math.inf, EDGE)
    )
    assert free == pytest.approx(40.0, rel=0.01)
    assert held == pytest.approx(10.0 * math.exp(EDGE * 0.2), rel=0.01)


def test_what_is_beyond_stays_a_time_of_its_own() -> None:
    """A pass over all tokens grows with them, a wait nobody knows how; what was quicker keeps a factor."""
    measured = {"generation": (90.0, 0.0), "update": (40.0, 0.0), "logprob": (5.0, 0.0), "overhead": (2.0, 0.0)}
    after = {"generation": 80.0, "update": 30.0, "logprob": 10.0, "overhead": 8.0, "sync": 3.0, "step": 131.0}
    own = {one.phase: one for one in own_phases(measured, after)}
    assert (own["generation"].seconds, own["generation"].grows) == (10.0, False)
    assert (own["update"].seconds, own["update"].grows) == (10.0, True)
    assert own["logprob"].factor == 0.5
    assert own["overhead"].factor == own["sync"].factor == 0.25  # the log has both in one


@pytest.mark.parametrize(("tools", "engines", "scatter"), [(30.0, 60.0, 0.03), (95.0, 0.0, 0.0)])
def test_tools_are_no_work_of_engines(tools: float, engines: float, scatter: float) -> None:
    """What constants learn from is the generation less its tools; those stay a time of the run's own."""
    measured = {"generation": (90.0, 0.02)}
    found = without_tools(measured, run(generation=90.0, generation_tools=tools))
    assert found["generation"] == pytest.approx((engines, scatter))
    assert without_tools(measured, run(generation=90.0)) == measured


def test_the_rest_of_a_step_is_taken_off_its_overhead_before_it_is_missing() -> None:
    """A step cannot have less than no overhead."""
    assert left_of_step(50.0, predicted=40.0, overhead=5.0).seconds == 10.0
    assert left_of_step(38.0, predicted=40.0, overhead=5.0).factor == pytest.approx(0.6)
    assert left_of_step(30.0, predicted=40.0, overhead=5.0).factor == 0.0
