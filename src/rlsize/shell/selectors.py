"""Selectors of Prometheus as they were typed, taken apart and checked, and as they are written."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault
from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 1000
_MATCHER = re.compile(
    r"""\s*(?P<label>[A-Za-z_][A-Za-z0-9_]*)\s*(?P<operator>=~|!~|!=|=)\s*"""
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)\s*(?:,\s*|$)"""
)
_ESCAPE = re.compile(r"\\(.)")
_MEANT = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
_NOT_RE2 = re.compile(r"\(\?(?:[=!>]|<[=!]|P=|\()|(?<!\\)(?:\\\\)*\\[1-9]|[*+?}]\+")
_ONLY_RE2 = re.compile(r"\\[pPQCz]|\[\[:")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_FORM = """write label="value", joined by commas, such as job="rollout",namespace="rl\""""


class Matcher(NamedTuple):
    """
    One matcher of a selector.

    Args:
        label: The label.
        operator: `=`, `!=`, `=~` or `!~`.
        value: What it is compared with, as it is meant, without escapes.
    """

    label: str
    operator: str
    value: str


def matchers(text: str, flag: str, faults: list[Fault]) -> tuple[Matcher, ...]:
    """
    A selector's matchers; what is wrong with it is noted.

    Args:
        text: As in braces of PromQL, with them or without.
        flag: The flag that says it.
        faults: Where faults go.
    """
    inside = text.strip()
    inside = inside[1:-1] if inside.startswith("{") and inside.endswith("}") else inside
    if len(inside) > LONGEST:
        faults.append(Fault(f"has {len(inside):,} characters", flag, f"write at most {LONGEST:,}"))
        return ()
    found: list[Matcher] = []
    position = 0
    while position < len(inside):
        one = _MATCHER.match(inside, position)
        if one is None:
            faults.append(Fault(f"{brief(inside[position:])} is no matcher", flag, _FORM))
            return ()
        found.append(_matcher(one, flag, faults))
        position = one.end()
    if not found:
        faults.append(Fault("selects nothing", flag, _FORM))
    return tuple(found)


def _matcher(one: re.Match[str], flag: str, faults: list[Fault]) -> Matcher:
    label, operator, inner = one["label"], one["operator"], one["text"][1:-1]
    raw = one["text"].startswith("`")
    unknown = [] if raw else [letter for letter in _ESCAPE.findall(inner) if letter not in _MEANT]
    if unknown:
        what = f"{brief(inner)} has the escape \\{unknown[0]}, which is none of Prometheus"
        faults.append(Fault(what, flag, "double the backslash"))
    value = inner if raw else _ESCAPE.sub(lambda found: _MEANT.get(found[1], found[1]), inner)
    if label == "__name__":
        faults.append(Fault("__name__ is the metric, which rlsize chooses", flag, "leave it out"))
    if any(not letter.isprintable() for letter in value):
        faults.append(Fault(f"the value of {label} has control characters", flag, "leave them out"))
    if operator in {"=~", "!~"}:
        wrong = _regexp_fault(value)
        if wrong:
            faults.append(Fault(f"{brief(value)} is no regular expression: {wrong}", flag, "Prometheus takes RE2"))
    return Matcher(label, operator, value)


def _regexp_fault(pattern: str) -> str:
    """What is wrong with a regular expression; empty where nothing is, or only RE2 could tell."""
    if _NOT_RE2.search(pattern):
        return "RE2 knows no lookaround, no references back and no possessive repeats"
    if _ONLY_RE2.search(pattern):
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return ""


def selector_text(matchers: Iterable[Matcher]) -> str:
    r"""
    A selector's inside, its values escaped.

    >>> selector_text([Matcher("job", "=", 'a"b'), Matcher("pod", "=~", r"r\d")])
    'job="a\\"b",pod=~"r\\\\d"'
    """
    return ",".join(
        f'{one.label}{one.operator}"{"".join(_ESCAPES.get(letter, letter) for letter in one.value)}"'
        for one in matchers
    )


def brief(text: str) -> str:
    """Text of others in a message: quoted, on one line, half a line long at most."""
    clean = " ".join(printable(text).split())
    return repr(clean if len(clean) <= 40 else f"{clean[:37]}...")  # noqa: PLR2004 (half a line)
