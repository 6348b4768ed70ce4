"""A page that is served over HTTP, and is what it was last said to be."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.writers.metrics_page import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

_HIGHEST = 65535


class Page(ThreadingHTTPServer):
    """The server; `text` is what it answers."""

    daemon_threads = True
    text = ""

    @property
    def url(self) -> str:
        """Where its page is."""
        host, port = self.server_address[:2]
        return f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}/metrics"

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: Page
    timeout = 10.0  # s that a client has

    def do_GET(self) -> None:
        """The page under /metrics, and nothing elsewhere."""
        there = self.path.partition("?")[0] == "/metrics"
        content = self.server.text.encode() if there else b"see /metrics\n"
        self.send_response(200 if there else 404)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing of each scrape."""


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
