"""
The history of a simulation: as JSON Lines, written as it happens, and whole or not at all; as a trace.

Traces are what ui.perfetto.dev and chrome://tracing open.
"""

from __future__ import annotations

import json
import math
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rlsize.simulator.ledger import Span
from rlsize.writers.files import FileBeside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from rlsize.simulator.ledger import Event

MOST_BYTES = 1_000_000_000
_TRAINER, _SYNC, _FLEET = 1, 2, 3  # processes, as the trace has them
_PROCESSES = {_TRAINER: "trainer", _SYNC: "weight sync", _FLEET: "rollout fleet"}
_INSTANCE = "instance "
_DIGITS = 3  # of a microsecond: traces count in nanoseconds inside
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
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


def trace_text(spans: Sequence[Span], events: Sequence[Event]) -> str:
    """
    A history as trace events in JSON.

    Args:
        spans: Phases of the trainer, weight syncs, and runs of instances: slices, and a counter of each batch.
        events: Steps and losses: instants, and a counter of the backlog. What happens to groups is left out.

    Returns:
        One object with `traceEvents`, times in microseconds; what has no finite time is left out.
    """
    spans = [span for span in spans if math.isfinite(span.start) and math.isfinite(span.end)]
    threads = _threads(spans, events)
    timed = [*_slices(spans, threads), *_batches(spans), *_instants(events, threads)]
    timed.sort(key=itemgetter("ts"))
    encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
    lines = ",\n".join(encode(entry) for entry in [*_names(threads), *timed])
    return f'{{"displayTimeUnit": "ms", "traceEvents": [\n{lines}\n]}}\n'


def _threads(spans: Iterable[Span], events: Iterable[Event]) -> dict[str, tuple[int, int]]:
    """Process and thread of each track."""
    tracks = {"trainer": None, **dict.fromkeys(span.track for span in spans)}
    tracks |= {f"{_INSTANCE}{event.numbers['instance']:.0f}": None for event in events if "instance" in event.numbers}
    fleet = sorted((track for track in tracks if track not in {"trainer", "sync"}), key=_number)
    threads = {"trainer": (_TRAINER, 1)} | ({"sync": (_SYNC, 1)} if "sync" in tracks else {})
    return threads | {track: (_FLEET, thread) for thread, track in enumerate(fleet, start=1)}


def _number(track: str) -> tuple[int, str]:
    digits = track.removeprefix(_INSTANCE)
    return (int(digits) if digits.isdecimal() else -1), track


def _names(threads: dict[str, tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for process in dict.fromkeys(process for process, _ in threads.values()):
        yield _meta("process_name", process, 0, name=_PROCESSES[process])
        yield _meta("process_sort_index", process, 0, sort_index=process)
    for track, (process, thread) in threads.items():
        yield _meta("thread_name", process, thread, name=track)
        yield _meta("thread_sort_index", process, thread, sort_index=thread)


def _meta(kind: str, process: int, thread: int, **said: str | int) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": said}


def _slices(spans: Iterable[Span], threads: dict[str, tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for span in spans:
        process, thread = threads[span.track]
        start = _at(span.start)
        entry = {"ph": "X", "name": span.name, "pid": process, "tid": thread, "ts": start}
        entry["dur"] = round(_at(span.end) - start, _DIGITS)  # so that a span ends where the next begins, rounded too
        yield entry | ({"args": {"batch_samples": span.batch}} if span.batch else {})


def _batches(spans: Iterable[Span]) -> Iterator[dict[str, Any]]:
    """The batch of each instance as a counter, which falls to 0 where no run follows."""
    runs: dict[str, list[Span]] = {}
    for span in spans:
        if span.track.startswith(_INSTANCE):
            runs.setdefault(span.track, []).append(span)
    for track, own in runs.items():
        own.sort(key=lambda span: span.start)
        starts = [_at(span.start) for span in own[1:]] + [math.inf]
        shown = -1
        for span, following in zip(own, starts, strict=True):
            if span.batch != shown:
                yield _counter(f"batch of {track}", _FLEET, _at(span.start), span.batch)
            shown = span.batch
            if _at(span.end) < following:
                yield _counter(f"batch of {track}", _FLEET, _at(span.end), 0)
                shown = 0


def _instants(events: Iterable[Event], threads: dict[str, tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for event in events:
        if event.name.startswith("group ") or not math.isfinite(event.time):
            continue
        numbers = {name: number for name, number in event.numbers.items() if math.isfinite(number)}
        track = f"{_INSTANCE}{numbers['instance']:.0f}" if "instance" in numbers else "trainer"
        process, thread = threads[track]
        entry = {"ph": "i", "name": event.name, "pid": process, "tid": thread, "ts": _at(event.time), "s": "t"}
        yield entry | {"args": numbers}
        if event.name == "step" and "backlog" in numbers:
            yield _counter("backlog", _TRAINER, _at(event.time), numbers["backlog"])


def _counter(name: str, process: int, at: float, samples: float) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": process, "ts": at, "args": {"samples": samples}}


def _at(seconds: float) -> float:
    return round(seconds * 1e6, _DIGITS)
