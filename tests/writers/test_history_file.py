"""A history as JSON Lines: whole, bounded, and the same that was noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlsize.errors import InputError
from rlsize.simulator.ledger import Event, Recorder, Span
from rlsize.writers.history_file import HistoryFile

SPAN = Span("instance 3", "batch 12", 0.1, 0.30000000000000004, 12)
EVENT = Event(0.5, "step", {"version": 1, "backlog": 96})


def entry(line: dict[str, Any]) -> Span | Event:
    """What a line says."""
    if line.pop("kind") == "span":
        return Span(
            line["track"], line["name"], line["start_seconds"], line["end_seconds"], line.get("batch_samples", 0)
        )
    if "backlog_samples" in line:
        line["backlog"] = line.pop("backlog_samples")
    return Event(line.pop("time_seconds"), line.pop("name"), line)


def broken_off(file: HistoryFile, by: BaseException) -> None:
    """Write a line and a part of another."""
    with file:
        file.take(SPAN)
        file._file.write(b'{"kind": "sp')
        raise by


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_every_line_is_what_was_noted(mode: str, simulated: Any, tmp_path: Path) -> None:
    """Spans and events of a simulation come back one by one, to the last digit."""
    noted = simulated(4, mode).entries
    target = tmp_path / "history.jsonl"
    with HistoryFile(target) as file:
        assert all(file.take(one) for one in noted)
    lines = target.read_text(encoding="utf-8").splitlines()
    assert [entry(json.loads(line)) for line in lines] == noted
    assert (file.lines, file.size, file.full) == (len(noted), target.stat().st_size, False)


def test_keys_end_in_their_unit(tmp_path: Path) -> None:
    """A reader of a line need not look units up; numbers that JSON cannot say are null."""
    target = tmp_path / "history.jsonl"
    with HistoryFile(target) as file:
        file.take(SPAN)
        file.take(EVENT)
        file.take(Event(1.0, "step", {"backlog": float("nan")}))
    first, second, third = map(json.loads, target.read_text(encoding="utf-8").splitlines())
    assert first == {
        "kind": "span", "track": "instance 3", "name": "batch 12", "start_seconds": 0.1,
        "end_seconds": 0.30000000000000004, "batch_samples": 12,
    }  # fmt: skip
    assert second == {"kind": "event", "name": "step", "time_seconds": 0.5, "version": 1, "backlog_samples": 96}
    assert third["backlog_samples"] is None


def test_a_file_that_would_become_too_large_says_so(tmp_path: Path) -> None:
    """It holds whole lines up to its bound, tells the recorder to stop, and tells its owner."""
    target = tmp_path / "history.jsonl"
    asked: list[bool] = []
    with HistoryFile(target, most_bytes=1000) as file:

        def take(one: Span | Event) -> bool:
            asked.append(file.take(one))
            return asked[-1]

        recorder = Recorder(take)
        for step in range(100):
            recorder.phase("trainer", "update", step, step + 1)
        assert not file.take(EVENT)
    assert file.full
    assert asked == [True] * file.lines + [False]
    assert target.stat().st_size == file.size <= 1000
    assert [json.loads(line)["start_seconds"] for line in target.read_text().splitlines()] == list(range(file.lines))


def test_an_exception_leaves_what_was_there(tmp_path: Path) -> None:
    """Whole or not at all: a fault in between changes nothing, and leaves nothing behind."""
    target = tmp_path / "history.jsonl"
    target.write_text("before")
    file = HistoryFile(target, force=True)
    with pytest.raises(ZeroDivisionError):
        broken_off(file, ZeroDivisionError())
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_an_interruption_keeps_the_lines_that_are_complete(tmp_path: Path) -> None:
    """Ctrl-C, even within a line, leaves a file of which every line is JSON."""
    target = tmp_path / "history.jsonl"
    file = HistoryFile(target)
    with pytest.raises(KeyboardInterrupt):
        broken_off(file, KeyboardInterrupt())
    assert [entry(json.loads(line)) for line in target.read_text().splitlines()] == [SPAN]
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_is_overwritten_without_being_told_to(tmp_path: Path) -> None:
    """A file that exists is refused before anything is simulated, and so is a folder that does not."""
    target = tmp_path / "history.jsonl"
    target.write_text("before")
    with pytest.raises(InputError, match="exists already"):
        HistoryFile(target)
    with pytest.raises(InputError, match="does not exist"):
        HistoryFile(tmp_path / "none" / "history.jsonl")
    with HistoryFile(target, force=True) as file:
        file.take(EVENT)
        assert target.read_text() == "before"
    assert len(target.read_text().splitlines()) == 1
