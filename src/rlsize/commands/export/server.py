"""A page that is served over HTTP, and is what it was last said to be."""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.writers.metrics_page import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

_HIGHEST = 65535
_LONGEST, _MOST = 8192, 100  # bytes of a line, and lines, of a request's head


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
