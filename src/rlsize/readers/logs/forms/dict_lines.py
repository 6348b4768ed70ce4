"""
Python dicts that a logger prints: OpenRLHF's `Global step 3: {...}`, slime's `perf 3: {...}`, TRL's bare `{...}`.

Source: openrlhf/trainer/ppo_trainer.py v0.11.0, slime/observability v0.3.1, transformers' PrinterCallback. A dict is
whole when its brace is there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import CUT, UNREADABLE, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import printed_dict
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks

_HEAD = re.compile(r"(?:\bGlobal step|\bperf) (\d{1,15}): (?=\{)|(?=\{'(?:loss|num_tokens|completions/\w+)':)")
_BARE = re.compile(r"'(?:num_tokens|completions/[a-z_]+)':")
MARKS = (b"lobal step ", b"perf ", b"{'loss':", b"'num_tokens':")


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The dicts of a stream."""
    cursor = Cursor(blocks, skips)
    while (line := cursor.find(*MARKS)) is not None:
        at = 0
        while (head := _head(line.text, at)) is not None:
            step, start = head
            try:
                values = printed_dict(line.text, start)
            except ValueError:
                skips.add(UNREADABLE if line.ended else CUT, line.place)
            else:
                yield Row(step, values, line.place)
            at = start + 1


def _head(text: str, at: int) -> tuple[float | None, int] | None:
    """The step that is said before the next dict, and where the dict begins."""
    head = _HEAD.search(text, at)
    if head is not None:
        return (float(head[1]) if head[1] else None), head.end()
    key = _BARE.search(text, at)
    start = text.rfind("{'", at, key.start()) if key else -1
    return None if start < 0 else (None, start)


FORM = Form(name="dict lines", rows=rows, marks=MARKS)
