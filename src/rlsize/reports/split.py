"""What to say about a split of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.figure import Figure
    from rlsize.planner.split import SplitAnswer

_WAITS = {"rollout": "the trainer waits", "trainer": "the rollout fleet waits"}


def split_report(
    answer: SplitAnswer, inputs: Sequence[Figure], warnings: Sequence[str], notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize split`.

    Args:
        answer: The best split, its neighbours and the colocated alternative.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    found = {figure.key: figure for figure in answer.results}
    return Report(
        command="split",
        headline=_headline(found, inputs),
        results=answer.results,
        inputs=tuple(inputs),
        tables={"neighbours": _neighbours(answer)},
        warnings=tuple(warnings),
        notes=(*notes, _colocated_note(found)),
        chart=_chart(answer),
    )


def _headline(found: dict[str, Figure], inputs: Sequence[Figure]) -> str:
    headroom = next(figure for figure in inputs if figure.key == "headroom")
    rate = show(found["loop_tokens_per_second"].value, "_tokens_per_second")
    side = found["bottleneck"].value
    balance = (
        "neither side waits"
        if side == "balanced"
        else f"{_WAITS[str(side)]} {show(found['idle_fraction'].value, 'idle_fraction')}"
    )
    return (
        f"{show(found['rollout_gpus'].value)} rollout GPUs and {show(found['trainer_gpus'].value)} trainer GPUs "
        f"run at {rate}; {balance} (headroom {show(headroom.value)})."
    )


def _neighbours(answer: SplitAnswer) -> Table:
    marked = next(
        index for index, row in enumerate(answer.neighbours) if row["rollout_gpus"].number == answer.rollout_gpus
    )
    return Table(
        title="One instance more, one fewer",
        columns=(
            Column("rollout_gpus", "rollout"),
            Column("trainer_gpus", "trainer"),
            Column("rollout_tokens_per_second", "R (rollout)"),
            Column("trainer_tokens_per_second", "T (trainer)"),
            Column("bottleneck", "bottleneck", "left"),
            Column("idle_fraction", "idle"),
        ),
        rows=answer.neighbours,
        marked=marked,
        note="R and T count trained tokens; the loop runs at the smaller, the other side idles 1 - min/max",
    )


def _colocated_note(found: dict[str, Figure]) -> str:
    plain, whole, loop = (
        found[key]
        for key in ("colocated_before_swap_tokens_per_second", "colocated_tokens_per_second", "loop_tokens_per_second")
    )
    text = f"Colocated on the same GPUs: {show(plain.value, '_tokens_per_second')} before any swap cost"
    if not whole.known:
        return (
            f"{text}; a perfect split only equals it, so swap cost and whole instances decide "
            "(give --swap-seconds and --batch-tokens)."
        )
    winner = "colocated is faster" if whole.number > loop.number else "the split is faster"
    return (
        f"{text}, {show(whole.value, '_tokens_per_second')} with it: {winner}. "
        "Colocated training sees samples of the newest weights only."
    )


def _chart(answer: SplitAnswer) -> Chart:
    share = tuple(point[0] for point in answer.sweep)
    gpus = next(figure for figure in answer.results if figure.key == "rollout_gpus").number
    total = gpus + next(figure for figure in answer.results if figure.key == "trainer_gpus").number
    return Chart(
        title=f"The loop runs at the lower line: balance at {show(gpus)} of {show(total)} GPUs on rollout",
        x_label="share of GPUs on the rollout side",
        y_label="trained tokens per second",
        x_percent=True,
        series=(
            Series(name="rollout supplies", xs=share, ys=tuple(point[1] for point in answer.sweep), role="rollout"),
            Series(name="trainer consumes", xs=share, ys=tuple(point[2] for point in answer.sweep), role="trainer"),
        ),
        marks=(Mark(at=gpus / total, label=f"{show(gpus)} rollout, {show(total - gpus)} trainer"),),
    )
