"""A measuring process: heard line by line, ended with all that it started, and its last words told."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from rlsize.errors import UnfinishedError
from rlsize.measure.child import Child, ChildDiedError, staged

PATIENCE = 60.0  # seconds; no test waits for it
SAY = "import json, os, sys; out = open(os.environ['RLSIZE_EVENTS'], 'a', buffering=1); "


def child(folder: Path, code: str) -> Child:
    """A Python that runs some code."""
    return Child([sys.executable, "-c", SAY + code], folder, "worker")


def test_events_arrive_whole_and_in_order(tmp_path: Path) -> None:
    """Lines are JSON objects; anything else is passed over; the end is None."""
    code = "[out.write(line + '\\n') for line in ('{\"event\": \"a\"}', 'noise', '[1]', '{\"event\": \"b\"}')]"
    with child(tmp_path, code) as process:
        assert [process.hear(PATIENCE), process.hear(PATIENCE)] == [{"event": "a"}, {"event": "b"}]
        assert process.hear(PATIENCE) is None


def test_what_is_told_arrives_on_its_standard_input(tmp_path: Path) -> None:
    """One JSON object per line."""
    code = "out.write(json.dumps({'event': json.loads(sys.stdin.readline())['do']}) + '\\n')"
    with child(tmp_path, code) as process:
        process.tell({"do": "load"})
        assert process.hear(PATIENCE) == {"event": "load"}


@pytest.mark.parametrize(
    ("code", "words", "memory"),
    [
        ("raise ValueError('the heads do not fit')", "ValueError: the heads do not fit", False),
        ("print('torch.OutOfMemoryError: CUDA out of memory. Tried'); sys.exit(1)", "OutOfMemoryError: CUDA", True),
        ("print('ERROR x:9] ValueError: real'); raise RuntimeError('See root cause')", "ValueError: real", False),
        ("os.kill(os.getpid(), 9)", "signal 9", True),
        ("sys.exit(4)", "exit code 4", False),
    ],
)  # fmt: skip
def test_a_death_is_told_in_its_own_words(tmp_path: Path, code: str, words: str, memory: bool) -> None:
    """The cause, not the line that points at it; and whether memory was it."""
    with child(tmp_path, code) as process, pytest.raises(ChildDiedError) as died:
        process.hear(PATIENCE)
    assert words in died.value.faults[0].what
    assert died.value.memory is memory


def test_silence_has_an_end(tmp_path: Path) -> None:
    """A process that says nothing for too long counts as dead."""
    with child(tmp_path, "import time; time.sleep(60)") as process, pytest.raises(ChildDiedError, match="said nothing"):
        process.hear(0.2)


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    """Grandchildren too, and those that ignore polite requests."""
    code = (
        "import subprocess; sleeper = subprocess.Popen([sys.executable, '-c', 'import signal, time; "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)']); "
        "out.write(json.dumps({'event': 'pid', 'pid': sleeper.pid}) + '\\n'); sleeper.wait()"
    )
    with child(tmp_path, code) as process:
        event = process.hear(PATIENCE)
        assert event is not None
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if not running(event["pid"]):
            return
        time.sleep(0.05)
    pytest.fail("the grandchild lives on")


def running(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    """No traceback, but its name."""
    with pytest.raises(UnfinishedError, match="no-such-python"):
        Child(["/no-such-python"], tmp_path, "worker")


def test_workers_are_all_that_a_foreign_python_sees_of_rlsize(tmp_path: Path) -> None:
    """The staged package holds the workers and nothing else of rlsize."""
    environment = staged(tmp_path)
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(tmp_path)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")}
    outside = {name for name in found if not name.startswith("rlsize/measure/workers/")}
    assert outside == {"rlsize/__init__.py", "rlsize/measure/__init__.py"}
    assert all((tmp_path / name).read_text(encoding="utf-8") == "" for name in outside)
    assert "rlsize/measure/workers/rollout_offline.py" in found
