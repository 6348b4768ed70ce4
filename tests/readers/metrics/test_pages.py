"""Saved pages as readings, the rhythm of a watch, and readings sorted by engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rlsize.errors import Fault, InputError
from rlsize.facts.counters import EngineCounters, Snapshot
from rlsize.readers.metrics.pages import Reading, histories, missed_looks, saved_window, watched

PAGES = Path(__file__).parents[1] / "data" / "vllm_metrics"


@dataclass
class VirtualTime:
    """A clock that only moves when somebody waits, or when reading takes time."""

    now: float = 100.0
    reading_takes: float = 0.0
    looks: list[float] = field(default_factory=list)

    def clock(self) -> float:
        """The time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds > 0
        self.now += seconds

    def read(self) -> list[Reading]:
        """Note when somebody looked."""
        self.looks.append(self.now - 100.0)
        self.now += self.reading_takes
        return []


def looks(window: float, every: float, reading_takes: float = 0.0) -> list[float]:
    """When a watch looks."""
    time = VirtualTime(reading_takes=reading_takes)
    list(watched(time.read, window, every, time.clock, time.sleep))
    return time.looks


def test_a_watch_looks_at_both_ends_and_in_between() -> None:
    """A window of 12 s looked at every 5 s is read at 0, 5, 10 and 12 s."""
    assert looks(12, 5) == [0, 5, 10, 12]


def test_slow_reading_skips_the_looks_it_missed() -> None:
    """Where a round takes 7 s of every 5, the rhythm is kept and the last look still comes."""
    assert looks(20, 5, reading_takes=7) == [0, 10, 20]
    assert looks(10, 5, reading_takes=30) == [0, 30]


def test_saved_pages_are_a_window() -> None:
    """Two saved pages become two snapshots of one engine, as far apart as the caller says."""
    readings = saved_window([(str(PAGES / "engine_first.prom"), str(PAGES / "engine_second.prom"))], 100.0)
    found, unread = histories(readings)
    assert not unread
    assert [snapshot.seconds for snapshot in found["engine_first.prom"]] == [0.0, 100.0]


def test_faults_of_both_pages_are_told_at_once(tmp_path: Path) -> None:
    """Where neither page can be read, both reasons are told."""
    (tmp_path / "empty.prom").write_text("")
    with pytest.raises(InputError) as caught:
        saved_window([(str(tmp_path / "missing.prom"), str(tmp_path / "empty.prom"))], 60.0)
    assert [fault.what for fault in caught.value.faults] == ["no such file", "is empty"]
    with pytest.raises(InputError, match="is a directory"):
        saved_window([(str(tmp_path), str(tmp_path))], 60.0)


def snapshot(rank: str, seconds: float) -> Snapshot:
    """A snapshot of an engine that has done nothing yet."""
    return Snapshot(
        seconds=seconds, counters=EngineCounters(instance="a", engine="vllm", rank=rank, generation_tokens=0.0)
    )


def test_readings_are_sorted_by_engine() -> None:
    """Ranks of one page are named apart; an instance without any snapshot is named with its last fault."""
    readings = [
        Reading("a:1", (snapshot("0", 0.0), snapshot("1", 0.0))),
        Reading("b:1", (snapshot("0", 0.0),)),
        Reading("c:1", fault=Fault("answers 503 instead of a page")),
        Reading("a:1", (snapshot("0", 5.0), snapshot("1", 5.0))),
        Reading("b:1", fault=Fault("gave no whole page within 10 s")),
        Reading("c:1", fault=Fault("answers 404")),
    ]
    found, unread = histories(readings)
    assert {name: len(snapshots) for name, snapshots in found.items()} == {
        "a:1 engine 0": 2,
        "a:1 engine 1": 2,
        "b:1": 1,
    }
    assert unread == {"c:1": "answers 404"}
    assert missed_looks(readings) == ["b:1 could not be read at 1 of 2 moments: it gave no whole page within 10 s"]
