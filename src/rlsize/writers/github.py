"""What GitHub Actions reads: annotations as workflow commands, and a step summary within its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.reports.findings import Finding, Level

LARGEST_SUMMARY = 2**20
"""Bytes of a step's summary; GitHub shows none that is larger."""

_COMMANDS: dict[Level, str] = {"error": "error", "failure": "error", "warning": "warning"}
_DATA: dict[str, str | int | None] = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = _DATA | {":": "%3A", ",": "%2C"}
_CUT = "\n\n*The rest is left out: a summary has at most 1 MiB.*\n"


def workflow_commands(findings: Iterable[Finding]) -> str:
    """
    A workflow command for each thing that is not as it should be; nothing is said of what passes.

    Returns:
        Lines such as `::error file=budget.yaml,line=4,title=over budget::cost per step is ...`.
    """
    return "".join(_command(finding) for finding in findings if finding.level in _COMMANDS)


def _command(finding: Finding) -> str:
    said = {"file": finding.file, "line": finding.line or "", "title": f"rlsize: {finding.title}"}
    properties = ",".join(f"{name}={_escaped(str(value), _PROPERTY)}" for name, value in said.items() if value)
    return f"::{_COMMANDS[finding.level]} {properties}::{_escaped(finding.message, _DATA)}\n"


def _escaped(text: str, signs: dict[str, str | int | None]) -> str:
    r"""
    Text that cannot end its command or begin another.

    >>> _escaped("100 %\n::error::x", _DATA)
    '100 %25%0A::error::x'
    """
    return printable(text).translate(str.maketrans(signs))


def summary(text: str, room: int = LARGEST_SUMMARY) -> str:
    """
    Markdown that fits into what is left of a step's summary.

    Args:
        text: All that there is to say.
        room: Bytes that are left.

    Returns:
        The text, cut at a line where it is too long; empty where not even the first line fits.
    """
    data = text.encode(errors="replace")  # names of files need not be text
    if len(data) <= room:
        return data.decode()
    left = room - len(_CUT.encode())
    kept = data[: max(left, 0)].decode(errors="ignore").rpartition("\n")[0]
    return f"{kept}{_CUT}" if kept else ""
