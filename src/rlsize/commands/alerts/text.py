"""Small forms of Prometheus: numbers, durations, expressions, templates as they will be read, and its YAML."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rlsize.planner.rounding import rounded_up
from rlsize.writers.yaml_file import dumped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OPENING = '{{ "{{" }}'  # how a Go template says two braces
_PLACE = re.compile(r"\$([STWF])")
_TEMPLATED = re.compile(
    r"\{\{ \$value \| (?P<form>humanize|humanizePercentage) \}\}|\{\{ \$labels\.(?P<label>\w+) \}\}|"
    r'\{\{ printf "%(?P<digits>\.\d[gf])" \$value \}\}|' + re.escape(_OPENING)
)
_THOUSAND = 1000


def plain_number(value: float, digits: int = 6) -> str:
    """
    A number without an exponent, to so many digits.

    >>> plain_number(0.1 + 0.2), plain_number(1.5e7), plain_number(1e-7), plain_number(8.0)
    ('0.3', '15000000', '0.0000001', '8')
    """
    text = format(Decimal(f"{value:.{digits}g}"), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def whole_minutes(seconds: float) -> int:
    """A time as whole minutes, rounded up."""
    return rounded_up(seconds / 60)


def duration(seconds: float) -> str:
    """
    A time as Prometheus writes it, in whole minutes, rounded up.

    >>> duration(300.0), duration(365.1)
    ('5m', '7m')
    """
    return f"{whole_minutes(seconds)}m"


def filled(template: str, *, selector: str = "", trainer: str = "", window: str = "", factor: str = "") -> str:
    """
    An expression with its places filled: $S and $T for selectors, $W for a window, $F for a factor.

    What is filled in is not looked at.

    >>> filled('rate(a{$S}[$W])', selector='job="$W"', window="5m"), filled("b{$T}")
    ('rate(a{job="$W"}[5m])', 'b')
    """
    said = {"S": selector, "T": trainer, "W": window, "F": factor}
    return _PLACE.sub(lambda found: said[found[1]], template if trainer else template.replace("{$T}", ""))


def templated(text: str) -> str:
    """Text of others in an annotation, so that a template leaves it as it is; one line."""
    return " ".join(text.split()).replace("{{", _OPENING)


def rendered(template: str, value: float, labels: Mapping[str, str]) -> str:
    """
    An annotation as Prometheus shows it.

    >>> rendered("{{ $labels.instance }} waits {{ $value | humanizePercentage }}", 0.335, {"instance": "a:1"})
    'a:1 waits 33.5%'
    """

    def shown(found: re.Match[str]) -> str:
        if found["label"]:
            return labels.get(found["label"], "")
        if found["form"]:
            return f"{value * 100:.4g}%" if found["form"] == "humanizePercentage" else humanized(value)
        return format(value, found["digits"]) if found["digits"] else "{{"

    return _TEMPLATED.sub(shown, template)


def humanized(value: float) -> str:
    """
    A number as the template function `humanize` writes it.

    >>> humanized(1402.5), humanized(0.25), humanized(0), humanized(2.0)
    ('1.403k', '250m', '0', '2')
    """
    if value == 0:
        return "0"
    large = abs(value) >= 1
    chosen = ""
    for prefix in "kMGTPEZY" if large else "munpfazy":
        if abs(value) < _THOUSAND if large else abs(value) >= 1:
            break
        chosen, value = prefix, value / _THOUSAND if large else value * _THOUSAND
    return f"{value:.4g}{chosen}"


def yaml_below(head: Iterable[str], content: Mapping[str, Any]) -> str:
    """A document below a comment; a line of it that would break out is cut at its end."""
    lines = [f"# {' '.join(line.splitlines())}".rstrip() for line in head]
    return "\n".join([*lines, dumped(content, 78, lambda text: "|" if "\n" in text else None)])
