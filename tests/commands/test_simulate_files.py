"""Files of `rlsize simulate`: runs that are kept and gone on with, pictures, traces, histories; and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlsize.commands.simulate import runs as simulations

Run = Callable[..., Any]
LOOP = (
    "simulate", "--mode", "async", "--max-staleness", "1", "--instances", "2", "--per-instance", "4000",
    "--concurrency", "16", "--prompts", "8", "--group", "4", "--response-tokens", "500", "--response-cv", "0.8",
    "--train-seconds", "2", "--seeds", "3", "--steps", "6", "--jobs", "1",
)  # fmt: skip
SWEEP = ("--sweep", "max_staleness=0:2")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of the runs that were made."""
    made: list[int] = []
    whole = simulations.run_job

    def counted(job: simulations.Job, *, compiled: bool) -> simulations.Done:
        made.append(job.seed)
        return whole(job, compiled=compiled)

    monkeypatch.setattr(simulations, "run_job", counted)
    return made


@pytest.mark.parametrize("more", [(), SWEEP])
def test_finished_runs_are_taken_from_the_file(
    rlsize: Run, tmp_path: Path, runs: list[int], more: tuple[str, ...]
) -> None:
    """A second call runs nothing, answers the same, and leaves the file as it is; so does one without it."""
    path = tmp_path / "runs.jsonl"
    first = rlsize(*LOOP, *more, "--runs", str(path), "--json").stdout
    made, kept = len(runs), path.read_bytes()
    assert made == kept.count(b"\n")
    assert rlsize(*LOOP, *more, "--runs", str(path), "--json").stdout == first
    assert len(runs) == made
    assert path.read_bytes() == kept
    assert rlsize(*LOOP, *more, "--json").stdout == first


def test_more_seeds_add_to_the_file(rlsize: Run, tmp_path: Path, runs: list[int]) -> None:
    """Only what is new is run, and another question finds nothing of use there."""
    path = str(tmp_path / "runs.jsonl")
    rlsize(*LOOP, *SWEEP, "--runs", path)
    runs.clear()
    rlsize(*LOOP, *SWEEP, "--seeds", "4", "--runs", path)
    assert runs == [3, 3, 3]
    rlsize(*LOOP, *SWEEP, "--seeds", "1", "--train-seconds", "3", "--runs", path)
    assert runs == [3, 3, 3, 0, 0, 0]


@pytest.mark.parametrize("left", [0.5, 1 / 300])
def test_a_line_that_was_cut_off_is_run_again(rlsize: Run, tmp_path: Path, runs: list[int], left: float) -> None:
    """The last line lost its end; the answer is the same, and the file is whole from there on."""
    path = tmp_path / "runs.jsonl"
    first = rlsize(*LOOP, "--runs", str(path), "--json").stdout
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][: max(3, int(len(lines[-1]) * left))]]), encoding="utf-8")
    runs.clear()
    assert rlsize(*LOOP, "--runs", str(path), "--json").stdout == first
    assert len(runs) == 1
    assert path.read_text(encoding="utf-8").splitlines()[-1] == lines[-1]
    assert rlsize(*LOOP, "--runs", str(path), "--json").stdout == first
    assert len(runs) == 1


@pytest.mark.parametrize(
    "content",
    ["hello\n", '{"key": 3}\n', '[1]\n"x"\n', '{"key": "abc", "outcome": {}}\n', '{"key": "abc"}\n', "{}\n", "7\n"],
)
def test_a_foreign_file_is_refused_and_left_alone(rlsize: Run, tmp_path: Path, runs: list[int], content: str) -> None:
    """Nothing is run, and nothing is added to it."""
    path = tmp_path / "notes.txt"
    path.write_text(content, encoding="utf-8")
    ran = rlsize(*LOOP, "--runs", str(path))
    assert (ran.code, ran.stdout, runs) == (2, "", [])
    assert "line 1: is no finished run" in ran.stderr
    assert path.read_text(encoding="utf-8") == content


@pytest.mark.parametrize(("flag", "name"), [("--runs", "r.jsonl"), ("--trace", "t.json"), ("--history", "h.jsonl"),
                                            ("--plot", "p.png")])  # fmt: skip
