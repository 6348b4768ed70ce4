"""
A table with the names of its columns in the first line: exports of W&B, TensorBoard, pandas and spreadsheets.

W&B writes the name of the run before each column, and its smallest and largest value behind it.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import COMMA, CUT, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.names import is_time
from rlsize.readers.logs.numbers import decimal, doubtful
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks

_RUN = " - "
_RANGE = ("__MIN", "__MAX")


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The lines behind the first one."""
    cursor = Cursor(blocks, skips)
    first = cursor.line()
    apart = _separator(first.text) if first else ""
    keys = _keys(first.text, apart) if first else []
    while apart and (line := cursor.line()) is not None:
        if not line.ended:
            skips.add(CUT, line.place)
            return
        values: dict[str, float] = {}
        for key, cell in zip(keys, _cells(line.text, apart), strict=False):
            value = decimal(cell)
            if doubtful(cell) and (value is None or is_time(key)):
                skips.add(COMMA, line.place)
            elif value is not None and key:
                values.setdefault(key, value)
        yield Row(None, values, line.place)


def _separator(text: str) -> str:
    return max("\t;,", key=text.count) if any(mark in text for mark in "\t;,") else ""


def _cells(text: str, apart: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=apart), [])
    except csv.Error:
        return []


def _keys(text: str, apart: str) -> list[str]:
    """The names of the columns; empty for those of a range."""
    names = [name.strip() for name in _cells(text, apart)]
    return ["" if name.endswith(_RANGE) else name.rsplit(_RUN, 1)[-1] for name in names]


def head_keys(head: bytes) -> list[str]:
    """The columns of a table: as many in its second line, and no number among their names."""
    lines = head.decode("utf-8-sig", "replace").splitlines()[:2]
    apart = _separator(lines[0]) if len(lines) > 1 else ""
    keys = _keys(lines[0], apart) if apart else []
    cells = _cells(lines[1], apart) if keys else []
    numbers = sum(cell.strip()[:1].isdigit() for cell in cells)
    fits = (
        len(cells) == len(keys)
        and 2 * numbers >= len(keys)
        and all(decimal(key) is None and not {"=", ":"} & {*key} for key in keys)
    )
    return keys if fits else []


FORM = Form(name="CSV", rows=rows, marks=(b",", b";", b"\t"), whole_file=True, loose=True, head_keys=head_keys)
