"""`rlsize export`: the counters that rules ask for, from a trainer's log and engines' pages, for a Prometheus."""

from __future__ import annotations

import json
import math
import socket
import socketserver
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsize.errors import Fault, InputError, RlsizeError, UnfinishedError
from rlsize.shell.access import AUTHORITY, INSECURE, TOKEN_FILE, access_to, blamed
from rlsize.shell.command import argument, option, switch, tell
from rlsize.shell.inputs import Inputs
from rlsize.shell.live_engines import Map
from rlsize.shell.quantity_flags import PRICES, asks
from rlsize.writers.metrics_page import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlsize.estimates.run_counts import Counters
    from rlsize.facts.counters import EngineCounters
    from rlsize.facts.run_log import RunLog
    from rlsize.readers.http_pages import Target
    from rlsize.readers.metrics.pages import Reading

_SERVED = "Serving"

_HIGHEST = 65535
_LONGEST, _MOST = 8192, 100  # bytes of a line, and lines, of a request's head


@asks(beside_files=True, Inputs=("rollout_gpus", "trainer_gpus", "every_seconds", "timeout_seconds"), Prices=PRICES)
def export(
    inputs: Inputs,
    sources: list[str] | None = argument(
        "SOURCE...", "A training log, a tracker's folder or database, which may still grow; engines (http://HOST:PORT)."
    ),
    format: str | None = option("--format", "The format of the log, where its content does not tell.", metavar="NAME"),  # noqa: A002 (the flag's name)
    map: Map = None,  # noqa: A002 (the flag's name)
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to serve.", rich_help_panel=_SERVED)
    ] = "127.0.0.1:9477",
    state: str | None = option(
        "--state", "A file that keeps the counts, for logs that are begun anew or moved away.", _SERVED, "FILE"
    ),
    once: bool = switch("--once", "Print the page, and serve nothing.", _SERVED),
    token_file: str | None = TOKEN_FILE,
    ca: str | None = AUTHORITY,
    insecure: bool = INSECURE,
) -> None:
    """
    Serve what a training log and engines tell as counters, for Prometheus.

    Example:  rlsize export examples/operate/starving.jsonl --once --gpu-hour 2.40
    """
    from rlsize.estimates.run_counts import Counters
    from rlsize.shell.observation import followed, log_reader

    counters, where = Counters({}, {}, "", {}), ("", 0)
    every, pools = inputs.ask("every_seconds"), _pools(inputs)
    urls = [one for one in sources or [] if one.startswith(("http://", "https://"))]
    logs = [one for one in sources or [] if one not in urls]
    if len(logs) > 1:
        inputs.fault(f"{len(logs)} training logs are named", logs[1], "name one; a run has one trainer")
    log, read = logs[0] if logs else None, None
    with blamed(inputs, "--state"):
        counters = _read_counters(state)
    with blamed(inputs, "--listen"):
        where = address(listen)
    if log is not None or not urls:
        with blamed(inputs, log or "SOURCE"):
            read = log_reader(log, format, map or ())
    else:
        _unused(inputs, "is for a training log", {"--format": format, "--map": map})
    if not urls:
        own = {"--token-file": token_file, "--ca": ca, "--insecure": insecure}
        _unused(inputs, "is for engines", {**own, "--timeout": inputs.gives("timeout_seconds")})
    look, shown = _engines(inputs, urls, token_file, ca, insecure=insecure)
    inputs.settle()
    sys.stderr.write("".join(f"warning: {text}\n" for text in inputs.warnings))
    if once:
        found, engines = None if read is None else read(), look()
        if urls and not engines:
            raise UnfinishedError(Fault("could not be read", " ".join(shown), "are they up?"))
        sys.stdout.write(_page(found, engines, counters, pools))
        return
    with serving(*where) as server:
        sys.stderr.write(f"serving {' '.join([*logs, *shown])} on {server.url}\n")
        for found in followed(log, read, every.number, always=bool(urls)):
            text = _page(found, look(), counters, pools)
            _keep(state, counters)  # first, so that what was scraped is never lost
            server.text = text  # which stays while a log cannot be read


def _keep(state: str | None, counters: Counters) -> None:
    from rlsize.writers.files import write_whole

    try:
        if state is not None:
            write_whole(state, json.dumps({key: getattr(counters, key) for key in _KEPT}) + "\n", force=True)
    except RlsizeError as error:  # a full disk is no reason to serve nothing
        tell(error)


_COUNTS = ("totals", "sums", "engines")
_KEPT = ("first", *_COUNTS)


def _unused(inputs: Inputs, what: str, said: Mapping[str, object]) -> None:
    for flag in [flag for flag, value in said.items() if value]:
        inputs.fault(f"{what}, and none is named", flag, "name it, or leave this out")


def _engines(
    inputs: Inputs, urls: list[str], token_file: str | None, ca: str | None, *, insecure: bool
) -> tuple[Callable[[], dict[str, EngineCounters]], list[str]]:
    """What looks at the engines once, and what they are called; one that fails is left out, and told of once."""
    from rlsize.readers.http_pages import targets

    found: list[Target] = []
    with blamed(inputs, ""):
        found = targets(urls) if urls else []
    if not found:
        return dict, []
    access = access_to(found, inputs, token_file, ca, insecure=insecure)
    told: dict[str, str] = {}

    def look() -> dict[str, EngineCounters]:
        from rlsize.readers.metrics.pages import live_reader

        engines: dict[str, EngineCounters] = {}
        for one in live_reader(found, access, time.monotonic)():
            fault = "" if one.fault is None else str(UnfinishedError(one.fault))
            if fault and told.get(one.instance) != fault:
                sys.stderr.write(f"warning: {fault}\n")
            told[one.instance] = fault
            engines |= {_name(one, shot.counters): shot.counters for shot in one.snapshots}
        return engines

    return look, [one.shown for one in found]


