"""Logs of a run beside the launch that it ran with: a calibration that answers for that run."""

from __future__ import annotations

from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.commands.calibrate.points import loop_of
from rlsize.errors import Fault, InputError, Refused
from rlsize.estimates import step_prediction
from rlsize.estimates.calibration_belief import believed
from rlsize.estimates.figures import numbers
from rlsize.estimates.run_memory import own_memory
from rlsize.estimates.run_twin import (
    BESIDE,
    left_of_step,
    measured_phases,
    own_phases,
    shortened,
    twin_points,
    without_tools,
)
from rlsize.estimates.step_assembly import OVERLAPPING, assembled
from rlsize.facts.calibration import CalibratedRun
from rlsize.facts.figure import Figure
from rlsize.loop.phases import phases_of
from rlsize.loop.resolve import resolve, setting_of
from rlsize.planner.step_parts import loop_parts
from rlsize.quantities.table import PLACES
from rlsize.shell.observation import DECIDED, read_run, shown_by
from rlsize.units import listed, show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.commands.calibrate.points import Gathered, PlacedLoop
    from rlsize.equations._ops import Real
    from rlsize.facts.calibration import Calibration, OwnMemory, OwnPhase
    from rlsize.facts.run_log import RunSummary
    from rlsize.loop.resolve import Loop
    from rlsize.shell.inputs import Inputs

_FREE = frozenset(
    {"seed", "calibration", "steps", "response_cv", "gpu_hour_usd", "rollout_gpu_hour_usd", "trainer_gpu_hour_usd"}
)
"""What may be said otherwise of the same run."""
_TIMED = ("step_seconds", "generation_seconds", "logprob_seconds", "update_seconds", "sync_seconds")
_FOLLOWING = ("train_seconds", "other_seconds")
"""What a log has of its other times."""
_OTHER = 0.05  # from which it is said that a log and what was said are not of one run


class Run:
    """
    A run that was measured.

    Args:
        inputs: What was said of it; takes what the log shows.
        log: Its log, summed up.
        changes: What `--set` says, which no script does.
        logs: All files that the log was summed up from.
    """

    def __init__(self, inputs: Inputs, log: RunSummary, changes: Sequence[str] = (), logs: Sequence[str] = ()) -> None:
        self.log = log
        files = [log.source, *logs, *([inputs.file.document.name] if inputs.file is not None else [])]
        self.digests = {name: digest for name in files if (digest := _digest(name))}
        seen = shown_by(self.log)
        expected = {key: inputs.apart().ask(key, assume=False) for key in DECIDED}
        self.shown: dict[str, Any] = dict(inputs.show(seen, self.log.source, first=DECIDED))
        self.warnings = [*self.log.warnings]
        for key, said in expected.items():
            if said.known and key in seen and _off(float(seen[key]), said.number):
                self.warnings.append(f"{key} is {seen[key]:.4g} in the log, not {said.number:g} ({said.source})")
        places = [change.partition("=")[0].strip() for change in changes]
        rows = [PLACES.get(place) or PLACES.get(f"{place}.mean") for place in places]
        told = {row.key: inputs.said(row.scenario) for row in rows if row is not None}
        self.shown |= {key: value for key, value in told.items() if isinstance(value, (float, int, str))}
        asked = inputs.apart()
        asked.ran = True
        try:
            self.loop: PlacedLoop = loop_of(asked)
        except Refused as refusal:
            what = f"has run, and cannot be predicted as it was said: {refusal}"
            raise InputError(Fault(what, self.log.source, "is that the script of this log, and its GPU?")) from None
        self.memory, self.fill = self._peak(resolve(asked))
        samples = self.loop.terms.problem.samples
        if "samples_per_step" in seen and _off(float(seen["samples_per_step"]), samples.number):
            both = f"{seen['samples_per_step']:g} samples a step, and {samples.number:g} are said"
            self.warnings.append(f"{self.log.source} has {both}: is it the log of this run?")
        self.ran = {
            key: figure.value
            for key, figure in asked.used.items()
            if figure.provenance != "predicted" and figure.value is not None and key not in _FREE
        }
        self.phases = measured_phases(self.log, overlapping=self.loop.place.loop in OVERLAPPING)
        if not self.phases:
            raise InputError(Fault("times neither steps nor phases", self.log.source, "name another log of the run"))

    def _peak(self, loop: Loop) -> tuple[OwnMemory | None, float]:
        """The trainer's peak beside what is predicted, and what share of a GPU the fullest phase takes then."""
        phases = phases_of(loop)
        if phases is None:
            return None, 0.0
        trained = [phase for phase in phases.phases if phase.pool != "rollout"]
        memory = own_memory({phase.name: phase.parts for phase in trained}, self.log)
        if memory is None:
            return None, float(phases.worst.fill)
        took, there = memory.measured, trained[0].memory
        if took > there:
            both = f"{show(took, '_bytes')} of a GPU with {show(there, '_bytes')} to give"
            self.warnings.append(f"the trainer of {self.log.source} took {both}: is it that GPU?")
        anchored = phases_of(loop, own=memory)
        return memory, 0.0 if anchored is None else float(anchored.worst.fill)

    def gather(self, found: Gathered) -> None:
        """Add the phases as points; those that are not predicted stay the run's own."""
        setting = setting_of(self.loop.engine, self.loop.train)
        phases = without_tools(self.phases, self.log)
        points = twin_points(phases, self.parts, step_prediction.STAGES, (self.log.source, setting))
        found.points += [point for point in points if point.of.central > 0]
        found.step = found.step or self.loop

    def parts(self, values: Mapping[str, Real], own: Sequence[OwnPhase] = ()) -> dict[str, Any]:
        """The phases of the loop from values of constants, by name; what a log has in one is one."""
        problem = self.loop.terms.problem
        run = self.fact(own)
        terms = replace(self.loop.terms, values=values, central=values, problem=replace(problem, run=run))
        step = assembled(numbers, loop_parts(terms, self.loop.place))
        rest = step.overhead_seconds
        return {
            "generation": step.generation_seconds,
            "update": step.update_seconds,
            "logprob": step.logprob_seconds,
            "sync": step.sync_seconds,
            "overhead": rest if "sync" in self.phases else rest + step.sync_exposed_seconds,
            "step": step.seconds,
        }

    def fact(self, own: Sequence[OwnPhase]) -> CalibratedRun:
        """The run as a calibration keeps it."""
        return CalibratedRun(
            digests=self.digests,
            steps=len(self.log.steps),
            shown=self.shown,
            ran=self.ran,
            fill=self.fill,
            scatter={phase: scatter for phase, (_, scatter) in self.phases.items()},
            tokens=self.loop.terms.problem.step_tokens,
            memory=self.memory,
            own=list(own),
        )

    def kept(self, fact: Calibration) -> Calibration:
        """A calibration with what the run has of its own, so that it tells the run as it was."""
        values = believed(fact, *step_prediction.STAGES).central()
        own = own_phases(self.phases, {phase: float(part) for phase, part in self.parts(values).items()})
        if "step" in self.phases:
            again = {phase: float(part) for phase, part in self.parts(values, own).items()}
            left = left_of_step(self.phases["step"][0], again["step"], again["overhead"])
            own += [left, *([] if "sync" in self.phases else [replace(left, phase="sync", seconds=0.0)])]
            untimed = shortened(self.phases, again) if self.loop.place.loop not in OVERLAPPING else []
            own += untimed
            if untimed:
                untold = f"{listed([one.phase for one in untimed])}, which {self.log.source} does not time,"
                self.warnings.append(
                    f"{untold} stand at {untimed[0].factor:.0%} of the prediction, which makes its step"
                )
        step, told = self.log.figure("step_seconds"), float(self.parts(values, own)["step"])
        if step.known and _off(told, step.number):
            self.warnings.append(
                f"the phases of {self.log.source} make a step of {told:.4g} s in a loop that is "
                f"{self.loop.place.loop}, and it has {step.number:.4g} s: is that its mode?"
            )
        return replace(fact, run=self.fact(own))


