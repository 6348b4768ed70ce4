"""What a check found, one entry for each thing that it looked at: for annotations and test reports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlsize.reports.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlsize.errors import Fault

Level = Literal["error", "failure", "warning", "pass"]
IMPOSSIBLE = "the loop cannot run"
_PLACE = re.compile(r"(?P<file>[^\n]+?):(?P<line>[1-9]\d{0,8})(?=:|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that was looked at.

    Args:
        name: What it is called in a list.
        level: `failure` where the answer is no, `error` where there is none; `warning` and `pass`.
        title: The verdict in a few words.
        message: The verdict with its numbers.
        file: The file that it is about; empty where there is none.
        line: Its line there.
    """

    name: str
    level: Level
    title: str
    message: str
    file: str = ""
    line: int | None = None


def findings_of(faults: Iterable[Fault], *, answer: bool) -> tuple[Finding, ...]:
    """
    What stood in the way of an answer.

    Args:
        faults: As a user is told of them.
        answer: Whether they are an answer, which is no: the loop does not fit.
    """
    title = IMPOSSIBLE if answer else "the budget cannot be checked"
    return tuple(
        Finding(
            name=fault.where or title,
            level="failure" if answer else "error",
            title=title,
            message="\n".join(filter(None, (_told(fault), fault.todo))),
            file=place["file"] if place else "",
            line=int(place["line"]) if place else None,
        )
        for fault, place in ((fault, _PLACE.match(fault.where)) for fault in faults)
    )


def _told(fault: Fault) -> str:
    return f"{fault.where}: {fault.what}" if fault.where else fault.what


def findings_report(findings: Sequence[Finding]) -> Report:
    """The same as a report, where there is nothing else to report."""
    title = findings[0].title
    return Report(
        command="check",
        headline=f"{title[:1].upper()}{title[1:]}.",
        notes=tuple(finding.message for finding in findings),
        no=True,
    )
