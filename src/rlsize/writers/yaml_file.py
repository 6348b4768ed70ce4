"""A fact as a YAML file that rlsize reads again."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from rlsize.facts.fields import Quantity
from rlsize.units import DIMENSIONS

_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def yaml_text(kind: str, content: dict[str, Any]) -> str:
    """A file of a kind, header first."""
    import yaml

    class Plain(yaml.SafeDumper):
        """A dumper that writes everything out: rlsize reads no aliases."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002, ANN401 (yaml's protocol)
            return True

    Plain.add_representer(str, _text)
    body = yaml.dump(content, Dumper=Plain, sort_keys=False, allow_unicode=True, width=110)
    return f"rlsize: {{kind: {kind}, version: 1}}\n{body}"


def _text(dumper: Any, text: str) -> Any:  # noqa: ANN401 (yaml's protocol)
    """Text; in quotes where rlsize reads a number though YAML 1.1 does not (`1e9`, `09`), or a line could break."""
    style = "'" if _NUMBER.fullmatch(text) else None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def plain(value: Any) -> Any:  # noqa: ANN401 (any content of a dataclass)
    """A fact as YAML holds it: what is unknown left out, and a unit beside each number that is not read without one."""
    if is_dataclass(value):
        hints = get_type_hints(type(value), include_extras=True)
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _with_unit(plain(entry), hints[name]) for name, entry in held.items() if entry is not None}
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value


def _with_unit(value: Any, hint: Any) -> Any:  # noqa: ANN401 (a value and its annotation)
    for said in getattr(hint, "__metadata__", ()):
        if isinstance(said, Quantity) and not DIMENSIONS[said.unit].bare:
            return f"{value:.12g} {said.unit}"
    return value
