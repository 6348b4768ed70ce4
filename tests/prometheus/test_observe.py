"""`rlsize observe --prometheus` against a real Prometheus: what it scraped is read as if we had read the pages."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.facts.counters import Snapshot
from rlsize.readers.http_pages import Access, api_target
from rlsize.readers.metrics.pages import Reading, histories, page_counters
from rlsize.readers.prometheus import scraped
from rlsize.readers.saved_files import read_rates

if TYPE_CHECKING:
    from tests.prometheus.conftest import Starter

END = 1_772_366_400.0  # of the history's window
PATIENCE = 120.0  # seconds; no test waits for it
PATIENT = ("--timeout", f"{PATIENCE:g}")  # a login is checked slowly on purpose, and the machine has other work
EVERY, LOOKS = 15.0, 5
LOGIN = "admin:test"
# "test" by bcrypt, from the guide "Securing Prometheus API and UI endpoints using basic auth" of prometheus.io
HASHED = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"


def page(engine: str, look: int) -> list[str]:
    """An engine's page at a look: series and values."""
    if engine == "vllm":
        return [
            *(
                f'vllm:{name}{{engine="{rank}",model_name="policy"}} {value}'
                for rank in "01"
                for name, value in (
                    ("generation_tokens_total", 1_000_000 + 60_007 * look),
                    ("num_requests_running", 64),
                    ("num_requests_waiting", 3 + look),
                    ("request_generation_tokens_sum", 9_000 * look),
                    ("request_generation_tokens_count", 9 * look),
                )
            ),
            *(
                f'vllm:request_generation_tokens_bucket{{engine="0",le="{bound}",model_name="policy"}} {count * look}'
                for bound, count in (("500.0", 2), ("1000.0", 5), ("+Inf", 9))
            ),
            'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1000"} 1',
            "process_start_time_seconds 1772360000.5",
        ]
    if engine == "sglang":
        ranks = 'model_name="policy",pp_rank="0",tp_rank="0"'
        return [
            f'sglang:realtime_tokens_total{{mode="decode",{ranks}}} {5_000_000 + 123_457 * look}',
            f'sglang:realtime_tokens_total{{mode="prefill_compute",{ranks}}} {1000 * look}',
            f"sglang:num_running_reqs{{{ranks}}} {200 - look}",
            f"sglang:num_queue_reqs{{{ranks}}} 4",
            f"sglang:weight_load_duration_seconds{{{ranks}}} {2.5 if look < 3 else 2.25}",
        ]
    return [
        f'trtllm_generation_tokens_total{{model_name="policy"}} {700_000 + 33_333 * look}',
        f'trtllm_request_success_total{{finished_reason="stop",model_name="policy"}} {70 + 3 * look}',
        'trtllm_num_requests_running{model_name="policy"} 12',
        'trtllm_parallel_config_info{model_name="policy",tp_size="4"} 1',
    ]


ENGINES = ("vllm", "sglang", "trtllm")


def moments() -> list[float]:
    """When the history was scraped; the last one lies just before the window's end."""
    return [END - 0.25 - EVERY * (LOOKS - 1 - look) for look in range(LOOKS)]


def history() -> str:
    """All pages as a Prometheus would have scraped them, as OpenMetrics."""
    lines = []
    for engine in ENGINES:
        for look, moment in enumerate(moments()):
            for line in page(engine, look):
                name, _, value = line.rpartition(" ")
                target = f'instance="{engine}:8000",job="rollout"'
                labelled = f"{name[:-1]},{target}}}" if name.endswith("}") else f"{name}{{{target}}}"
                lines.append((labelled, moment, f"{labelled} {value} {moment:.3f}"))
    return "\n".join([*(line for _, _, line in sorted(lines)), "# EOF"]) + "\n"


def read_live(window: float) -> list[Reading]:
    """The same pages, read by ourselves at the same moments."""
    readings = []
    for look, moment in enumerate(moments()):
        for engine in ENGINES:
            content = ("\n".join(page(engine, look)) + "\n").encode()
            found = page_counters(content, f"{engine}:8000")
            seconds = moment - (END - window)
            snapshots = tuple(Snapshot(seconds=seconds, counters=counters) for counters in found)
            readings.append(Reading(f"{engine}:8000", snapshots))
    return readings


