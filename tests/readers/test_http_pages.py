"""Pages over HTTP from servers that cannot be trusted: slow, endless, cut, redirecting, locked."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.readers.http_pages import Access, Page, bearer_token, fetch, masked, targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rlsize.errors import Fault

SECRET = "s3cr3t-t0ken"  # noqa: S105 (a test's own)
PATIENCE = 60.0  # seconds; no test waits for it
IMPATIENCE = 0.3
Behaviour = "Callable[[Server], None]"


class Server(BaseHTTPRequestHandler):
    """Answers as the test says, and notes what it was asked."""

    behaviour: ClassVar[Callable[[Server], None]]
    asked: ClassVar[list[tuple[str, str | None]]]
    over: ClassVar[threading.Event]

    def do_GET(self) -> None:
        """Note the request and behave."""
        type(self).asked.append((self.path, self.headers["Authorization"]))
        type(self).behaviour(self)

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a whole answer."""
        self.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Length": str(len(body)), **named}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Loopback(ThreadingHTTPServer):
    """A server that takes many connections at once, as the pages of a fleet are asked for together."""

    request_queue_size = 128
    daemon_threads = True


@contextmanager
def serving(behaviour: Callable[[Server], None]) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server on loopback: its host and port, and what it is asked."""
    asked: list[tuple[str, str | None]] = []
    over = threading.Event()
    handler = type("Handler", (Server,), {"behaviour": staticmethod(behaviour), "asked": asked, "over": over})
    with Loopback(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", asked
        finally:
            over.set()
            server.shutdown()
            thread.join()


def one(url: str, access: Access | None = None) -> Page | Fault:
    """The page behind a URL, or the fault."""
    (outcome,) = fetch(targets([url]), access or Access(seconds=PATIENCE), count().__next__)
    return outcome if isinstance(outcome, Page) else outcome[1]


def fault(url: str, access: Access | None = None) -> str:
    """The fault of a page that cannot be read, whole."""
    outcome = one(url, access)
    assert not isinstance(outcome, Page)
    assert outcome.todo
    return str(outcome)


def test_a_page_is_read_with_its_moment() -> None:
    """`host:port` is the engine's `/metrics`; the moment is taken when the answer begins."""
    with serving(lambda server: server.answer(200, b"# page\n")) as (host, asked):
        page = one(host)
    assert isinstance(page, Page)
    assert (page.content, page.seconds, page.target.shown) == (b"# page\n", 0, host)
    assert asked == [("/metrics", None)]


def test_pages_are_read_together() -> None:
    """Pages that each wait for the others to be asked for all arrive."""
    barrier = threading.Barrier(8, timeout=PATIENCE)

    def together(server: Server) -> None:
        barrier.wait()
        server.answer(200, server.path.encode())

    with serving(together) as (host, _):
        found = fetch(targets([f"{host}/{index}" for index in range(8)]), Access(seconds=PATIENCE), lambda: 0.0)
    assert [page.content for page in found if isinstance(page, Page)] == [f"/{index}".encode() for index in range(8)]


def drip(server: Server, first: bytes, piece: bytes, pause: float) -> None:
    """Send pieces until the other side hangs up or the test is over."""
    try:
        server.wfile.write(first)
        while not server.over.wait(pause):
            server.wfile.write(piece)
            server.wfile.flush()
    except OSError:
        pass


@pytest.mark.parametrize(
    "first",
    [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-", b""],
    ids=["body", "body of stated length", "headers", "status line"],
)
def test_a_slow_drip_is_cut_off(first: bytes) -> None:
    """A server that sends a byte at a time, in body or headers, gets no more than the total patience."""
    with serving(lambda server: drip(server, first, b"a", 0.02)) as (host, _):
        assert "gave no whole page within 0.3 s" in fault(host, Access(seconds=IMPATIENCE))


def test_an_endless_page_is_cut_off() -> None:
    """A body without end is dropped at the byte limit."""
    with serving(lambda server: drip(server, b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, 0.0)) as (host, _):
        assert "sends more than 1 MiB" in fault(host, Access(seconds=PATIENCE, largest=2**20))


def test_a_stated_length_is_believed_when_too_large() -> None:
    """A page that announces its size is refused before it is read."""
    with serving(lambda server: server.answer(200, Content_Length="99999999999999999999")) as (host, _):
        assert "sends more than 32 MiB" in fault(host)


def test_a_page_that_breaks_off_is_refused() -> None:
    """A body shorter than announced is a broken page, not a page."""

    def broken(server: Server) -> None:
        server.answer(200, b"half", Content_Length="100")
        server.close_connection = True

    with serving(broken) as (host, _):
        assert "cannot be read" in fault(host)


def test_what_is_not_http_is_refused() -> None:
    """A server that speaks something else is told in one bounded line."""
    with serving(lambda server: drip(server, b"\x1b[31mhello " + b"y" * 500 + b"\r\n", b"", 5.0)) as (host, _):
        text = fault(host)
    assert "cannot be read" in text
    assert "\x1b" not in text
    assert len(text) < 400


def test_a_redirect_is_not_followed() -> None:
    """A redirect is named without its secrets; nothing, least of all the token, goes to its goal."""
    with serving(lambda server: server.answer(200, b"stolen")) as (goal, stolen):
        location = f"http://user:{SECRET}@{goal}/x?token={SECRET}"
        with serving(lambda server: server.answer(307, Location=location)) as (host, asked):
            text = fault(host, Access(token=SECRET, seconds=PATIENCE))
    assert f"answers 307, a redirect to http://***@{goal}/x?***" in text
    assert SECRET not in text
    assert asked == [("/metrics", f"Bearer {SECRET}")]
    assert stolen == []


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "who asks"), (403, "--token-file"), (404, "/metrics"), (500, "500 instead"), (204, "204 instead")],
)
def test_a_refusal_says_what_to_do(status: int, message: str) -> None:
    """Each status that is no page has its message."""
    with serving(lambda server: server.answer(status)) as (host, _):
        assert message in fault(host)


