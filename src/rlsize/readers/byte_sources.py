"""Bytes of a file or of stdin, compressed or not, of bounded size."""

from __future__ import annotations

import json
import sys
import zlib
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

from rlsize.errors import Fault, InputError
from rlsize.readers.yaml_documents import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN = "-"
BLOCK = 2**20
"""Bytes that are read at once."""
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_AGAIN = "copy or compress it again"
GZIP_WINDOW = 31  # a deflate stream within a gzip header and check sum
_ZSTD_WINDOW = 2**27  # what `zstd --long` makes; larger windows are refused by zstd itself too
_ZSTD_PIECE = 2**10  # bytes fed at once: at zstd's best ratio they become 32 MiB


def zstd_lacking(name: str) -> InputError:
    """That a file cannot be unpacked without a library which few need."""
    todo = "pip install 'rlsize[zstd]', or uncompress the file first"
    return InputError(Fault("is packed by zstd, which needs the package zstandard", name, todo))


def json_of(text: str | bytes) -> object:
    """What a text says in JSON; None where it is none."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def shown_source(path: str) -> str:
    """What to call a source in messages."""
    return "stdin" if path == STDIN else path


def opened_bytes(path: str, most: int) -> bytes:
    """
    All bytes of a file or of stdin (`-`), uncompressed where it is gzip or zstd, as its first bytes say.

    Args:
        path: The file, or `-`.
        most: How many bytes it may have, before and after it is uncompressed. [B]

    Raises:
        InputError: It cannot be read, is larger, or its compressed form is cut or damaged.
    """
    name = shown_source(path)
    content = _stdin(most) if path == STDIN else read_bytes(path, most)
    if not content.startswith((GZIP, ZSTD)):
        return content
    found = bytearray()
    try:
        for piece in unpacked(BytesIO(content), name):
            found += piece
            if len(found) > most:
                raise _too_large(name, most)
    except EOFError:
        raise InputError(Fault("was cut: its packed data end early", name, _AGAIN)) from None
    except unpacking_errors() as error:
        raise InputError(Fault(f"is damaged: {error}", name, _AGAIN)) from None
    return bytes(found)


def _stdin(most: int) -> bytes:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError(Fault("is closed", shown_source(STDIN), "name a file"))
    try:
        content: bytes = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise InputError(Fault(f"cannot be read: {error}", shown_source(STDIN), "name a file")) from None
    if len(content) > most:
        raise _too_large(shown_source(STDIN), most)
    return content


def _too_large(name: str, most: int) -> InputError:
    return InputError(Fault(f"is larger than {most // 2**20} MiB uncompressed", name, "is it the file you meant?"))


def unpacked(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """
    The bytes of a stream in blocks, uncompressed where it is gzip or zstd, as its first bytes say.

    Args:
        stream: The bytes.
        name: What to call it in messages.

    Raises:
        InputError: What unpacks them is not installed.
        EOFError: They end early; or one of the other `unpacking_errors` where they are damaged.
    """
    first = stream.read(len(ZSTD))
    whole = _Rejoined(first, stream)
    if first.startswith(GZIP):
        yield from _gunzipped(whole)
    elif first.startswith(ZSTD):
        yield from _unzstd(whole, name)
    else:
        while block := whole.read(BLOCK):
            yield block


def unpacking_errors() -> tuple[type[Exception], ...]:
    """What damaged packed data raise; the library for .zst only where it is at work."""
    zstandard = sys.modules.get("zstandard")
    more = (zstandard.ZstdError,) if zstandard else ()
    return (EOFError, zlib.error, OSError, *more)


class _Rejoined:
    """A stream whose first bytes were read to see what it is."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._rest = rest

    def read(self, size: int) -> bytes:
        """The next bytes, so many at most."""
        found, self._first = self._first[:size], self._first[size:]
        return found or self._rest.read(size)


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


def _unzstd(stream: _Rejoined, name: str) -> Iterator[bytes]:
    """
    What zstd packed, frame by frame; the library's own reader takes a frame that is cut for a whole one.

    Raises:
        InputError: The library is not installed.
        EOFError: It ends early.
    """
    try:
        import zstandard
    except ImportError:
        raise zstd_lacking(name) from None
    frame, block = None, b""
    while piece := stream.read(_ZSTD_PIECE):
        while piece:
            frame = frame or zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
            block += frame.decompress(piece)
            piece = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
        if len(block) >= BLOCK:
            yield block
            block = b""
    yield block
    if frame is not None:
        raise EOFError
