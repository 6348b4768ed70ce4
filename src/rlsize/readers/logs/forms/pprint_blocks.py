"""
SkyRL's console: `Step 12:`, then a dict over many lines, as Python's pprint shows it, with numbers as text.

Source: skyrl/train/utils/tracking.py, commit a9564572. The dict is whole when its brace is there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import CUT, UNREADABLE, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import number
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks, Line

_HEAD = re.compile(r"(?:^|\s)Step (\d{1,15}): *$")
_PAIR = re.compile(r"^(?:\([^()]*\) )?\s{0,200}+(\{)?\s{0,200}+'([^']+)': (.+)(,|\})\s*+$")
_LIKE_A_PAIR = re.compile(r"'\w+/[\w/]+':|^(?:\([^()]*\) )?\s{0,200}+\{?\s{0,200}+'\w")
_MOST_LINES = 10_000


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The dicts of a log."""
    cursor = Cursor(blocks, skips)
    line = cursor.find(b"Step ")
    while line is not None:
        head = _HEAD.search(line.text)
        if head is None:
            line = cursor.find(b"Step ")
            continue
        values: dict[str, float] = {}
        why, following = _read(values, cursor)
        if why:
            skips.add(why, line.place)
        else:
            yield Row(float(head[1]), values, line.place)
        line = following or cursor.find(b"Step ")


def _read(values: dict[str, float], cursor: Cursor) -> tuple[str, Line | None]:
    """Fill a dict from the lines that follow; why it cannot be used, if so, and the next head if that is why."""
    damaged = False
    for _ in range(_MOST_LINES):
        line = cursor.line()
        if line is None:
            return CUT, None
        if _HEAD.search(line.text):
            return UNREADABLE, line
        pair = next((found for part in line.text.split("\r") if (found := _PAIR.match(part))), None)
        if pair is None or (pair[1] is None) != bool(values):
            damaged = damaged or bool(_LIKE_A_PAIR.search(line.text))
            continue
        try:
            value = number(pair[3])
        except ValueError:
            damaged = True
            value = None
        if value is not None:
            values[pair[2]] = value
        if pair[4] == "}":
            return UNREADABLE if damaged else "", None
    return UNREADABLE, None


FORM = Form(name="pprint blocks", rows=rows, marks=(b"Step ",), framework="skyrl")