def read_runs(inputs: Inputs, logs: Sequence[str], mapped: Sequence[str] = ()) -> RunSummary:
    """
    The logs of a run: the one with the most settled steps, with what it lacks and others have.

    Args:
        inputs: What was said of the run.
        logs: Its logs.
        mapped: What their keys mean, as `--map` says it.

    Raises:
        InputError: One cannot be read, or has no settled step.
    """
    runs = [read_run(inputs, [log], None, mapped) for log in logs]
    best = max(runs, key=lambda run: len(run.steps))
    if len(runs) == 1:
        return best
    found = dict[str, Figure]()
    for run in runs:
        measured = {key: one for key, one in run.figures.items() if one.provenance == "measured"}
        found = {key: one for key, one in measured.items() if key not in {*best.figures, *_FOLLOWING}} | found
    figures = {**best.figures, **found}
    if found.keys() & {*_TIMED} and figures.keys() >= {"step_seconds", "update_seconds"}:
        parts = sum(figures[key].number for key in (*_TIMED[1:], *BESIDE) if key in figures)
        left = max(0.0, figures["step_seconds"].number - parts)
        figures["other_seconds"] = Figure(key="other_seconds", value=left, source="the step less its parts")
    lacked = f"; from the others what it lacks: {listed(sorted(found))}" if found else ""
    told = f"of {len(runs)} logs {best.source} counts, which has the most settled steps ({len(best.steps)}){lacked}"
    mode = next((run.mode for run in (best, *runs) if run.mode != "unknown"), best.mode)
    return replace(best, mode=mode, figures=figures, warnings=(*best.warnings, told))


def _off(one: float, other: float) -> bool:
    return abs(one - other) > _OTHER * other


def _digest(name: str) -> str:
    """SHA-256 of a file; empty for what is none, such as a folder."""
    if not Path(name).is_file():
        return ""
    with Path(name).open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
