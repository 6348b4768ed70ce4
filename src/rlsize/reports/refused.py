"""What to say about a loop that cannot run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence


def refused_report(
    command: str, reason: str, inputs: Sequence[Figure], warnings: Sequence[str], notes: Sequence[str]
) -> Report:
    """
    The answer of a command that needs a loop which cannot run: no.

    Args:
        command: The command.
        reason: Why it cannot run.
        inputs: What was said and chosen.
        warnings: What the reader must know first.
        notes: What explains it.
    """
    return Report(
        command=command,
        headline=f"The loop cannot run: {reason}.",
        results=(Figure(key="loop_runs", value=False, provenance="predicted", source=reason),),
        inputs=tuple(inputs),
        warnings=tuple(warnings),
        notes=tuple(notes),
        no=True,
    )