def test_raw_samples_are_the_pages_that_were_scraped(
    prometheus_server: Starter, rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Whoever reads a counter, the numbers are the same to the last digit: live, saved, and as raw samples.

    So are the errors of a server: nothing that fits the selector, nobody there.
    """
    monkeypatch.setenv("RLSIZE_BEARER_TOKEN", "")
    server = prometheus_server({}, history=history())
    found = scraped(api_target(server.url), Access(seconds=PATIENCE), time.monotonic, 'job="rollout"', 120.0, END)
    assert (found.end, found.warnings) == (END, ())
    assert histories(found.readings) == histories(read_live(120.0))

    asked = ("observe", "--prometheus", server.url, *PATIENT, "--window", "2m", "--at", "2026-03-01T12:00:00Z")
    pairs = []
    for engine in ENGINES:
        pairs.append("--pages")
        for look in (0, LOOKS - 1):
            saved = tmp_path / f"{engine}:8000" if look == 0 else tmp_path / f"{engine}-last"
            saved.write_text("\n".join(page(engine, look)) + "\n", encoding="utf-8")
            pairs.append(str(saved))
    ran = rlsize(*asked, "--selector", '{instance=~".*:8000", job="rollout"}', "--json")
    offline = rlsize("observe", *pairs, "--seconds", "60", "--json")
    assert (ran.code, offline.code) == (0, 0), ran.stderr + offline.stderr
    for key in ("instance_tokens_per_second", "spread_tokens_per_second", "fleet_tokens_per_second", "window_seconds"):
        assert ran.results[key] == offline.results[key]
    rates = {row["instance"]: row["tokens_per_second"] for row in ran.document["rows"]["instances"]}
    assert rates["sglang:8000"] == 4 * 123_457 / 60
    assert ran.results["weight_syncs"] == 1

    nothing = rlsize(*asked, "--selector", 'job="other"')
    assert nothing.code == 2
    assert 'has no series of engines for {job="other"}' in nothing.stderr
    refused = rlsize(*asked, "--selector", 'job=~"("')
    assert (refused.code, "is no regular expression" in refused.stderr) == (2, True)
    now = rlsize("observe", "--prometheus", server.url, *PATIENT)
    assert (now.code, "has no series of engines in a window of 300 s" in now.stderr) == (2, True)
    gone = rlsize("observe", "--prometheus", "http://127.0.0.1:9", "--timeout", "2")
    assert (gone.code, gone.stdout) == (3, "")


def test_a_log_is_followed_beside_its_engines(
    prometheus_server: Starter, rlsize: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`watch` says of a log and a Prometheus what `diagnose` says of both, which is more than the log alone."""
    monkeypatch.setenv("RLSIZE_BEARER_TOKEN", "")
    server = prometheus_server({}, history=history())
    log = str(Path(__file__).parents[2] / "examples" / "operate" / "starving.jsonl")
    asked = (log, "--prometheus", server.url, *PATIENT, "--window", "2m", "--at", "2026-03-01T12:00:00Z")
    engine = ("--selector", '{instance="vllm:8000"}')
    said = rlsize("diagnose", *asked, *engine, "--json").document
    ran = rlsize("watch", *asked, *engine, "--fail-on", "any")
    assert ran.code == 1, ran.stderr
    assert ran.stdout.splitlines()[1].strip() == said["headline"]
    assert said["headline"] != rlsize("diagnose", log, "--json").document["headline"]
    nothing = rlsize("watch", *asked, "--selector", 'job="other"')
    assert (nothing.code, nothing.stdout) == (2, "")


def test_a_server_that_wants_a_login(
    prometheus_server: Starter, rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the exit code is 3; with it in the environment the answer comes, and nothing shows it."""
    monkeypatch.setenv("RLSIZE_BEARER_TOKEN", "")
    web = tmp_path / "web.yml"
    web.write_text(json.dumps({"basic_auth_users": {"admin": HASHED}}), encoding="utf-8")
    server = prometheus_server({}, history=history(), flags=[f"--web.config.file={web}"])
    asked = ("observe", "--prometheus", server.url, *PATIENT, "--at", str(END), "--window", "60")
    refused = rlsize(*asked)
    assert refused.code == 3, refused.stderr
    assert "answers 401" in refused.stderr
    monkeypatch.setenv("RLSIZE_BASIC_AUTH", LOGIN)
    ran = rlsize(*asked, "--json")
    assert ran.code == 0
    assert ran.results["instances_used"] == 4
    assert LOGIN.split(":")[1] not in (ran.stdout + ran.stderr).replace("latest", "")


class Pages:
    """Engines whose counters grow by a step each time that somebody looks."""

    def __init__(self) -> None:
        self.looks = 0
        self.seen = threading.Condition()

    def text(self) -> str:
        """The next page."""
        with self.seen:
            self.looks += 1
            self.seen.notify_all()
            return "\n".join(page("sglang", self.looks)) + "\n"

    def wait(self, looks: int) -> None:
        """Until so many have looked."""
        with self.seen:
            assert self.seen.wait_for(lambda: self.looks >= looks, timeout=PATIENCE), "Prometheus does not scrape"


@pytest.fixture
def pages() -> Iterator[tuple[Pages, str]]:
    """Such an engine behind a server on loopback, and its HOST:PORT."""
    found = Pages()

    class Handler(BaseHTTPRequestHandler):
        """Serves the next page."""

        def do_GET(self) -> None:
            """Answer."""
            body = found.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield found, f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_what_prometheus_scrapes_gives_the_rate(
    prometheus_server: Starter,
    pages: tuple[Pages, str],
    rlsize: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rate is that of the first and the last sample of the window, by the server's own clock; it can be saved."""
    monkeypatch.setenv("RLSIZE_BEARER_TOKEN", "")
    engine, address = pages
    server = prometheus_server({"rollout": [address]}, interval="500ms")
    engine.wait(6)
    series = 'sglang:realtime_tokens_total{mode="decode"}'
    server.wait(lambda: server.query(f"count_over_time({series}[1h]) > 5"))  # at least 2.5 s of them
    scrapes = server.query(f"{series}[1h]")[0]["values"]
    end, window = str(scrapes[-1][0]), f"{int(scrapes[-1][0] - scrapes[0][0])}s"
    rates = str(tmp_path / "rates.yaml")
    asked = ("--prometheus", server.url, *PATIENT, "--selector", 'job="rollout"', "--window", window, "--at", end)
    ran = rlsize("observe", *asked, "--save", rates, "--json")
    assert ran.code == 0, ran.stderr
    values = server.get("/api/v1/query", query=f"{series}[{window}]", time=end)["result"][0]["values"]
    tokens, seconds = float(values[-1][1]) - float(values[0][1]), round(values[-1][0] - values[0][0], 3)
    assert tokens >= 3 * 123_457
    assert ran.results["instance_tokens_per_second"] == tokens / seconds
    assert [row["instance"] for row in ran.document["rows"]["instances"]] == [address]
    saved = read_rates(rates)
    assert saved.instance_tokens_per_second is not None
    assert saved.instance_tokens_per_second.mean == pytest.approx(tokens / seconds)
    assert datetime.fromisoformat(saved.measured_at).timestamp() == pytest.approx(float(end), abs=1.0)