def test_files_are_looked_at_before_any_run(rlsize: Run, tmp_path: Path, runs: list[int], flag: str, name: str) -> None:
    """A folder, a missing folder, and (but for runs) a file that exists are refused before work is done."""
    taken = tmp_path / name
    taken.write_text("mine", encoding="utf-8")
    for path in (tmp_path / "missing" / name, taken):
        ran = rlsize(*LOOP, flag, str(path))
        assert (ran.code, ran.stdout, runs) == (2, "", [])
    if flag != "--plot":  # behind --plot, a name without an ending is no file
        assert rlsize(*LOOP, flag, str(tmp_path)).code == 2
    assert taken.read_text(encoding="utf-8") == "mine"


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("more", [(), SWEEP])
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_simulation_can_be_drawn(rlsize: Run, tmp_path: Path, ending: str, more: tuple[str, ...]) -> None:
    """Steps and lanes of one run, or lines over a grid; the answer is the same as without a picture."""
    path = tmp_path / f"loop.{ending}"
    ran = rlsize(*LOOP, *more, "--plot", str(path))
    assert ran.code == 0
    assert path.stat().st_size > 5000
    assert ran.stdout == rlsize(*LOOP, *more).stdout


def test_a_simulation_is_drawn_in_the_terminal(rlsize: Run) -> None:
    """Behind the answer, within 80 columns."""
    ran = rlsize(*LOOP, "--plot")
    assert "Where the time of a step goes" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_a_trace_and_a_history_are_written(rlsize: Run, tmp_path: Path) -> None:
    """The trace has the trainer's updates, the history a line for each event, and the answer stays the same."""
    trace, history = tmp_path / "trace.json", tmp_path / "history.jsonl"
    ran = rlsize(*LOOP, "--trace", str(trace), "--history", str(history), "--json")
    assert ran.stdout == rlsize(*LOOP, "--json").stdout
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    assert sum(event["name"] == "update" for event in events) == 6
    lines = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    assert sum(line["name"] == "step" for line in lines) == 6
    assert f"{len(lines):,} lines" in ran.stderr


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has Ctrl-C come in place of a run, counted from 1, or what is sent to the process instead."""
    whole = simulations.run_job

    def at(number: int, sent: signal.Signals = signal.SIGINT) -> None:
        left = [number]

        def stopped(job: simulations.Job, *, compiled: bool) -> simulations.Done:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), sent)
            return whole(job, compiled=compiled)

        monkeypatch.setattr(simulations, "run_job", stopped)

    return at


@pytest.mark.parametrize(("more", "table"), [((), "measures"), (SWEEP, "grid")])
def test_what_is_finished_at_ctrl_c_is_told_and_kept(
    rlsize: Run, tmp_path: Path, interrupted: Callable[[int], None], more: tuple[str, ...], table: str
) -> None:
    """Exit code 130; the answer is made of two runs, in the form that was asked for, and they are in the file."""
    path = tmp_path / "runs.jsonl"
    interrupted(3)
    ran = rlsize(*LOOP, *more, "--runs", str(path), "--json")
    assert ran.code == 130
    assert ran.document["rows"][table]
    assert any("interrupted: 2 of" in warning for warning in ran.document["warnings"])
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_end_before_anything_is_finished_says_so(
    rlsize: Run, interrupted: Callable[..., None], sent: signal.Signals
) -> None:
    """Exit code 130, and no answer."""
    interrupted(1, sent)
    ran = rlsize(*LOOP)
    assert (ran.code, ran.stdout) == (130, "")
    assert "interrupted: no run was finished" in ran.stderr


def test_ctrl_c_while_a_trace_is_written_leaves_no_half_file(
    rlsize: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs are all there, and are told."""

    def stopped(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("rlsize.writers.history_file.trace_text", stopped)
    ran = rlsize(*LOOP, "--trace", str(tmp_path / "trace.json"), "--history", str(tmp_path / "history.jsonl"))
    assert ran.code == 130
    assert "3 of 3 runs" in ran.stderr
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".", "trace"))]
