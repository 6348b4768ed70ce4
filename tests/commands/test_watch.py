"""`rlsize watch`: the verdict of `diagnose` as a log grows, what is ahead, who is told, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.commands.engine_fleet import Engine, Fleet

LOG = Path(__file__).parents[2] / "examples" / "operate" / "starving.jsonl"
SECRET = "T00/B00/secret"  # noqa: S105 (a made-up path of a webhook)
PATIENCE = 60.0
Row = dict[str, Any]


def rows() -> list[Row]:
    """The rows of a log whose trainer starves."""
    return [json.loads(line) for line in LOG.read_text(encoding="utf-8").splitlines()]


def written(path: Path, found: list[Row]) -> Path:
    """The rows as a log."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in found), encoding="utf-8")
    return path


def test_it_says_what_diagnose_says(rlsize: Any) -> None:
    """The verdict and the sentence are those of `diagnose`, and --fail-on ends it with 1."""
    args = (str(LOG), "--instances", "8", "--per-instance", "4000")
    ran = rlsize("watch", *args, "--fail-on", "starving")
    said = rlsize("diagnose", *args, "--json").document
    assert ran.code == 1
    first, second = ran.stdout.splitlines()
    assert first.startswith(f"step 60: {said['results']['verdict']}; step 31.49 s, trainer idle 35.2 %")
    assert second.strip() == said["headline"]
    once = rlsize("watch", *args, "--once")
    assert (once.code, once.stdout) == (0, ran.stdout)


@pytest.mark.parametrize(
    ("key", "start", "growth", "args", "told"),
    [
        ("response_length/max", 4000, 50, ("--kv-cache-tokens", "9000"), "the longest sample no longer fits"),
        ("training/off_policy/trajectory_staleness_worst/max", 1, 0.05, ("--max-staleness", "6"), "as stale as"),
        ("perf/max_memory_reserved_gb", 60, 0.2, ("--gpu", "h100-sxm"), "the trainer's GPUs are full"),
    ],
)
def test_what_is_ahead_is_told(
    key: str, start: float, growth: float, args: tuple[str, ...], told: str, rlsize: Any, tmp_path: Path
) -> None:
    """In so many steps a limit is reached, which was said or follows from what was said; without it nothing is told."""
    found = rows()
    for index, row in enumerate(found):
        row["data"][key] = start + growth * index + (index % 3) * growth
    log = str(written(tmp_path / "run.jsonl", found))
    ran = rlsize("watch", log, *args, "--fail-on", "forecast")
    assert ran.code == 1
    (line,) = (line for line in ran.stdout.splitlines() if told in line)
    assert line.strip().startswith("in ")
    if key == "response_length/max":  # 9,000 less prompts of 400; now at 7,000 and 50 a step
        assert 25 < float(line.split()[1]) < 40


