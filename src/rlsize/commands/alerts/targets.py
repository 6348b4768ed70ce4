"""Labels that a selector takes: what targets in a case for promtool are called."""

from __future__ import annotations

import re
from itertools import chain, product
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlsize.shell.selectors import Matcher

_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\[dws]|(?<!\\)\.")
_TIMES = re.compile(r"(\\.|[^\\])\{(\d{1,2})(?:,\d*)?\}\??")
_COUNT = re.compile(r"(?<!\\)[*+?]\??")
_OUTERMOST = re.compile(r"\(([^()|]*)(?:\|[^()]*)?\)")
_KINDS = {r"\d": "0", r"\w": "a", r"\s": " ", ".": "x"}
_MOST = 200  # instances that are tried
_LONGEST = 100  # characters of a label that is made up


def matching(value: str, matchers: Iterable[Matcher]) -> bool:
    """Whether a label's value is taken; a label that is missing has the empty value."""
    return all(_takes(one, value) for one in matchers)


def _takes(one: Matcher, value: str) -> bool:
    if one.operator in {"=", "!="}:
        return (value == one.value) == (one.operator == "=")
    try:
        found = re.fullmatch(one.value, value) is not None
    except re.error:  # a form that Prometheus knows and this does not
        found = False
    return found == (one.operator == "=~")


def example_labels(matchers: Sequence[Matcher], wanted: int) -> list[dict[str, str]]:
    """
    Labels of so many targets that a selector takes, each with an `instance` of its own.

    Args:
        matchers: The selector.
        wanted: How many targets.

    Raises:
        InputError: No such labels are found.
    """
    by_label: dict[str, list[Matcher]] = {}
    for one in matchers:
        by_label.setdefault(one.label, []).append(one)
    own = by_label.pop("instance", [])
    fixed = {label: _example(label, ones) for label, ones in by_label.items()}
    names = [name for name in dict.fromkeys(_instances(own)) if name and matching(name, own)][:wanted]
    if len(names) < wanted:
        raise InputError(_unknown("instance", f"{wanted} instances"))
    return [{label: value for label, value in fixed.items() if value} | {"instance": name} for name in names]


def _example(label: str, matchers: Sequence[Matcher]) -> str:
    found = next((text for text in _candidates(matchers) if matching(text, matchers)), None)
    if found is None:
        raise InputError(_unknown(label, "a value"))
    return found


def _unknown(label: str, what: str) -> Fault:
    todo = "select with = or a plainer regular expression, or print the rules alone (without --output)"
    return Fault(f"{what} of {label} for the test file cannot be made up", "--selector", todo)


def _candidates(matchers: Sequence[Matcher]) -> Iterator[str]:
    wanted = [one for one in matchers if one.operator in {"=", "=~"}]
    yield from chain([""] if not wanted else [], *([one.value, *_shapes(one.value)] for one in wanted))
    yield from ("rollout", "other", "x")


def _shapes(pattern: str) -> Iterator[str]:
    """Texts that a simple regular expression may take, by replacing its parts with the first that they take."""
    for branch, more in product(_branches(pattern), ("", "0", "1")):
        text = branch
        for _ in range(5):
            text = _OUTERMOST.sub(lambda found: found[1].removeprefix("?:"), text)
        text = _CLASS.sub(lambda found: _KINDS.get(found[0], found[0].strip("[]^").removeprefix("\\")[:1]), text)
        text = _TIMES.sub(lambda found: found[1] * int(found[2]), text)
        text = re.sub(r"\\(.)", r"\1", _COUNT.sub("", text).strip("^$")) + more
        if len(text) <= _LONGEST:
            yield text


def _branches(pattern: str) -> list[str]:
    """Alternatives on the outside of a pattern."""
    depth, start, found = 0, 0, []
    for index, letter in enumerate(pattern):
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and depth == 0:
            found.append(pattern[start:index])
            start = index + 1
    return [*found, pattern[start:]]


def _instances(matchers: Sequence[Matcher]) -> Iterator[str]:
    """Names of instances: usual ones, then some like the selector's own."""
    usual = [f"rollout-{index}:8000" for index in range(4)]
    yield from usual
    for one in matchers:
        if one.operator in {"=", "=~"}:
            for shape in [one.value, *_shapes(one.value)][:_MOST]:
                yield shape
                yield from (f"{shape}{ending}" for ending in ("0", "1", "2", ":8000", ":8001", ":8002"))
                yield from (f"{name}{shape}" for name in ("a", "b", "c"))
                yield from (f"{shape[:-1]}{digit}" for digit in "123")
