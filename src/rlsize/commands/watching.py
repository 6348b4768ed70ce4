"""Where `observe` gets its readings: saved pages, engines watched over a window, or what Prometheus saw of them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.readers.http_pages import Access
    from rlsize.readers.http_targets import Target
    from rlsize.readers.metrics.pages import Reading
    from rlsize.shell.inputs import Inputs

WINDOW, EVERY, TIMEOUT = 300.0, 5.0, 10.0
LONGEST_WINDOW = 7 * 86_400.0
MOST_SNAPSHOTS = 100_000  # of one engine at one moment; about 350 MB


class Time(NamedTuple):
    """A clock that never goes back, and a way to wait."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


TIME = Time()


class Watched(NamedTuple):
    """
    What was read, over which window, and how that ended.

    Args:
        readings: The pages that were read, or why not.
        window: How long the window was meant to be. [s]
        interrupted: Whether the user broke it off.
        full: Whether it grew too large to go on.
        ended: When it ended, in seconds since 1970; None for just now. [s]
    """

    readings: list[Reading]
    window: float
    interrupted: bool = False
    full: bool = False
    ended: float | None = None


class AccessFlags(NamedTuple):
    """How pages are asked for, as the user says it."""

    token_file: str | None = None
    ca: str | None = None
    insecure: bool = False
    timeout: str | None = None


def from_pages(inputs: Inputs, pages: list[str], seconds: str | None) -> Watched:
    """
    Saved pages as readings, two of each server.

    Raises:
        InputError: All faults of the inputs so far and of all pages.
    """
    from rlsize.readers.metrics.pages import saved_window

    apart = inputs.number("seconds", "--seconds", seconds, Quantity("s", least=1.0, most=LONGEST_WINDOW))
    readings: list[Reading] = []
    if len(pages) % 2:
        inputs.fault(f"{pages[-1]} has no second page", "--pages", "give two pages of each server: FIRST SECOND")
    for path in sorted({path for path in pages if pages.count(path) > 1}):
        inputs.fault(f"{path} is named twice", "--pages", "give each saved page once")
    try:
        readings = saved_window(list(zip(pages[::2], pages[1::2], strict=False)), apart.number if apart.known else 1.0)
    except InputError as error:
        inputs.faults.extend(error.faults)
    inputs.settle()
    return Watched(readings, apart.number)


def from_logs(inputs: Inputs, files: list[str], window: str | None) -> Watched:
    """
    Engines as their own logs tell of them, in the window at their ends.

    Raises:
        InputError: All faults of the inputs so far and of all logs.
    """
    from rlsize.readers.metrics.engine_logs import engine_log

    length = _window(inputs, window)
    inputs.settle()
    readings: list[Reading] = []
    seconds = 0.0
    for file in files:
        with _blamed(inputs, file):
            logged = engine_log(file, length.number)
            readings += logged.readings
            seconds = max(seconds, logged.window)
            inputs.notes += [f"Not used of {file}: {one.count} lines, {one.why}." for one in logged.skipped]
    inputs.settle()
    inputs.warnings.append("an engine's log rounds, and averages over its intervals: its metrics page is more exact")
    return Watched(readings, seconds)


def live(inputs: Inputs, urls: list[str], window: str | None, every: str | None, flags: AccessFlags) -> Watched:
    """
    Engines watched over a window.

    Raises:
        InputError: All faults of the inputs so far, the URLs and the token; nothing is asked for before.
    """
    from rlsize.readers.http_targets import targets
    from rlsize.readers.metrics.pages import live_reader

    length = _window(inputs, window)
    step = inputs.number("every_seconds", "--every", every, Quantity("s", least=0.5), default=EVERY)
    found: list[Target] = []
    with _blamed(inputs, ""):
        found = targets(urls)
    access = _access(inputs, flags, found)
    seen = watch(live_reader(found, access, TIME.clock), length.number, min(step.number, length.number), TIME)
    if seen.full:
        what = f"more than {MOST_SNAPSHOTS:,} snapshots are kept no longer"
        inputs.warnings.append(f"{what}: engines joined, so the watch ended after {seen.window:.0f} s (--every)")
    return seen


def from_prometheus(
    inputs: Inputs, url: str, selector: str | None, window: str | None, at: str | None, flags: AccessFlags
) -> Watched:
    """
    Engines as a Prometheus server saw them over a window.

    Raises:
        InputError: All faults of the inputs so far; nothing is asked for before. Or no engines are there.
        UnfinishedError: The server cannot be reached, or refuses.
    """
    from rlsize.readers.http_targets import api_target
    from rlsize.readers.prometheus import scraped
    from rlsize.readers.prometheus_asking import matchers, moment

    length = _window(inputs, window)
    chosen, end, found = "", None, []
    with _blamed(inputs, "--prometheus"):
        found = [api_target(url)]
        inputs.keep(Figure(key="prometheus", value=found[0].shown, source="--prometheus"))
    with _blamed(inputs, "--selector", "write label matchers: --selector 'job=\"rollout\"'"):
        chosen = matchers(selector or "")
        inputs.keep(Figure(key="selector", value=chosen or None, source="--selector"))
    with _blamed(inputs, "--at", "write seconds since 1970, or 2026-03-01T12:00:00Z"):
        end = moment(at) if at is not None else None
        inputs.keep(Figure(key="at", value=at, source="--at"))
    access = _access(inputs, flags, found)
    seen = scraped(found[0], access, TIME.clock, chosen, length.number, end)
    inputs.warnings += seen.warnings
    return Watched(seen.readings, length.number, ended=seen.end)


