"""
Whatever this process starts ends with it, however it ends: a guard beside it waits for that, and ends what is left.

All that is started after `guard()` inherits a mark in its environment, by which /proc shows it whatever its session or
its parent is: torchrun gives its ranks sessions of their own. What writes a title over its environment, as engines of
vLLM do, is found by the session of a child that the guard was told of. Where there is no /proc, only the process groups
of children are ended, by `child.py`. This file is the guard's program too, so it imports nothing of rlsize.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MARK = "RLSIZE_MARK"  # the environment variable
GRACE_SECONDS = 10.0  # between the polite end and the other one
_ORPHANS_SECONDS = 2.0  # the same where nobody is left to whom they could tell anything
_PATIENCE_SECONDS = 5.0  # after it, for what the kernel holds
_PROC = Path("/proc")
_guards: list[subprocess.Popen[bytes]] = []


def guard(word: str = "") -> None:
    """
    Have a guard, from now on until this process has ended.

    Args:
        word: What to tell it: `+PID`, a child whose session is to end too; `-PID`, one that is over; or a folder that
            nobody needs any more then.
    """
    if not _guards or _guards[-1].poll() is not None:
        _start()
    pipe = _guards[-1].stdin if _guards else None
    if pipe is not None:
        with suppress(OSError, ValueError):  # it has been killed
            pipe.write(os.fsencode(word) + b"\n")
            pipe.flush()


def _start() -> None:
    mark = f"{os.getpid()}-{secrets.token_hex(8)}"
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    argv = [sys.executable, "-I", "-S", __file__, f"{MARK}={mark}"]
    with suppress(OSError):  # a machine that can start no process has nothing to guard
        _guards.append(
            subprocess.Popen(  # noqa: S603 (this file)
                argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
                start_new_session=True,
            )
        )  # fmt: skip
        os.environ[MARK] = mark


@contextmanager
def guarded(folder: str) -> Iterator[None]:
    """Have a guard within it, for processes that are all ended at its end, and a folder that is not needed then."""
    guard(folder)
    try:
        yield
    finally:
        with suppress(OSError, IndexError, subprocess.TimeoutExpired):
            _guards.pop().communicate(timeout=_PATIENCE_SECONDS)


def marked(mark: str, sessions: Collection[int] = ()) -> list[int]:
    """
    Ids of the processes that run with a mark, or in one of some sessions, apart from this one.

    Args:
        mark: `NAME=VALUE` in the environment that they were started with.
        sessions: Ids of sessions.
    """
    found, word = [], mark.encode()
    for place in _PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended, or is somebody else's
            state, _, _, session, *_ = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()
            ours = int(session) in sessions or word in (place / "environ").read_bytes().split(b"\0")
            if ours and state != "Z" and int(place.name) != os.getpid():
                found.append(int(place.name))
    return found


def end_marked(mark: str, seconds: float, sessions: Collection[int] = ()) -> None:
    """
    End all processes that have a mark or are in a session, and what they start meanwhile.

    Args:
        mark: `NAME=VALUE` in their environment.
        seconds: Between the polite request and the end. [s]
        sessions: Ids of sessions.
    """
    begun, asked = time.monotonic(), set[int]()
    while found := marked(mark, sessions):
        spent = time.monotonic() - begun
        for pid in found:
            if spent >= seconds or pid not in asked:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL if spent >= seconds else signal.SIGTERM)
        if spent > seconds + _PATIENCE_SECONDS:
            return
        asked.update(found)
        time.sleep(0.02)


def _main(mark: str) -> None:
    """Wait until nobody holds the other end of standard input any more."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    words = os.fsdecode(sys.stdin.buffer.read()).split("\n")
    sessions = set[int]()
    for word in words:
        if word[:1] == "+":
            sessions.add(int(word))
        elif word[:1] == "-":
            sessions.discard(-int(word))
    end_marked(mark, _ORPHANS_SECONDS, sessions)
    for word in words:
        if word[:1] not in {"", "+", "-"}:
            shutil.rmtree(word, ignore_errors=True)


if __name__ == "__main__":
    _main(sys.argv[1])
