"""The update of an engine, with a made-up worker: what is kept at an early end, and what is doubted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rlsize.facts.measured import EngineUpdate, Scatter
from rlsize.measure.child import ChildDiedError
from rlsize.measure.weight_sync import EngineUpdateJob, measure_engine_update, update_doubts

READY = {"event": "ready", "interface": "calls", "versions": {"vllm": "1"}, "gpus": []}


def a_repeat(seconds: float) -> dict[str, object]:
    """The event of one update of a gigabyte, with its pause a tenth longer than the call."""
    return {"event": "update", "seconds": seconds, "pause_seconds": 1.1 * seconds, "bytes": 1e9, "loaded": True}


def python(folder: Path, events: Sequence[Mapping[str, object]], end: str) -> str:
    """A made-up Python: it tells events, and ends as a shell command says."""
    script = folder / "python"
    told = "\n".join(f"echo '{json.dumps(event)}' >> \"$RLSIZE_EVENTS\"" for event in events)
    script.write_text(f"#!/bin/sh\n{told}\n{end}\n")
    script.chmod(0o755)
    return str(script)


def work(folder: Path) -> Path:
    """An empty folder."""
    made = folder / "work"
    made.mkdir()
    return made


def test_the_median_of_the_repeats_is_told(tmp_path: Path) -> None:
    """Of calls and of pauses; bytes over the call's seconds."""
    told = python(tmp_path, [READY, *(a_repeat(seconds) for seconds in (1.0, 2.0, 2.0, 2.0, 9.0))], "exit 0")
    found = measure_engine_update(EngineUpdateJob(model="m"), told, work(tmp_path), seconds=1.0, say=lambda *_: None)
    assert (found.measured.seconds, found.measured.bytes_per_second) == (2.0, 0.5e9)
    assert found.measured.pause_seconds == pytest.approx(2.2)
    assert found.partial == ""


def test_ctrl_c_keeps_the_updates_until_then(tmp_path: Path) -> None:
    """Two updates were measured, and the end is named."""

    def say(_what: str, share: float) -> None:
        if share > 0.3:
            raise KeyboardInterrupt

    told = python(tmp_path, [READY, *[a_repeat(1.0)] * 3], "sleep 60")
    found = measure_engine_update(EngineUpdateJob(model="m"), told, work(tmp_path), seconds=1.0, say=say)
    assert found.partial == "interrupted"
    assert found.measured.scatter is not None
    assert found.measured.scatter.parts == 2
    assert any("2 repeats" in doubt for doubt in found.doubts)


def test_a_death_keeps_them_too(tmp_path: Path) -> None:
    """With what the worker said last as the reason."""
    last = {"event": "failed", "text": "EngineDeadError: gone"}
    told = python(tmp_path, [READY, a_repeat(1.0), last], "exit 1")
    found = measure_engine_update(EngineUpdateJob(model="m"), told, work(tmp_path), seconds=1.0, say=lambda *_: None)
    assert found.partial == "EngineDeadError: gone"


@pytest.mark.parametrize("kind", ["failed", "out_of_memory"])
def test_without_one_update_it_is_an_error(kind: str, tmp_path: Path) -> None:
    """The worker's words, and whether it was memory."""
    told = python(tmp_path, [READY, {"event": kind, "text": "what it was"}], "exit 70")
    with pytest.raises(ChildDiedError, match="what it was") as caught:
        measure_engine_update(EngineUpdateJob(model="m"), told, work(tmp_path), seconds=1.0, say=lambda *_: None)
    assert caught.value.memory == (kind == "out_of_memory")


def update(cv: float = 0.01, parts: int = 9) -> EngineUpdate:
    """An update that was measured."""
    spread = Scatter(parts=parts, cv=cv, p10=0.9, p50=1.0, p90=1.1)
    return EngineUpdate(interface="calls", seconds=1.0, pause_seconds=1.0, scatter=spread, bytes_per_second=1e9)


def test_a_steady_update_is_not_doubted() -> None:
    """Nothing to say."""
    assert not list(update_doubts(update(), 0))


@pytest.mark.parametrize(
    ("found", "unproven", "said"),
    [
        (update(cv=0.3), 0, "scatter by 30 %"),
        (update(parts=2), 0, "2 repeats"),
        (update(), 4, "after 4 updates the engine did not answer"),
    ],
)
def test_each_doubt_says_the_value(found: EngineUpdate, unproven: int, said: str) -> None:
    """One sentence each."""
    [doubt] = update_doubts(found, unproven)
    assert said in doubt
