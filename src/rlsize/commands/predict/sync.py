"""`rlsize predict sync`: how long a weight sync will take, before one has been measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.estimates.figures import ends
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import interval
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, asks, short
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.estimates.belief import BandSource
    from rlsize.estimates.sync_outlook import SyncOutlook
    from rlsize.loop.resolve import Loop
    from rlsize.planner.options import Placement

_TELLING = 0.1  # of the variance; a smaller share is not worth a measurement


@asks(
    Inputs=(
        "model", "gpu", "transport", *short("wire_dtype"), "mode", "gpus", "trainer_gpus", "rollout_gpus",
        "gpus_per_instance", *short("rollout_tensor_parallel"), "bucket_bytes", *ANSWER,
    ),
)  # fmt: skip
def predict_sync(inputs: Inputs) -> Report:
    """
    How long a weight sync will take, by class of transport, with a band.

    Example:  rlsize predict sync --model qwen3-8b --gpu h100-sxm --transport colocated --trainer-gpus 8
    """
    from rlsize.estimates.constants_sync import STAGE
    from rlsize.estimates.sync_outlook import sync_outlook
    from rlsize.loop.resolve import described, resolve
    from rlsize.loop.seed import seed_of
    from rlsize.loop.sync import sync_by_itself

    loop = resolve(inputs) if described(inputs) and not inputs.by_flag("bucket_bytes") else None
    if loop is not None and loop.stages is not None and loop.place is not None:
        from rlsize.planner.predicted_parts import sync_questions

        one = sync_questions(loop.problem, loop.place, shared=loop.place.shared)[-1]  # of the trainer's GPUs
        outlook, told = _in_a_loop(loop, loop.place, sync_outlook(one, loop.stages.belief, seed_of(inputs)))
    else:
        outlook = sync_outlook(sync_by_itself(inputs), inputs.belief(STAGE), seed_of(inputs))
        told = (outlook.seconds,)
    return Report(
        headline=_headline(outlook, told, in_place=loop is not None and loop.problem.in_place),
        results=(outlook.sent, *told),
        tables={"transports": _table(outlook)},
        **inputs.told(notes=(*_doubts(outlook), _advice(outlook))),
    )


def _in_a_loop(loop: Loop, place: Placement, alone: SyncOutlook) -> tuple[SyncOutlook, tuple[Figure, ...]]:
    """
    Every class as it runs in a loop, whose trainer's GPUs handle their own shares.

    Returns:
        What is predicted, and the seconds as the loop has them; beside it, where they are known, what is predicted.
    """
    from rlsize.loop.answer import agreed, answer_of
    from rlsize.planner.outlook import band_of
    from rlsize.planner.predicted_parts import predicted_sync

    def seconds(name: str) -> Figure:
        draws = predicted_sync(loop.outlook.drawn, place, shared=place.shared, transport=name)
        found: Figure = predicted_sync(loop.outlook.explained, place, shared=place.shared, transport=name)
        return replace(found, band=band_of(draws))

    others = sorted(((name, seconds(name)) for name, _ in alone.others), key=lambda entry: entry[1].number)
    predicted = seconds(alone.question.transport)
    told = agreed((predicted,), answer_of(loop))
    if loop.known.sync_seconds.known or loop.problem.in_place:
        told = (*told, replace(predicted, key="predicted_sync_seconds"))
    return replace(alone, seconds=predicted, others=tuple(others)), told


def _headline(outlook: SyncOutlook, told: tuple[Figure, ...], *, in_place: bool) -> str:
    sent, seconds = show(outlook.sent.value, outlook.sent.key), told[0]
    question = outlook.question
    text = f"{sent} of {question.model.name} in {question.dtype} take {show(seconds.value, seconds.key)}"
    if len(told) > 1:
        why = "as engines read them where they are" if in_place else "as was said"
        return f"{text}, {why}; by {question.transport}, {show(told[1].value, told[1].key)} are predicted."
    return f"{text} ({interval(seconds)}) by {question.transport}."


def _table(outlook: SyncOutlook) -> Table:
    from rlsize.estimates.sync_prediction import TRANSPORTS

    seconds = dict([(outlook.question.transport, outlook.seconds), *outlook.others])
    cells = (
        Column("transport", "transport", "left", of=str),
        Column("sync_seconds", "expected", of=lambda name: seconds[name].number),
        Column("low_seconds", "low", of=lambda name: ends(seconds[name])[0]),
        Column("high_seconds", "high", of=lambda name: ends(seconds[name])[1]),
        Column("shares_gpus", "GPUs", "left", of=lambda name: "shared" if TRANSPORTS[name].colocated else "apart"),
        Column("how", "what it is", "left", wide=True, of=lambda name: TRANSPORTS[name].title),
    )
    note = "low and high: an 80 % band; GPUs shared or apart: a class is for that placement"
    return Table.of("By class of transport", seconds, cells, marked=0, note=note)


def _telling(outlook: SyncOutlook) -> list[BandSource]:
    return [doubt for doubt in outlook.doubts if doubt.share >= _TELLING]


def _doubts(outlook: SyncOutlook) -> list[str]:
    told = _telling(outlook)[:2]
    if not told:
        return []
    words = " and ".join(f"{doubt.meaning} ({show(doubt.share, '_fraction')})" for doubt in told)
    return [f"Most of the band is {words}."]


def _advice(outlook: SyncOutlook) -> str:
    if len(_telling(outlook)) > 1:
        return "Time one sync, then one of another size or type: two points tell fixed time and rate apart."
    return "Time one sync (rlsize measure, or the trainer's log): it replaces this prediction."
