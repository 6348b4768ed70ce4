"""Engines behind a loopback server, in virtual time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CAPABLE = 4000.0


@dataclass
class Engine:
    """An engine behind a server: how fast it is, what waits, and what its page is otherwise."""

    rate: float = CAPABLE
    waiting: int = 5
    page: str | None = None
    status: int = 200
    restarts_at: float = float("inf")

    def text(self, now: float) -> str:
        """Its page at a moment."""
        if self.page is not None:
            return self.page
        tokens = self.rate * (now - self.restarts_at if now >= self.restarts_at else now)
        labels = '{engine="0",model_name="policy"}'
        return (
            f"vllm:num_requests_running{labels} 64\n"
            f"vllm:num_requests_waiting{labels} {self.waiting}\n"
            f"vllm:generation_tokens_total{labels} {tokens!r}\n"
        )


@dataclass
class Fleet:
    """Engines on one loopback server, each under a path of its own, and the virtual time that they live in."""

    address: str = ""
    engines: list[Engine] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    now: float = 1000.0
    interrupt_at: float = float("inf")

    def urls(self) -> list[str]:
        """Where the engines are."""
        return [f"{self.address}/{index}" for index in range(len(self.engines))]

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass; at some moment the user may press Ctrl-C."""
        self.now += seconds
        if self.now >= self.interrupt_at:
            raise KeyboardInterrupt


class Loopback(ThreadingHTTPServer):
    """A server that takes many connections at once, as the pages of a fleet are asked for together."""

    request_queue_size = 128
    daemon_threads = True


@contextmanager
def served() -> Iterator[Fleet]:
    """A fleet that answers, until the block ends."""
    found = Fleet()

    class Handler(BaseHTTPRequestHandler):
        """Serves each engine's page."""

        def do_GET(self) -> None:
            """Answer with the page of the engine named by the path."""
            engine = found.engines[int(self.path.strip("/"))]
            found.tokens.append(self.headers["Authorization"])
            body = engine.text(found.now).encode()
            self.send_response(engine.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with Loopback(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        found.address = f"127.0.0.1:{server.server_address[1]}"
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
