"""Budgets are read with the place of each limit, from their own file or from a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlsize.errors import InputError
from rlsize.facts.budget import Limit
from rlsize.readers.saved_files import budget_in, read_budget
from rlsize.readers.scenarios import read_scenario
from rlsize.readers.yaml_documents import LARGEST_FILE, parse_document

HEADER = "rlsize: {kind: budget, version: 1}\n"


def test_each_limit_knows_its_line() -> None:
    """Of a bare limit, of one in a mapping over several lines, and of one that the file does not have."""
    file = read_budget(parse_document(f"{HEADER}\ngpus: 64\nstep_seconds:\n  max: 60\n  max_increase: 5%\n", "b.yaml"))
    assert [file.line("gpus", "max"), file.line("step_seconds", "max"), file.line("step_seconds", "max_increase")] == [
        3,
        5,
        6,
    ]
    assert file.where("step_seconds", "max") == "b.yaml:5: step_seconds.max"
    assert file.line("sync_seconds", "max") is None
    assert file.name == "b.yaml"


def test_the_budget_of_a_scenario_has_the_scenario_s_lines(tmp_path: Path) -> None:
    """The same class of limits, below its own key."""
    path = tmp_path / "s.yaml"
    path.write_text("rlsize: {kind: scenario, version: 1}\nbudget:\n  gpus: 64\n", encoding="utf-8")
    file = budget_in(read_scenario(path))
    assert file is not None
    assert file.budget.limits == {"gpus": Limit(max=64.0)}
    assert file.line("gpus", "max") == 3
    assert file.where("gpus", "max").endswith("s.yaml:3: budget.gpus.max")


@pytest.mark.parametrize("section", ["", "budget: {}\n"])
def test_a_scenario_without_limits_has_no_budget(section: str, tmp_path: Path) -> None:
    """An empty section is none."""
    path = tmp_path / "s.yaml"
    path.write_text(f"rlsize: {{kind: scenario, version: 1}}\n{section}", encoding="utf-8")
    assert budget_in(read_scenario(path)) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER, "sets no limit"),
        ("", "is empty"),
        ("gpus: 64\n", "does not say that it is a budget file"),
        ("rlsize: {kind: scenario, version: 1}\ngpus: 64\n", "is a scenario file, not a budget file"),
        ("rlsize: {kind: budget, version: 2}\ngpus: 64\n", "has version 2"),
        (f"{HEADER}gpus: 64\ngpus: 32\n", "the key gpus stands twice"),
        (f"{HEADER}gpus: &a 64\n", "anchors"),
    ],
)
def test_what_is_no_budget_is_refused(text: str, says: str) -> None:
    """An empty one too: it would pass whatever it is asked about."""
    with pytest.raises(InputError, match=says):
        read_budget(parse_document(text, "b.yaml"))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """A file that is not there, a folder, one that is too large, one that is no text."""
    large, binary = tmp_path / "large.yaml", tmp_path / "binary.yaml"
    large.write_bytes(b"#" * (LARGEST_FILE + 1))
    binary.write_bytes(b"\xff\xfe\x00")
    for path, says in (
        (tmp_path / "no.yaml", "no such file"),
        (tmp_path, "directory"),
        (large, "larger"),
        (binary, "UTF-8"),
    ):
        with pytest.raises(InputError, match=says):
            read_budget(str(path))
