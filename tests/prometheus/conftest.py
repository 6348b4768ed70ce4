"""
Fixtures for tests with a real Prometheus: the programs, and servers on loopback that end with their test.

`make test-prometheus` gets the programs, and says their folder as RLSIZE_PROMETHEUS_BIN; without that these tests are
skipped: they wait for real clocks, and CI runs them by that target.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

FOLDER = os.environ.get("RLSIZE_PROMETHEUS_BIN") or None
PROMETHEUS = shutil.which("prometheus", path=FOLDER) or ""
PROMTOOL = shutil.which("promtool", path=FOLDER) or ""
REASON = "needs prometheus and promtool: run `make test-prometheus`"
START_SECONDS = 120.0  # of patience, on a machine with other work; no test waits for it
WAIT_SECONDS = 120.0
LOOK_SECONDS = 0.05
_LISTENING = re.compile(r'msg="Listening on" (?:component=\S+ )?address=(\S+)')
_READY = "Server is ready to receive web requests"


def pytest_runtest_setup() -> None:
    """Skip what needs Prometheus where there is none, with the way to get one."""
    if not (FOLDER and PROMETHEUS and PROMTOOL):
        pytest.skip(REASON)


@dataclass(frozen=True)
class Server:
    """A running Prometheus."""

    url: str

    def get(self, path: str, **parameters: str) -> Any:
        """The data that its API answers: `get("/api/v1/query", query="up")`."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with urllib.request.urlopen(f"{self.url}{path}{query}", timeout=WAIT_SECONDS) as answer:  # noqa: S310 (a server that the test started)
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result of an instant query."""
        found: list[dict[str, Any]] = self.get("/api/v1/query", query=expression)["result"]
        return found

    def firing(self) -> list[dict[str, Any]]:
        """The alerts that fire."""
        return [alert for alert in self.get("/api/v1/alerts")["alerts"] if alert["state"] == "firing"]

    def wait(self, seen: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
        """What `seen` says as soon as it is not empty; fails where it stays so for longer than `seconds`."""
        pause, end = threading.Event(), time.monotonic() + seconds
        while not (found := seen()):
            assert time.monotonic() < end, f"nothing was seen on {self.url} within {seconds:g} s"
            pause.wait(LOOK_SECONDS)
        return found


class Starter(Protocol):
    """Starts a Prometheus: `prometheus_server({"rollout": ["127.0.0.1:8000"]}, rules=[path])`."""

    def __call__(
        self,
        targets: Mapping[str, Sequence[str]],
        rules: Sequence[Path] = (),
        *,
        path: str = "/metrics",
        interval: str = "200ms",
        history: str = "",
        flags: Sequence[str] = (),
        program: str = PROMETHEUS,
    ) -> Server:
        """
        Start one; it answers at once, but it scrapes for the first time only after 5 s, which no flag changes.

        Args:
            targets: HOST:PORT of the pages to scrape, by job.
            rules: Rule files.
            path: Where the pages lie.
            interval: How often to scrape, and to evaluate rules.
            history: Samples that it has from the start: OpenMetrics text with timestamps, up to its `# EOF`.
            flags: Further flags of the program.
            program: Which Prometheus.
        """
        ...


@pytest.fixture(scope="session")
def promtool() -> str:
    """The path of promtool."""
    return PROMTOOL


@pytest.fixture
def prometheus_server(tmp_path: Path) -> Iterator[Starter]:
    """Starts a Prometheus on a free port of loopback, with its data in the test's folder."""
    with ExitStack() as servers:

        def start(
            targets: Mapping[str, Sequence[str]],
            rules: Sequence[Path] = (),
            *,
            path: str = "/metrics",
            interval: str = "200ms",
            history: str = "",
            flags: Sequence[str] = (),
            program: str = PROMETHEUS,
        ) -> Server:
            folder = tmp_path / f"prometheus-{len(list(tmp_path.glob('prometheus-*')))}"
            folder.mkdir()
            configuration = folder / "prometheus.yml"
            configuration.write_text(json.dumps(_configuration(targets, rules, path, interval)), encoding="utf-8")
            if history:
                _fill(folder, history)
            return servers.enter_context(_running(folder, configuration, flags, program))

        yield start


def _configuration(
    targets: Mapping[str, Sequence[str]], rules: Sequence[Path], path: str, interval: str
) -> dict[str, Any]:
    """Its configuration; JSON is YAML."""
    return {
        "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
        "rule_files": [str(rule) for rule in rules],
        "scrape_configs": [
            {"job_name": job, "metrics_path": path, "static_configs": [{"targets": list(pages)}]}
            for job, pages in targets.items()
        ],
    }


def _fill(folder: Path, history: str) -> None:
    samples = folder / "history.om"
    samples.write_text(history, encoding="utf-8")
    argv = [PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", "-q", str(samples), str(folder / "data")]
    subprocess.run(argv, check=True, capture_output=True, timeout=START_SECONDS)


@contextmanager
def _running(folder: Path, configuration: Path, flags: Sequence[str], program: str) -> Iterator[Server]:
    argv = [
        program,
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0",  # it takes a free port, and its log says which
        *flags,
    ]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert process.stderr is not None
    try:
        address = _ready_address(process, process.stderr)
        reader = threading.Thread(target=process.stderr.read, daemon=True)  # or the pipe fills up
        reader.start()
        yield Server(f"http://{address}")
    finally:
        process.terminate()
        try:
            process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(WAIT_SECONDS)
    reader.join(WAIT_SECONDS)
    process.stderr.close()


def _ready_address(process: subprocess.Popen[str], log: Iterator[str]) -> str:
    """Where it listens, once it answers."""
    limit = threading.Timer(START_SECONDS, process.kill)
    limit.start()
    address, ready, lines = "", False, []
    try:
        for line in log:
            lines.append(line)
            found = _LISTENING.search(line)
            address = found[1] if found else address
            ready = ready or _READY in line
            if ready and address:  # two threads of the server say them, in either order
                return address
    finally:
        limit.cancel()
    pytest.fail(f"Prometheus did not start:\n{''.join(lines[-20:])}")
