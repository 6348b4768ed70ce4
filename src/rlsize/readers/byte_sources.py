"""Bytes of a file or of stdin, compressed or not, of bounded size."""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.readers.yaml_documents import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN = "-"
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
    if content.startswith(GZIP):
        return _joined(_gunzipped(content, name, most), name, most)
    if content.startswith(ZSTD):
        return _joined(_unzstd(content, name), name, most)
    return content


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


def _joined(pieces: Iterator[bytes], name: str, most: int) -> bytes:
    found: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise _too_large(name, most)
        found.append(piece)
    return b"".join(found)


def _too_large(name: str, most: int) -> InputError:
    return InputError(Fault(f"is larger than {most // 2**20} MiB uncompressed", name, "is it the file you meant?"))


def _gunzipped(content: bytes, name: str, most: int) -> Iterator[bytes]:
    """The members of a gzip file one after the other; padding with zeros is left out."""
    while content.startswith(GZIP):
        member = zlib.decompressobj(GZIP_WINDOW)
        try:
            yield member.decompress(content, most + 1)
        except zlib.error as error:
            raise InputError(Fault(f"is damaged gzip: {error}", name, _AGAIN)) from None
        if not member.eof:
            if member.unconsumed_tail:
                raise _too_large(name, most)
            raise InputError(Fault("was cut: its gzip data ends early", name, _AGAIN))
        content = member.unused_data
    if content.strip(b"\0"):
        raise InputError(Fault("has something else behind its gzip data", name, _AGAIN))


def _unzstd(content: bytes, name: str) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError:
        raise zstd_lacking(name) from None
    frame = None
    for start in range(0, len(content), _ZSTD_PIECE):
        piece = content[start : start + _ZSTD_PIECE]
        while piece:
            frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj() if frame is None else frame
            try:
                yield frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise InputError(Fault(f"is damaged zstd: {error}", name, _AGAIN)) from None
            piece = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise InputError(Fault("was cut: its zstd data ends early", name, _AGAIN))
