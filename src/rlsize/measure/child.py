"""
A process that measures: started under a Python of its own, told what to do, heard, and ended with all that it started.

It writes one JSON object per line to a file of events; what it prints goes to a log. On its standard input it reads one
JSON object per line. It runs in a session of its own, so that Ctrl-C reaches rlsize alone, which ends it in order; a
guard does where rlsize itself was killed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, UnfinishedError
from rlsize.measure.guard import GRACE_SECONDS, end_marked, guard
from rlsize.units import cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

WORKERS = Path(__file__).parent / "workers"
EVENTS = "RLSIZE_EVENTS"  # the environment variable that names the file of events
POLL_SECONDS = 0.02
LARGEST_EVENTS = 256 * 2**20
KILLED = "Signal 9 (SIGKILL)"  # how torchrun tells that the kernel took a rank for want of memory
WHOLE_LOG = "its whole log: --log FILE"
_TOLD = 400  # characters of a child's last words
_WORDS = re.compile(
    r"(?:^|[\s.])(?P<error>[A-Z]\w*(?:Error|Exception): \S.*|Worker proc \S+ died unexpectedly \(exit code: [-\w]+\))"
)
# Lines with one of these only say that another line says why.
_VAGUE = ("root cause", "ChildFailedError", "EngineDeadError", "RuntimeError: cancelled", "WARNING")
_MEMORY = re.compile(r"out of memory|OutOfMemory|(?:can't|cannot) allocate memory|MemoryError", re.IGNORECASE)


def staged(folder: Path) -> dict[str, str]:
    """
    Copy the workers into a folder as the only part of rlsize, so that a foreign Python finds them and nothing else.

    Returns:
        The environment in which `python -m rlsize.measure.workers.NAME` runs one.
    """
    package = folder / "rlsize"
    (package / "measure" / "workers").mkdir(parents=True)
    for empty in (package, package / "measure"):
        (empty / "__init__.py").touch()
    for file in WORKERS.glob("*.py"):
        (package / "measure" / "workers" / file.name).write_bytes(file.read_bytes())
    path = os.pathsep.join(part for part in (str(folder), os.environ.get("PYTHONPATH", "")) if part)
    return {
        "PYTHONPATH": path,
        "PYTHONSAFEPATH": "1",  # a folder named vllm where the user stands is not the library
        "VLLM_NO_USAGE_STATS": os.environ.get("VLLM_NO_USAGE_STATS", "1"),  # a measurement is nobody else's business
    }


class ChildDiedError(UnfinishedError):
    """
    A measuring process ended before its work was done.

    Args:
        fault: What it said last.
        memory: Whether it ran out of memory.
    """

    def __init__(self, fault: Fault, *, memory: bool = False) -> None:
        super().__init__(fault)
        self.memory = memory


class Child:
    """
    One measuring process.

    Args:
        argv: The command.
        folder: A folder of its own for events and log.
        name: What to call it in messages.
        env: Variables on top of the environment.
    """

    def __init__(self, argv: Sequence[str], folder: Path, name: str, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = folder / "log"
        self._events = folder / "events"
        self._events.touch()
        self._read = 0
        self._rest = b""
        self._waiting: list[dict[str, Any]] = []
        guard()
        whole = {**os.environ, **(env or {}), EVENTS: str(self._events)}
        try:
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(  # noqa: S603 (the command is built here, never by a shell)
                    list(argv), stdin=subprocess.PIPE, stdout=log, stderr=log, env=whole, start_new_session=True
                )
        except OSError as error:
            what = f"{argv[0]} cannot be started: {error.strerror or error}"
            raise UnfinishedError(Fault(what, name, "name a Python that has what it needs")) from None
        guard(f"+{self._process.pid}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def tell(self, message: Mapping[str, Any]) -> None:
        """
        Send a message to its standard input.

        Raises:
            ChildDiedError: It does not listen any more.
        """
        try:
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
        except (OSError, ValueError):  # its end of the pipe is closed, or ours
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_SECONDS)
            raise self._died() from None

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """
        Its next event; None where it ended in order and has nothing left to say.

        Args:
            seconds: Most to wait for it. [s]

        Raises:
            ChildDiedError: It ended with a fault, or said nothing for so long.
        """
        until = time.monotonic() + seconds
        while True:
            ended = self._process.poll() is not None
            self._read_more()  # after the poll: what it said last is on file by then
            if self._waiting:
                return self._waiting.pop(0)
            if ended:
                if self._process.returncode == 0:
                    return None
                raise self._died()
            if time.monotonic() > until:
                fault = Fault(f"said nothing for {seconds:.0f} s", self.name, "its last words: " + self.last_words())
                raise ChildDiedError(fault)
            time.sleep(POLL_SECONDS)

    def heard(self) -> list[dict[str, Any]]:
        """
        What it said since it was last asked; does not wait.

        Raises:
            ChildDiedError: It has ended, and has nothing left to say.
        """
        ended = self._process.poll() is not None
        self._read_more()  # after the poll: what it said last is on file by then
        said, self._waiting = self._waiting, []
        if not said and ended:
            raise self._died()
        return said

    def end(self) -> None:
        """End it and all that it started; politely, then not."""
        try:
            if self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_SECONDS)
        finally:  # a second signal hastens the end, and its own children may outlive it
            self._signal(signal.SIGKILL)
            end_marked(f"{EVENTS}={self._events}", 0.0, {self._process.pid})
            self._process.wait()
            guard(f"-{self._process.pid}")

    def last_words(self) -> str:
        """What it printed last that says why it ended, in a line."""
        lines = self._tail().splitlines()
        telling = (line for line in lines if not any(word in line for word in _VAGUE))
        errors = [found["error"] for line in telling if (found := _WORDS.search(line))]
        return cut((errors or [line.strip() for line in lines if line.strip()] or ["nothing"])[-1], _TOLD)

    def _tail(self) -> str:
        with suppress(OSError), self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 65_536))
            return log.read().decode("utf-8", "replace")
        return ""

    def _died(self) -> ChildDiedError:
        code = self._process.poll()
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        tail = self._tail()
        memory = bool(_MEMORY.search(tail)) or code == -signal.SIGKILL
        what = f"{how}: {self.last_words()}"
        if KILLED in tail:  # before what other ranks told: they fail because they lost this one
            what, memory = "a rank was killed, as the kernel does where memory runs out", True
        return ChildDiedError(Fault(what, self.name, WHOLE_LOG), memory=memory)

    def _read_more(self) -> None:
        with self._events.open("rb") as events:
            events.seek(self._read)
            fresh = events.read(LARGEST_EVENTS)
        self._read += len(fresh)
        *lines, self._rest = (self._rest + fresh).split(b"\n")
        for line in lines:
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    self._waiting.append(event)

    def _signal(self, number: int) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, number)
