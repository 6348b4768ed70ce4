"""The history of a simulation as JSON Lines, written as it happens, and whole or not at all."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from rlsize.simulator.history import Span
from rlsize.writers.files import FileBeside

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from rlsize.simulator.history import Event

MOST_BYTES = 1_000_000_000
_KEYS = {"backlog": "backlog_samples"}  # numbers of events whose names do not end in their unit


class HistoryFile:
    """
    A file of spans and events, one JSON object per line; for a `with` statement, whose end puts it in its place.

    After an interruption (Ctrl-C) it holds the lines that were complete, after any other exception nothing is written.

    Args:
        path: Where.
        force: Whether a file that exists may be replaced.
        most_bytes: How large it may get.

    Raises:
        InputError: It cannot be written there, or exists and may not be replaced; later, the disk refused.
    """

    def __init__(self, path: str | Path, *, force: bool = False, most_bytes: int = MOST_BYTES) -> None:
        self.full = False
        """Whether something was left out because the file would have become too large."""
        self.lines = self.size = 0
        self._most = most_bytes
        self._file = FileBeside(path, force)

    def take(self, entry: Span | Event) -> bool:
        """
        Write a line.

        Returns:
            Whether there is room for more: what a `Recorder` asks for.
        """
        if self.full:
            return False
        line = (json.dumps(line_of(entry), ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")
        if self.size + len(line) > self._most:
            self.full = True
            return False
        self._file.write(line)
        self.size += len(line)
        self.lines += 1
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None or issubclass(kind, KeyboardInterrupt):
                self._file.put_in_place(self.size)  # an interruption may have come within a line
        finally:
            self._file.give_up()


def line_of(entry: Span | Event) -> dict[str, Any]:
    """A span or an event as plain data; keys end in their unit, and what is not finite is null."""
    if isinstance(entry, Span):
        found: dict[str, Any] = {"kind": "span", "track": entry.track, "name": entry.name}
        found |= {"start_seconds": _finite(entry.start), "end_seconds": _finite(entry.end)}
        return found | ({"batch_samples": entry.batch} if entry.batch else {})
    numbers = {_KEYS.get(name, name): _finite(number) for name, number in entry.numbers.items()}
    return {"kind": "event", "name": entry.name, "time_seconds": _finite(entry.time)} | numbers


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
