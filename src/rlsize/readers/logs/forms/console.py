"""
verl's console: `step:3 - key:value - key:value` on one line.

Source: verl/utils/tracking.py and verl/utils/logger/aggregate_logger.py (LocalLogger), v0.9.0. Nothing in the line says
that it is whole, so that a line without its break is not used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import CUT, HEADLESS, UNREADABLE, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.frameworks import frameworks
from rlsize.readers.logs.layouts import Layouts
from rlsize.readers.logs.numbers import number
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks, Line

_VERL = "verl"
_HEAD = re.compile(r"(?<![A-Za-z_/.])step:(?:np\.int64\()?(\d{1,15})\)? - ")
_HEAD_CUT = re.compile(r"(?<![A-Za-z_/.])step:\d{0,15} ?-? ?$")
_HEADLESS = re.compile(r" - (?:timing_s|perf|response_length|timing_per_token_ms)/[\w/]+:[^ ]* - ")
_GOES_ON = re.compile(rb"[\d.]*\d - |(?!step:)[\w/]*:[^ :]* - ")
_REPEATED = re.compile(r"\[repeated \d+x across cluster\].*$")


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The metrics lines of a stream."""
    cursor = Cursor(blocks, skips)
    layouts = Layouts(frameworks()[_VERL].exact)
    while (line := cursor.find(b"step:")) is not None:
        head = _HEAD.search(line.text)
        if head is None:
            # count what is left of a record that lost its head, or has nothing else
            if not line.ended and _HEAD_CUT.search(line.text):
                skips.add(CUT, line.place)
            elif _HEADLESS.search(line.text):
                skips.add(HEADLESS, line.place)
            continue
        if _GOES_ON.match(cursor.following()):
            skips.add("a narrow terminal broke the line", line.place)
            continue
        row = layouts.row(line.text[head.end() :], float(head[1]), line.place) if line.ended else None
        if row is not None:
            yield row
            continue
        for slow in _slow(line, skips):
            layouts.learn(tuple(slow.values))
            yield slow


def _slow(line: Line, skips: Skips) -> Iterator[Row]:
    """All records on a line, of which only the last one can be whole: the others end without a line break."""
    heads = list(_HEAD.finditer(line.text))
    if len(heads) > 1:
        skips.add(UNREADABLE, line.place, len(heads) - 1)
    if not line.ended:
        skips.add(CUT, line.place)
        return
    text = _REPEATED.sub("", line.text[heads[-1].end() :])
    try:
        values = _pairs(text.split(" - "))
    except ValueError:
        skips.add(UNREADABLE, line.place)
        return
    yield Row(float(heads[-1][1]), {key: value for key, value in values.items() if value is not None}, line.place)


def _pairs(parts: Iterable[str]) -> dict[str, float | None]:
    """
    Keys and values.

    Raises:
        ValueError: One of them is no such pair, or a key stands there twice.
    """
    found: dict[str, float | None] = {}
    for part in parts:
        key, _, value = part.partition(":")
        if not key.strip() or key in found:
            raise ValueError(part)
        found[key] = number(value)
    return found


FORM = Form(name="console", rows=rows, marks=(b"step:",), framework=_VERL)
