"""A running loop, read: its training log summed up, its engines watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.facts.evidence import EngineLoad
from rlsize.facts.fields import Quantity
from rlsize.facts.run_summary import RunSummary

if TYPE_CHECKING:
    from rlsize.cli.inputs import Inputs
    from rlsize.cli.watching import Watched
    from rlsize.facts.figure import Figure
    from rlsize.facts.observations import Observation

SKIPPED_STEPS = Quantity("count", least=0, most=1e6, whole=True)


class Engines(NamedTuple):
    """Engines that were watched: what they did, and what they had to do."""

    seen: Observation
    load: EngineLoad


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
    from rlsize.cli.progress import late_progress
    from rlsize.estimates.run_summary import run_summary
    from rlsize.readers.logs.reading import read_log

    with late_progress("reading") as tell:
        log = read_log(logs[0], format, tell)
    found = run_summary(log, int(skip.number) if skip.known else None)
    if not found.steps:
        todo = "let it run longer, or leave fewer steps out with --skip"
        raise InputError(Fault("holds no settled step", log.source, todo))
    return found


def watched_engines(watched: Watched, group: Figure, limit: Figure) -> Engines:
    """What watched engines did."""
    from rlsize.estimates.engine_load import engine_load
    from rlsize.estimates.observing import observation
    from rlsize.readers.metrics.pages import histories

    found, unread = histories(watched.readings)
    seen = observation(
        found,
        unread,
        watched.window,
        group_size=group.number if group.known else None,
        largest_batch=limit.number if limit.known else None,
    )
    used = {one.instance for one in seen.used}
    return Engines(seen, engine_load({name: snapshots for name, snapshots in found.items() if name in used}))
