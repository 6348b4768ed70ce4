"""Single values as YAML text, so that the readers of files have them back exactly."""

from __future__ import annotations

import re
from typing import Any

from rlsize.facts.fields import Quantity, Uncertain
from rlsize.units import DIMENSIONS, quantity

_PLAIN = re.compile(r"[A-Za-z][\w./+-]*(?: [\w./+-]+)*", re.ASCII)  # text that YAML takes for nothing else
_WORDS = frozenset(
    {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
)  # no text to one YAML reader or another
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SHORT = {"token": (("k", 1e3),), "param": (("B", 1e9), ("M", 1e6)), "B/s": ((" GB/s", 1e9), (" MB/s", 1e6))}
_EXACT = 1e15  # whole floats below it are written as they are


def scalar(value: Any, kind: Quantity | None = None) -> str:  # noqa: ANN401 (any value of a field)
    """
    A value as YAML.

    Args:
        value: Text, a number, a switch, or a list of those.
        kind: Its unit, where it is a quantity.

    >>> scalar(8000.0, Quantity("token")), scalar(Uncertain(value=20, deviation=2), Quantity("s")), scalar("x: {y")
    ('8k', '20 ± 2', '"x: {y"')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(scalar(entry, kind) for entry in value)}]"
    if isinstance(value, str):
        return text(value)
    unit = kind.unit if kind is not None else "1"
    if not isinstance(value, Uncertain):
        return number(value, unit)
    spread = f" ± {number(value.deviation, unit)}" if value.deviation else ""
    return f"{number(value.value, unit)}{spread}"


def number(value: float, unit: str) -> str:
    """
    A number in base units, as short as it can be written without a change.

    >>> number(1536.0, "token"), number(16000.0, "token"), number(50e9, "B/s"), number(0.1 + 0.2, "1")
    ('1536', '16k', '50 GB/s', '0.30000000000000004')
    """
    for name, factor in _SHORT.get(unit, ()):
        candidate = f"{value / factor:.12g}{name}"
        if value and value % factor == 0 and quantity(candidate, unit) == value:
            return candidate
    plain = str(int(value)) if value == int(value) and abs(value) < _EXACT else repr(float(value))
    return plain if DIMENSIONS[unit].bare else f"{plain} {DIMENSIONS[unit].base}"


def text(value: str) -> str:
    r"""
    Text on one line, quoted where it could be taken for anything else.

    >>> text("qwen3-32b"), text("two words"), text("no"), text("a # b\n")
    ('qwen3-32b', 'two words', '"no"', '"a # b\\n"')
    """
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"
