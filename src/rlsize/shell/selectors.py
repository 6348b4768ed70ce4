"""Selectors, expressions and labels of Prometheus and Kubernetes as they were typed, taken apart and checked."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from rlsize.errors import Fault, suggestion
from rlsize.facts.alerts import Matcher
from rlsize.reports.alerts_trainer import OWN
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
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")
_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_FORM = """write label="value", joined by commas, such as job="rollout",namespace="rl\""""


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
            faults.append(Fault(f"{_short(inside[position:])} is no matcher", flag, _FORM))
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
        what = f"{_short(inner)} has the escape \\{unknown[0]}, which is none of Prometheus"
        faults.append(Fault(what, flag, "double the backslash"))
    value = inner if raw else _ESCAPE.sub(lambda found: _MEANT.get(found[1], found[1]), inner)
    if label == "__name__":
        faults.append(Fault("__name__ is the metric, which the rules choose", flag, "leave it out"))
    if any(not letter.isprintable() for letter in value):
        faults.append(Fault(f"the value of {label} has control characters", flag, "leave them out"))
    if operator in {"=~", "!~"}:
        wrong = _regexp_fault(value)
        if wrong:
            faults.append(Fault(f"{_short(value)} is no regular expression: {wrong}", flag, "Prometheus takes RE2"))
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


def expressions(said: Iterable[str], faults: list[Fault]) -> dict[str, str]:
    """
    Expressions by name; what is wrong with them is noted. That they are PromQL only Prometheus can tell.

    Args:
        said: Each as NAME=EXPR.
        faults: Where faults go.
    """
    found: dict[str, str] = {}
    for text in said:
        name, equals, expr = (part.strip() for part in text.partition("="))
        if not equals or not expr:
            faults.append(Fault(f"{_short(text)} is no expression", "--metric", "write NAME=EXPR"))
        elif name not in OWN:
            faults.append(Fault(f"there is no signal {_short(name)}", "--metric", suggestion(name[:40], OWN)))
        elif name in found:
            faults.append(Fault(f"{name} is given twice", "--metric", "keep one"))
        else:
            wrong = _expression_fault(expr)
            if wrong:
                faults.append(Fault(f"{name}: {wrong}", "--metric", "try it on Prometheus first"))
            found[name] = expr
    return found


def _expression_fault(expr: str) -> str:
    """Why an expression cannot be put between brackets."""
    if len(expr) > LONGEST:
        return f"has {len(expr):,} characters, more than {LONGEST:,}"
    if not expr.isprintable():
        return "has line breaks or control characters"
    open_, quote, index = [], "", 0
    while index < len(expr):
        letter = expr[index]
        if quote:
            index += letter == "\\" and quote != "`"
            quote = "" if letter == quote else quote
        elif letter in "\"'`":
            quote = letter
        elif letter == "#":
            return "holds a comment, which would hide what follows"
        elif letter in _PAIRS.values():
            open_.append(letter)
        elif letter in _PAIRS and (not open_ or open_.pop() != _PAIRS[letter]):
            return f"closes {letter} that was not opened"
        index += 1
    return "ends inside quotes" if quote else f"leaves {open_[-1]} open" if open_ else ""


def rule_name(text: str, flag: str, faults: list[Fault]) -> str:
    """A name that Kubernetes takes too."""
    if not _NAME.fullmatch(text):
        faults.append(Fault(f"{_short(text)} is no name", flag, "lower-case letters, digits and -, 53 at most"))
    return text


def object_labels(said: Iterable[str], faults: list[Fault]) -> dict[str, str]:
    """Labels of a Kubernetes object; what is wrong with them is noted."""
    found: dict[str, str] = {}
    for text in said:
        key, equals, value = text.partition("=")
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            faults.append(Fault(f"{_short(text)} is no label of Kubernetes", "--label", "write KEY=VALUE"))
        elif key in found:
            faults.append(Fault(f"{key} is given twice", "--label", "keep one"))
        found[key] = value
    return found


def _short(text: str) -> str:
    clean = " ".join(printable(text).split())
    return repr(clean if len(clean) <= 40 else f"{clean[:37]}...")  # noqa: PLR2004 (half a line)
