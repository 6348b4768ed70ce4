"""Workflow commands: what GitHub reads back is what was meant, whatever the text says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.reports.report import Finding
from rlsize.units import printable
from rlsize.writers.ci import LARGEST_SUMMARY, summary, workflow_commands

COMMAND = re.compile(r"::(?P<name>[a-z]+)(?: (?P<properties>[^:]*))?::(?P<data>.*)")


def undone(text: str, *, inside: bool) -> str:
    """Text as the runner of GitHub unescapes it: a property has two signs more than data."""
    pairs = [("%0D", "\r"), ("%0A", "\n"), *([("%3A", ":"), ("%2C", ",")] if inside else []), ("%25", "%")]
    for escaped, sign in pairs:
        text = text.replace(escaped, sign)
    return text


def read(line: str) -> tuple[str, dict[str, str], str]:
    """A command as the runner reads it: name, properties, message."""
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    pairs = [entry.partition("=") for entry in (found["properties"] or "").split(",") if entry]
    properties = {name: undone(value, inside=True) for name, _, value in pairs}
    return found["name"], properties, undone(found["data"], inside=False)


def finding(**said: Any) -> Finding:
    """A broken limit, some of it changed."""
    told = {"name": "x max", "level": "failure", "title": "over budget: x", "message": "m", "file": "b.yaml", "line": 4}
    return Finding(**{**told, **said})


@pytest.mark.parametrize(("level", "command"), [("failure", "error"), ("error", "error"), ("warning", "warning")])
def test_a_command_names_file_line_and_title(level: Any, command: str) -> None:
    """As an annotation of the line in which the limit stands."""
    text = workflow_commands([finding(level=level, message="30 %, over 20 %")])
    assert text.endswith("\n")
    properties = {"file": "b.yaml", "line": "4", "title": "rlsize: over budget: x"}
    assert read(text.rstrip("\n")) == (command, properties, "30 %, over 20 %")


def test_what_passes_is_not_told() -> None:
    """No annotation for a limit that is kept."""
    assert workflow_commands([finding(level="pass")]) == ""


def test_a_place_that_is_not_known_is_left_out() -> None:
    """An annotation without a file belongs to the run."""
    assert read(workflow_commands([finding(file="", line=None)]).rstrip("\n"))[1] == {"title": "rlsize: over budget: x"}


@given(st.text(), st.text(min_size=1), st.text())
def test_no_text_ends_its_command_or_begins_another(message: str, file: str, title: str) -> None:
    """Whatever a file is called and whatever it says, there is one line, and it says the same."""
    text = workflow_commands([finding(message=message, file=file, title=title)])
    assert len(re.split(r"[\r\n]", text.removesuffix("\n"))) == 1
    name, properties, data = read(text.removesuffix("\n"))
    assert (name, data) == ("error", printable(message))
    assert properties.get("file", "") == printable(file)
    assert properties["title"] == f"rlsize: {printable(title)}"


def test_a_summary_that_fits_is_left_alone() -> None:
    """To the last byte."""
    assert summary("é" * 10, room=20) == "é" * 10
    assert summary("# all\n") == "# all\n"


@given(st.text(max_size=300), st.integers(0, 400))
def test_a_summary_keeps_within_its_room(text: str, room: int) -> None:
    """Cut at a line, and it says so."""
    kept = summary(text, room=room)
    assert len(kept.encode()) <= room or not kept
    if kept not in {text, ""}:
        assert kept.endswith("at most 1 MiB.*\n")
        assert text.startswith(kept.partition("\n\n*The rest")[0])


def test_a_long_summary_is_cut_at_a_line() -> None:
    """What is kept is whole."""
    kept = summary("a line\n" * 200_000)
    assert LARGEST_SUMMARY - 100 < len(kept.encode()) <= LARGEST_SUMMARY
    assert set(kept.splitlines()) == {"a line", "", "*The rest is left out: a summary has at most 1 MiB.*"}


def test_a_name_that_is_no_text_can_be_told() -> None:
    """File names need not be UTF-8."""
    assert summary("caf\udce9\n") == "caf?\n"
