"""What to say about a loop that cannot run, or whose step holds less than was said."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.facts.figure import Figure
from rlsize.loop.said import cannot_run
from rlsize.reports.report import Decision, Report

if TYPE_CHECKING:
    from collections.abc import Mapping


_RUNS = "rlsize plan with the same flags looks for a loop that runs, or says the least change"


def refused_report(command: str, reason: str, told: Mapping[str, Any]) -> Report:
    """
    The answer of a command that needs a loop which cannot run: no.

    Args:
        command: The command.
        reason: Why it cannot run.
        told: What the report says of the inputs: those used, warnings and notes.
    """
    why = Figure(key="loop_runs", value=False, provenance="predicted", source=reason)
    return Report(
        command=command, headline=cannot_run(reason), results=(why,), no=True, decision=Decision(then=_RUNS), **told
    )


def bounded(report: Report, bound: str) -> Report:
    """
    The answer as a lower bound.

    Args:
        report: The answer.
        bound: What its step does not hold, in words; empty where it holds all.
    """
    return replace(report, headline=f"{report.headline.removesuffix('.')}; at least: {bound}.") if bound else report
