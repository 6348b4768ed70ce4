"""A snippet: keys of a framework and their values, in the form in which it takes them."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.writers.yaml_file import dumped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.writers.snippets.split import Split

Value: TypeAlias = "int | float | str | bool"
Keys: TypeAlias = "dict[str, Value | None]"
"""Values by key: dotted where it is nested, a flag without its dashes. What has no value is not set."""
Form: TypeAlias = Literal["overrides", "flags", "yaml", "toml"]


class KeyGroup:
    """
    Keys that go to one place.

    Args:
        title: Where they go.
        form: How they are written.
        keys: Their values; True for a flag that stands alone, None for a key that is not set.
        command: What flags and overrides follow; empty where the user knows it.
    """

    def __init__(self, title: str, form: Form, keys: Mapping[str, Value | None], command: str = "") -> None:
        self.title, self.form, self.command = title, form, command
        self.keys: dict[str, Value] = {key: value for key, value in keys.items() if value is not None}


class Snippet:
    """
    All that sets a split in a framework.

    Args:
        groups: What goes where.
        notes: What it does not set, and what it takes for granted.
        warnings: What the reader must know first.
    """

    def __init__(self, *groups: KeyGroup, notes: tuple[str, ...] = (), warnings: tuple[str, ...] = ()) -> None:
        self.groups, self.notes, self.warnings = groups, notes, warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """
    A framework, as its module tells it.

    Args:
        name: What it is called on the command line.
        title: What it is called in words.
        source: The version whose source was read.
        variants: The modes that each of its trainers runs, the preferred trainer first.
        refused: Modes that it cannot run: why, and what comes nearest.
        unread: Keys that were not read in that source.
        snippet: The snippet of a split; what cannot be expressed is noted among its refusals.
    """

    name: str
    title: str
    source: str
    variants: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    snippet: Callable[[Split], Snippet]


def group_text(group: KeyGroup) -> str:
    """The text of one group; comments aside, what its framework reads."""
    if group.form == "yaml":
        return dumped(tree(group.keys), 10_000)
    if group.form == "toml":
        return _toml(group.keys)
    if group.form == "overrides":  # as hydra takes them: `key=value`, a word to each
        words = [shlex.quote(f"{key}={_plain(value)}") for key, value in group.keys.items()]
    else:
        words = [
            f"--{key}" if value is True else f"--{key} {shlex.quote(_plain(value))}"
            for key, value in group.keys.items()
            if value is not False
        ]
    lines = [group.command, *(f"  {word}" for word in words)] if group.command else words
    return " \\\n".join(lines) + "\n"


def _plain(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _toml(keys: Mapping[str, Value]) -> str:
    """TOML: bare keys first, then a table for each prefix, in the order in which they come."""
    tables: dict[str, list[str]] = {"": []}
    for key, value in keys.items():
        table, _, name = key.rpartition(".")
        said = json.dumps(value) if isinstance(value, str) else _plain(value)
        tables.setdefault(table, []).append(f"{name} = {said}")
    lines: list[str] = []
    for table, entries in tables.items():
        if table:
            lines += ["", f"[{table}]"] if lines else [f"[{table}]"]
        lines += entries
    return "\n".join(lines) + "\n"


def tree(keys: Mapping[str, Value]) -> dict[str, Any]:
    """
    Dotted keys as nested mappings.

    >>> tree({"a.b": 1, "a.c": 2})
    {'a': {'b': 1, 'c': 2}}
    """
    found: dict[str, Any] = {}
    for key, value in keys.items():
        *parents, last = key.split(".")
        node = found
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return found
