"""TensorBoard's event files: scalars of all frameworks that write them, one file or a folder."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from rlsize.readers.logs.event_files import frames, scalars
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.rows import CUT, UNREADABLE, Row
from rlsize.readers.logs.wire import FrameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.readers.logs.event_files import Event
    from rlsize.readers.logs.rows import Skips
    from rlsize.readers.logs.source import Blocks

_STEP = 2**53


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
