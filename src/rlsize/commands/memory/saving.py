"""What `rlsize memory` says of a loop that does not fit: every change that saves it, and the script with the best."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rlsize.commands.memory.phases import VERDICTS
from rlsize.errors import DoesNotFitError, Fault
from rlsize.loop.knobs import KINDS
from rlsize.loop.savers import savers
from rlsize.reports.report import Column, Table
from rlsize.shell.launches import can_change, in_own_keys, launch_of, with_batch, write_back
from rlsize.shell.progress import late_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.loop.resolve import Loop
    from rlsize.loop.savers import Saver
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs


def with_savers(report: Report, inputs: Inputs, loop: Loop, target: str | None, *, force: bool) -> Report:
    """
    The report of a loop, with what makes it fit where it does not, or not surely.

    Args:
        report: The report.
        inputs: What was said.
        loop: The loop.
        target: Where the launch is written with the best change that leaves the training as it is; None for nowhere.
        force: Whether a file that exists may be replaced.

    Raises:
        DoesNotFitError: There is nothing to write.
        InputError: There is no launch, or no file can be written.
    """
    with late_progress("looking for what makes it fit") as tell:
        found = savers(inputs, loop, partial(can_change, inputs), tell)
    if target is not None:
        best = next((one for one in found if one.kind == KINDS[0]), None)
        if best is None:
            what = "nothing to write: no single change or pair that leaves the training as it is makes it fit"
            told = what if report.no else "nothing to write: it fits as it is"
            raise DoesNotFitError(Fault(told, "--write", "leave it out"))
        launch = launch_of(inputs)
        wanted = best.values if launch is None else with_batch(inputs, launch.reading, best.values)
        done = write_back(inputs, wanted, target, force=force)
        report = replace(report, notes=(*report.notes, *done), done=done)
    return replace(report, tables={"savers": _table(inputs, found), **report.tables}) if found else report


def _table(inputs: Inputs, found: Sequence[Saver]) -> Table:
    told: dict[str, Saver] = {}
    for one in found:  # two quantities may be told by one key
        told.setdefault(in_own_keys(inputs, one.values), one)
    cells = (
        Column("change", "change", "left", wide=True, of=lambda told: told[0], pasted=True),
        Column("verdict", "fits", "left", of=lambda told: VERDICTS[told[1].phases.verdict]),
        Column("phase", "fullest", "left", of=lambda told: told[1].phases.worst.name),
        Column("gpu_seconds_per_million_tokens", "GPU s/Mtoken", of=lambda told: _cost(told[1])),
        Column("training", "training", "left", of=lambda told: told[1].kind.removeprefix("training ")),
    )
    note = "what leaves the training as it is, then what changes numerics, then the rest; the cheapest first"
    return Table.of("What makes it fit", told.items(), cells, note=note, shown=8)


def _cost(one: Saver) -> float | None:
    return None if one.gpu_seconds_per_token is None else one.gpu_seconds_per_token * 1e6
