"""Where a log comes from: a file or standard input, packed or not, in blocks of bounded size."""

from __future__ import annotations

import codecs
import stat
import sys
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from rlsize.errors import Fault, InputError
from rlsize.readers.byte_sources import GZIP, GZIP_WINDOW, STDIN, ZSTD, shown_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlsize.readers.logs.rows import Skips

BLOCK = 2**20
"""Bytes that are read at once."""
HEAD = 2**20
"""Bytes at the start by which a log is recognised."""
_DAMAGED = "the file cannot be unpacked or read any further"


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
        blocks = _blocks(file, _size(file) if tell else 0, skips, tell)
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


def _blocks(file: BinaryIO, size: int, skips: Skips, tell: Callable[[float], None] | None) -> Iterator[bytes]:
    """The unpacked bytes of a file, telling after each block how far the packed ones are read."""
    read = 0
    try:
        first = file.read(len(ZSTD))
        stream = _Rejoined(first, file)
        for block in _in_utf8(_unpacked(first, stream)):
            read += len(block)
            if tell and size:
                tell(min(1.0, file.tell() / size))
            yield block
    except _unpacking_errors():
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


class _Rejoined:
    """A stream whose first bytes were read to see what it is."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._rest = rest

    def read(self, size: int) -> bytes:
        """The next bytes, so many at most."""
        found, self._first = self._first[:size], self._first[size:]
        return found or self._rest.read(size)


def _unpacked(first: bytes, stream: _Rejoined) -> Iterator[bytes]:
    """The bytes that a stream packs, by its first bytes."""
    if first.startswith(GZIP):
        yield from _gunzipped(stream)
        return
    reader: _Rejoined | BinaryIO = stream
    if first.startswith(ZSTD):
        import zstandard

        reader = zstandard.ZstdDecompressor().stream_reader(cast("BinaryIO", stream), read_across_frames=True)
    while block := reader.read(BLOCK):
        yield block


def _gunzipped(stream: _Rejoined) -> Iterator[bytes]:
    """
    What gzip packed, up to the place where it ends or is damaged; the library's own reader forgets the last block.

    Raises:
        EOFError: It ends early.
    """
    member = zlib.decompressobj(wbits=GZIP_WINDOW)
    packed = stream.read(BLOCK)
    while packed:
        block = member.decompress(packed, BLOCK)
        if block:
            yield block
        packed = member.unconsumed_tail or member.unused_data or stream.read(BLOCK)
        if member.eof and packed:
            if not packed.lstrip(b"\0"):
                return
            member = zlib.decompressobj(wbits=GZIP_WINDOW)
    if not member.eof:
        yield member.flush()
        raise EOFError


def _unpacking_errors() -> tuple[type[Exception], ...]:
    """What damaged packed data raise; the library for .zst only where it is at work."""
    zstandard = sys.modules.get("zstandard")
    more = (zstandard.ZstdError,) if zstandard else ()
    return (EOFError, zlib.error, OSError, *more)


def unpacked_head(head: bytes) -> bytes:
    """The start of a log, of bytes that may be packed."""
    from io import BytesIO

    from rlsize.readers.logs.rows import Skips

    return _head(_blocks(BytesIO(head), 0, Skips(), None))


def _head(blocks: Iterator[bytes]) -> bytes:
    found = b""
    while len(found) < HEAD and (block := next(blocks, b"")):
        found += block
    return found
