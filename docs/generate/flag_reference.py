"""The command line as a page: every command, its sentence, its example and its flags."""

from __future__ import annotations

from typing import Any

import typer

from generate.files import fenced
from generate.markdown import table
from rlsize.shell.app import app
from rlsize.shell.command import OUTPUT_PANEL

_HELP = {"help", "install_completion", "show_completion"}


def cli() -> str:
    """The whole page: the flags that every command takes, then one section for each command."""
    found = walked(typer.main.get_command(app))
    common = _common([command for _, command in found if not hasattr(command, "list_commands")])
    rows = [[_signature(parameter), _meaning(parameter)] for parameter in common.values()]
    return "\n".join(
        [
            "## Flags of every command\n",
            table(["Flag", "Meaning"], rows),
            *(_section(name, command, set(common)) for name, command in found),
        ]
    )


def walked(group: Any, prefix: str = "rlsize") -> list[tuple[str, Any]]:  # noqa: ANN401 (typer's classes are not public)
    """Every command with its full name, groups included, in the order in which `--help` lists them."""
    context = typer.Context(group, info_name=prefix)
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        full = f"{prefix} {name}"
        found.append((full, command))
        if hasattr(command, "list_commands"):
            found += walked(command, full)
    return found


def told(command: Any) -> tuple[str, str]:  # noqa: ANN401 (typer's classes are not public)
    """What a command's help says, and its example."""
    text, _, example = (command.help or "").partition("Example:")
    return " ".join(text.split()), " ".join(example.split())


def _common(commands: list[Any]) -> dict[str, Any]:
    """The output flags that all commands share, by name."""
    of_each = [
        {parameter.name: parameter for parameter in command.params if _panel(parameter) == OUTPUT_PANEL}
        for command in commands
    ]
    return {
        name: first for name, first in of_each[0].items() if sum(name in each for each in of_each) > len(of_each) - 3
    }


def _section(name: str, command: Any, common: set[str]) -> str:  # noqa: ANN401 (typer's classes are not public)
    sentence, example = told(command)
    parts = [f"## {name}\n", f"{sentence}\n"]
    if example:
        parts.append(fenced(example, "bash"))
    panels: dict[str, list[list[str]]] = {}
    for parameter in command.params:
        shared = parameter.name in common and _panel(parameter) == OUTPUT_PANEL
        if parameter.name not in _HELP and not shared and not getattr(parameter, "hidden", False):
            panels.setdefault(_panel(parameter), []).append([_signature(parameter), _meaning(parameter)])
    parts += [table([panel, ""], rows) for panel, rows in panels.items()]
    return "\n".join(parts)


def _panel(parameter: Any) -> str:  # noqa: ANN401 (typer's classes are not public)
    fallback = "Arguments" if parameter.param_type_name == "argument" else "Options"
    return getattr(parameter, "rich_help_panel", None) or fallback


def _signature(parameter: Any) -> str:  # noqa: ANN401 (typer's classes are not public)
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    return names if parameter.is_flag else f"{names} `{parameter.metavar or parameter.name.upper()}`"


def _meaning(parameter: Any) -> str:  # noqa: ANN401 (typer's classes are not public)
    default = parameter.default
    shown = f" Default: `{default}`." if isinstance(default, str) and default and not parameter.required else ""
    return f"{parameter.help or ''}{shown}"
