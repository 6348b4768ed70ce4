"""Every command has a place in the guide and help that can be pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer

from rlsize.shell.app import app

if TYPE_CHECKING:
    from pathlib import Path


def _commands(group: Any, prefix: str) -> dict[str, Any]:
    context = typer.Context(group)
    found: dict[str, Any] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        full = f"{prefix} {name}"
        found |= _commands(command, full) if hasattr(command, "list_commands") else {full: command}
    return found


COMMANDS = _commands(typer.main.get_command(app), "rlsize")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_named_where_people_look(name: str, root: Path) -> None:
    """The tutorial or a how-to page shows how the command is used."""
    guides = [root / "docs" / "tutorial.md", *sorted((root / "docs" / "how-to").glob("*.md"))]
    assert any(name in page.read_text(encoding="utf-8") for page in guides), f"no guide names {name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_ends_in_an_example(name: str) -> None:
    """The help of each command has a sentence and a command to paste that begins with its own name."""
    sentence, _, example = (COMMANDS[name].help or "").partition("Example:")
    assert sentence.strip().endswith((".", "?")), f"{name} has no sentence of help"
    assert example.strip().startswith(name), f"the example of {name} does not run it"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_says_what_it_is(name: str) -> None:
    """No flag and no argument is without help."""
    silent = [parameter.name for parameter in COMMANDS[name].params if not getattr(parameter, "help", None)]
    assert not silent, f"{name} says nothing of {silent}"
