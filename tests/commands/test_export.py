"""`rlsize export`: the log's own figures as counters, which only grow, whatever becomes of log and process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.run_counts import Counters, counts
from rlsize.estimates.run_summary import run_summary
from rlsize.facts import published
from rlsize.facts.run_log import RunLog, RunMode, StepRecord
from rlsize.readers.logs.reading import read_log
from rlsize.readers.metrics.pages import page_counters

LOG = Path(__file__).parents[2] / "examples" / "operate" / "starving.jsonl"
POOLS = ("--rollout-gpus", "16", "--trainer-gpus", "16", "--gpu-hour", "2")
PATIENCE = 60.0


def values(page: str) -> dict[str, float]:
    """The series of a page."""
    lines = [line.split() for line in page.splitlines() if not line.startswith(("#", published.LOOP))]
    return {name: float(value) for name, value in lines}


def test_a_replayed_log_gives_its_own_figures(rlsize: Any, tmp_path: Path) -> None:
    """Ratios of the counters are what `observe` says of the same steps, and each series says type and meaning."""
    settled = run_summary(read_log(str(LOG)), 0).steps  # `observe` sets outliers apart
    lines = {json.loads(line)["step"]: line for line in LOG.read_text(encoding="utf-8").splitlines()}
    log = tmp_path / "run.jsonl"
    log.write_text("".join(f"{lines[step]}\n" for step in settled), encoding="utf-8")
    ran = rlsize("export", str(log), "--once", *POOLS)
    assert ran.code == 0
    found = values(ran.stdout)
    seen = rlsize("observe", str(LOG), "--skip", "0", "--json").results
    ratios = {
        "trainer_idle_fraction": (published.WAIT, published.STEP),
        "sync_pause_fraction": (published.SYNC, published.STEP),
        "trained_tokens_per_second": (published.TRAINED, published.STEP),
        "consumption_tokens_per_second": (published.TRAINED, published.BUSY),
    }
    told = {key: found[part] / found[whole] for key, (part, whole) in ratios.items()}
    assert told == pytest.approx({key: seen[key] for key in ratios})
    assert found[published.STEPS] == len(settled)
    assert found[published.COST] == pytest.approx(32 * 2 * found[published.STEP] / 3600)
    assert found[published.GENERATED] == found[published.TRAINED] + found[published.DROPPED]
    assert ran.stdout.count("# TYPE") == ran.stdout.count("# HELP") == len(found) + 1
    assert f'{published.LOOP}{{mode="async"}} 1\n' in ran.stdout


def test_shared_gpus_cost_once() -> None:
    """Where both sides take turns on the same GPUs, a step costs those of the trainer."""
    rows = (StepRecord(step=1, step_seconds=3600.0),)
    priced = {"rollout_gpus": 8.0, "rollout_gpu_hour": 3.0, "trainer_gpus": 8.0, "trainer_gpu_hour": 2.0}
    modes: dict[RunMode, float] = {"colocated": 16.0, "async": 40.0}
    for mode, dollars in modes.items():
        log = RunLog(source="a", framework="verl", form="console", mode=mode, steps=rows)
        assert counts(log, priced)[published.COST] == dollars
        assert published.COST not in counts(log, {"trainer_gpus": 8.0})


ROWS = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30)


def sums(rows: list[float]) -> dict[str, float]:
    """What a log of these steps has counted."""
    return {published.STEPS: float(len(rows)), published.TRAINED: sum(rows)}


@given(ROWS, st.lists(st.integers(1, 30), max_size=5))
def test_counts_are_the_logs_however_often_it_is_read(rows: list[float], looks: list[int]) -> None:
    """Looks at a growing log, and a restart after each of them, lose nothing and count nothing twice."""
    counters = Counters({}, {}, "", {})
    for end in sorted({min(look, len(rows)) for look in looks} | {len(rows)}):
        counters.read("first", sums(rows[:end]))
        counters = Counters(counters.totals, counters.sums, counters.first, {})
    assert counters.totals == pytest.approx(sums(rows))


@given(ROWS, ROWS)
def test_an_old_log_is_no_rate_and_a_new_one_is(before: list[float], after: list[float]) -> None:
    """Another log found at the start adds nothing; one that begins anew while we look adds all of it."""
    running = Counters({}, {}, "", {})
    first = dict(running.read("a", sums(before)))
    restarted = Counters(running.totals, running.sums, running.first, {})
    assert restarted.read("b", sums(after)) == pytest.approx(first)
    assert running.read("b", sums(after)) == pytest.approx({key: first[key] + sums(after)[key] for key in first})


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "is no file that can be read again"),
        (("none.jsonl",), "no such file"),
        ((str(LOG), "--state", "/dev/zero"), "is a device"),
        ((str(LOG), "--listen", "9477"), "is no address"),
        ((str(LOG), "--listen", "localhost:99999"), "is no address"),
        ((str(LOG), "--state", "bad.json"), "holds no counts"),
        ((str(LOG), "--state", "nan.json"), "no counts"),
        ((str(LOG), "--state", "none/state.json"), "does not exist"),
        ((str(LOG), "--every", "0"), "--every"),
        ((str(LOG), "--insecure"), "is for engines"),
        (("http://127.0.0.1:9", "--format", "verl"), "is for a training log"),
        ((str(LOG), "other.jsonl"), "2 training logs"),
    ],
)
def test_what_is_wrong_is_told(
    args: tuple[str, ...], told: str, rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, and nothing is served."""
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("[1]", encoding="utf-8")
    Path("nan.json").write_text('{"first": "", "totals": {"a": NaN}, "sums": {}}', encoding="utf-8")
    ran = rlsize("export", *args)
    assert (ran.code, ran.stdout) == (2, "")
    assert told in ran.stderr


