"""Each rule has data, and each alert fires and falls silent, where a real Prometheus scrapes real exporters."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.effort import NIGHTLY
from tests.prometheus.conftest import PROMETHEUS, WAIT_SECONDS, Server, Starter
from tests.prometheus.install import CLIENTS, clients, newest
from tests.prometheus.test_rules import rules_of

from rlsize.commands.alerts.cases import Cases
from rlsize.commands.alerts.dashboard import dashboard_text
from rlsize.commands.alerts.engines import Scraped
from rlsize.commands.alerts.rules import SERIES, Rules
from rlsize.commands.alerts.signals import DOWN, MISSING, SIGNALS
from rlsize.commands.alerts.text import yaml_below
from rlsize.facts.published import AGE, QUEUED, STEP, SYNC, TRAINED, WAIT
from rlsize.readers.http_pages import Access, api_target
from rlsize.readers.metrics.pages import histories
from rlsize.readers.prometheus import scraped

TOGETHER = ("idle", "sync", "queue", "age", "cache", "waiting", "preemptions", "straggler")
ALONE = ("goodput", "waste", "rollout")
WINDOW = "6s"


class Exporter:
    """Pages of a real prometheus_client of some version."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.ports: list[int] = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def show(self, pages: Sequence[Sequence[Scraped] | None]) -> None:
        """Show these from now on."""
        assert self.process.stdin is not None
        told = [
            None if page is None else [[one.name, dict(one.labels), one.value, one.counter] for one in page]
            for page in pages
        ]
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        assert self._line() == "told\n"


@contextmanager
def exporter(folder: Path, pages: int) -> Iterator[Exporter]:
    """One that ends with its block."""
    argv = [sys.executable, str(Path(__file__).with_name("exporter.py")), str(pages)]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(folder)}
    )
    try:
        yield Exporter(process)
    finally:
        process.kill()
        process.communicate()


def pages(cases: Cases, scrape: Any, spelled: str) -> list[list[Scraped]]:
    """What the trainer and each instance show of a case; on Ray one node shows them all."""
    engine = cases.rules.engine
    trainer = [
        Scraped(name=STEP, value=1.0, labels={}),
        *(Scraped(name=name, value=scrape.trainer[signal], labels={}) for signal, name in COUNTED.items()),
        *(
            Scraped(name=name, value=scrape.trainer[signal], labels={}, counter=False)
            for signal, name in GAUGES.items()
        ),
    ]
    shown = [
        [one._replace(labels={**engine.labels, **one.labels}) for one in engine.page(state)]
        for state in scrape.instances
    ]
    if spelled != "ray":
        return [trainer, *shown]
    node = [
        one._replace(name=one.name.replace("vllm:", "ray_vllm_"), labels={**one.labels, "WorkerId": f"w{index}"})
        for index, page in enumerate(shown)
        for one in page
    ]
    return [trainer, node, *([] for _ in shown[1:])]


