"""What to say about a predicted training step: its time, where it goes, which passes are counted, how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.train_prediction_question import EXTRA_PASSES
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.estimates.train_prediction_bands import TrainAnswer
    from rlsize.facts.figure import Figure
    from rlsize.reports.report import Cell

PARTS = {
    "matmul": "matrix products",
    "attention": "attention scores",
    "elementwise": "norms, activations, loss",
    "exchanged": "tensor, context, experts",
    "host_wait": "waiting for the host",
    "gathering": "sharded weights",
    "bubble": "pipeline bubble",
    "loss": "uneven RL batches",
    "straggling": "slowest node",
    "optimizer": "optimizer",
    "offload": "optimizer offload",
    "fixed": "fixed",
    "old_logprob": "old log-probabilities",
    "reference": "reference",
    "proximal": "proximal policy",
    "reward": "reward model",
    "critic": "critic",
}
_SMALL = 0.002  # share of the step below which a part is no bar


def predict_train_report(
    question: TrainQuestion,
    answer: TrainAnswer,
    inputs: Sequence[Figure],
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Report:
    """
    The report of `rlsize predict train`.

    Args:
        question: What was asked.
        answer: What comes out.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    return Report(
        command="predict train",
        headline=_headline(question, answer),
        results=answer.results,
        inputs=tuple(inputs),
        tables={"parts": _table(answer)},
        warnings=tuple(warnings),
        notes=(*_notes(question, answer), *notes),
        chart=_chart(question, answer),
    )


def _headline(question: TrainQuestion, answer: TrainAnswer) -> str:
    found = {figure.key: figure for figure in answer.results}
    time, rate, mfu = (found[key] for key in ("train_seconds", "trained_tokens_per_gpu_second", "mfu_fraction"))
    where = f"{show(question.gpus.value)} {question.gpu.name}"
    text = f"A step takes {show(time.value, time.key)}{_band(time)} on {where}"
    return f"{text}: {show(rate.value, rate.key)}, {show(mfu.value, mfu.key)} of the bf16 peak in the update."


def _band(figure: Figure) -> str:
    if figure.band is None:
        return ""
    return f" ({show(figure.band[0], figure.key)} to {show(figure.band[1], figure.key)})"


def _table(answer: TrainAnswer) -> Table:
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "part": PARTS.get(part.name, part.name),
            "name": part.name,
            "seconds": part.seconds,
            "share_fraction": part.share,
        }
        for part in answer.parts
    )
    columns = (Column("part", "part", "left"), Column("seconds", "time"), Column("share_fraction", "share"))
    return Table(title="Where the time goes", columns=columns, rows=rows)


def _notes(question: TrainQuestion, answer: TrainAnswer) -> list[str]:
    passes = [EXTRA_PASSES[name] for name in question.passes]
    counted = f"beside the update: {'; '.join(passes)}" if passes else "none beside the update"
    notes = [f"Passes counted {counted}."]
    if answer.doubts:
        largest = "; ".join(f"{doubt.meaning} ({doubt.share:.0%})" for doubt in answer.doubts)
        notes.append(f"The band comes from: {largest}. One measured train time narrows it most (rlsize calibrate).")
    notes.append("MFU counts forward and backward once, causal attention included, nothing recomputed.")
    notes.append("Whether the trainer fits in memory is not asked here: rlsize memory.")
    return notes


def _chart(question: TrainQuestion, answer: TrainAnswer) -> Chart:
    shown = [part for part in answer.parts if part.share.number >= _SMALL]
    largest = max(shown, key=lambda part: part.seconds.number)
    label = PARTS.get(largest.name, largest.name)
    bars = Series(
        name="seconds",
        xs=tuple(PARTS.get(part.name, part.name) for part in shown),
        ys=tuple(part.seconds.number for part in shown),
        role="trainer",
    )
    return Chart(
        title=f"{label[0].upper()}{label[1:]} take {show(largest.share.value, largest.share.key)} of the step",
        x_label="",
        y_label="seconds of a step",
        series=(bars,),
        kind="bars",
        subtitle=f"{question.model.title} on {show(question.gpus.value)} {question.gpu.name}, {question.dtype}",
    )
