"""Numbers as logs write them: bare, quoted, or wrapped by the library that made them; and text without its colours."""

from __future__ import annotations

import re
from contextlib import suppress

_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_WRAPPED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*\(\s*([^\s,()]+)\s*(?:,[^()]*)?\)")
_NO_NUMBER = re.compile(
    r"""None|True|False|null|true|false|'[^']*'|"[^"]*"|\[[^][{}]*\]|\{[^][{}]*\}|\([^()]*\)|<[^<>]*>""", re.DOTALL
)

_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")


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
