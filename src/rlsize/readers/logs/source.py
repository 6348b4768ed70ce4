"""Where a log comes from: a file or standard input, packed or not, in blocks; and a cursor over its lines."""

from __future__ import annotations

import codecs
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rlsize.errors import Fault, InputError
from rlsize.readers.byte_sources import STDIN, shown_source, unpacked, unpacking_errors
from rlsize.readers.logs.numbers import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlsize.readers.logs.figures import Skips

HEAD = 2**20
"""Bytes at the start by which a log is recognised."""
_DAMAGED = "the file cannot be unpacked or read any further"

LONGEST = 4 * 2**20
"""Bytes of a line that is still read."""
_TOO_LONG = "a line of more than 4 MiB"


class Blocks:
    """
    Bytes that are read once, from left to right.

    Args:
        blocks: The bytes.
        line: The number of the line that they begin with.
    """

    def __init__(self, blocks: Iterable[bytes], line: int = 1) -> None:
        self._blocks = iter(blocks)
        self.line = line

    def __iter__(self) -> Blocks:
        return self

    def __next__(self) -> bytes:
        return next(self._blocks)


@dataclass(slots=True)
class Source:
    """
    The bytes of a log, unpacked, to be read once.

    Args:
        name: File, or what else they come from.
        head: The first of them, up to 1 MiB.
        rest: What follows the head, in blocks.
    """

    name: str
    head: bytes
    rest: Iterator[bytes]

    def blocks(self) -> Blocks:
        """All bytes, the head first."""
        return Blocks(chain((self.head,), self.rest))


@contextmanager
def opened(path: str, skips: Skips, tell: Callable[[float], None] | None = None) -> Iterator[Source]:
    """
    A log, open while it is read.

    Args:
        path: A file; `-` is standard input.
        skips: Hears of packed data that end early.
        tell: Hears the share of the file that is read.

    Raises:
        InputError: It is missing, a directory, or cannot be read.
    """
    name = shown_source(path)
    with _file(path, name) as file:
        blocks = _blocks(file, _size(file) if tell else 0, skips, tell, name)
        yield Source(name, _head(blocks), blocks)


@contextmanager
def _file(path: str, name: str) -> Iterator[BinaryIO]:
    try:
        file = (_kept(sys.stdin.buffer) if path == STDIN else Path(path)).open("rb")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(Fault(f"cannot be read: {why}", name, "check the path and its permissions")) from None
    with file:
        yield file


@lru_cache(maxsize=1)
def _kept(stream: BinaryIO) -> Path:
    """A stream as a file until the program ends, as a log is read more than once."""
    import atexit
    import shutil
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(prefix="rlsize-", delete=False) as copy:
        kept = Path(copy.name)
        atexit.register(kept.unlink, missing_ok=True)
        shutil.copyfileobj(stream, copy)
    return kept


def _size(file: BinaryIO) -> int:
    """Bytes of a file on disk; 0 for what has no size."""
    import os

    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _blocks(
    file: BinaryIO, size: int, skips: Skips, tell: Callable[[float], None] | None, name: str = "the log"
) -> Iterator[bytes]:
    """The unpacked bytes of a file, telling after each block how far the packed ones are read."""
    read = 0
    try:
        for block in _in_utf8(unpacked(file, name)):
            read += len(block)
            if tell and size:
                tell(min(1.0, file.tell() / size))
            yield block
    except unpacking_errors():
        skips.add(_DAMAGED, f"byte {read:,}, unpacked")


def _in_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Text as UTF-8, also where it is UTF-16, as consoles of Windows write it; told by its first two bytes."""
    first = next(blocks, b"")
    if not first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from chain((first,), blocks)
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in chain((first,), blocks):
        yield decoder.decode(block).encode("utf-8", "replace")


def unpacked_head(head: bytes) -> bytes:
    """The start of a log, of bytes that may be packed."""
    from io import BytesIO

    from rlsize.readers.logs.figures import Skips

    return _head(_blocks(BytesIO(head), 0, Skips(), None))


def _head(blocks: Iterator[bytes]) -> bytes:
    found = b""
    while len(found) < HEAD and (block := next(blocks, b"")):
        found += block
    return found


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
