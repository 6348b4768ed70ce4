"""Findings for CI: workflow commands and step summary of GitHub Actions, and JUnit XML, which others show as tests."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from xml.etree.ElementTree import Element

    from rlsize.reports.report import Finding, Level

_COUNTED: Mapping[str, Level] = MappingProxyType({"failures": "failure", "errors": "error"})
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
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


def junit_text(findings: Sequence[Finding], suite: str) -> str:
    """
    One test case for each finding.

    Args:
        findings: What was looked at; a warning is a case that passes, with what it says as its output.
        suite: What was checked, such as the name of a file.

    Returns:
        An XML document of one suite; no times and no host, so that the same findings make the same file.
    """
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    levels = [finding.level for finding in findings]
    counts = {name: str(levels.count(level)) for name, level in _COUNTED.items()}
    total = {"tests": str(len(findings)), **counts, "skipped": "0"}
    root = Element("testsuites", {"name": "rlsize check", **total})
    parent = SubElement(root, "testsuite", {"name": _legal(suite), **total})
    for finding in findings:
        _case(parent, finding, suite)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _case(parent: Element, finding: Finding, suite: str) -> None:
    from xml.etree.ElementTree import SubElement

    named = {"classname": suite, "name": finding.name, "file": finding.file, "line": str(finding.line or "")}
    case = SubElement(parent, "testcase", {key: _legal(value) for key, value in named.items() if value})
    if finding.level in {"failure", "error"}:
        told = {"type": _legal(finding.title), "message": _legal(finding.message)}
        SubElement(case, finding.level, told).text = _legal(finding.message)
    else:
        SubElement(case, "system-out").text = _legal(finding.message)


def _legal(text: str) -> str:
    """Text without what XML cannot hold."""
    return _NOT_XML.sub("\ufffd", printable(text))
