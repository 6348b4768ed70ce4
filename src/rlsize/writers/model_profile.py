"""A model profile as text: what `profiles add-model` writes and the catalogue reads."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.writers.files import make_folder, write_whole
from rlsize.writers.scalars import text

if TYPE_CHECKING:
    from rlsize.facts.model import Model

HEADER = "rlsize: {kind: model, version: 1}\n"
_COMPUTED = "# Worked out from the architecture by rlsize, never by hand; caches in bf16, recurrent states in fp32.\n"


def write_model_profile(model: Model, folder: str | Path, force: bool = False) -> Path:
    """
    Write a profile under its name, whole or not at all; the folder is made where there is none.

    Args:
        model: The profile.
        folder: The folder of model profiles.
        force: Whether a profile that exists may be replaced.

    Returns:
        The file.

    Raises:
        InputError: The profile exists and may not be replaced, or the disk refused.
    """
    target = Path(folder) / f"{model.name}.yaml"
    make_folder(target.parent)
    write_whole(target, model_profile_text(model), force=force)
    return target


def model_profile_text(model: Model) -> str:
    """The YAML of a model profile; fields that hold their default are left out."""
    lines = [HEADER]
    for entry in dataclasses.fields(model):
        value = getattr(model, entry.name)
        if value is None or value in ("", (), {}):
            continue
        if entry.name == "computed":
            lines.append(_COMPUTED)
        lines.append(_section(entry.name, value))
    return "".join(lines)


def _section(key: str, value: Any) -> str:  # noqa: ANN401 (any field of a profile)
    """A top-level key: blocks get a line for each entry, and stay on one line below that."""
    if dataclasses.is_dataclass(value):
        content = _stated(value)
        if key.startswith("published"):
            return f"{key}: {_inline(content)}\n"
        return f"{key}:\n" + "".join(f"  {name}: {_inline(part)}\n" for name, part in content.items())
    if isinstance(value, dict):
        return f"{key}:\n" + "".join(f"  {text(name)}: {_inline(part)}\n" for name, part in value.items())
    if key == "notes":
        return f"{key}:\n" + "".join(f"  - {_inline(part)}\n" for part in value)
    return f"{key}: {_inline(value)}\n"


def _stated(block: Any) -> dict[str, Any]:  # noqa: ANN401 (any dataclass)
    """The fields of a block that differ from their default, those with a unit that must be written as text."""
    found = {}
    for entry in dataclasses.fields(block):
        value = getattr(block, entry.name)
        if value != entry.default:
            in_bytes = entry.name.endswith(("_bytes", "_bytes_per_token"))
            found[entry.name] = _Bytes(value) if in_bytes else value
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Bytes:
    """A whole number of bytes, which is written with its unit."""

    value: int


def _inline(value: Any) -> str:  # noqa: ANN401 (any part of a profile)
    if isinstance(value, _Bytes):
        return f"{value.value} B"
    if dataclasses.is_dataclass(value):
        return _inline(_stated(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(key)}: {_inline(part)}" for key, part in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(_inline(part) for part in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return text(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
