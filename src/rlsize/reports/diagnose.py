"""What to say about a running loop: the verdict, what to do in which order, and every check with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.before_after import comparison_table
from rlsize.reports.diagnose_words import CHECKS, action, because, headline, verification
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.running_loop import apart_words, instances_table
from rlsize.units import show
from rlsize.verdicts.diagnosis_rates import AGREE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.evidence import Diagnosis, Evidence, Finding
    from rlsize.reports.report import Cell
    from rlsize.verdicts.before_after import Compared

_STATES = {"fault": "mend", "note": "note", "fine": "fine", "unknown": "not known"}


def diagnose_report(
    evidence: Evidence,
    found: Diagnosis,
    inputs: Sequence[Figure],
    comparison: tuple[Sequence[Compared], Sequence[str]] = ((), ()),
    told: tuple[Sequence[str], Sequence[str]] = ((), ()),
    *,
    no: bool = False,
) -> Report:
    """
    The report of `rlsize diagnose`.

    Args:
        evidence: What was looked at.
        found: What it means.
        inputs: What was asked.
        comparison: Before and after, and how to go back.
        told: Warnings and notes from reading.
        no: Whether `--fail-on` asked for exit code 1.
    """
    warnings, notes = told
    compared, rollback = comparison
    tables = {"steps": steps_table(found), "checks": checks_table(found)}
    if compared:
        tables["before_after"] = comparison_table(compared)
    if evidence.fleet is not None:
        tables["instances"] = instances_table(evidence.fleet)
    return Report(
        command="diagnose",
        headline=headline(found),
        results=_results(evidence, found),
        inputs=tuple(inputs),
        tables={name: table for name, table in tables.items() if table.rows},
        warnings=(
            *(evidence.fleet.warnings if evidence.fleet else ()),
            *evidence.run.warnings,
            *_doubts(evidence),
            *warnings,
        ),
        notes=(*apart_words(evidence.run), *rollback, *notes),
        no=no,
    )


def _doubts(evidence: Evidence) -> list[str]:
    """What two sources tell differently."""
    given, logged = evidence.consumption, evidence.run.figure("consumption_tokens_per_second")
    if not (given.known and logged.known) or abs(given.number / logged.number - 1.0) <= AGREE:
        return []
    said, seen = (show(figure.value, logged.key) for figure in (given, logged))
    return [f"the trainer consumes {seen} by its log, yet {said} as given: what was given is used"]


def _results(evidence: Evidence, found: Diagnosis) -> tuple[Figure, ...]:
    verdict = Figure(key="verdict", value=found.verdict, provenance="predicted", source="the runbook's flow")
    run = [
        evidence.run.figures[key]
        for key in ("step_seconds", "train_seconds", "staleness_steps")
        if key in evidence.run.figures
    ]
    own = (found.trainer_idle, *run, found.consumption, found.required, found.fleet_rate, found.matched)
    return (verdict, *own)


def steps_table(found: Diagnosis) -> Table:
    """What to do, first things first."""
    return Table(
        title="What to do, in this order",
        columns=(
            Column("step", "#"),
            Column("action", "do", "left", wide=True),
            Column("evidence", "because", "left", wide=True),
            Column("gain_fraction", "gain, at most"),
        ),
        rows=tuple(
            {
                "step": place,
                "check": one.check,
                "kind": one.kind,
                "action": action(one),
                "evidence": because(one),
                "gain_fraction": one.gain.value if one.gain.known else None,
                "verify": verification(one),
            }
            for place, one in enumerate(found.steps, 1)
        ),
        note="; ".join(f"{place}. done when {verification(one)}" for place, one in enumerate(found.steps, 1)),
    )


def checks_table(found: Diagnosis) -> Table:
    """Every check."""
    return Table(
        title="Checks",
        columns=(
            Column("_name", "check", "left"),
            Column("_state", "", "left"),
            Column("evidence", "evidence", "left", wide=True),
        ),
        rows=tuple(_check_row(one) for one in found.findings),
    )


def _check_row(one: Finding) -> dict[str, Cell]:
    return {
        "check": one.check,
        "status": one.status,
        "kind": one.kind,
        "_name": CHECKS[one.check],
        "_state": _STATES[one.status],
        "evidence": because(one),
        "names": ", ".join(one.names),
    }