def _name(page: Reading, engine: EngineCounters) -> str:
    return f"{page.instance} {engine.rank}" if len(page.snapshots) > 1 else page.instance


def _read_counters(path: str | None) -> Counters:
    """
    The counters as an earlier process left them; new ones where there is no file.

    Raises:
        InputError: The file is none of ours, or cannot be written.
    """
    from rlsize.estimates.run_counts import Counters
    from rlsize.readers.yaml_documents import read_text
    from rlsize.writers.files import check_target

    if path is None:
        return Counters({}, {}, "", {})
    check_target(path, force=True)
    if not Path(path).exists():
        return Counters({}, {}, "", {})
    text = read_text(path)
    try:
        found = json.loads(text)
        kept = [{str(key): float(value) for key, value in found.get(name, {}).items()} for name in _COUNTS]
        first = str(found["first"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise InputError(Fault("holds no counts of `rlsize export`", path, "name another --state")) from None
    if not all(math.isfinite(value) and value >= 0 for each in kept for value in each.values()):
        raise InputError(Fault("holds counts that are no counts", path, "name another --state"))
    totals, sums, engines = kept
    return Counters(totals, sums, first, engines)


def _pools(inputs: Inputs) -> dict[str, float]:
    """GPUs and prices, as far as they are said."""
    from rlsize.loop.prices import gpu_hours

    sizes, prices = (inputs.ask("rollout_gpus"), inputs.ask("trainer_gpus")), gpu_hours(inputs)
    names = ("rollout_gpus", "trainer_gpus", "rollout_gpu_hour", "trainer_gpu_hour")
    return {name: one.number for name, one in zip(names, (*sizes, *prices), strict=True) if one.known}


def _page(
    found: RunLog | None, engines: Mapping[str, EngineCounters], counters: Counters, pools: Mapping[str, float]
) -> str:
    from rlsize.estimates.run_counts import counts, first_row, gauges
    from rlsize.facts.published import GENERATED
    from rlsize.writers.metrics_page import metrics_page

    told: dict[str, float] = {}
    if found is not None:
        sums = counts(found, pools)
        if counters.engines or engines:  # who generates knows it better
            sums.pop(GENERATED, None)
        counters.read(first_row(found), sums)
        told = gauges(found)
    counters.generated({name: one.generation_tokens for name, one in engines.items()})
    return metrics_page({**counters.totals, **told}, engines, "" if found is None else found.mode)


class Page(socketserver.ThreadingTCPServer):
    """The server; `text` is what it answers."""

    allow_reuse_address = True
    daemon_threads = True
    text = ""

    @property
    def url(self) -> str:
        """Where its page is."""
        host, port = self.server_address[:2]
        return f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}/metrics"

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is no news."""


class _Handler(socketserver.StreamRequestHandler):
    """HTTP as far as a scrape needs it: the library's own server takes 6 MB for the rest."""

    server: Page
    timeout = 10.0  # s that a client has

    def handle(self) -> None:
        """The page under /metrics, and nothing elsewhere."""
        method, path, *_ = (*self.rfile.readline(_LONGEST).decode("latin-1").split(), "", "")
        lines = (self.rfile.readline(_LONGEST) for _ in range(_MOST))
        if not any(line in {b"\r\n", b"\n"} for line in lines):  # the end of a request's head
            return
        status, content = "404 Not Found", b"see /metrics\n"
        if method not in {"GET", "HEAD"}:
            status, content = "405 Method Not Allowed", b"GET /metrics\n"
        elif path.partition("?")[0] == "/metrics":
            status, content = "200 OK", self.server.text.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(content)}\r\n"
        self.wfile.write(f"{head}Connection: close\r\n\r\n".encode() + (b"" if method == "HEAD" else content))


def address(text: str) -> tuple[str, int]:
    """
    A host and a port.

    Raises:
        InputError: It is none.
    """
    host, colon, port = text.strip().rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= len(str(_HIGHEST)) else _HIGHEST + 1
    if not colon or not host or number > _HIGHEST:
        todo = "write HOST:PORT, as in 127.0.0.1:9477; 0.0.0.0:9477 for all interfaces"
        raise InputError(Fault(f"{text[:60]!r} is no address", "--listen", todo))
    return host.strip("[]"), number


@contextmanager
def serving(host: str, port: int) -> Iterator[Page]:
    """
    A server that ends with its block.

    Raises:
        UnfinishedError: The address cannot be taken.
    """
    kind = type("_Page", (Page,), {"address_family": socket.AF_INET6 if ":" in host else socket.AF_INET})
    try:
        server: Page = kind((host, port), _Handler)
    except (OSError, ValueError) as error:
        todo = "is another exporter running? name another address with --listen"
        raise UnfinishedError(Fault(f"cannot be listened on: {error}", f"{host}:{port}", todo)) from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
