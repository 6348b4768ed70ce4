"""The house keeps its shape: commands are found by listing, modules say what they are, no function winds on and on."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import rlsize
from rlsize.commands.predict import Predictions
from rlsize.shell.app import COMMANDS
from rlsize.shell.command import Entry, loaded

PACKAGE = Path(rlsize.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "profiles" not in path.relative_to(PACKAGE).parts[:1])
BANNED = {"core", "utils", "common", "helpers", "base", "manager"}
LONGEST_BODY = 60
TURNS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match, ast.comprehension)


def test_functions_stay_readable() -> None:
    """
    Bodies stay within 60 lines, unless they run straight on: a table, or a recipe of one step after the other.

    Ruff sees to it that none has too many turns (`max-complexity`). Files are as long as their subject.
    """
    bodies = [(path, *body) for path in FILES for body in winding_bodies(parsed(path))]
    long = [(str(path), name, length) for path, name, length in bodies if length > LONGEST_BODY]
    assert len(bodies) > 100
    assert not long, f"split where a part has a name of its own, or say it as a table: {long}"


@cache
def parsed(path: Path) -> ast.Module:
    """A module of the program."""
    return ast.parse(path.read_text("utf-8"))


def winding_bodies(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Name and length of each function that branches or repeats; docstrings do not count."""
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
            isinstance(part, TURNS) for part in ast.walk(node)
        ):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            yield node.name, (node.end_lineno or 0) - body[0].lineno + 1


def test_only_what_winds_counts_as_long() -> None:
    """A recipe of 80 lines may stand as it is; with a loop in it, it is too long, whatever its docstring takes."""
    recipe = 'def f():\n    """Says."""\n' + "    step()\n" * 80
    assert list(winding_bodies(ast.parse(recipe))) == []
    assert list(winding_bodies(ast.parse(f"{recipe}    for x in y:\n        step()\n"))) == [("f", 82)]


def test_every_module_says_what_lives_in_it() -> None:
    """A module opens with a docstring and has a name that tells something."""
    assert [path for path in FILES if not ast.get_docstring(parsed(path))] == []
    assert [path for path in FILES if path.stem in BANNED] == []


def test_the_public_api_is_what_it_lists() -> None:
    """Every public name loads, and nothing else is promised."""
    for name in rlsize.__all__:
        assert getattr(rlsize, name) is not None
    with pytest.raises(AttributeError, match="no attribute"):
        _ = rlsize.nothing_of_the_kind


@pytest.mark.parametrize(("name", "entry"), [*COMMANDS.items(), *Predictions.entries.items()])
def test_the_sentence_in_help_is_the_command_s_own(name: str, entry: Entry) -> None:
    """`rlsize --help` shows sentences without importing commands; they must not drift from the docstrings."""
    found = getattr(importlib.import_module(f"rlsize.commands.{entry.module or name}"), entry.function or name)
    if inspect.isfunction(found):
        docstring = inspect.getdoc(found) or ""
        assert docstring.splitlines()[0] == entry.sentence, f"shell/app.py and the docstring say one sentence of {name}"
        assert "Example:  rlsize " in docstring


@pytest.mark.parametrize(("name", "entry"), [*COMMANDS.items(), *Predictions.entries.items()])
def test_every_parameter_of_a_command_is_text_or_a_flag(name: str, entry: Entry) -> None:
    """Anything else would make typer load a validator before the first answer."""
    command = loaded(name, entry)
    # Commands that a group loads when they are asked for are entries of their own
    for single in filter(None, getattr(command, "commands", {"": command}).values()):
        typed = inspect.unwrap(single.callback, stop=lambda function: hasattr(function, "__signature__"))
        signature = inspect.signature(typed, eval_str=True)
        for parameter in signature.parameters.values():
            kind = str(parameter.annotation).split("typer.models.")[0]
            handed = any(made in str(parameter.annotation) for made in ("Context", "Inputs"))  # no flag
            assert handed or any(plain in kind for plain in ("str", "bool")), name
            assert not any(other in kind for other in ("int", "float", "Path", "Enum", "Literal")), (
                name,
                parameter.name,
            )


def test_a_module_runs_only_when_all_of_it_is_there() -> None:
    """What stands after `if __name__ == "__main__"` is not there yet where a worker runs as a program."""
    for path in FILES:
        body = parsed(path).body
        runs = [place for place, one in enumerate(body) if isinstance(one, ast.If) and "__main__" in ast.dump(one.test)]
        assert runs in ([], [len(body) - 1]), path
