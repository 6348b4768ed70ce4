"""
Prometheus's HTTP API, as far as raw samples need it: one instant query of a range, and the server's own clock.

What is asked stands here as users write it: label matchers, a window and its end. The answers are data of a stranger:
bounded in size and time by `http_pages`, checked here entry by entry.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.readers.http_pages import LOGIN_VARIABLE, OK, TOKEN_VARIABLE, Page, fetch, without
from rlsize.readers.metrics.tables import word
from rlsize.units import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.readers.http_pages import Access, Target

LONGEST_SELECTOR = 2000
YEAR = 365 * 86_400.0
LATEST = 1e11  # seconds since 1970
PATH = "/api/v1/query"
REFUSALS = frozenset({400, 401, 403, 404, 405, 413, 422, 429, 500, 502, 503, 504})
WRONG = frozenset({400, 413, 422})  # what was asked is at fault, not the server
LONGEST_TEXT = 200
_SMALLER = "ask for a shorter --window, or for fewer engines with --selector"

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": YEAR}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:ms|[smhdwy]))+")
_PART = re.compile(r"([0-9]+)(ms|[smhdwy])")
_MATCHER = re.compile(
    r"""\s*(?P<label>[a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)\s*"""
    r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)\s*"""
)


def duration(text: str) -> float | None:
    """
    Seconds of a duration as Prometheus writes it; None where it is none.

    >>> duration("5m"), duration("1h30m"), duration("300")
    (300.0, 5400.0, None)
    """
    if not _DURATION.fullmatch(text.strip()):
        return None
    return sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(text))


def matchers(selector: str) -> str:
    """
    Label matchers without their braces, as they go into a query.

    Args:
        selector: Matchers, with or without braces; empty for none.

    Raises:
        ValueError: What is wrong with them.

    >>> matchers('{job="rollout", pod=~"rollout-.*"}')
    'job="rollout", pod=~"rollout-.*"'
    """
    text = selector.strip()
    if len(text) > LONGEST_SELECTOR:
        raise ValueError(f"is longer than {LONGEST_SELECTOR:,} characters")
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    position = 0
    while position < len(text):
        found = _MATCHER.match(text, position)
        if found is None:
            raise ValueError(f"cannot be read from {text[position : position + 40]!r} on")
        if found["label"] == "__name__":
            raise ValueError("names a metric; rlsize chooses the metrics itself")
        position = found.end()
        if position < len(text) and text[position] != ",":
            raise ValueError(f"has no comma before {text[position : position + 40]!r}")
        position += 1
    return text.rstrip(", ")


def moment(text: str) -> float:
    """
    A moment in seconds since 1970.

    Args:
        text: Such seconds, or an ISO 8601 date and time with its zone.

    Raises:
        ValueError: It is neither.

    >>> moment("2026-03-01T12:00:00Z"), moment("1772366400.5")
    (1772366400.0, 1772366400.5)
    """
    try:
        seconds = float(text)
    except ValueError:
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text[:40]!r} is no moment") from None
        if found.tzinfo is None:
            raise ValueError(f"{text[:40]} has no time zone") from None
        seconds = found.timestamp()
    if not math.isfinite(seconds) or not 0 < seconds < LATEST:
        raise ValueError(f"{text[:40]} is no moment since 1970")
    return seconds


class Samples(NamedTuple):
    """
    Raw samples of one series.

    Args:
        name: The metric.
        labels: Its labels.
        values: Milliseconds since 1970, and the value there; those that are no numbers are left out.
    """

    name: str
    labels: Mapping[str, str]
    values: tuple[tuple[int, float], ...]


def server_time(server: Target, access: Access, clock: Callable[[], float]) -> float:
    """
    The server's own clock, in seconds since 1970: its samples bear its times, not ours.

    Raises:
        UnfinishedError: It cannot be reached, or refuses.
        InputError: It is no Prometheus.
    """
    result, _ = _asked(server, access, clock, {"query": "time()"})
    try:
        seconds = float(result[1])
    except (TypeError, ValueError, LookupError):
        raise InputError(_stranger(server)) from None
    if not math.isfinite(seconds) or seconds <= 0:
        raise InputError(_stranger(server))
    return seconds


