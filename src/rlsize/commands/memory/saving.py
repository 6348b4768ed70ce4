"""What `rlsize memory` says of a loop that does not fit: every change that saves it, and the script with the best."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rlsize.errors import DoesNotFitError, Fault
from rlsize.loop.savers import KINDS, savers
from rlsize.reports.report import Column, Table
from rlsize.shell.launches import can_change, in_own_keys, write_back
from rlsize.shell.progress import late_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.loop.resolve import Loop
    from rlsize.loop.savers import Saver
    from rlsize.reports.report import Cell, Report
    from rlsize.shell.inputs import Inputs

_MOST_SEEN = 8
_PER_MILLION = 1e6
_VERDICTS = {"fits": "yes", "not sure": "not sure", "dies": "no"}


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
    notes = report.notes
    if target is not None:
        best = next((one for one in found if one.kind == KINDS[0]), None)
        if best is None:
            what = "nothing to write: no single change or pair that leaves the training as it is makes it fit"
            told = what if report.no else "nothing to write: it fits as it is"
            raise DoesNotFitError(Fault(told, "--write", "leave it out"))
        notes = (*notes, *write_back(inputs, best.values, target, force=force))
    if not found:
        return replace(report, notes=notes)
    return replace(report, tables={**report.tables, "savers": _table(inputs, found)}, notes=notes)


def _table(inputs: Inputs, found: Sequence[Saver]) -> Table:
    columns = (
        Column("change", "change", "left", wide=True),
        Column("verdict", "fits", "left"),
        Column("phase", "fullest", "left"),
        Column("gpu_seconds_per_million_tokens", "GPU s/Mtoken"),
        Column("training", "training", "left"),
    )
    rows: dict[object, dict[str, Cell]] = {}
    for one in found:  # two quantities may be told by one key
        row = _row(inputs, one)
        rows.setdefault(row["change"], row)
    return Table(
        title="What makes it fit",
        columns=columns,
        rows=tuple(rows.values()),
        shown=_MOST_SEEN,
        note="what leaves the training as it is, then what changes numerics, then the rest; the cheapest first",
    )


def _row(inputs: Inputs, one: Saver) -> dict[str, Cell]:
    cost = one.gpu_seconds_per_token
    return {
        "change": in_own_keys(inputs, one.values),
        "verdict": _VERDICTS[one.phases.verdict],
        "phase": one.phases.worst.name,
        "gpu_seconds_per_million_tokens": None if cost is None else cost * _PER_MILLION,
        "training": one.kind.removeprefix("training "),
    }
