"""JUnit XML, as parsers of others read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from rlsize.reports.report import Finding, Level
from rlsize.writers.ci import junit_text

LEVELS: tuple[tuple[Level, dict[str, Any]], ...] = (
    ("failure", {"file": "b.yaml", "line": 4}),
    ("error", {}),
    ("warning", {"file": "b.yaml"}),
    ("pass", {"file": "b.yaml", "line": 7}),
)
FINDINGS = tuple(
    Finding(name=f"{level} max", level=level, title=f"title {level}", message=f"message <{level}> & more", **place)
    for level, place in LEVELS
)


def suite(text: str, folder: Path) -> TestSuite:
    """The only suite of a document, as junitparser reads it."""
    file = folder / "junit.xml"
    file.write_text(text, encoding="utf-8")
    (found,) = JUnitXml.fromfile(str(file))
    assert isinstance(found, TestSuite)
    return found


def test_every_finding_is_a_case(tmp_path: Path) -> None:
    """With its verdict: a failure, an error, or neither; a warning passes and says so."""
    found = suite(junit_text(FINDINGS, "budget.yaml"), tmp_path)
    assert (found.name, found.tests, found.failures, found.errors, found.skipped) == ("budget.yaml", 4, 1, 1, 0)
    cases = {case.name: case for case in found if isinstance(case, TestCase)}
    assert list(cases) == ["failure max", "error max", "warning max", "pass max"]
    for name, kind in (("failure", Failure), ("error", Error)):
        (result,) = cases[f"{name} max"].result
        assert isinstance(result, kind)
        assert (result.type, result.message) == (f"title {name}", f"message <{name}> & more")
    for name in ("warning", "pass"):
        assert cases[f"{name} max"].is_passed
        assert cases[f"{name} max"].system_out == f"message <{name}> & more"


def test_the_counts_stand_at_the_top() -> None:
    """Some readers look at nothing else; they agree with a recount."""
    root = ET.fromstring(junit_text(FINDINGS, "budget.yaml"))  # noqa: S314 (made here)
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    counted = {name: str(len(list(root.iter(tag)))) for name, tag in tags.items()}
    assert root.attrib == {"name": "rlsize check", **counted}


def test_a_place_stands_where_it_is_known() -> None:
    """File and line of the limit."""
    cases = ET.fromstring(junit_text(FINDINGS, "b.yaml")).iter("testcase")  # noqa: S314 (made here)
    assert [(case.get("file"), case.get("line")) for case in cases] == [
        ("b.yaml", "4"),
        (None, None),
        ("b.yaml", None),
        ("b.yaml", "7"),
    ]


def test_the_same_findings_make_the_same_file() -> None:
    """No time, no host, no random name."""
    assert junit_text(FINDINGS, "b.yaml") == junit_text(FINDINGS, "b.yaml")


def only_case(level: Any, text: str) -> ET.Element:
    """The case of one finding that says the same everywhere."""
    made = junit_text([Finding(name=text, level=level, title=text, message=text, file=text, line=1)], text)
    (case,) = ET.fromstring(made.encode("utf-8")).iter("testcase")  # noqa: S314 (made here)
    return case


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"), min_size=1))
def test_text_is_read_back_as_it_was_meant(text: str) -> None:
    """Markup, quotes and all scripts."""
    case = only_case("failure", text)
    assert {case.get("classname"), case.get("name"), case.get("file")} == {text}
    assert (case[0].get("message"), case[0].text) == (text, text)


@pytest.mark.parametrize("level", ["failure", "error", "warning", "pass"])
@given(text=st.text(st.characters()))
def test_any_text_makes_well_formed_xml(level: Any, text: str) -> None:
    """Control characters and lone surrogates too."""
    assert len(only_case(level, text)) == 1