@contextmanager
def exporting(log: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running exporter and its address."""
    argv = [sys.executable, "-m", "rlsize", "export", str(log), "--listen", "127.0.0.1:0", "--every", "0.5", *args]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, cwd=log.parent) as process:
        try:
            assert process.stderr is not None
            yield process, next(line for line in process.stderr if line.startswith("serving ")).split()[-1]
        finally:
            process.kill()


def until(url: str, steps: float) -> dict[str, float]:
    """The page once it has so many steps."""
    end, pause = time.monotonic() + PATIENCE, threading.Event()
    while (found := values(_got(url))).get(published.STEPS) != steps:
        assert time.monotonic() < end, found
        pause.wait(0.05)
    return found


def _got(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 (a server that the test started)
        return str(answer.read().decode())


@pytest.mark.long
def test_it_follows_a_log(tmp_path: Path) -> None:
    """New rows are counted, and the next exporter goes on from the counts, log or no log."""
    lines = LOG.read_text(encoding="utf-8").splitlines(keepends=True)
    log, state = tmp_path / "run.jsonl", tmp_path / "state.json"
    log.write_text("".join(lines[:20]), encoding="utf-8")
    with exporting(log, "--state", str(state)) as (process, url):
        until(url, 20)
        with log.open("a", encoding="utf-8") as file:
            file.writelines(lines[20:30])
        found = until(url, 30)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            _got(url.replace("metrics", "other"))
        process.terminate()
        assert process.wait(PATIENCE) == 130
    assert json.loads(state.read_text(encoding="utf-8"))["totals"] == {
        name: value for name, value in found.items() if name.endswith("_total")
    }
    log.write_text("".join(lines[40:50]), encoding="utf-8")
    with exporting(log, "--state", str(state)) as (_, url):
        assert until(url, 30)[published.TRAINED] == found[published.TRAINED]
        with log.open("a", encoding="utf-8") as file:
            file.writelines(lines[50:55])
        until(url, 35)


def test_engines_count_from_when_they_are_looked_at() -> None:
    """What one had made before is past; one that starts again counts on; a restart of ours loses nothing."""
    counters = Counters({}, {}, "", {})
    made = []
    for engines in ({"a": 100.0}, {"a": 150.0, "b": 1000.0}, {"b": 1010.0}, {"a": 30.0, "b": 1010.0}):
        counters.generated(engines)
        made.append(counters.totals[published.GENERATED])
        counters = Counters(counters.totals, counters.sums, counters.first, counters.engines)
    assert made == [0, 50, 60, 90]


PAGE = (Path(__file__).parents[1] / "readers" / "data" / "vllm_metrics" / "ray_two_workers.prom").read_bytes()


class _Engine(BaseHTTPRequestHandler):
    """A page of two engines."""

    def do_GET(self) -> None:
        """Show it."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_it_stands_beside_engines(rlsize: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine's counters under one name, which are read back as they were; an engine that is not there is named."""
    monkeypatch.setenv("RLSIZE_BEARER_TOKEN", "")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Engine) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        ran = rlsize("export", str(LOG), url, "http://127.0.0.1:9", "--once")
        server.shutdown()
    assert ran.code == 0
    assert "127.0.0.1:9" in ran.stderr
    first, second = page_counters(ran.stdout.encode(), "x")
    before = page_counters(PAGE, "y")
    fields = ("generation_tokens", "requests_running", "finished_requests", "model")
    for one, other in zip((first, second), before, strict=True):
        assert [getattr(one, name) for name in fields] == [getattr(other, name) for name in fields]
    series = values("\n".join(line for line in ran.stdout.splitlines() if "{" not in line))
    assert series[published.GENERATED] == 0  # who made them before is past
    assert series[published.STEPS] == 60
    dead = rlsize("export", "http://127.0.0.1:9", "--once")
    assert (dead.code, dead.stdout) == (3, "")
