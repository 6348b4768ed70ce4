"""A Prometheus server as a source, played by a small server here: what it may answer, and what we make of it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlsize.errors import InputError, UnfinishedError
from rlsize.estimates.observing import observation
from rlsize.facts import published
from rlsize.readers import prometheus
from rlsize.readers.http_pages import Access, api_target, basic_login
from rlsize.readers.metrics.pages import histories
from rlsize.readers.prometheus import Scraped, duration, moment, scraped, trainer_steps, wanted_names

END = 1_772_366_400.0
SECRET = "s3cr3t-word"  # noqa: S105 (a test's own)


class Answers:
    """What the server answers to everything but its clock, and what it was asked."""

    def __init__(self) -> None:
        self.body: Any = matrix()
        self.status = 200
        self.url = ""
        self.queries: list[str] = []
        self.seen: list[str | None] = []

    def scraped(self, window: float = 60.0, matchers: str = "", **access: Any) -> Scraped:
        """What is read of it."""
        return scraped(api_target(self.url), Access(**access), lambda: 0.0, matchers, window)


@pytest.fixture(scope="module")
def serving() -> Iterator[Answers]:
    """The server."""
    found = Answers()

    class Handler(BaseHTTPRequestHandler):
        """Answers as it is told to."""

        def do_GET(self) -> None:
            """Answer a query, or the question for the time."""
            query = parse_qs(urlsplit(self.path).query)["query"][0]
            found.queries.append(query)
            found.seen.append(self.headers["Authorization"])
            asked_time = query == "time()"
            clock = {"status": "success", "data": {"resultType": "scalar", "result": [END, str(END)]}}
            body = clock if asked_time and found.status == 200 else found.body
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def server(serving: Answers) -> Answers:
    """The server with nothing told or asked yet."""
    serving.status, serving.body = 200, matrix()
    serving.queries.clear()
    serving.seen.clear()
    return serving


def tokens(
    rate: float = 100.0, until: float = END, every: float = 10.0, looks: int = 7, **labels: str
) -> dict[str, Any]:
    """A series of generated tokens."""
    at = [until - every * (looks - 1 - look) for look in range(looks)]
    values = [[moment, str(rate * (moment - END + 1000.0))] for moment in at]
    own = {"__name__": "vllm:generation_tokens_total", "instance": "a:1", "job": "rollout", **labels}
    return {"metric": own, "values": values}


def matrix(*series: dict[str, Any]) -> dict[str, Any]:
    """An answer."""
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}


def rates(found: Scraped) -> dict[str, float]:
    """Tokens per second of each engine."""
    engines, _ = histories(found.readings)
    return {
        name: (last.counters.generation_tokens - first.counters.generation_tokens) / (last.seconds - first.seconds)
        for name, (first, *_, last) in engines.items()
    }


def test_targets_are_told_apart_and_ranks_within_them(server: Answers) -> None:
    """Pods name themselves, others go by their address; two ranks of one page stay one target."""
    server.body = matrix(
        tokens(100, pod="rollout-0", engine="0"),
        tokens(50, pod="rollout-0", engine="1"),
        tokens(70, instance="b:1"),
        {"metric": {"__name__": "process_start_time_seconds", "instance": "node:9100"}, "values": [[END, "1"]]},
    )
    found = server.scraped()
    assert rates(found) == {"rollout-0 engine 0": 100.0, "rollout-0 engine 1": 50.0, "b:1": 70.0}
    assert found.end == END
    assert server.queries[1].endswith("}[60000ms]")


def test_a_target_that_two_jobs_scrape_counts_once(server: Answers) -> None:
    """The copy with more samples is taken, and it is said."""
    server.body = matrix(tokens(100), tokens(100, looks=4, job="again"), tokens(80, instance="b:1"))
    found = server.scraped()
    assert rates(found) == {"a:1": 100.0, "b:1": 80.0}
    assert found.warnings == ("1 targets were scraped by several jobs and count once each, a:1 among them",)


def test_a_target_that_fell_silent_is_missing(server: Answers) -> None:
    """Its samples end 40 s before the window does: four scrapes, so no rate is made of what there is."""
    server.body = matrix(tokens(100), tokens(80, until=END - 40.0, instance="b:1"))
    engines, unread = histories(server.scraped(window=120.0).readings)
    assert list(engines) == ["a:1"]
    assert unread == {"b:1": "fell silent: the last sample is 40 s older than the window's end"}


def test_a_restart_shows_as_it_does_on_pages(server: Answers) -> None:
    """Raw samples keep the counter that went back, which a rate of Prometheus's own would hide."""
    series = tokens(100)
    series["values"][4:] = [[moment, str(float(value) - 95_000)] for moment, value in series["values"][4:]]
    server.body = matrix(series, tokens(80, instance="b:1"))
    found, unread = histories(server.scraped().readings)
    seen = observation(found, unread, 60.0)
    assert [instance.instance for instance in seen.used] == ["b:1"]
    assert "vllm:generation_tokens_total went back from 97000 to 3000" in seen.warnings[0]


