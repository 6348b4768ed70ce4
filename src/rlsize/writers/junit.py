"""Findings as JUnit XML, which CI systems show as test results."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from xml.etree.ElementTree import Element

    from rlsize.reports.findings import Finding, Level

_COUNTED: Mapping[str, Level] = MappingProxyType({"failures": "failure", "errors": "error"})
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
