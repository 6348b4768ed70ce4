"""
A priori, by framework: RL steps of runs that no constant was fitted to, predicted from their configuration alone.

Runs are those of `published/slow_runs/usual.yaml`, of which nobody complained, and, where their reference is a larger
model that only the pairs of `published/twins` name, steps from there. Runs that generate without an engine, which
`rlsize` refuses to predict, are told apart.

    python -m benchmarks.frameworks            # the table
    python -m benchmarks.frameworks --rows     # and every prediction
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from benchmarks.normal import read_rows
from benchmarks.outcomes import asked
from benchmarks.twins import read_pairs

from rlsize.loop.answer import answer_of
from rlsize.loop.resolve import resolve
from rlsize.verdicts.grading import Point, score

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PHASES = ("step", "generation", "logprob", "update", "sync")
_LARGER_REFERENCE = "opd"  # the set-up whose runs have a reference of 32 B


def predicted(scenario: dict[str, Any], took: Mapping[str, float], of: tuple[str, str]) -> Iterator[tuple[str, Point]]:
    """
    Each phase of a run beside its prediction.

    Args:
        scenario: What was configured.
        took: Seconds of each phase, as published.
        of: The publication, and the run.
    """
    said = asked(scenario)
    said.ran = True
    found = answer_of(resolve(said)).results
    for phase in (phase for phase in _PHASES if phase in took):
        figure = found.get(f"{phase}_seconds")
        if figure is not None and figure.known:
            low, high = figure.band or (None, None)
            yield (
                phase,
                Point(measured=took[phase], predicted=figure.number, low=low, high=high, source=of[0], family=of[1]),
            )


def runs() -> Iterator[tuple[str, dict[str, Any], Mapping[str, float], tuple[str, str]]]:
    """Framework, scenario and times of each run, and its publication and name."""
    for row in read_rows("usual"):
        filtered = {"update"} if row.get("trained_fewer") else set()
        took = {phase: seconds for phase, seconds in row["took"].items() if phase not in filtered}
        unsaid = " without an engine" if "rollout.engine" in row.get("assumed", {}) else ""
        yield row["framework"].split()[0] + unsaid, row["scenario"], took, (row["source"], row["id"])
    pairs = read_pairs()
    for row in (row for row in pairs["runs"] if row["setup"] == _LARGER_REFERENCE):
        scenario = pairs["setups"][row["setup"]] | row["scenario"]
        yield "verl", scenario, {"step": row["seconds"]["step"]}, (row["source"].partition("@")[0], row["id"])


def every() -> Iterator[tuple[str, str, Point]]:
    """Framework, phase and prediction of all runs."""
    for name, scenario, took, of in runs():
        for phase, point in predicted(scenario, took, of):
            yield name, phase, point


def lines(found: Sequence[tuple[str, str, Point]]) -> list[str]:
    """The table."""
    head = ("Framework", "Phase", "Runs", "Sources", "Median", "p90", "In 80 % band", "Width")
    told = [f"| {' | '.join(head)} |", "| --- | --- |" + " ---: |" * (len(head) - 2)]
    for name, phase in sorted({one[:2] for one in found}, key=lambda one: (one[0].lower(), _PHASES.index(one[1]))):
        got = score([point for *key, point in found if key == [name, phase]])
        errors = f"{100 * got.median:.0f} % | {100 * got.p90:.0f} %"
        bands = f"{100 * (got.coverage or 0):.0f} % | x {got.width or 1:.2f}"
        told += [f"| {name} | {phase} | {got.n} | {got.sources} | {errors} | {bands} |"]
    return told


def main() -> None:
    """Print the table, and each prediction where they are asked for."""
    found = list(every())
    sys.stdout.write("\n".join(lines(found)) + "\n")
    if "--rows" in sys.argv:
        for name, phase, point in found:
            band = f"({point.low:.4g} to {point.high:.4g})" if point.low and point.high else ""
            sys.stdout.write(f"{name} {point.family} {phase} {point.measured:.4g} {point.predicted:.4g} {band}\n")


if __name__ == "__main__":
    main()
