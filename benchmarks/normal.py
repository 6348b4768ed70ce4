"""
Is this normal: published runs that somebody found slow, and runs of which nobody complained, as `diagnose` judges them.

    python -m benchmarks.normal                # the tables
    python -m benchmarks.normal --spread       # how far runs lie from their predictions, by phase and source
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from benchmarks.outcomes import asked

from rlsize.estimates.figures import measured
from rlsize.facts.evidence import EngineLoad, Evidence
from rlsize.facts.run_log import RunSummary
from rlsize.loop.usual import usual_of
from rlsize.verdicts.usual_phases import causes_of, is_small, judged_phases

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


FOLDER = Path(__file__).parent / "published" / "slow_runs"
HALF_NORMAL = 0.6745
"""Median of a half-normal distribution over its deviation."""
_FIRST = 3  # causes among which the confirmed one counts


@dataclass(frozen=True)
class Run:
    """
    A published run as `diagnose` sees it.

    Args:
        row: What was published.
        evidence: The same as evidence.
    """

    row: Mapping[str, Any]
    evidence: Evidence

    @property
    def ratios(self) -> dict[str, float]:
        """Measured over predicted, by phase."""
        return {one.phase: one.ratio.number for one in judged_phases(self.evidence) if one.ratio.known}


def read_rows(name: str) -> list[dict[str, Any]]:
    """The runs of a file, `slow` or `usual`, as they were published."""
    found: list[dict[str, Any]] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))["runs"]
    return found


def evidence_of(row: Mapping[str, Any]) -> Evidence:
    """A published run as what a log and a scenario tell."""
    took, scenario = row.get("took", {}), row.get("scenario", {})
    lengths = row.get("log", {})
    figures = {f"{phase}_seconds": float(seconds) for phase, seconds in took.items()} | lengths
    run = RunSummary(
        mode=row.get("mode", scenario.get("placement.mode", "unknown")),
        figures={key: measured(key, value, row["source"]) for key, value in figures.items()},
    )
    found = usual_of(asked(scenario))
    return Evidence(run=run, load=EngineLoad(**row.get("engines", {})), usual=found.results, said=found.said)


def spreads(runs: Iterable[Run], *, small: bool) -> dict[str, dict[str, float]]:
    """Root mean square of the logarithm of measured over predicted, by phase and source, of small or other models."""
    logs: dict[str, dict[str, list[float]]] = {}
    for run in (one for one in runs if is_small(one.evidence) == small):
        for phase, ratio in run.ratios.items():
            logs.setdefault(phase, {}).setdefault(run.row["source"], []).append(math.log(ratio))
    return {
        phase: {source: math.sqrt(float(np.mean(np.square(values)))) for source, values in by.items()}
        for phase, by in logs.items()
    }


def spread_of(found: Mapping[str, Mapping[str, float]], without: str = "") -> dict[str, float]:
    """Spread of each phase, from all sources but one."""
    kept = {phase: [spread for name, spread in by.items() if name != without] for phase, by in found.items()}
    return {phase: median(values) / HALF_NORMAL for phase, values in kept.items() if values}


def left_out(runs: Sequence[Run], run: Run) -> dict[str, float]:
    """Spread of each phase without the source of a run; from models of another size where no other one is as large."""
    small, source = is_small(run.evidence), run.row["source"]
    return spread_of(spreads(runs, small=not small), source) | spread_of(spreads(runs, small=small), source)


def abnormal(run: Run, spread: Mapping[str, float]) -> list[str]:
    """The phases of a run that are called not normal."""
    return [one.phase for one in judged_phases(run.evidence, spread) if one.normal is False]


def named(run: Run) -> tuple[str, list[str]]:
    """The phase of a run to look at first, and its likeliest causes."""
    phases = judged_phases(run.evidence)
    causes = causes_of(run.evidence, phases)
    timed = [one.phase for one in phases if one.phase != "step"]
    first = causes[0].phase if causes and (not timed or causes[0].kind == "timer") else timed[0] if timed else "-"
    return first, [cause.kind for cause in causes[:_FIRST]]


def right(run: Run) -> tuple[bool, bool]:
    """Whether the phase of a slow run is named, and a cause that was confirmed among the first."""
    phase, causes = named(run)
    return phase in run.row["phases"], bool(set(causes) & set(run.row["causes"]))


def main() -> None:
    """Print the tables."""
    slow, ordinary = ([Run(row, evidence_of(row)) for row in read_rows(name)] for name in ("slow", "usual"))
    say = sys.stdout.write
    if "--spread" in sys.argv:
        for small in (False, True):
            found = spreads(ordinary, small=small)
            for phase, spread in spread_of(found).items():
                say(f"{'small' if small else 'large'} {phase} {spread:.2f} from {len(found[phase])}: {found[phase]}\n")
        return
    say("| Slow run | Phase | Named | Confirmed | Causes, first three |\n| --- | --- | --- | --- | --- |\n")
    for run in slow:
        phase, causes = named(run)
        row, those = run.row, ", ".join(causes)
        say(f"| {row['id']} | {', '.join(row['phases'])} | {phase} | {', '.join(row['causes'])} | {those} |\n")
    hits = [right(run) for run in slow]
    say(f"phase named: {sum(one for one, _ in hits)} of {len(slow)}; cause: {sum(two for _, two in hits)}\n")
    judged = [run for run in ordinary if run.ratios]
    bad = {run.row["id"]: phases for run in judged if (phases := abnormal(run, left_out(ordinary, run)))}
    say(f"of {len(judged)} runs that nobody complained of, {len(bad)} have a phase called abnormal: {bad}\n")


if __name__ == "__main__":
    main()
