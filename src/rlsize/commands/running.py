"""The training log of a running loop, read and summed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.fields import Quantity
from rlsize.facts.run_summary import RunSummary

if TYPE_CHECKING:
    from rlsize.facts.figure import Figure
    from rlsize.shell.inputs import Inputs

_LONG = 64 * 2**20  # bytes of a log that takes about a second to read
SKIPPED_STEPS = Quantity("count", least=0, most=1e6, whole=True)


def _is_long(path: str) -> bool:
    """Whether reading a log takes so long that its progress is worth showing."""
    from pathlib import Path

    file = Path(path)
    return file.is_file() and file.stat().st_size > _LONG


def read_run(inputs: Inputs, logs: list[str], format: str | None, skip: Figure) -> RunSummary:  # noqa: A002 (the flag's name)
    """
    The training log, summed up; an empty summary where none is named.

    Raises:
        InputError: All faults so far, and those of the log.
    """
    if len(logs) > 1:
        inputs.fault(f"{len(logs)} training logs are named", logs[1], "name one; a run has one trainer")
    inputs.settle()
    if not logs:
        return RunSummary()
    from rlsize.estimates.run_summary import run_summary
    from rlsize.readers.logs.reading import read_log
    from rlsize.shell.progress import late_progress

    with late_progress("reading") as tell:
        log = read_log(logs[0], format, tell if _is_long(logs[0]) else None)
    found = run_summary(log, int(skip.number) if skip.known else None)
    if not found.steps:
        todo = "let it run longer, or leave fewer steps out with --skip"
        raise InputError(Fault("holds no settled step", log.source, todo))
    return found
