"""Flat objects in text: JSON objects, and the dicts that Python prints; their brace proves that they are whole."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping

_DECODER = json.JSONDecoder()
_PAIR = re.compile(
    r"""\s*+(?:'([^'\\]*+(?:\\.[^'\\]*+)*+)'|"([^"\\]*+(?:\\.[^"\\]*+)*+)")\s*+:\s*+"""
    r"""('[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+"|\[[^][{}]*\]|\{[^][{}]*\}|[\w.]*\([^()]*\)|[^\s,{}()\[\]'"]+)"""
    r"""\s*+(,|\})""",
)
_MOST = 10_000
"""Keys of an object; a log has some hundred."""


def json_object(text: str, start: int) -> tuple[dict[str, object], int]:
    """
    The JSON object that begins at a place, and where it ends.

    Raises:
        ValueError: There is none, or it is not whole.
    """
    try:
        found, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 (of text, not of a type in this program)
    return found, end


def printed_dict(text: str, start: int) -> dict[str, float]:
    """
    The numbers in the Python dict that is printed at a place.

    >>> printed_dict("perf 3: {'perf/rollout_time': np.float64(98.6), 'name': 'x', 'kl': '0.2'}", 8)
    {'perf/rollout_time': 98.6, 'kl': 0.2}

    Raises:
        ValueError: There is none, or it is not whole.
    """
    found: dict[str, float] = {}
    at = start + 1
    for _ in range(_MOST):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise ValueError("not a printed dict")
        value = number(pair[3])
        if value is not None:
            found[pair[1] or pair[2] or ""] = value
        if pair[4] == "}":
            return found
        at = pair.end()
    raise ValueError("too many keys")


def numbers_of(found: Mapping[str, object]) -> dict[str, float]:
    """The numbers among an object's values; text in quotes counts where it is a number."""
    values: dict[str, float] = {}
    for key, value in found.items():
        if isinstance(value, float):
            values[key] = value
        elif isinstance(value, int | str) and not isinstance(value, bool):
            try:
                values[key] = float(value)
            except (ValueError, OverflowError):
                continue
    return values


def flat_numbers(found: Mapping[str, object], path: str = "", deepest: int = 6) -> dict[str, float]:
    """
    The numbers among an object's values and those of the objects in it, by path.

    >>> flat_numbers({"step": 3, "timing": {"gen": "9.5"}})
    {'step': 3.0, 'timing/gen': 9.5}
    """
    values = {path + key: value for key, value in numbers_of(found).items()}
    for key, inner in found.items():
        if isinstance(inner, dict) and deepest:
            values |= flat_numbers(inner, f"{path}{key}/", deepest - 1)
    return values
