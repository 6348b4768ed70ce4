"""A snippet: settings of a framework, in the form in which it takes them."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Value: TypeAlias = "int | float | str | bool"
Form: TypeAlias = Literal["overrides", "flags", "yaml", "toml"]


@dataclass(frozen=True, slots=True)
class Setting:
    """
    One key of a framework and its value.

    Args:
        key: Dotted where it is nested; a flag without its dashes.
        value: Its value; True for a flag that stands alone.
        read: Whether the key was read in the source of the version that is named.
    """

    key: str
    value: Value
    read: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    Settings that go to one place.

    Args:
        title: Where they go.
        form: How they are written.
        settings: The settings.
        command: What flags and overrides follow; empty where the user knows it.
    """

    title: str
    form: Form
    settings: tuple[Setting, ...]
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """
    All that sets a split in a framework.

    Args:
        parts: What goes where.
        notes: What it does not set, and what it takes for granted.
        warnings: What the reader must know first.
    """

    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings of all parts."""
        return tuple(setting for part in self.parts for setting in part.settings)


def part_text(part: Part) -> str:
    """The text of one part; comments aside, what its framework reads."""
    writers = {"overrides": _overrides, "flags": _flags, "yaml": _yaml, "toml": _toml}
    return writers[part.form](part)


def _overrides(part: Part) -> str:
    """Overrides as hydra takes them: `key=value`, a word to each."""
    words = [shlex.quote(f"{setting.key}={_plain(setting.value)}") for setting in part.settings]
    return _continued(part.command, words)


def _flags(part: Part) -> str:
    words = [
        f"--{setting.key}" if setting.value is True else f"--{setting.key} {shlex.quote(_plain(setting.value))}"
        for setting in part.settings
        if setting.value is not False
    ]
    return _continued(part.command, words)


def _continued(command: str, words: Iterable[str]) -> str:
    """A command line of a word a line, which a shell reads as one."""
    lines = [command, *(f"  {word}" for word in words)] if command else list(words)
    return " \\\n".join(lines) + "\n"


def _plain(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _yaml(part: Part) -> str:
    import yaml

    dumped: str = yaml.safe_dump(tree(part.settings), sort_keys=False, allow_unicode=True, width=10_000)
    return dumped


def _toml(part: Part) -> str:
    """TOML: bare keys first, then a table for each prefix, in the order in which they come."""
    tables: dict[str, list[Setting]] = {"": []}
    for setting in part.settings:
        table, _, _ = setting.key.rpartition(".")
        tables.setdefault(table, []).append(setting)
    lines: list[str] = []
    for table, settings in tables.items():
        if table:
            lines += ["", f"[{table}]"] if lines else [f"[{table}]"]
        lines += [f"{setting.key.rpartition('.')[2]} = {_toml_value(setting.value)}" for setting in settings]
    return "\n".join(lines) + "\n"


def _toml_value(value: Value) -> str:
    return json.dumps(value) if isinstance(value, str) else _plain(value)


def tree(settings: Iterable[Setting]) -> dict[str, Any]:
    """
    Dotted keys as nested mappings.

    >>> tree([Setting("a.b", 1), Setting("a.c", 2)])
    {'a': {'b': 1, 'c': 2}}
    """
    found: dict[str, Any] = {}
    for setting in settings:
        *parents, last = setting.key.split(".")
        node = found
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = setting.value
    return found
