"""The house keeps its shape: commands are found by listing, modules say what they are, nothing grows without bound."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import rlsize
from rlsize.shell.app import COMMANDS, loaded

PACKAGE = Path(rlsize.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "profiles" not in path.relative_to(PACKAGE).parts[:1])
BANNED = {"core", "utils", "common", "helpers", "base", "manager"}
LONGEST_FILE = 300
LONGEST_BODY = 40
LONGEST_COMMAND = 60  # in cli/ a body has a line or more for each flag of a command, and that is all it does
LONGER_FILES = {
    "units.py": (400, "reading and showing quantities share one table of units"),
    "cli/asking.py": (340, "the questions that commands share stand together, so that they are asked in one way"),
}
LONGER_BODIES = {
    "estimates/backlog.py:_results": (50, "one figure after the other, in the order in which they are read"),
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_readable(path: Path) -> None:
    """Files stay within 300 lines, bodies within 40, and what may be longer has a reason; equations are docstring."""
    name = path.relative_to(PACKAGE).as_posix()
    if path.parent.name != "equations":
        assert lines(path) <= LONGER_FILES.get(name, (LONGEST_FILE, ""))[0]
    most = LONGEST_COMMAND if name.startswith("cli/") else LONGEST_BODY
    long = {
        function: length
        for function, length in bodies(path).items()
        if length > LONGER_BODIES.get(f"{name}:{function}", (most, ""))[0]
    }
    assert not long


def test_no_exception_outlives_its_reason() -> None:
    """What may be longer is longer, or the exception goes."""
    files = {path.relative_to(PACKAGE).as_posix(): path for path in FILES}
    assert not [name for name in LONGER_FILES if lines(files[name]) <= LONGEST_FILE]
    kept = [entry.partition(":") for entry in LONGER_BODIES]
    assert not [function for name, _, function in kept if bodies(files[name])[function] <= LONGEST_BODY]


def lines(path: Path) -> int:
    """How long a file is."""
    return len(path.read_text(encoding="utf-8").splitlines())


def bodies(path: Path) -> dict[str, int]:
    """How long each function's body is, without its docstring."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            found[node.name] = max(found.get(node.name, 0), (node.end_lineno or 0) - body[0].lineno + 1)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_says_what_lives_in_it(path: Path) -> None:
    """A module opens with a docstring and has a name that tells something."""
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert path.stem not in BANNED


def test_the_public_api_is_what_it_lists() -> None:
    """Every public name loads, and nothing else is promised."""
    for name in rlsize.__all__:
        assert getattr(rlsize, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        _ = rlsize.nothing_of_the_kind


@pytest.mark.parametrize("name", COMMANDS)
def test_the_sentence_in_help_is_the_command_s_own(name: str) -> None:
    """`rlsize --help` shows sentences without importing commands; they must not drift from the docstrings."""
    entry = COMMANDS[name]
    module, _, attribute = entry.function.rpartition(".")
    found = getattr(importlib.import_module(f"rlsize.commands.{module}"), attribute)
    if inspect.isfunction(found):
        docstring = inspect.getdoc(found) or ""
        assert docstring.splitlines()[0] == entry.sentence
        assert "Example:  rlsize " in docstring


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_of_a_command_is_text_or_a_flag(name: str) -> None:
    """Anything else would make typer load a validator before the first answer."""
    command = loaded(name, COMMANDS[name])
    for single in getattr(command, "commands", {"": command}).values():
        signature = inspect.signature(inspect.unwrap(single.callback), eval_str=True)
        for parameter in signature.parameters.values():
            kind = str(parameter.annotation).split("typer.models.")[0]
            assert "Context" in str(parameter.annotation) or any(plain in kind for plain in ("str", "bool")), name
            assert not any(other in kind for other in ("int", "float", "Path", "Enum", "Literal")), (
                name,
                parameter.name,
            )
