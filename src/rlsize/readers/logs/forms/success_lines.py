"""
prime-rl's console: `10:15:09 SUCCESS Step 41 | 97.21s | Loss 0.0012 | Throughput 38112 tokens/s | MFU 34.1% | ...`.

Source: src/prime_rl/trainer/rl/train.py and src/prime_rl/orchestrator/orchestrator.py, commit 559b4477. Nothing in
the line says that it is whole, so that a line without its break is not used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import CUT, UNREADABLE, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import in_full
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks

_HEAD = re.compile(r"SUCCESS\s+(?:\|\s*)?(?:\S+ - )?Step\s+(\d{1,15})\s*\|")
_HEAD_CUT = re.compile(r"SUCCESS\s++(?:Step\s*+\d*+\s*+)?$")
_NUMBER = r"[-+]?(?:\d[\d,]*+(?:\.\d*+)?(?:e[-+]?\d++)?|nan|inf)"
_NAMED = re.compile(
    rf"([A-Za-z][A-Za-z. _-]{{0,40}}?):? {{1,8}}({_NUMBER})(?:/\d++)? {{0,8}}(?:%|[A-Za-z/]++)?(?: \([^()]*\))?",
    re.IGNORECASE,
)
_TIME = re.compile(r"(?:Time:? +)?(?=\d)(?:(\d+)d)? ?(?:(\d+)h)? ?(?:(\d+)m)? ?(?:(\d+(?:\.\d+)?)s)?")
_UNITS = (86_400.0, 3_600.0, 60.0, 1.0)


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The SUCCESS lines of steps."""
    cursor = Cursor(blocks, skips)
    while (line := cursor.find(b"SUCCESS")) is not None:
        head = _HEAD.search(line.text)
        if not line.ended and (head or _HEAD_CUT.search(line.text)):
            skips.add(CUT, line.place)
        elif head is not None:
            try:
                yield Row(float(head[1]), _values(line.text[head.end() :]), line.place)
            except ValueError:
                skips.add(UNREADABLE, line.place)


def _values(text: str) -> dict[str, float]:
    """
    What the fields between the bars say.

    Raises:
        ValueError: One of them has a number, and neither a name for it nor the form of a duration.
    """
    values: dict[str, float] = {}
    seconds: float | None = None
    for field in map(str.strip, text.split("|")):
        time = _TIME.fullmatch(field)
        named = _NAMED.fullmatch(field)
        if time is not None and seconds is None:
            seconds = sum(float(part) * unit for part, unit in zip(time.groups(), _UNITS, strict=True) if part)
        elif named is not None:
            values[named[1]] = in_full(named[2])
        elif any(character.isdigit() for character in field):
            raise ValueError(field)
    whose = "orchestrator" if "Reward" in values else "trainer"
    if seconds is not None:
        values[f"{whose} step time"] = seconds
    if whose == "orchestrator" and "Throughput" in values:  # of its step, not of the trainer's
        values["orchestrator throughput"] = values.pop("Throughput")
    return values


FORM = Form(name="SUCCESS lines", rows=rows, marks=(b"SUCCESS",), framework="prime-rl")