@contextmanager
def exporting(*sources: str) -> Iterator[str]:
    """The address of an `rlsize export` that ends with its block."""
    argv = [sys.executable, "-m", "rlsize", "export", *sources, "--listen", "127.0.0.1:0", "--every", "0.5"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            serving = next(line for line in process.stderr if line.startswith("serving "))
            yield serving.rpartition("//")[2].partition("/")[0]
        finally:
            process.kill()


COUNTED = {"idle": WAIT, "sync": SYNC, "trained": TRAINED}
GAUGES = {"queue": QUEUED, "age": AGE}


def written(rules: Rules, path: Path) -> Path:
    """The rules with windows of seconds in place of minutes."""
    content = rules.content()
    for rule in content["groups"][0]["rules"]:
        rule["expr"] = re.sub(r"\[\d+m\]", f"[{WINDOW}]", rule["expr"])
        if "for" in rule:
            rule["for"] = "1s"
    path.write_text(yaml_below([], content), encoding="utf-8")
    return path


def names(server: Server) -> set[str]:
    """The alerts that fire."""
    return {alert["labels"]["alertname"] for alert in server.firing()}


@pytest.mark.parametrize(
    ("client", "engine", "spelled", "newer"),
    [
        *((client, "vllm", "", False) for client in (CLIENTS if NIGHTLY else CLIENTS[:2])),
        *((CLIENTS[-1], engine, "", False) for engine in ("sglang", "tensorrt-llm")),
        (CLIENTS[-1], "vllm", "ray", False),
        (CLIENTS[-1], "sglang", "exported", False),
        (CLIENTS[-1], "vllm", "", True),  # to which it answers with the colons of the names
        *([(CLIENTS[0], "vllm", "", True), (CLIENTS[-1], "vllm", "ray", True)] if NIGHTLY else ()),
    ],
)
def test_each_alert_fires_and_falls_silent(
    client: str, engine: str, spelled: str, prometheus_server: Starter, tmp_path: Path, *, newer: bool
) -> None:
    """
    Whatever an exporter calls its series: every rule has data, panels are not empty, and no alert is dead or stuck.

    The first client goes through all alerts, on a Prometheus 2 and a 3; the others, which share the rules, through
    those that fire together.
    """
    folder = clients().get(client)
    if folder is None:
        pytest.skip(f"prometheus_client {client} cannot be had here")
    programs = newest() if newer else Path(PROMETHEUS).parent
    if programs is None:
        pytest.skip("no Prometheus 3 can be had here")
    rules = rules_of(engine, planned={"instances": 3.0})
    cases = Cases(rules)
    healthy = cases._healthy()
    with ExitStack() as stack:
        shows = stack.enter_context(exporter(folder, 4))
        shows.show(pages(cases, healthy, spelled))
        ports = [f"127.0.0.1:{port}" for port in shows.ports]
        targets = {"trainer": ports[:1], "rollout": ports[1:2] if spelled == "ray" else ports[1:]}
        if spelled == "exported":  # a Prometheus that does not reach the engines
            targets["rollout"] = [stack.enter_context(exporting(*(f"http://{port}" for port in ports[1:])))]
        server = prometheus_server(
            targets, [written(rules, tmp_path / "rules.yml")], program=str(programs / "prometheus")
        )
        recorded = [one["record"] for one in rules.records()]
        server.wait(lambda: not [name for name in recorded if not server.query(name)])
        board = json.loads(dashboard_text(rules))
        shown = [target["expr"].replace("$instance", ".*") for panel in board["panels"] for target in panel["targets"]]
        assert not [expr for expr in shown if not server.query(expr)]
        server.wait(lambda: not names(server))
        seen = scraped(api_target(server.url), Access(seconds=WAIT_SECONDS), time.monotonic, 'job="rollout"', 5.0)
        assert len(histories(seen.readings)[0]) == len(healthy.instances)  # `--prometheus` knows the same spellings

        def fires(sick: Any, wanted: set[str]) -> None:
            shows.show(sick)
            server.wait(lambda: wanted <= names(server))
            shows.show(pages(cases, healthy, spelled))
            server.wait(lambda: not names(server))

        together = [signal for signal in TOGETHER if signal in rules.signals]
        sick = healthy
        for signal in together:
            sick = cases._worse(signal, cases.worst(signal), sick)[0]
        fires(pages(cases, sick, spelled), {SIGNALS[signal].alert for signal in together})
        if (client, engine, spelled) != (CLIENTS[0], "vllm", ""):
            return
        for signal in ALONE:
            sick = cases._worse(signal, cases.worst(signal), healthy)[0]
            fires(pages(cases, sick, spelled), {SIGNALS[signal].alert})
        trainer, first, *others = pages(cases, healthy, spelled)
        fires([trainer, None, *others], {DOWN.alert, SIGNALS["up"].alert})
        fires([[], first, *others], {MISSING.alert})


def test_an_exported_log_is_no_rate_until_it_grows(prometheus_server: Starter, tmp_path: Path) -> None:
    """What a log held at the first scrape gives the rules values but no rates; new steps give the log's own shares."""
    rows = (Path(__file__).parents[2] / "examples" / "operate" / "starving.jsonl").read_text(encoding="utf-8")
    lines = rows.splitlines(keepends=True)
    log = tmp_path / "run.jsonl"
    log.write_text("".join(lines[:30]), encoding="utf-8")
    with exporting(str(log)) as address:
        server = prometheus_server({"trainer": [address]}, [written(rules_of(), tmp_path / "rules.yml")])
        rate = f"rate({STEP}[{WINDOW}])"
        server.wait(lambda: server.query(f"count_over_time({STEP}[{WINDOW}]) > 5"))
        assert [one["value"][1] for one in server.query(rate)] == ["0"]
        with log.open("a", encoding="utf-8") as file:
            file.writelines(lines[30:50])
        idle = server.wait(lambda: [one for one in server.query(SERIES["idle"]) if one["value"][1] != "NaN"])
        new = [json.loads(line)["data"] for line in lines[30:50]]
        waited = sum(one["timing_s/gen"] for one in new)
        assert float(idle[0]["value"][1]) == pytest.approx(waited / sum(one["timing_s/step"] for one in new))
