"""TensorBoard's event files: scalars of all frameworks that write them, one file or a folder."""

from __future__ import annotations

import heapq
import struct
from functools import cache
from typing import TYPE_CHECKING

from rlsize.frozen import dataclass
from rlsize.readers.logs.figures import CUT, UNREADABLE, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.wire import FIXED32, FIXED64, LARGEST, FrameError, Stream, fields, varint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks

_STEP = 2**53

_HEADER = 12
_CRC = 4
# Numbers of fields: of an event, of a value of its summary, of a tensor (event.proto, summary.proto, tensor.proto).
_WALL_TIME, _AT_STEP, _SUMMARY = 1, 2, 5
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8
_CONTENT = 4
_SCALARS = {1: ("<f", 5), 2: ("<d", 6), 3: ("", 7), 9: ("", 10)}  # dtype: its layout in bytes, its field of values


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The events of a file that have scalars; a step has several."""
    return (_row(event, place) for event, place in _events(blocks, skips, ""))


def folder_rows(files: Sequence[tuple[str, Blocks]], skips: Skips) -> Iterator[Row]:
    """The events of several files, in the order of the wall clock."""
    found = [_events(blocks, skips, f"{name}, ") for name, blocks in files]
    return (_row(event, place) for event, place in heapq.merge(*found, key=lambda entry: entry[0].seconds))


def _row(event: Event, place: str) -> Row:
    return Row(float(event.step), event.values, place)


def _events(blocks: Blocks, skips: Skips, name: str) -> Iterator[tuple[Event, str]]:
    """The events of a file, and where each stands."""
    try:
        for start, data in frames(blocks):
            place = f"{name}byte {start:,}"
            if data is None:
                skips.add(UNREADABLE, place)
                continue
            try:
                event = scalars(data)
            except ValueError:
                skips.add(UNREADABLE, place)
                continue
            if event is not None and event.step < _STEP:
                yield event, place
    except FrameError as error:
        skips.add(CUT, f"{name}byte {error.args[0]:,}")


FORM = Form(name="TensorBoard", rows=rows, marks=(b"brain.Event:",), whole_file=True, scattered=True)


@dataclass(frozen=True, slots=True)
class Event:
    """
    Scalars that were logged together.

    Args:
        seconds: When, by the wall clock. [s]
        step: The step.
        values: The scalars, by tag.
    """

    seconds: float
    step: int
    values: dict[str, float]


@cache
def _table() -> tuple[int, ...]:
    """CRC-32C of every byte."""
    table = []
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = (rest >> 1) ^ (0x82F63B78 if rest & 1 else 0)
        table.append(rest)
    return tuple(table)


def masked_crc(data: bytes) -> int:
    """
    The checksum of a frame.

    >>> hex(masked_crc(b"123456789"))
    '0xc78ab0e5'
    """
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frames(blocks: Iterator[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """
    The frames of a file.

    Yields:
        Where each begins, and its data; None for one that is damaged; empty for one too large for scalars.

    Raises:
        FrameError: The file ends in a frame, or a length is damaged; all frames before have been given.
    """
    stream = Stream(blocks)
    while True:
        start = stream.position
        header = stream.take(_HEADER)
        if not header:
            return
        if len(header) < _HEADER or masked_crc(header[:8]) != int.from_bytes(header[8:], "little"):
            raise FrameError(start)
        length = int.from_bytes(header[:8], "little")
        if length > LARGEST:
            if not stream.skip(length + _CRC):
                raise FrameError(start)
            yield start, b""
            continue
        frame = stream.take(length + _CRC)
        if len(frame) < length + _CRC:
            raise FrameError(start)
        data = frame[:length]
        yield start, data if masked_crc(data) == int.from_bytes(frame[length:], "little") else None


def scalars(data: bytes) -> Event | None:
    """
    The scalars of a frame; None if it has none.

    Raises:
        ValueError: It is no event.
    """
    seconds, step, values = 0.0, 0, {}
    for number, kind, value in fields(data):
        if number == _WALL_TIME and kind == FIXED64:
            seconds = struct.unpack("<d", value.to_bytes(8, "little"))[0] if isinstance(value, int) else 0.0
        elif number == _AT_STEP and isinstance(value, int):
            step = value
        elif number == _SUMMARY and isinstance(value, bytes):
            values = dict(_summary(value))
    return Event(seconds, step, values) if values else None


def _summary(data: bytes) -> Iterator[tuple[str, float]]:
    """The scalars of a summary, with their tags."""
    for number, _, entry in fields(data):
        if number != 1 or not isinstance(entry, bytes):
            continue
        tag, found = "", None
        for inner, kind, value in fields(entry):
            if inner == _TAG and isinstance(value, bytes):
                tag = value.decode("utf-8", "replace")
            elif inner == _SIMPLE_VALUE and kind == FIXED32 and isinstance(value, int):
                found = struct.unpack("<f", value.to_bytes(4, "little"))[0]
            elif inner == _TENSOR and isinstance(value, bytes):
                found = _scalar_tensor(value)
        if tag and found is not None:
            yield tag, found


def _scalar_tensor(data: bytes) -> float | None:
    """The only element of a tensor; None if it has several, or is no number."""
    found = list(fields(data))
    kind = next((value for number, _, value in found if number == 1 and isinstance(value, int)), 0)
    layout, own = _SCALARS.get(kind, ("", 0))
    for number, _, value in found:
        if number == _CONTENT and isinstance(value, bytes) and layout and len(value) == struct.calcsize(layout):
            return float(struct.unpack(layout, value)[0])
        if number == own:
            return _element(value, layout)
    return None


def _element(value: int | bytes, layout: str) -> float | None:
    """The one value of a repeated field, packed or not."""
    if layout:
        size = struct.calcsize(layout)
        raw = value.to_bytes(size, "little") if isinstance(value, int) else value
        return float(struct.unpack(layout, raw)[0]) if len(raw) == size else None
    if isinstance(value, bytes):
        value = varint(value, 0)[0] if value else 0
    return float(value - 2**64 if value >= 2**63 else value)
