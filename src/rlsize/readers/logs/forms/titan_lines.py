"""
torchtitan's console: `step: 10  loss:  8.01  memory: 47.12GiB(33.81%)  tps: 9,214  mfu: 51.80%`.

Source: torchtitan/components/metrics.py, commit b5bcd76c. A line is whole when its line break is there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import COMMA, CUT, UNREADABLE, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import in_full
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks

_HEAD = re.compile(r"\bstep: {1,20}(\d{1,15}) {1,20}(?=loss:)")
_NUMBER = r"(-?\d[\d,]*+(?:\.\d*+)?(?:e[-+]?\d++)?|nan|inf)"
_PAIRS = re.compile(rf"(?:[A-Za-z_]++: ++{_NUMBER}(?:[A-Za-z]++)?(?:\({_NUMBER}%\))?%?\s*+)++")
_PAIR = re.compile(rf"\b([A-Za-z_]++): ++{_NUMBER}")
_NAMES = {"tps": "throughput(tps)", "mfu": "mfu(%)"}


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The metrics lines of a log."""
    cursor = Cursor(blocks, skips)
    while (line := cursor.find(b"step:")) is not None:
        head = _HEAD.search(line.text)
        if head is None:
            continue
        text = line.text[head.end() :]
        if not line.ended:
            skips.add(CUT, line.place)
        elif _PAIRS.fullmatch(text) is None:
            skips.add(UNREADABLE, line.place)
        else:
            pairs = _PAIR.findall(text)
            try:
                yield Row(float(head[1]), {_NAMES.get(name, name): in_full(value) for name, value in pairs}, line.place)
            except ValueError:
                skips.add(COMMA, line.place)


FORM = Form(name="console lines", rows=rows, marks=(b"step:",), framework="torchtitan")
