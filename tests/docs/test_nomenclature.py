"""
One quantity, one name: whatever a command can print has a row in the nomenclature.

What the commands of `every_flag` print is listed because the page is written from it, and checked with all pages.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import typer

import rlsize
from rlsize.reports.equation_page import equation_names, page
from rlsize.shell.app import app

_ROW = re.compile(r"^\| `(?P<key>[^`]+)` \|", re.MULTILINE)
_ASKING = {"ask", "choose", "number", "word"}  # methods of Inputs that take a key first
_APART = re.compile(r"\.apart\(\)$")  # what is asked apart is no input of an answer


def _commands(group: Any, prefix: str = "rlsize") -> dict[str, Any]:
    context = typer.Context(group)
    found: dict[str, Any] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        full = f"{prefix} {name}"
        found |= _commands(command, full) if hasattr(command, "list_commands") else {full: command}
    return found


ANSWERING = {
    name: command
    for name, command in _commands(typer.main.get_command(app)).items()
    if any(parameter.name == "json" for parameter in command.params)
}


@pytest.fixture(scope="module")
def listed(root: Path) -> Any:
    """The keys of one section of the page."""
    text = (root / "docs" / "reference" / "nomenclature.md").read_text(encoding="utf-8")

    def keys(section: str) -> set[str]:
        part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        return {found["key"] for found in _ROW.finditer(part)}

    return keys


def test_every_argument_is_listed(listed: Any) -> None:
    """An argument of an equation has a row, so that one quantity keeps one name."""
    asked = {argument.name for name in equation_names() for argument in page(name).arguments}
    assert not sorted(asked - listed("Arguments of equations")), "`make docs-write` lists them"


@pytest.mark.parametrize("name", ANSWERING)
def test_every_flag_is_given_by_those_commands(name: str, generate: Any) -> None:
    """No flag that help shows escapes: it is given by one of the lines, or is on the list of those that add no key."""
    every_flag = generate("every_flag")
    given = every_flag.flags(name) | set(every_flag.ADDS_NO_KEY)
    options = [
        parameter
        for parameter in ANSWERING[name].params
        if parameter.param_type_name == "option" and not parameter.hidden
    ]
    lacking = [parameter.opts[0] for parameter in options if not given.intersection(parameter.opts)]
    assert not lacking, f"give them in a line of docs/generate/every_flag.py: `{name} {' '.join(lacking)}`"


def test_every_flag_that_adds_no_key_exists(generate: Any) -> None:
    """The list of exceptions holds no flag that is gone, and a reason for each."""
    known = {opt for command in ANSWERING.values() for parameter in command.params for opt in parameter.opts}
    exceptions = generate("every_flag").ADDS_NO_KEY
    assert not set(exceptions) - known
    assert all(exceptions.values())


@pytest.mark.long
def test_every_input_that_is_asked_for_is_listed(listed: Any) -> None:
    """The keys that the commands' source asks inputs for have rows, those of running engines too."""
    asked = set()
    package = Path(rlsize.__file__).parent
    for file in [file for folder in ("shell", "commands") for file in (package / folder).rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ASKING:
                first = node.args[0] if node.args and not _APART.search(ast.unparse(node.func.value)) else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    asked.add(first.value)
    assert "every_seconds" in asked
    assert not sorted(asked - listed("Inputs")), "a line of every_flag, and `make docs-write`, list them"
