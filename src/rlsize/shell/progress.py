"""
How far a long work has come: a bar on a terminal, a line for each thing that begins elsewhere; always on stderr.
And how a command is told to end.

What follows a tab is how it goes meanwhile: elsewhere, it is said now and then.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

MEANWHILE_SECONDS = 10.0
Say = Callable[[str, float], None]
_waiting: list[threading.Timer] = []

INTERRUPTED = 130
_AT_ONCE_SECONDS = 1.0  # within which a second signal is the same end, told to a group and to each of its processes


@contextmanager
def saying_if_long(text: str, seconds: float = 1.0) -> Iterator[None]:
    """Say once that something is worked on, where it takes longer than that and tells nothing else of itself."""
    timer = threading.Timer(seconds, lambda: sys.stderr.write(f"{text}\n"))
    timer.daemon = True
    _waiting.append(timer)
    timer.start()
    try:
        yield
    finally:
        stop_waiting()


def stop_waiting() -> None:
    """What comes next tells of itself."""
    while _waiting:
        _waiting.pop().cancel()


@contextmanager
def patient_progress(seconds: float = 1.0) -> Iterator[Say]:
    """The same as `progress`, but silent about what is over within some time."""
    start = time.monotonic()
    with progress() as say:
        yield lambda text, share: say(text, share) if time.monotonic() - start > seconds else None


@contextmanager
def progress() -> Iterator[Say]:
    """A function that takes what is being done and the share of it that is done, 0 to 1."""
    from rich.console import Console

    stop_waiting()
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda text, share: bar.update(task, description=text.replace("\t", ": "), completed=min(1.0, share))


@contextmanager
def late_progress(text: str) -> Iterator[Callable[[float], None]]:
    """A function that takes the share that is done; nothing is shown, or loaded, before its first call."""
    with ExitStack() as stack:
        said: list[Say] = []

        def say(share: float) -> None:
            if not said:
                said.append(stack.enter_context(progress()))
            said[0](text, share)

        yield say


def _lines() -> Say:
    told, when = [""], [time.monotonic()]

    def say(text: str, _: float) -> None:
        now = time.monotonic()
        if (now - when[0] > MEANWHILE_SECONDS) if "\t" in text else text != told[0]:
            told[0], when[0] = text, now
            sys.stderr.write(text.replace("\t", ": ") + "\n")
            sys.stderr.flush()

    return say


@contextmanager
def ended_in_order() -> Iterator[None]:
    """
    Have INT, TERM and HUP raise KeyboardInterrupt, where this thread may hear of them.

    A HUP that was ignored at the start (nohup) stays ignored. A later signal hastens the end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told: list[float] = []

    def end(*_: object) -> None:
        now = time.monotonic()
        if told and now - told[-1] < _AT_ONCE_SECONDS:
            return
        told.append(now)
        raise KeyboardInterrupt

    heard = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    hangup = getattr(signal, "SIGHUP", None)
    before = {
        number: signal.signal(number, end)
        for number in heard
        if number != hangup or signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
