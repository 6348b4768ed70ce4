"""A scenario with a plan written into it, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.writers.yaml_file import yaml_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def applied_text(sections: Mapping[str, Any], command: str) -> str:
    """
    The YAML of a scenario, with the command that wrote it in its first line.

    Args:
        sections: What it says, section by section.
        command: The command.
    """
    shown = "".join(character if character.isprintable() else "?" for character in command)
    return f"# {shown}\n{yaml_text('scenario', dict(sections))}"
