"""What is asked of a Prometheus server, as users write it: label matchers, a window and its end."""

from __future__ import annotations

import math
import re
from datetime import datetime

LONGEST = 2000
YEAR = 365 * 86_400.0
LATEST = 1e11  # seconds since 1970

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
    if len(text) > LONGEST:
        raise ValueError(f"is longer than {LONGEST:,} characters")
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
