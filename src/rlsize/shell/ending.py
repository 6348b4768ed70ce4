"""How a command is told to end: INT, TERM and HUP alike, in order, with what is finished shown and kept."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130
_AT_ONCE_SECONDS = 1.0  # within which a second signal is the same end, told to a group and to each of its processes


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
