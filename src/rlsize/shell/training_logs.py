"""The training log of a running loop, read and summed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.run_summary import RunSummary

if TYPE_CHECKING:
    from rlsize.shell.inputs import Inputs

_LONG = 64 * 2**20  # bytes of a log that takes about a second to read


def read_run(inputs: Inputs, logs: list[str], format: str | None) -> RunSummary:  # noqa: A002 (the flag's name)
    """
    The training log, summed up; an empty summary where none is named.

    Raises:
        InputError: All faults so far, and those of the log, where one is named.
    """
    if len(logs) > 1:
        inputs.fault(f"{len(logs)} training logs are named", logs[1], "name one; a run has one trainer")
    if not logs:
        return RunSummary()
    skip = inputs.ask("skipped_steps")
    inputs.settle()
    from pathlib import Path

    from rlsize.estimates.run_summary import run_summary
    from rlsize.readers.logs.reading import read_log
    from rlsize.shell.progress import late_progress

    file = Path(logs[0])
    with late_progress("reading") as tell:
        log = read_log(logs[0], format, tell if file.is_file() and file.stat().st_size > _LONG else None)
    found = run_summary(log, int(skip.number) if skip.known else None)
    if not found.steps:
        todo = "let it run longer, or leave fewer steps out with --skip"
        raise InputError(Fault("holds no settled step", log.source, todo))
    return found
