"""Binary logs: bytes taken off a stream, and the fields of protobuf messages, without their schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 2**20
"""Bytes of a record that is looked into: a scalar takes less than a hundred, an image or a graph more."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Kinds of fields."""
_MOST_BITS = 70  # that a varint may have


class FrameError(Exception):
    """The records of a file cannot be told apart any more, from a place on."""


class Stream:
    """Bytes taken off blocks from left to right."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._bytes = b""
        self._at = 0
        self.position = 0

    def take(self, count: int) -> bytes:
        """The next bytes, fewer at the end."""
        while len(self._bytes) - self._at < count:
            block = next(self._blocks, b"")
            if not block:
                break
            self._bytes = self._bytes[self._at :] + block
            self._at = 0
        found = self._bytes[self._at : self._at + count]
        self._at += len(found)
        self.position += len(found)
        return found

    def skip(self, count: int) -> bool:
        """Pass over bytes; False if there are fewer."""
        while count > 0:
            passed = len(self.take(min(count, LARGEST)))
            if not passed:
                return False
            count -= passed
        return True


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """
    The fields of a message: number, kind, value.

    Raises:
        ValueError: It is no message.
    """
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == VARINT:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == BYTES else (8 if kind == FIXED64 else 4, at)
            value = data[at : at + size]
            at += size
            if len(value) < size or kind not in {FIXED64, BYTES, FIXED32}:
                raise ValueError("not a message")
            if kind != BYTES:
                value = int.from_bytes(value, "little")
        yield key >> 3, kind, value


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    found = shift = 0
    while at < len(data) and shift < _MOST_BITS:
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 (the bit that says that more bytes follow)
            return found, at
        shift += 7
    raise ValueError("not a number")