def test_a_compressed_page_is_refused() -> None:
    """A plain page is asked for; one that comes compressed could be a bomb and is not unpacked."""
    with serving(lambda server: server.answer(200, b"\x1f\x8b", Content_Encoding="gzip")) as (host, _):
        assert "compressed" in fault(host)


def test_an_engine_that_is_not_there_is_told() -> None:
    """A closed port is a fault of that instance."""
    with serving(lambda server: server.answer(200)) as (host, _):
        pass
    assert "cannot be read" in fault(host)


def test_user_and_password_of_a_url_are_sent_and_not_shown() -> None:
    """Credentials in a URL become a login; no message or name carries them, and no token goes beside them."""
    with serving(lambda server: server.answer(401)) as (host, asked):
        text = fault(f"http://user:{SECRET}@{host}", Access(token=f"other {SECRET}", seconds=PATIENCE))
        (target,) = targets([f"http://user:{SECRET}@{host}"])
    assert SECRET not in f"{text} {target} {target.url}"
    assert asked[0][1] is not None
    assert asked[0][1].startswith("Basic ")


def test_an_error_that_echoes_the_token_hides_it() -> None:
    """A server that sends the token back in its status line does not get it printed."""
    with serving(lambda server: drip(server, f"{SECRET}\r\n\r\n".encode(), b"", 5.0)) as (host, _):
        assert SECRET not in fault(host, Access(token=SECRET, seconds=PATIENCE))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("file:///etc/passwd", "has the scheme file; only http and https are read"),
        ("file:/etc/passwd", "has the scheme file"),
        ("ftp://host/x", "has the scheme ftp"),
        ("data:text/plain,x", "has the scheme data"),
        ("http://", "names no host"),
        ("", "is no URL"),
        ("http://h:99999", "Port out of range"),
        ("http://h:0/", "has the port 0"),
        ("host name:80", "holds blanks"),
        ("http://h/\nx", "holds blanks"),
        ("h" * 3000, "is too long"),
        ("http://[::1", "Invalid IPv6 URL"),
    ],
)
def test_other_urls_are_refused_before_anything_is_asked(url: str, message: str) -> None:
    """Only http and https are read, and only from well-formed URLs; the fault shows how to write one."""
    with pytest.raises(InputError) as caught:
        targets([url])
    assert message in caught.value.faults[0].what
    assert "http://HOST:PORT" in caught.value.faults[0].todo


def test_all_faults_of_all_urls_are_told_at_once() -> None:
    """Each bad URL is a fault, and so is one named twice."""
    with pytest.raises(InputError) as caught:
        targets(["file:/a", "engine:8000", "http://engine:8000/metrics", "ftp://b"])
    assert len(caught.value.faults) == 3


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_an_input_error(text: str) -> None:
    """Whatever is typed for a URL, the answer is a target or a fault without control characters."""
    with suppress(InputError):
        (target,) = targets([text])
        assert target.url.startswith(("http://", "https://"))
        assert target.shown.isprintable()
    assert masked(text).isprintable()


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    """A file wins over the environment; a line break behind the token is no part of it."""
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    assert bearer_token({"RLSIZE_BEARER_TOKEN": "other"}, str(file)) == SECRET
    assert bearer_token({"RLSIZE_BEARER_TOKEN": " other "}, None) == "other"
    assert bearer_token({}, None) == ""


@pytest.mark.parametrize("content", [f"{SECRET} {SECRET}", f"{SECRET}\x7f", f"{SECRET}é", ""])
def test_a_bad_token_is_refused_and_not_shown(tmp_path: Path, content: str) -> None:
    """A token that no header may carry is a fault that does not print it."""
    file = tmp_path / "token"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        bearer_token({}, str(file))
    assert SECRET not in str(caught.value)


def test_certificates_that_cannot_be_read_are_a_fault(tmp_path: Path) -> None:
    """A missing or senseless file of certificates is told before anything is asked."""
    junk = tmp_path / "ca.pem"
    junk.write_text("junk")
    for path in (str(junk), str(tmp_path / "missing.pem")):
        with pytest.raises(InputError, match="cannot be read as certificates"):
            fetch(targets(["https://127.0.0.1:1/"]), Access(authority=path), lambda: 0.0)