def test_samples_that_are_no_numbers_are_left_out(server: Answers) -> None:
    """NaN and infinity are no counts; the page of such a moment lacks them, or is none."""
    series = tokens(100)
    series["values"][0][1], series["values"][3][1] = "NaN", "+Inf"
    waiting = {"metric": {**series["metric"], "__name__": "vllm:num_requests_waiting"}, "values": [[END, "NaN"]]}
    server.body = matrix(series, waiting)
    (snapshots,) = histories(server.scraped().readings)[0].values()
    assert [snapshot.seconds for snapshot in snapshots] == [10.0, 20.0, 40.0, 50.0, 60.0]
    assert snapshots[-1].counters.requests_waiting is None


def test_the_servers_warnings_are_told(server: Answers) -> None:
    """A fleet of Prometheus servers may answer in part."""
    server.body = {**matrix(tokens(100)), "warnings": ["store\x1b[31m gone\nfor now"]}
    assert server.scraped().warnings == ("Prometheus says: store?[31m gone for now",)


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (400, {"status": "error", "error": "parse error: unexpected }"}, InputError, "400: parse error: unexpected }"),
        (422, {"status": "error", "error": "too many samples"}, InputError, "422: too many samples"),
        (401, b"Unauthorized", UnfinishedError, "answers 401"),
        (403, {"error": f"{SECRET} may not"}, UnfinishedError, "answers 403: *** may not"),
        (404, b"<html>", UnfinishedError, "answers 404"),
        (503, {"error": "x" * 5000}, UnfinishedError, "x" * 190),
        (302, b"", UnfinishedError, "a redirect to"),
        (200, b"[" * 100_000, InputError, "does not answer as Prometheus does"),
        (200, {"status": "success", "data": {"result": {}}}, InputError, "does not answer as Prometheus does"),
        (200, matrix({"metric": {}, "values": [[1]]}), InputError, "does not answer as Prometheus does"),
        (200, matrix(), InputError, 'no series of engines for {job="x"} in a window of 60 s; sought were vllm:gen'),
        (200, b" " * 70_000, UnfinishedError, "sends more than"),
    ],
)
def test_what_goes_wrong_is_told(server: Answers, status: int, body: Any, error: type[Exception], message: str) -> None:
    """Each with its exit code; on one line, bounded, and without the token."""
    server.status, server.body = status, body
    largest = 2**16 if message.startswith("sends") else 2**20
    with pytest.raises(error, match=re.escape(message)) as caught:
        server.scraped(matchers='job="x"', token=SECRET, largest=largest)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert set(server.seen) == {f"Bearer {SECRET}"}


