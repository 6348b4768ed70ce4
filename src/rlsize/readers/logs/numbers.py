"""Numbers and flat objects as logs write them: bare, quoted, wrapped by a library; JSON, and dicts of Python."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_WRAPPED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*\(\s*([^\s,()]+)\s*(?:,[^()]*)?\)")
_NO_NUMBER = re.compile(
    r"""None|True|False|null|true|false|'[^']*'|"[^"]*"|\[[^][{}]*\]|\{[^][{}]*\}|\([^()]*\)|<[^<>]*>""", re.DOTALL
)

_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")

_DECODER = json.JSONDecoder()
_PAIR = re.compile(
    r"""\s*+(?:'([^'\\]*+(?:\\.[^'\\]*+)*+)'|"([^"\\]*+(?:\\.[^"\\]*+)*+)")\s*+:\s*+"""
    r"""('[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+"|\[[^][{}]*\]|\{[^][{}]*\}|[\w.]*\([^()]*\)|[^\s,{}()\[\]'"]+)"""
    r"""\s*+(,|\})""",
)
_MOST = 10_000
"""Keys of an object; a log has some hundred."""


def plain(text: str) -> str:
    r"""
    Text without the escapes of a terminal.

    >>> plain("\x1b[36m(TaskRunner pid=1)\x1b[0m step:3")
    '(TaskRunner pid=1) step:3'
    """
    return _COLOURS.sub("", text) if "\x1b" in text else text


def number(text: str) -> float | None:
    """
    The number that a value says; None where it is a word, a list or other text in quotes.

    >>> number("np.float64(0.18)"), number("'17.3'"), number("tensor(2., device='cuda:0')"), number("None")
    (0.18, 17.3, 2.0, None)

    Raises:
        ValueError: It is no value at all.
    """
    try:
        return float(text)
    except ValueError:
        text = text.strip()
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        return number(wrapped[1])
    if text[:1] in {"'", '"'} and text[-1:] == text[:1] and len(text) > 1:
        with suppress(ValueError):
            return float(text[1:-1].replace(",", ""))
        return None
    if _NO_NUMBER.fullmatch(text):
        return None
    raise ValueError(text)


def decimal(text: str) -> float | None:
    """
    A number with or without commas between thousands; None for any other comma, and for what is no number.

    >>> decimal("38,112.5"), decimal("12,5"), decimal("7B")
    (38112.5, None, None)
    """
    if "," in text and not _THOUSANDS.fullmatch(text):
        return None
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def doubtful(text: str) -> bool:
    """
    Whether the comma of a number may be the decimal one; not where a point follows it, or another comma.

    >>> doubtful("1,095"), doubtful("1,095.5"), doubtful("2,400,000"), doubtful("12,5")
    (True, False, False, True)
    """
    return "," in text and (decimal(text) is None or ("." not in text and text.count(",") == 1))


def in_full(text: str) -> float:
    """
    A number, with or without commas between thousands.

    Raises:
        ValueError: It has another comma, or is none.
    """
    value = decimal(text)
    if value is None:
        raise ValueError(text)
    return value


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
