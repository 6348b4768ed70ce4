"""
A page of a real prometheus_client, run under whichever version PYTHONPATH has: what it shows is said on stdin.

    python exporter.py PORTS      # prints the ports that it took; each line of stdin is a JSON list of pages

A page is a list of [name, labels, value, is_counter]: a counter grows by its value per second, a gauge is its value.
Null is a target that fails.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily


class Page:
    """What one target shows; counters go on from where they are when their slope changes."""

    def __init__(self) -> None:
        self.series: dict[tuple[str, str], list[Any]] = {}
        self.at = time.monotonic()
        self.fails = False

    def told(self, series: list[list[Any]] | None) -> None:
        """Take new slopes and values; series that are not among them are gone."""
        before = self._counts()
        self.at = time.monotonic()
        self.fails = series is None
        self.series = {}
        for name, labels, value, counter in series or ():
            key = (name, json.dumps(labels, sort_keys=True))
            self.series[key] = [labels, value, counter, before.get(key, 0.0)]

    def _counts(self) -> dict[tuple[str, str], float]:
        passed = time.monotonic() - self.at
        return {
            key: start + value * passed if counter else value for key, (_, value, counter, start) in self.series.items()
        }

    def collect(self) -> Iterator[Any]:
        """The families of a scrape."""
        if self.fails:
            raise RuntimeError("this target is sick")
        counts = self._counts()
        families: dict[str, Any] = {}
        for key, (labels, *_) in list(self.series.items()):
            counter = key[0].endswith("_total")  # the sum of a histogram grows, too, and keeps its name
            kind = CounterMetricFamily if counter else GaugeMetricFamily
            name = key[0][: -len("_total")] if counter else key[0]
            family = families.setdefault(name, kind(name, "made up", labels=sorted(labels)))
            family.add_metric([str(labels[one]) for one in sorted(labels)], counts[key])
        yield from families.values()


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until stdin ends."""
    pages = [Page() for _ in range(int(sys.argv[1]))]
    servers = []
    for page in pages:
        registry = CollectorRegistry()
        registry.register(page)
        servers.append(make_server("127.0.0.1", 0, make_wsgi_app(registry), handler_class=_Quiet))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
    sys.stdout.write(json.dumps([server.server_port for server in servers]) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        for page, series in zip(pages, json.loads(line), strict=True):
            page.told(series)
        sys.stdout.write("told\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