def test_too_many_pages_are_refused(server: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as a watch would keep are kept."""
    monkeypatch.setattr(prometheus, "MOST_PAGES", 13)
    server.body = matrix(tokens(1), tokens(1, instance="b:1"))
    with pytest.raises(InputError, match="more than 13 pages"):
        server.scraped()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.just([END, "1"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["metric", "values", "__name__", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_whatever_it_answers_there_is_no_traceback(server: Answers, junk: Any) -> None:
    """Readings, or an error with a message."""
    server.status = 200
    server.body = {"status": "success", "data": {"result": junk if isinstance(junk, list) else [junk, tokens(1)]}}
    with suppress(InputError, UnfinishedError):
        assert server.scraped().end == END


def test_all_names_that_are_read_are_sought() -> None:
    """With both kinds of prefix; nothing of a program that only sounds alike."""
    sought = re.compile(wanted_names())
    for name in (
        "vllm:generation_tokens_total",
        "ray_vllm_num_requests_running",
        "vllm:request_generation_tokens_bucket",
        "sglang:realtime_tokens_total",
        "trtllm_parallel_config_info",
        "process_start_time_seconds",
    ):
        assert sought.fullmatch(name)
    assert not sought.fullmatch("vllm:time_to_first_token_seconds_bucket")


def test_durations_and_moments() -> None:
    """As Prometheus writes them; a time without a zone could be any."""
    assert (duration("90s"), duration("2d"), duration("1w"), duration("250ms")) == (90.0, 172_800.0, 604_800.0, 0.25)
    assert (duration("5 m"), duration("m"), duration("-5m"), duration("")) == (None,) * 4
    assert moment("2026-03-01T13:00:00+01:00") == moment("1772366400") == END
    for text in ("2026-03-01T12:00:00", "yesterday", "nan", "-1", "1e300"):
        with pytest.raises(ValueError, match=r"no moment|no time zone"):
            moment(text)


def test_logins_are_read_and_never_shown(server: Answers) -> None:
    """User and password of the environment go to the server; a URL's own go before; neither is printed."""
    login = basic_login({"RLSIZE_BASIC_AUTH": f"me:{SECRET}:x"})
    assert login == ("me", f"{SECRET}:x")
    assert basic_login({}) is None
    server.status, server.body = 403, {"error": f"{SECRET}:x is no password"}
    with pytest.raises(UnfinishedError) as caught:
        server.scraped(login=login)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(Access(login=login))
    assert server.seen[0] is not None
    assert server.seen[0].startswith("Basic ")
    for text in (SECRET, f":{SECRET}", f"me:{SECRET}\n"):
        with pytest.raises(InputError) as refused:
            basic_login({"RLSIZE_BASIC_AUTH": text})
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("url", ["http://u:s3cr3t-word@h:1/?x=1", "ftp://h", "http://h:1/p?token=s3cr3t-word", ""])
def test_urls_that_are_no_server_are_refused(url: str) -> None:
    """The fault shows neither password nor query."""
    with pytest.raises(InputError) as caught:
        api_target(url)
    assert SECRET not in str(caught.value)


def counted(name: str, *values: float, **labels: str) -> dict[str, Any]:
    """A trainer's series, scraped every 10 s until the end."""
    at = [END - 10.0 * (len(values) - 1 - look) for look in range(len(values))]
    own = {"__name__": name, "instance": "t:9477", **labels}
    return {"metric": own, "values": [[moment, str(value)] for moment, value in zip(at, values, strict=True)]}


def test_counters_of_a_trainer_are_its_steps(server: Answers) -> None:
    """Each growth is a row; one that is seen late counts the steps that it covers; one that begins anew counts on."""
    server.body = matrix(
        counted(published.STEP, 100, 130, 130, 190, 20, 50),
        counted(published.STEPS, 10, 11, 11, 13, 1, 2),
        counted(published.WAIT, 40, 46, 46, 56, 5, 12),
        counted(published.QUEUED, 7, 7, 8, 9, 9, 9),
        counted(published.LOOP, 1, 1, 1, 1, 1, 1, mode="synchronous"),
    )
    asked = (api_target(server.url), Access(), lambda: 0.0, "", 60.0, Scraped([], END, ()))
    found = trainer_steps(*asked)
    assert found is not None
    rows = [(one.step_seconds, one.updates, one.wait_seconds, one.queued_samples) for one in found.log.steps]
    assert rows == [(30, 1, 6, 7), (60, 2, 10, 9), (30, 1, 7, 9)]
    assert (found.ends, found.gap, found.log.mode) == ((20, 40, 60), 10, "synchronous")
    server.body = matrix(counted(published.STEP, 1, 2), counted(published.STEP, 1, 2, pod="other"))
    with pytest.raises(InputError, match="has 2 trainers"):
        trainer_steps(*asked)
    server.body = matrix()
    assert trainer_steps(*asked) is None
