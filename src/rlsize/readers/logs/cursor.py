"""
Lines of a stream that nobody reads whole: those with a mark are found by a search over bytes, the rest is passed over.

A carriage return breaks a line as well, because progress bars share their line with what was printed between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.readers.logs.numbers import plain

if TYPE_CHECKING:
    from rlsize.readers.logs.rows import Skips
    from rlsize.readers.logs.source import Blocks

LONGEST = 4 * 2**20
"""Bytes of a line that is still read."""
_TOO_LONG = "a line of more than 4 MiB"


@dataclass(slots=True)
class Line:
    """
    A line of a log; not frozen, for speed.

    Args:
        text: What it says, without colours and line break.
        number: Its number in the file, from 1.
        ended: Whether a line break follows it.
    """

    text: str
    number: int
    ended: bool

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"line {self.number:,}"


class Cursor:
    """
    A place in a stream of text, which only moves on.

    Args:
        blocks: The stream.
        skips: Hears of lines that are too long.
    """

    def __init__(self, blocks: Blocks, skips: Skips) -> None:
        self._blocks = blocks
        self._skips = skips
        self._bytes = b""
        self._at = 0
        self._number = blocks.line
        self._counted = 0
        self._hits: dict[bytes, int] = {}
        self._exhausted = False
        self._inside = False

    def find(self, *marks: bytes) -> Line | None:
        """The next line that holds one of the marks; None at the end of the stream."""
        while True:
            hit = self._hit(marks)
            if hit < 0:
                if not self._more(self._start(len(self._bytes))):
                    return None
                continue
            start = self._start(hit)
            end = self._bytes.find(b"\n", hit)
            if end < 0 and not self._exhausted and len(self._bytes) - start <= LONGEST:
                self._more(start)
                continue
            line = self._cut(start, hit, end)
            if line is not None:
                return line

    def following(self) -> bytes:
        """The first bytes of what comes next, as far as they are read."""
        return self._bytes[self._at : self._at + 200]

    def line(self) -> Line | None:
        """The next line, whatever it holds; None at the end of the stream."""
        while True:
            end = self._bytes.find(b"\n", self._at)
            if end < 0 and not self._exhausted and len(self._bytes) - self._at <= LONGEST:
                self._more(self._at)
                continue
            if self._at >= len(self._bytes):
                return None
            line = self._cut(self._at, self._at, end, bars=False)
            if line is not None:
                return line

    def _hit(self, marks: tuple[bytes, ...]) -> int:
        """Where the nearest mark stands; the places of the others are kept for later."""
        nearest = -1
        for mark in marks:
            hit = self._hits.get(mark, 0)
            if 0 <= hit < self._at or mark not in self._hits:
                hit = self._hits[mark] = self._bytes.find(mark, self._at)
            if hit >= 0 and (nearest < 0 or hit < nearest):
                nearest = hit
        return nearest

    def _start(self, hit: int) -> int:
        """Where the line begins that a mark stands in."""
        start = max(self._at, self._bytes.rfind(b"\n", self._at, hit) + 1)
        return max(start, self._bytes.rfind(b"\r", start, hit) + 1)

    def _cut(self, start: int, hit: int, end: int, *, bars: bool = True) -> Line | None:
        """The line between two places, after which the cursor stands; None if it is too long."""
        ended = end >= 0
        end = end if ended else len(self._bytes)
        bar = self._bytes.find(b"\r", hit, end) if bars else -1
        if bar >= 0:
            ended, end = True, bar
        self._at = end + 1 if ended else end
        self._number += self._bytes.count(b"\n", self._counted, start)
        self._counted = start
        if end - start > LONGEST:
            self._skips.add(_TOO_LONG, f"line {self._number:,}")
            self._inside = not ended
            return None
        text = plain(self._bytes[start:end].decode("utf-8", "replace"))
        if not bars:
            text = text.rstrip("\r")
        return Line(text.removeprefix("\ufeff"), self._number, ended)

    def _more(self, keep: int) -> bool:
        """Read on, keeping what is unread from a place on; False at the end of the stream."""
        block = next(self._blocks, b"")
        self._number += self._bytes.count(b"\n", self._counted, keep)
        kept = self._bytes[keep:]
        self._at = self._counted = 0
        self._hits.clear()
        if not block:
            self._exhausted = True
            self._bytes = kept
            return False
        if len(kept) > LONGEST and not self._inside:
            self._skips.add(_TOO_LONG, f"line {self._number:,}")
            self._inside = True
        self._bytes = self._outside(block) if self._inside else kept + block
        return True

    def _outside(self, block: bytes) -> bytes:
        """What follows a line that is too long."""
        ends = [end for end in (block.find(b"\n"), block.find(b"\r")) if end >= 0]
        if not ends:
            return b""
        self._inside = False
        return block[min(ends) :]
