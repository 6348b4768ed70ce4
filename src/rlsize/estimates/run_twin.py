"""A run that was measured as its own model: which of its phases constants explain, and what stays a time of its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlsize.estimates.calibrating import EDGE, Measurable, Point
from rlsize.facts.calibration import OwnPhase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.constants import Stage
    from rlsize.facts.calibration import CalibrationSetting
    from rlsize.facts.run_log import RunSummary

    Parts = Callable[[Mapping[str, Real]], Mapping[str, Real]]

PASSES = frozenset({"update", "logprob"})
"""Phases that go over every token, whatever else they do, so that what is not known of them grows with the tokens."""
DRIFTS = {"generation": "step_generation_growth", "update": "step_pass_growth", "logprob": "step_pass_growth"}
"""Constants of how phases grow with a run's tokens over what is predicted; unknown of a run of one length."""
REST = ("overhead", "sync")
"""What a log leaves of a step that does not time its weight syncs."""
REPEATED = 0.03  # of the mean of a phase over many steps
AGAIN = 0.05  # of a step of the same run again: published runs that were repeated differ by 1 to 10 %
UNTESTED = 0.1  # of a step after a change that no published runs differ by, as `benchmarks/twins.py` has it of others
_PHASES = {  # columns of a log, by phase
    "generation": "generation_seconds",
    "update": "update_seconds",
    "logprob": "logprob_seconds",
    "sync": "sync_seconds",
    "overhead": "other_seconds",
    "step": "step_seconds",
}
BESIDE = ("reward_seconds", "validation_seconds", "checkpoint_seconds")  # that belong to no side, where a log has them
_LEAST = 1.0  # seconds below which a phase says nothing of its constants


def measured_phases(run: RunSummary, *, overlapping: bool) -> dict[str, tuple[float, float]]:
    """
    Seconds of each phase that a log times, and the standard error of their logarithm.

    Args:
        run: The log.
        overlapping: Whether phases run at the same time, so that the step says more than what they leave of it.
    """
    left_out = "overhead" if overlapping else "step" if run.figure("other_seconds").known else ""
    figures = {phase: run.figure(key) for phase, key in _PHASES.items() if phase != left_out}
    found = {
        phase: (figure.number, figure.deviation / figure.number if figure.number else 0.0)
        for phase, figure in figures.items()
        if figure.known
    }
    beside = sum(figure.number for key in BESIDE if (figure := run.figure(key)).known)
    if "overhead" in found:
        found["overhead"] = (found["overhead"][0] + beside, found["overhead"][1])
    return found


def twin_points(
    measured: Mapping[str, tuple[float, float]],
    parts: Parts,
    stages: tuple[Stage, ...],
    where: tuple[str, CalibrationSetting],
) -> list[Point]:
    """
    What constants may learn from the phases of a run: up to the ends of their bands.

    Args:
        measured: Seconds and scatter of each phase.
        parts: The predicted phases from values of the constants.
        stages: Of the constants.
        where: The log, and what ran.
    """
    return [
        Point(
            of=Measurable(
                what=f"{phase} of the run",
                predict=partial(_part, parts, phase),
                stages=stages,
                noise=REPEATED,
                setting=where[1],
            ),
            source=where[0],
            measured=seconds,
            scatter=scatter,
            limit=EDGE,
        )
        for phase, (seconds, scatter) in measured.items()
        if seconds > _LEAST
    ]


def _part(parts: Parts, phase: str, values: Mapping[str, Real]) -> Real:
    return parts(values)[phase]


def without_tools(measured: Mapping[str, tuple[float, float]], run: RunSummary) -> dict[str, tuple[float, float]]:
    """
    Phases whose generation is what engines did in it: tools are a time that no constant explains.

    Args:
        measured: Seconds and scatter of each phase.
        run: The log.
    """
    tools = run.figure("generation_tools_seconds")
    if not tools.known or "generation" not in measured:
        return dict(measured)
    seconds, scatter = measured["generation"]
    left = max(0.0, seconds - tools.number)
    return {**measured, "generation": (left, scatter * seconds / left if left else 0.0)}


def own_phases(measured: Mapping[str, tuple[float, float]], after: Mapping[str, float]) -> list[OwnPhase]:
    """
    What calibrated phases leave of the measured ones, the step as a whole aside.

    Args:
        measured: Seconds and scatter of each phase.
        after: The phases as they are predicted after calibration. [s]
    """
    found: list[OwnPhase] = []
    for phase, (seconds, _) in measured.items():
        if phase == "step":
            continue
        names = REST if phase == "overhead" and "sync" not in measured else (phase,)
        if seconds >= after[phase]:
            grows = phase in PASSES
            found.append(OwnPhase(phase=phase, measured=seconds, seconds=seconds - after[phase], grows=grows))
        else:
            found += [OwnPhase(phase=name, measured=seconds, factor=seconds / after[phase]) for name in names]
    return found


def left_of_step(seconds: float, predicted: float, overhead: float) -> OwnPhase:
    """
    What of a step belongs to none of its phases, as what is left of its overhead.

    Args:
        seconds: The measured step. [s]
        predicted: As it is predicted with all other phases as they were. [s]
        overhead: The overhead in that. [s]
    """
    beyond = seconds - predicted
    if beyond >= 0 or not overhead:
        return OwnPhase(phase="overhead", seconds=max(0.0, beyond))
    return OwnPhase(phase="overhead", factor=max(0.0, overhead + beyond) / overhead)


def shortened(measured: Mapping[str, tuple[float, float]], after: Mapping[str, float]) -> list[OwnPhase]:
    """
    Phases that a log does not time, where its step is shorter than they are without any overhead and sync.

    Args:
        measured: Seconds and scatter of each phase, the step among them.
        after: The phases as they are predicted after calibration, the step among them. [s]
    """
    untimed = [phase for phase in DRIFTS if phase not in measured]
    together = sum(after[phase] for phase in untimed)
    left = measured["step"][0] - (after["step"] - after["overhead"] - together)
    if not 0 < left < together:
        return []
    return [OwnPhase(phase=phase, factor=left / together) for phase in untimed]
