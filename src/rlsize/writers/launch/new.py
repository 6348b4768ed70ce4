"""A new launch: keys of a framework in the form in which it takes them, below the command that they follow."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from rlsize.frameworks.expressions import names
from rlsize.frameworks.told import Reading
from rlsize.frameworks.wanted import spelled
from rlsize.quantities.table import nested
from rlsize.writers.launch.shell import plain
from rlsize.writers.yaml_file import dumped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.framework import Framework, Variant


def launch_text(framework: Framework, variant: Variant, keys: Mapping[str, Any]) -> str:
    """
    The text that sets keys.

    Args:
        framework: The framework, which may spell keys in a way of its own.
        variant: What they follow, and in which form.
        keys: Values by key; those of engines in a process of their own begin with `server.`, what stands before the
            program with `launcher.`, variables with `env.`.
    """
    reading = Reading(framework, ())
    groups: dict[str, dict[str, Any]] = {"": {}}
    for key, told in keys.items():
        value = told
        group = next((prefix for prefix in ("server.", "launcher.", "env.") if key.startswith(prefix)), "")
        bare = spelled(reading, key).removeprefix(group)
        if value is False and variant.form in {"flags", "dashes"}:  # it stands for itself only where it is on by itself
            value = "false" if framework.defaults.get(key) is True else None
        if value is not None and bare != "program":
            groups.setdefault(group, {})[bare] = value
    if variant.form == "yaml":
        return dumped(nested(groups[""]), 10_000)
    if variant.form == "toml":
        return _toml(groups[""])
    exports = [f"export {key}={shlex.quote(plain(value))}" for key, value in groups.get("env.", {}).items()]
    model = next((keys[key] for key in names(framework.quantities["model"]) if key in keys), "MODEL")
    serves = variant.server.replace("MODEL", shlex.quote(str(model)))
    server = [_command(serves, "dashes", groups["server."]) + " &"] if "server." in groups else []
    launcher = " ".join(_words("flags", groups.get("launcher.", {})))
    command = " ".join(variant.command.replace("{launcher}", launcher).split())
    return "\n".join([*exports, *server, _command(command, variant.form, groups[""])]) + "\n"


def _command(command: str, form: str, keys: Mapping[str, Any]) -> str:
    return " \\\n".join([command, *(f"  {word}" for word in _words(form, keys))])


def _words(form: str, keys: Mapping[str, Any]) -> Iterable[str]:
    """Overrides, or flags; a switch that is on stands alone."""
    for key, value in keys.items():
        if form == "overrides":
            yield shlex.quote(f"{key}={plain(value)}")
        else:
            flag = f"--{key.replace('_', '-') if form == 'dashes' else key}"
            parts = value if isinstance(value, (list, tuple)) else () if value is True else (value,)
            yield " ".join([flag, *(shlex.quote(plain(part)) for part in parts)])


def _toml(keys: Mapping[str, Any]) -> str:
    """TOML: bare keys first, then a table for each prefix, in the order in which they come."""
    tables: dict[str, list[str]] = {"": []}
    for key, value in keys.items():
        table, _, name = key.rpartition(".")
        tables.setdefault(table, []).append(f"{name} = {json.dumps(value)}")
    heads = {table: [f"[{table}]"] if table else [] for table in tables}
    return "\n".join("\n".join([*heads[table], *rows, ""]) for table, rows in tables.items() if rows)
