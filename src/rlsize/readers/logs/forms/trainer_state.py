"""
The `trainer_state.json` of transformers' Trainer, which TRL writes beside every checkpoint: `log_history` has the rows.

Source: transformers/trainer_callback.py (TrainerState). Each entry proves by its brace that it is whole, so that a file
that breaks off still gives the entries before.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.cursor import LONGEST
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.objects import json_object, numbers_of
from rlsize.readers.logs.rows import CUT, UNREADABLE, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.rows import Skips
    from rlsize.readers.logs.source import Blocks

_MARK = '"log_history"'
_GAP = re.compile(r"[\s,]*")


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The entries of `log_history`."""
    text = _Text(blocks)
    if not text.pass_over(_MARK):
        return
    text.pass_over("[")
    count = 0
    while text.at_object():
        count += 1
        place = f"entry {count:,} of log_history"
        found = text.entry()
        if found is None:
            skips.add(CUT if text.exhausted else UNREADABLE, place)
            return
        yield Row(None, numbers_of(found), place)
    if text.exhausted:
        skips.add(CUT, f"entry {count + 1:,} of log_history")


class _Text:
    """Text that is read from left to right, of which little is kept."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._kept = ""
        self._at = 0
        self.exhausted = False

    def pass_over(self, mark: str) -> bool:
        """Go behind a mark; False if there is none."""
        while (hit := self._kept.find(mark, self._at)) < 0:
            self._at = max(self._at, len(self._kept) - len(mark))
            if not self._more():
                return False
        self._at = hit + len(mark)
        return True

    def at_object(self) -> bool:
        """Whether an object follows, before which the text then stands."""
        while True:
            gap = _GAP.match(self._kept, self._at)
            self._at = gap.end() if gap else self._at
            if self._at < len(self._kept):
                return self._kept[self._at] == "{"
            if not self._more():
                return False

    def entry(self) -> dict[str, object] | None:
        """The object that follows; None if it is not whole."""
        while True:
            try:
                found, self._at = json_object(self._kept, self._at)
            except ValueError:
                if len(self._kept) - self._at > LONGEST or not self._more():
                    return None
                continue
            return found

    def _more(self) -> bool:
        block = next(self._blocks, None)
        if block is None:
            self.exhausted = True
            return False
        self._kept = self._kept[self._at :] + self._decoder.decode(block)
        self._at = 0
        return True


FORM = Form(name="trainer_state.json", rows=rows, marks=(b'"log_history"',), framework="trl", whole_file=True)
