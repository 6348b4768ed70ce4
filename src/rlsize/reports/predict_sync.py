"""What to say about a predicted weight sync: seconds with a band, the other classes of transport, what to measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.sync_prediction import TRANSPORTS
from rlsize.reports.report import Cell, Column, Report, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.sync_outlook import SyncOutlook
    from rlsize.facts.figure import Figure

_TELLING = 0.1  # of the variance; a smaller share is not worth a measurement
_MOST_TOLD = 2


def predict_sync_report(
    outlook: SyncOutlook, inputs: Sequence[Figure], warnings: Sequence[str] = (), notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize predict sync`.

    Args:
        outlook: What to expect.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    return Report(
        command="predict sync",
        headline=_headline(outlook),
        results=(outlook.sent, outlook.seconds),
        inputs=tuple(inputs),
        tables={"transports": _table(outlook)},
        warnings=tuple(warnings),
        notes=(*notes, *_doubts(outlook), _advice(outlook)),
    )


def _headline(outlook: SyncOutlook) -> str:
    sent, seconds = show(outlook.sent.value, outlook.sent.key), outlook.seconds
    low, high = (show(end, seconds.key) for end in seconds.band or (seconds.number, seconds.number))
    question = outlook.question
    return (
        f"{sent} of {question.model.name} in {question.dtype} take {show(seconds.value, seconds.key)} "
        f"({low} to {high}) by {question.transport}."
    )


def _table(outlook: SyncOutlook) -> Table:
    chosen = (outlook.question.transport, outlook.seconds)
    rows = tuple(_row(name, seconds) for name, seconds in (chosen, *outlook.others))
    return Table(
        title="By class of transport",
        columns=(
            Column("transport", "transport", "left"),
            Column("sync_seconds", "expected"),
            Column("low_seconds", "low"),
            Column("high_seconds", "high"),
            Column("shares_gpus", "GPUs", "left"),
            Column("how", "what it is", "left", wide=True),
        ),
        rows=rows,
        marked=0,
        note="low and high: an 80 % band; GPUs shared or apart: a class is for that placement",
    )


def _row(name: str, seconds: Figure) -> Mapping[str, Cell]:
    low, high = seconds.band or (seconds.number, seconds.number)
    transport = TRANSPORTS[name]
    return {
        "transport": name,
        "sync_seconds": seconds.number,
        "low_seconds": low,
        "high_seconds": high,
        "shares_gpus": "shared" if transport.colocated else "apart",
        "how": transport.title,
    }


def _doubts(outlook: SyncOutlook) -> list[str]:
    told = [doubt for doubt in outlook.doubts if doubt.share >= _TELLING][:_MOST_TOLD]
    if not told:
        return []
    words = " and ".join(f"{doubt.meaning} ({show(doubt.share, '_fraction')})" for doubt in told)
    return [f"Most of the band is {words}."]


def _advice(outlook: SyncOutlook) -> str:
    told = [doubt for doubt in outlook.doubts if doubt.share >= _TELLING]
    if len(told) > 1:
        return "Time one sync, then one of another size or type: two points tell fixed time and rate apart."
    return "Time one sync (rlsize measure, or the trainer's log): it replaces this prediction."
