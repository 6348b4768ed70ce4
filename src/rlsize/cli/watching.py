"""Where `observe` gets its readings: two saved pages, or engines watched over a window."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.facts.fields import Quantity

if TYPE_CHECKING:
    from rlsize.cli.inputs import Inputs
    from rlsize.readers.metrics.pages import Reading

WINDOW, EVERY, TIMEOUT = 300.0, 5.0, 10.0
LONGEST_WINDOW = 7 * 86_400.0
MOST_SNAPSHOTS = 100_000  # of one engine at one moment; about 250 MB


class Time(NamedTuple):
    """A clock that never goes back, and a way to wait."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


TIME = Time()


class Watched(NamedTuple):
    """What was read, over which window, whether the user broke it off, and whether it grew too large to go on."""

    readings: list[Reading]
    window: float
    interrupted: bool = False
    full: bool = False


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


def live(
    inputs: Inputs,
    urls: list[str],
    window: str | None,
    every: str | None,
    timeout: str | None,
    token_file: str | None,
    ca: str | None,
    *,
    insecure: bool,
) -> Watched:
    """
    Engines watched over a window.

    Raises:
        InputError: All faults of the inputs so far, the URLs and the token; nothing is asked for before.
    """
    from rlsize.readers.http_pages import Access
    from rlsize.readers.http_targets import bearer_token, targets
    from rlsize.readers.metrics.pages import live_reader

    length = inputs.number(
        "window_seconds", "--window", window, Quantity("s", least=1.0, most=LONGEST_WINDOW), default=WINDOW
    )
    step = inputs.number("every_seconds", "--every", every, Quantity("s", least=0.5), default=EVERY)
    patience = inputs.number("timeout_seconds", "--timeout", timeout, Quantity("s", most=600.0), default=TIMEOUT)
    found, token = [], ""
    try:
        found = targets(urls)
    except InputError as error:
        inputs.faults.extend(error.faults)
    try:
        token = bearer_token(os.environ, token_file)
    except InputError as error:
        inputs.faults.extend(error.faults)
    inputs.settle()
    if token and any(target.exposed for target in found):
        inputs.warnings.append("the token goes over plain http, which anyone on the way can read; https hides it")
    access = Access(token=token, authority=ca, insecure=insecure, seconds=patience.number)
    seen = watch(live_reader(found, access, TIME.clock), length.number, min(step.number, length.number), TIME)
    if seen.full:
        what = f"more than {MOST_SNAPSHOTS:,} snapshots are kept no longer"
        inputs.warnings.append(f"{what}: engines joined, so the watch ended after {seen.window:.0f} s (--every)")
    return seen


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
