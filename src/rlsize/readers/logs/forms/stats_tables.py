"""
AReaL's console: `Train step 12/1160 done.`, then a table with several pairs of key and value a line.

Source: areal/utils/stats_logger.py and the fancy_grid of tabulate, v1.0.4. A table is whole when its lower edge is
there.
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

_STEP = re.compile(r"Train step (\d{1,15})/\d+ done")
_OF = re.compile(r"Stats \((\d+)/(\d+)\)")
_UPPER, _LOWER, _BAR = "╒", "╘", "│"
_MARKS = (b"Train step ", b"Stats (", _UPPER.encode())
_MOST_LINES = 10_000


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The tables of a log, those of one step together."""
    cursor = Cursor(blocks, skips)
    step: float | None = None
    values: dict[str, float] = {}
    last = True
    damaged = False
    while (line := cursor.find(*_MARKS)) is not None:
        said, of = _STEP.search(line.text), _OF.search(line.text)
        if said is not None:
            step, values, damaged = float(said[1]), {}, False
        elif of is not None:
            last = of[1] == of[2]
        elif _UPPER in line.text:
            why = _read(values, cursor)
            if why:
                skips.add(why, line.place)
            damaged = damaged or bool(why)
            if last and not damaged:
                yield Row(step, values, line.place)
            if last:
                step, values, damaged = None, {}, False


def _read(values: dict[str, float], cursor: Cursor) -> str:
    """Add what a table says, whose upper edge is passed; why it cannot be used, if so."""
    for _ in range(_MOST_LINES):
        line = cursor.line()
        if line is None:
            return CUT
        if _LOWER in line.text:
            return ""
        if _UPPER in line.text or _STEP.search(line.text):
            return UNREADABLE
        if _BAR in line.text and not _add(values, line):
            return UNREADABLE
    return UNREADABLE


def _add(values: dict[str, float], line: Line) -> bool:
    """Add the pairs of a line; False if it does not consist of pairs."""
    cells = [cell.strip() for cell in line.text.split(_BAR)[1:-1]]
    if not cells or len(cells) % 2 or not line.ended:
        return False
    for key, text in zip(cells[::2], cells[1::2], strict=True):
        if not key and not text:
            continue
        try:
            value = number(text)
        except ValueError:
            return False
        if value is not None:
            values.setdefault(key, value)
    return True


FORM = Form(name="stats tables", rows=rows, marks=(_UPPER.encode(),), framework="areal")
