"""A training log that is followed until somebody says stop."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, RlsizeError
from rlsize.shell.command import tell
from rlsize.shell.progress import stop_waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rlsize.facts.run_log import RunLog


def log_reader(log: str | None, format: str | None, mapped: Sequence[str]) -> Callable[[], RunLog]:  # noqa: A002 (the flag's name)
    """
    What reads a log as it is now.

    Raises:
        InputError: It is nothing that can be read again, or `--map` is wrong.
    """
    from rlsize.readers.logs.reading import read_log
    from rlsize.readers.logs.said import said_figures

    if log is not None and log != "-" and not Path(log).exists():
        raise InputError(Fault("no such file", log, "check the path"))
    if log is None or log == "-":
        todo = "name the log that the trainer writes"
        raise InputError(Fault("is no file that can be read again", log or "LOG", todo))
    path, said = log, said_figures(mapped)
    return lambda: read_log(path, format, None, said)


def followed(
    log: str | None, read: Callable[[], RunLog] | None, every: float, *, always: bool = False
) -> Iterator[RunLog | None]:
    """
    The log, now and whenever it has changed; one that cannot be read for a while is told of once, on stderr.

    Args:
        log: Where it is; None where what is read is no file, which is read at each look.
        read: Reads it; None where there is nothing to read.
        every: Seconds between two looks. [s]
        always: Whether each look yields what was read last, if only nothing.
    """
    stop_waiting()  # what runs until it is told to stop tells of itself
    seen, told, found = "", "", None
    while True:
        now = "" if log is None else _look(log)
        new = read is not None and (log is None or now != seen)
        if new and read is not None:
            try:
                found = read()
            except RlsizeError as error:  # it has no whole step yet, or is being moved
                new = False
                if told != str(error):
                    tell(error)
                told = str(error)
            else:
                seen, told = now, ""
        if new or always:
            yield found
        time.sleep(every)


def _look(log: str) -> str:
    """What changes when a log does: size and time of it, or of what is in a folder."""
    path = Path(log)
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        return repr([(str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in files])
    except OSError as error:
        return repr(error)
