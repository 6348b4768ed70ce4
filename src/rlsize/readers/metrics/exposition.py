"""
The Prometheus text format, as far as an engine's page needs it: the wanted series of a page, each with its line.

Bounded: lines that nobody wants are never parsed, wanted ones are limited in length and in number.
"""

from __future__ import annotations

import math
import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.readers.yaml_documents import decoded
from rlsize.units import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LARGEST_PAGE = 32 * 2**20
LONGEST_LINE = 16 * 2**10
MOST_SERIES = 40_000
MOST_CHARACTERS = 8 * 2**20
LARGEST_VALUE = 1e18  # no engine counts that far; beyond it, sums and differences stop making sense
WHERE = "vLLM and SGLang serve theirs under /metrics, TensorRT-LLM under /prometheus/metrics"

_NAME = re.compile(r"^[a-zA-Z_:][a-zA-Z0-9_:]*", re.MULTILINE)
_OPENING = re.compile(r"\S[^\n]*\n?")
_SERIES = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*[{ \t]")


class Series(NamedTuple):
    """
    One line of a page.

    Args:
        name: The metric's name as it stands there.
        labels: Its labels.
        value: Its value: finite and not negative.
        line: Where it stands, from 1.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    line: int


def page_text(content: bytes, name: str) -> str:
    """
    The text of a page.

    Raises:
        InputError: It is too large, or not text.
    """
    if len(content) > LARGEST_PAGE:
        raise InputError(Fault(f"is larger than {LARGEST_PAGE // 2**20} MiB", name, "is it one engine's metrics page?"))
    return decoded(content, name, "is it a binary or compressed file?")


def metric_names(text: str, most: int = 10_000) -> list[str]:
    """The names of a page's first series, each once, in their order."""
    return list(dict.fromkeys(match[0] for match in islice(_NAME.finditer(text), most)))


def series(text: str, name: str, start: re.Pattern[str], wanted: Callable[[str], bool]) -> list[Series]:
    """
    The wanted series of a page.

    Args:
        text: The page.
        name: What to call it in messages.
        start: How the lines begin that may be of interest; the others are never looked at.
        wanted: Whether a metric is of interest, by its name.

    Raises:
        InputError: It is not a metrics page, was cut, or a wanted line cannot be read.
    """
    _check_form(text, name)
    kept: list[tuple[int, str]] = []
    size, line, position = 0, 1, 0
    for match in start.finditer(text):
        found = _NAME.match(text, match.start())
        if found is None or not wanted(found[0]):
            continue
        line += text.count("\n", position, match.start())
        position = match.start()
        end = text.find("\n", position)
        kept.append((line, text[position : end if end >= 0 else len(text)]))
        size += len(kept[-1][1])
        if len(kept[-1][1]) > LONGEST_LINE:
            what = f"the line is longer than {LONGEST_LINE // 2**10} KiB"
            raise InputError(Fault(what, f"{name}:{line}", "is it one engine's metrics page?"))
        if len(kept) > MOST_SERIES or size > MOST_CHARACTERS:
            todo = "name each engine's own page, not one that gathers a whole fleet"
            what = f"holds too many engine series; at most {MOST_SERIES:,}, or {MOST_CHARACTERS // 2**20} MiB, are read"
            raise InputError(Fault(what, name, todo))
    return _parsed(kept, name)


def _check_form(text: str, name: str) -> None:
    opening = _OPENING.search(text)
    if opening is None:
        raise InputError(Fault("is empty", name, f"does the engine serve metrics there? {WHERE}"))
    first = opening[0]
    if first[0] in "<{[":
        kind = "an HTML page" if first[0] == "<" else "JSON"
        raise InputError(Fault(f"is {kind}, not a metrics page", name, WHERE))
    if first[0] != "#" and not _SERIES.match(first):
        where = f"{name}:{text.count(chr(10), 0, opening.start()) + 1}"
        raise InputError(Fault(f"is not a metrics page: {_brief(first)}", where, WHERE))
    last = text[text.rfind("\n") + 1 :].strip()
    if last and last != "# EOF":
        what = f"was cut: it ends in the middle of line {text.count(chr(10)) + 1}: {_brief(last)}"
        raise InputError(Fault(what, name, "read or save it again; a whole page ends with a line break"))


def _parsed(kept: list[tuple[int, str]], name: str) -> list[Series]:
    from prometheus_client.parser import text_string_to_metric_families

    found: list[Series] = []
    seen: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    families = iter(text_string_to_metric_families("\n".join(line for _, line in kept)))
    for number, line in kept:
        try:
            sample = next(families).samples[0]  # without its TYPE line, every series is a family of its own
            value = float(sample.value)
        except (ValueError, OverflowError, IndexError, StopIteration):
            what = f"cannot be read: {_brief(line)}"
            raise InputError(Fault(what, f"{name}:{number}", "is the page damaged?")) from None
        if not math.isfinite(value) or not 0 <= value <= LARGEST_VALUE:
            what = f"{sample.name} is {value:g}, which no engine can count"
            raise InputError(Fault(what, f"{name}:{number}", "is the page damaged?"))
        key = (sample.name, frozenset(sample.labels.items()))
        if key in seen:
            what = f"{sample.name} stands twice with the same labels, first on line {seen[key]}"
            raise InputError(Fault(what, f"{name}:{number}", "are two pages in one file?"))
        seen[key] = number
        found.append(Series(sample.name, sample.labels, value, number))
    return found


def _brief(line: str) -> str:
    return repr(cut(line.strip(), 60))
