"""What to say about one iteration: how long, what it is made of, who waits, and the other ways to lay it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.planner.iteration import COLOCATED, OVERLAPPED
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.rows import without_reasons
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.figure import Figure
    from rlsize.planner.iteration_plan import IterationAnswer

_PARTS = ("rollout", "training", "both at once", "sync or change-over")  # bottom to top


def iteration_report(
    answer: IterationAnswer, inputs: Sequence[Figure], warnings: Sequence[str], notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize iteration`.

    Args:
        answer: One iteration, and the other ways to lay it out.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    found = {figure.key: figure for figure in answer.results}
    unknown = {key for key, figure in found.items() if not figure.known and "iteration" not in key}
    return Report(
        command="iteration",
        headline=_headline(answer, found),
        results=answer.results,
        inputs=tuple(inputs),
        tables={"modes": _modes_table(answer)},
        warnings=tuple(warnings),
        notes=(*_notes(answer, found), *notes),
        chart=_chart(answer),
        quiet=frozenset(unknown),
    )


def _headline(answer: IterationAnswer, found: Mapping[str, Figure]) -> str:
    prefix = answer.question.prefixes[-1]
    whole, rollout, train = (
        found[f"{prefix}iteration_seconds"],
        found[f"{prefix}rollout_seconds"],
        answer.question.train_seconds,
    )
    parts = f"{show(rollout.value, rollout.key)} of rollout, {show(train.value, train.key)} of training"
    if not whole.known:
        return f"{parts}; a {answer.question.mode} iteration needs {whole.missing}."
    expected = " expected" if prefix else ""
    days, share = found[f"{prefix}iterations_per_day"].number, found[f"{prefix}rollout_fraction"]
    often = f"{show(round(days))} a day" if days >= 1 else "less than one a day"
    if answer.question.mode == COLOCATED:  # the phases run on other GPU counts than they were measured on
        parts = "both phases on all GPUs, and two change-overs"
    return (
        f"{show(whole.value, whole.key)}{expected} per {answer.question.mode} iteration: {parts}; {often}, "
        f"rollout is {show(share.value, share.key)} of it."
    )


def _modes_table(answer: IterationAnswer) -> Table:
    rows = tuple(without_reasons(row) for row in answer.modes)
    last = answer.question.prefixes[-1]
    columns = [
        Column("mode", "mode", "left"),
        Column(f"{last}iteration_seconds", "expected" if last else "iteration"),
        Column(f"{last}iterations_per_day", "per day"),
        Column(f"{last}rollout_idle_fraction", "rollout idle"),
        Column(f"{last}trainer_idle_fraction", "trainer idle"),
    ]
    columns += [Column("needs", "needs", "left", wide=True)] if any(row["needs"] for row in rows) else []
    marked = next(index for index, row in enumerate(rows) if row["mode"] == answer.question.mode)
    note = "\n".join(f"{row['mode']}: {row['rule']}" for row in rows)
    return Table(title="Sync, overlapped, colocated", columns=tuple(columns), rows=rows, marked=marked, note=note)


def _notes(answer: IterationAnswer, found: Mapping[str, Figure]) -> list[str]:
    question = answer.question
    notes = _samples_note(answer)
    swap = found["break_even_swap_seconds"]
    if swap.known:
        notes.append(_swap_note(swap))
    elif question.mode == COLOCATED:
        notes.append("Without --rollout-gpus and --trainer-gpus the times are taken as those of the shared GPUs.")
    if question.mode == OVERLAPPED:
        notes.append(
            "Overlapped: the fleet makes the next batch while the trainer works on the last, so samples are a step old."
        )
    if question.verify_seconds.known:
        notes.append(
            "Verifier workers keep up with the samples while they come; fewer make the batch wait for its last scores."
        )
    return notes


def _samples_note(answer: IterationAnswer) -> list[str]:
    """What the sample count would be as a prompt count, where somebody may have meant that."""
    question, more, seconds = answer.question, answer.as_prompts_samples, answer.as_prompts_rollout_seconds
    if question.samples.source != "--samples" or not (more.known and seconds.known) or question.group_size.number <= 1:
        return []
    count, group = show(question.samples.value), show(question.group_size.value)
    prompts = show(question.samples.number / question.group_size.number)
    meant = f"{show(more.value)} samples and {show(seconds.value, '_seconds')} of rollout"
    said = f"{count} samples, so {prompts} prompts of {group}."
    return [f"{said} {count} prompts of {group} each would be {meant} (--prompts {question.samples.value:g})."]


def _swap_note(swap: Figure) -> str:
    if swap.number <= 0:
        return "On as many GPUs no change-over is quick enough for a colocated loop to beat the overlapped one."
    limit = f"less than {show(swap.value, swap.key)}, both together"
    return f"On as many GPUs a colocated loop beats the overlapped one if its change-overs take {limit}."


def _chart(answer: IterationAnswer) -> Chart | None:
    prefix = answer.question.prefixes[-1]
    rows = [row for row in answer.modes if row[f"{prefix}iteration_seconds"].known]
    if not rows:
        return None
    bars = {str(row["mode"]): _parts(row, prefix) for row in rows}
    names = [name for name in _PARTS if any(parts[name] > 0 for parts in bars.values())]
    return Chart(
        title=_takeaway(
            {str(row["mode"]): row[f"{prefix}iteration_seconds"].number for row in rows}, answer.question.mode
        ),
        x_label="",
        y_label=f"seconds per iteration{', expected' if prefix else ''}",
        series=tuple(
            Series(name=name, xs=tuple(bars), ys=tuple(parts[name] for parts in bars.values())) for name in names
        ),
        kind="stacked",
        subtitle="each bar is the wall clock of one optimizer step",
    )


def _parts(row: Mapping[str, Any], prefix: str) -> dict[str, float]:
    """What an iteration's wall clock is made of."""
    whole, rollout, train = (
        row[key].number for key in (f"{prefix}iteration_seconds", f"{prefix}rollout_seconds", f"{prefix}train_seconds")
    )
    both = min(rollout, train) if row["mode"] == OVERLAPPED else 0.0
    rest = max(0.0, whole - rollout - train + both)
    return dict(zip(_PARTS, (rollout - both, train - both, both, rest), strict=True))


def _takeaway(seconds: Mapping[str, float], mode: str) -> str:
    quickest = min(seconds, key=lambda name: seconds[name])
    best = show(seconds[quickest], "_seconds")
    if quickest == mode or mode not in seconds:
        return f"{quickest} is the quickest of these: {best} per iteration"
    return f"{quickest} takes {best} per iteration where {mode} takes {show(seconds[mode], '_seconds')}"
