"""
One JSON object a line: verl's file logger (`{"step": 3, "data": {...}}`), prime-rl's file monitor, PipelineRL, RLinf.

A line is whole when its last brace is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import CUT, UNREADABLE, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import json_object, numbers_of
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks

_MARK = '{"'


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The objects of a stream, those in a logger's lines (ROLL) included."""
    cursor = Cursor(blocks, skips)
    while (line := cursor.find(b'{"')) is not None:
        try:
            found, _ = json_object(line.text, line.text.index(_MARK))
        except ValueError:
            skips.add(UNREADABLE if line.ended else CUT, line.place)
            continue
        yield _row(found, line.place)


def _row(found: dict[str, object], place: str) -> Row:
    inner = found.get("data")
    if not isinstance(inner, dict):
        return Row(None, numbers_of(found), place)
    step = numbers_of({"step": found.get("step")}).get("step")
    return Row(step, numbers_of(inner), place)


FORM = Form(name="JSON lines", rows=rows, marks=(b'{"',))