def raw_samples(
    server: Target, access: Access, clock: Callable[[], float], selector: str, window: float, end: float
) -> tuple[list[Samples], tuple[str, ...]]:
    """
    The samples of a window as they were scraped, and what the server warned of.

    Args:
        server: Where it is.
        access: How to ask.
        clock: Seconds on a clock that never goes back.
        selector: The series, as an instant selector.
        window: How long the window is. [s]
        end: When it ends, in seconds since 1970. [s]

    Raises:
        UnfinishedError: The server cannot be reached, or refuses.
        InputError: It is no Prometheus, or cannot make sense of the query.
    """
    query = {"query": f"{selector}[{round(1000 * window)}ms]", "time": f"{end:.3f}"}
    result, warnings = _asked(server, access, clock, query)
    if not isinstance(result, list):
        raise InputError(_stranger(server))
    return [_samples(entry, server) for entry in result], warnings


def _asked(
    server: Target, access: Access, clock: Callable[[], float], query: Mapping[str, str]
) -> tuple[Any, tuple[str, ...]]:
    """What a query gave, as it came, and what the server warned of."""
    page = replace(server, url=f"{server.url}{PATH}?{urlencode(query)}")
    (outcome,) = fetch([page], access, clock, REFUSALS)
    if not isinstance(outcome, Page):
        fault = outcome[1]
        todo = _SMALLER if fault.what.startswith("sends more than") else fault.todo.replace("the engine", "Prometheus")
        raise UnfinishedError(Fault(fault.what, server.shown, todo))
    if outcome.status != OK:
        raise _refused(outcome, access)
    document = _loaded(outcome.content)
    if not isinstance(document, dict) or document.get("status") != "success":
        raise InputError(_stranger(server))
    data, warnings = document.get("data"), document.get("warnings")
    told = tuple(_line(text) for text in warnings[:3]) if isinstance(warnings, list) else ()
    return data.get("result") if isinstance(data, dict) else None, told


def _loaded(content: bytes) -> Any:  # noqa: ANN401 (whatever a server sends)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _refused(page: Page, access: Access) -> InputError | UnfinishedError:
    document = _loaded(page.content)
    said = document.get("error") if isinstance(document, dict) else ""
    reason = without(_line(said), *access.secrets(page.target)) if said else ""
    what = f"answers {page.status}{f': {reason}' if reason else ''}"
    where = page.target.shown
    if page.status in {401, 403}:
        todo = f"give a token in {TOKEN_VARIABLE} or with --token-file, or USER:PASSWORD in {LOGIN_VARIABLE}"
        return UnfinishedError(Fault(what, where, todo))
    if page.status in {404, 405}:
        return UnfinishedError(Fault(what, where, f"is Prometheus there? its API is asked at {where}{PATH}"))
    if page.status in WRONG:
        return InputError(Fault(what, where, f"check --selector; or {_SMALLER}"))
    return UnfinishedError(Fault(what, where, "try again later, or look at Prometheus's log"))


def _stranger(server: Target) -> Fault:
    return Fault("does not answer as Prometheus does", server.shown, f"is Prometheus there? {PATH} is asked")


def _line(text: object) -> str:
    """What a server says, as one short line that cannot drive a terminal."""
    words = " ".join(str(text)[: 4 * LONGEST_TEXT].split())
    return cut(word(words, len(words)), LONGEST_TEXT)


def _samples(entry: Any, server: Target) -> Samples:  # noqa: ANN401 (whatever a server sends)
    try:
        own = {str(name): str(value) for name, value in entry["metric"].items()}
        pairs = [(round(1000 * float(moment)), float(value)) for moment, value in entry["values"]]
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        raise InputError(_stranger(server)) from None
    numbers = tuple((moment, value) for moment, value in pairs if math.isfinite(value))
    return Samples(own.pop("__name__", ""), own, numbers)