class Receiver(HTTPServer):
    """Keeps what is posted to it, and answers with a status."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.posted: list[tuple[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Keep it."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append((self.path, json.loads(content)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def receiving(status: int = 200) -> Iterator[Receiver]:
    """One that runs."""
    server = Receiver(status)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_webhook_hears_and_its_address_is_never_shown(
    rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file or the environment; one that refuses, or is not there, is told of without it."""
    address = tmp_path / "hook"
    monkeypatch.delenv("RLSIZE_WEBHOOK", raising=False)
    args = ("watch", str(LOG), "--fail-on", "starving")
    for status, warning in ((200, ""), (404, "warning: the webhook answers 404")):
        with receiving(status) as server:
            url = f"http://127.0.0.1:{server.server_port}/{SECRET}"
            address.write_text(f"{url}\n", encoding="utf-8")
            ran = rlsize(*args, "--webhook", str(address))
            monkeypatch.setenv("RLSIZE_WEBHOOK", url)
            again = rlsize(*args)
            monkeypatch.delenv("RLSIZE_WEBHOOK")
        assert [path for path, _ in server.posted] == [f"/{SECRET}"] * 2
        assert "The trainer starves" in server.posted[0][1]["text"]
        for each in (ran, again):
            assert each.code == 1
            assert warning in each.stderr
            assert SECRET not in each.stdout + each.stderr
    dead = rlsize(*args, "--webhook", str(address))
    assert dead.code == 1
    assert "the webhook cannot be reached" in dead.stderr
    assert SECRET not in dead.stderr


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "nothing to follow is named"),
        (("",), "an empty name"),
        (("127.0.0.1:9", "--map", "step_seconds=t"), "--map: is for a training log"),
        ((str(LOG), "train.yaml", "more.yaml"), "more.yaml: is a third file"),
        (("127.0.0.1:9", "none.jsonl"), "none.jsonl: no such file"),
        (("127.0.0.1:9", "--selector", "job='x'"), "--selector"),
        (("127.0.0.1:9", str(LOG), "--prometheus", "http://127.0.0.1:9"), "--prometheus"),
        ((str(LOG), "--fail-on", "worse"), "'worse' is unknown"),
        ((str(LOG), "--webhook", "none"), "no such file"),
        ((str(LOG), "--webhook", "/dev/zero"), "is not a regular file"),
        ((str(LOG), "--webhook", "bad"), "holds no address"),
        ((str(LOG), "--gpu", "h999"), "h999"),
        ((str(LOG), "--pages", "a", "b"), "--pages"),
        ((str(LOG), "--prometheus", "http://127.0.0.1:9", "--selector", "job="), "--selector"),
        ((str(LOG), "--max-queue", "-1"), "--max-queue"),
    ],
)
def test_what_is_wrong_is_told(
    args: tuple[str, ...], told: str, rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, before anything is watched, and no secret in it."""
    monkeypatch.chdir(tmp_path)
    Path("bad").write_text(f"ftp://{SECRET}", encoding="utf-8")
    ran = rlsize("watch", *args)
    assert (ran.code, ran.stdout) == (2, "")
    assert told in ran.stderr
    assert SECRET not in ran.stderr


@pytest.mark.long
def test_a_verdict_that_changes_is_told(tmp_path: Path) -> None:
    """A log that begins empty is waited for; a new verdict says what it was."""
    starving = rows()
    log = tmp_path / "run.jsonl"
    log.touch()
    argv = [sys.executable, "-m", "rlsize", "watch", str(log), "--every", "0.5"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert any("is empty" in line for line in process.stderr)
            written(tmp_path / "whole.jsonl", starving[:30]).replace(log)  # at once, so that no look sees half of it
            assert process.stdout.readline().startswith("step 30: starving trainer")
            assert "The trainer starves" in process.stdout.readline()
            with log.open("a", encoding="utf-8") as file:
                for row in starving:
                    row["step"] += 60
                    row["data"] |= {"timing_s/gen": 0.1, "timing_s/step": 21.0, "perf/time_per_step": 21.0}
                    row["data"] |= {"fully_async/trainer/idle_ratio": 0.005, "training/global_step": row["step"]}
                    file.write(f"{json.dumps(row)}\n")
            line = next(line for line in process.stdout if "(was starving trainer)" in line)
            assert line.strip().startswith("Both sides match.")
            assert "; step 31.39 s -> " in line
        finally:
            process.kill()


def test_a_prometheus_that_is_dead_does_not_stop_it(rlsize: Any) -> None:
    """What the log alone says is said, and the server is told of once."""
    ran = rlsize("watch", str(LOG), "--prometheus", "http://127.0.0.1:9", "--fail-on", "starving")
    assert ran.code == 1
    assert ran.stdout.startswith("step 60: starving trainer")
    assert ran.stderr.count("cannot be read") == 1


@pytest.mark.long
def test_engines_alone_are_judged_at_each_look(fleet: Fleet, rlsize: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window moves over their pages: a fleet that was starving is told to match once its window has turned over."""
    fleet.engines = [Engine(waiting=9) for _ in range(8)]

    def sleep(seconds: float) -> None:
        fleet.sleep(seconds)
        for engine in fleet.engines if fleet.now > 1040.0 else ():
            engine.waiting = 0  # as where the trainer is held back

    monkeypatch.setattr(time, "sleep", sleep)
    args = (*fleet.urls(), "--consume", "39321.6", "--window", "20", "--fail-on", "limbo")
    ran = rlsize("watch", *args)
    assert ran.code == 1
    looks = [line for line in ran.stdout.splitlines() if line.startswith("after ")]
    assert looks[0].partition(": ")[2] == "starving trainer; an engine 4,000 tok/s, running 64, waiting 9"
    (told,) = (line for line in ran.stdout.splitlines() if "(was starving trainer)" in line)
    assert "waiting 9 -> " in told
    assert 8 <= len(looks) <= 12
    once = rlsize("watch", *args, "--once")
    said = rlsize("diagnose", *args[:-2], "--json").document
    assert once.stdout.splitlines()[1].strip() == said["headline"]


def test_engines_beside_a_log_count(fleet: Fleet, rlsize: Any) -> None:
    """The verdict is that of `diagnose` of both; where no engine answers, once is told why, and it goes on."""
    fleet.engines = [Engine()]
    args = (*fleet.urls(), str(LOG), "--window", "20")
    ran = rlsize("watch", *args, "--once")
    assert ran.stdout.splitlines()[1].strip() == rlsize("diagnose", *args, "--json").document["headline"]
    assert ran.stdout.startswith("step 60: starving trainer; step 31.49 s")
    assert "an engine 4,000 tok/s, running 64, waiting 5" in ran.stdout
    fleet.engines[0].status = 503
    assert rlsize("watch", *args, "--once").code == 3
    alone = rlsize("watch", *args, "--fail-on", "starving")
    assert (alone.code, alone.stderr.count("503")) == (1, 1)


@pytest.mark.long
def test_a_terminal_has_one_screen() -> None:
    """Its top is the step with its verdict, and what was told stands below."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "rlsize", "watch", str(LOG), "--fail-on", "starving"]
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(argv, stdout=theirs, stderr=theirs, env=environment) as process:
        assert process.wait(PATIENCE) == 1
    os.close(theirs)
    shown = os.read(ours, 2**16).decode()
    os.close(ours)
    assert "step 60: starving trainer" in shown
    assert shown.count("The trainer starves") >= 2