def _window(inputs: Inputs, text: str | None) -> Figure:
    """How long to watch; durations may be written as Prometheus writes them, too: 5m, 1h30m."""
    from rlsize.readers.prometheus_asking import duration

    seconds = duration(text) if text is not None else None
    said = text if seconds is None else f"{seconds:g}"
    limits = Quantity("s", least=1.0, most=LONGEST_WINDOW)
    return inputs.number("window_seconds", "--window", said, limits, default=WINDOW)


def _access(inputs: Inputs, flags: AccessFlags, found: list[Target]) -> Access:
    """
    How to ask the targets.

    Raises:
        InputError: All faults of the inputs so far.
    """
    from rlsize.readers.http_pages import Access
    from rlsize.readers.http_targets import LOGIN_VARIABLE, basic_login, bearer_token

    patience = inputs.number("timeout_seconds", "--timeout", flags.timeout, Quantity("s", most=600.0), default=TIMEOUT)
    token, login = "", None
    with _blamed(inputs, ""):
        token = bearer_token(os.environ, flags.token_file)
    with _blamed(inputs, ""):
        login = basic_login(os.environ)
    if token and login:
        inputs.fault("a token and a login are given", LOGIN_VARIABLE, "give one of them")
    inputs.settle()
    if (token or login) and any(target.exposed for target in found):
        secret = "token" if token else "password"
        inputs.warnings.append(f"the {secret} goes over plain http, which anyone on the way can read; https hides it")
    return Access(token=token, login=login, authority=flags.ca, insecure=flags.insecure, seconds=patience.number)


@contextmanager
def _blamed(inputs: Inputs, flag: str, todo: str = "") -> Iterator[None]:
    """Note what is wrong with a flag, and go on."""
    try:
        yield
    except InputError as error:
        inputs.blame(error, flag)
    except ValueError as error:
        inputs.fault(str(error), flag, todo)


def watch(read: Callable[[], list[Reading]], window: float, every: float, clock: Time) -> Watched:
    """
    Read engines over a window, with a progress bar on a terminal; what was read so far if the user breaks off.

    If no engine can be read at the first look, it is the last one. What a watch keeps is bounded: one that would keep
    too many snapshots is refused at its first look, and one that does since engines joined ends early.

    Args:
        read: Reads all pages once.
        window: How long to watch. [s]
        every: Seconds between two rounds. [s]
        clock: Tells the time and waits.

    Raises:
        InputError: So many engines cannot be looked at so often for so long.
    """
    from rlsize.readers.metrics.pages import watched

    readings: list[Reading] = []
    kept = 0
    start = clock.clock()
    with _progress(window) as show:
        try:
            for round_ in watched(read, window, every, clock.clock, clock.sleep):
                if not readings:
                    _check_size(round_, window, every)
                readings += round_
                kept += _size(round_)
                if all(reading.fault for reading in readings):  # the first look: nobody is there to wait for
                    break
                if kept > MOST_SNAPSHOTS:
                    return Watched(readings, min(window, clock.clock() - start), full=True)
                show(clock.clock() - start)
        except KeyboardInterrupt:
            return Watched(readings, min(window, clock.clock() - start), interrupted=True)
    return Watched(readings, window)


def _size(round_: list[Reading]) -> int:
    """Snapshots that a round keeps; a page that could not be read may be read next time."""
    return sum(max(1, len(reading.snapshots)) for reading in round_)


def _check_size(first: list[Reading], window: float, every: float) -> None:
    engines, rounds = _size(first), math.ceil(window / every) + 1
    if engines * rounds <= MOST_SNAPSHOTS:
        return
    seldom = math.ceil(window / max(1, MOST_SNAPSHOTS // engines - 1))
    what = (
        f"{engines:,} engines looked at {rounds:,} times are more than the {MOST_SNAPSHOTS:,} snapshots that are kept"
    )
    raise InputError(Fault(what, "--every", f"look every {seldom:,} s, watch a shorter --window, or fewer engines"))


@contextmanager
def _progress(window: float) -> Iterator[Callable[[float], None]]:
    """A bar on stderr where that is a terminal; nothing elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(TextColumn("watching"), BarColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("watching", total=window)
        yield lambda passed: bar.update(task, completed=min(window, passed))
