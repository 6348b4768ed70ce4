"""The command line as a page: every command, its sentence, its example and its flags."""

from __future__ import annotations

from typing import Any

import typer

from generate.commands import output
from generate.files import fenced
from generate.markdown import table
from rlsize.cli.app import app

_HELP = {"help", "install_completion", "show_completion"}


def cli() -> str:
    """The whole page: overview, then one section for each command."""
    group = typer.main.get_command(app)
    parts = [fenced("$ rlsize --version\n" + output("rlsize --version").split()[0] + " ...", "console")]
    parts += [_section(name, command) for name, command in walked(group)]
    return "\n".join(parts[1:])


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


def _section(name: str, command: Any) -> str:  # noqa: ANN401 (typer's classes are not public)
    sentence, example = told(command)
    parts = [f"## {name}\n", f"{sentence}\n"]
    if example:
        parts.append(fenced(example, "bash"))
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.params:
        if parameter.name not in _HELP:
            panels.setdefault(_panel(parameter), []).append((_signature(parameter), _meaning(parameter)))
    parts += [table([panel, ""], rows) for panel, rows in panels.items()]
    return "\n".join(parts)


def _panel(parameter: Any) -> str:  # noqa: ANN401 (typer's classes are not public)
    fallback = "Arguments" if parameter.param_type_name == "argument" else "Options"
    return getattr(parameter, "rich_help_panel", None) or fallback


def _signature(parameter: Any) -> str:  # noqa: ANN401 (typer's classes are not public)
    metavar = parameter.metavar or ("" if getattr(parameter, "is_flag", False) else parameter.name.upper())
    if parameter.param_type_name == "argument":
        return f"`{metavar}`"
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    return f"{names} `{metavar}`" if metavar and not parameter.is_flag else names


def _meaning(parameter: Any) -> str:  # noqa: ANN401 (typer's classes are not public)
    default = parameter.default
    shown = f" Default: `{default}`." if isinstance(default, str) and default and not parameter.required else ""
    return f"{parameter.help or ''}{shown}"
