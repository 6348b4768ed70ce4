"""JSON configurations: those of DeepSpeed and accelerate, and what a program wrote of its own settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.readers.launch.literals import Literals, UnreadableError
from rlsize.readers.launch.nodes import Count, Places, shown

if TYPE_CHECKING:
    from rlsize.readers.launch.nodes import Node


def json_settings(text: str, name: str, notes: list[str]) -> Node:
    """
    A JSON object with places.

    Raises:
        InputError: It is none, with file and line.
    """
    literals = Literals(text, Places(text, name), Count(name))
    try:
        # Depth is bounded first: the module's own decoder recurses.
        node, _ = literals.value(0)
        json.loads(text)
    except UnreadableError as error:
        where = f"{name}:{text.count(chr(10), 0, error.at) + 1}"
        raise InputError(Fault("is not valid JSON", where, "mend the line or the one above it")) from None
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        what = f"is not valid JSON: {getattr(error, 'msg', 'a number is too long')}"
        raise InputError(Fault(what, f"{name}:{line}", "mend the line or the one above it")) from None
    if not isinstance(node.value, dict):
        raise InputError(Fault("holds no settings: it is no JSON object", name, 'write {"key": value}'))
    notes += [f"{name}: {shown(key)} stands twice: the last one counts" for key in dict.fromkeys(literals.repeated)]
    return node
