"""How a command that runs until it is told to stop is told."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """INT, TERM and HUP alike raise KeyboardInterrupt; a HUP that was ignored at the start (nohup) stays ignored."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    heard = [number for number in _ENDING if (number, signal.getsignal(number)) != (signal.SIGHUP, signal.SIG_IGN)]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
