"""
W&B's own file of a run, `run-ID.wandb`: records of protobuf in the blocks of LevelDB's log, of which history, summary
and configuration are read.

Source: wandb/proto/wandb_internal.proto of wandb 0.31.0 (records), doc/log_format.md of LevelDB (blocks). W&B's are the
first seven bytes, and check sums, which are zlib's CRC-32 of kind and data.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import CUT, UNREADABLE, Row, Skips
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import numbers_of
from rlsize.readers.logs.source import opened
from rlsize.readers.logs.wire import LARGEST, FrameError, Stream, fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.source import Blocks

MAGIC = b":W&B\xe1\xbe\x00"
_BLOCK = 32 * 2**10
_HEADER = 7
_WHOLE, _FIRST, _LAST = 1, 2, 4
_KINDS = range(_WHOLE, _LAST + 1)
_HISTORY, _SUMMARY, _CONFIG, _RUN = 2, 3, 5, 17  # records, by their field
_RUN_CONFIG, _NAMES, _VALUE = 4, (1, 2), 16
_OWN = "_wandb"


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The history of a run; where it has none, its summary."""
    summary: dict[str, object] = {}
    any_row = False
    for number, place, said in _records(blocks, skips):
        if number == _SUMMARY:
            summary |= said
        elif number == _HISTORY and (values := numbers_of(said)):
            any_row = True
            yield Row(None, values, place)
    if summary and not any_row:
        yield Row(None, numbers_of(summary), "the summary")


def config_text(path: str | Path) -> str | None:
    """
    The configuration that a run was given, as JSON; None for what is no file of W&B, or has none.

    Raises:
        InputError: It cannot be read.
    """
    if not Path(path).is_file():
        return None
    found: dict[str, object] = {}
    with opened(str(path), Skips()) as source:
        if not source.head.startswith(MAGIC):
            return None
        for number, _, said in _records(source.blocks(), Skips()):
            found |= said if number == _CONFIG else {}
    found.pop(_OWN, None)
    return json.dumps(found, indent=1) if found else None


def _records(blocks: Iterator[bytes], skips: Skips) -> Iterator[tuple[int, str, dict[str, object]]]:
    """The records that can be read: their kind, where they begin, and their values by key."""
    try:
        for start, data in _whole(blocks):
            place = f"byte {start:,}"
            try:
                said = None if data is None else list(_said(data))
            except ValueError:
                said = None
            if said is None:
                skips.add(UNREADABLE, place)
            yield from ((number, place, items) for number, items in said or ())
    except FrameError as error:
        skips.add(CUT, f"byte {error.args[0]:,}")


def _said(data: bytes) -> Iterator[tuple[int, dict[str, object]]]:
    """
    What a record says, by its kind; a run says the configuration that it begins with.

    Raises:
        ValueError: It is no message.
    """
    for number, _, message in fields(data):
        if number == _RUN and isinstance(message, bytes):
            inner = (value for name, _, value in fields(message) if name == _RUN_CONFIG)
            yield from ((_CONFIG, _items(value)) for value in inner if isinstance(value, bytes))
        elif number in {_HISTORY, _SUMMARY, _CONFIG} and isinstance(message, bytes):
            yield number, _items(message)


def _whole(blocks: Iterator[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """
    The records of a file, put together of their pieces.

    Yields:
        Where each begins, and its data; None for one that is damaged; empty for one too large for figures.

    Raises:
        FrameError: The file ends in a record.
    """
    stream = Stream(blocks)
    if stream.take(_HEADER) != MAGIC:
        return
    first, kept = -1, b""
    for start, kind, piece in _pieces(stream):
        if piece is None:
            yield start, None
            first = -1
            continue
        if kind in {_WHOLE, _FIRST}:
            first, kept = start, b""
        if first >= 0:
            kept = kept + piece if len(kept) <= LARGEST else kept
            if kind in {_WHOLE, _LAST}:
                yield first, kept if len(kept) <= LARGEST else b""
                first = -1


def _pieces(stream: Stream) -> Iterator[tuple[int, int, bytes | None]]:
    """Pieces of records: where each begins, whether it is a whole one, first, middle or last, and its data."""
    while True:
        start = stream.position
        left = _BLOCK - start % _BLOCK
        header = stream.take(min(_HEADER, left))
        if not header:
            return
        if left < _HEADER:
            continue
        length, kind = int.from_bytes(header[4:6], "little"), header[-1]
        piece = stream.take(min(length, left - _HEADER))
        if len(header) < _HEADER or len(piece) < min(length, left - _HEADER):
            raise FrameError(start)
        sound = kind in _KINDS and len(piece) == length
        if sound and zlib.crc32(bytes((kind,)) + piece) == int.from_bytes(header[:4], "little"):
            yield start, kind, piece
            continue
        if any(header):  # not the rest of a file that was laid out and not written
            yield start, kind, None
        stream.skip((_BLOCK - stream.position % _BLOCK) % _BLOCK)


def _items(message: bytes) -> dict[str, object]:
    """
    The values of a record, by key; what is no JSON is left out.

    Raises:
        ValueError: It is no message.
    """
    found: dict[str, object] = {}
    for number, _, item in fields(message):
        if number != 1 or not isinstance(item, bytes):
            continue
        parts = [(name, text.decode("utf-8", "replace")) for name, _, text in fields(item) if isinstance(text, bytes)]
        try:
            value = json.loads(next((text for name, text in parts if name == _VALUE), ""))
        except (ValueError, RecursionError):
            continue
        found[".".join(text for name, text in parts if name in _NAMES and text)] = value
    return found


FORM = Form(name="W&B file", rows=rows, marks=(MAGIC,), whole_file=True)
