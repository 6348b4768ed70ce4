"""What to say about a predicted optimizer step: its time, where it goes, the other modes, what was assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.step_parts import NOTHING, step_parts
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.step_chart import PARTS, step_chart
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.estimates.step_assumptions import Assumption
    from rlsize.estimates.step_loops import LoopPlan, Way
    from rlsize.estimates.step_outlook import Mode, StepOutlook
    from rlsize.reports.report import Cell

_LIMITS = {
    "samples": "as many as the step has",
    "staleness": "as many as the staleness cap lets be in flight",
    "cache": "as many as the KV cache holds",
    "engine": "as many as the engine's limit lets through",
}
_TOLD_INPUTS = {
    "memory_fraction": "share of GPU memory for engines",
    "rollout_tensor_parallel": "size of an instance",
    "kv_dtype": "number type of the KV cache",
    "response_cv": "spread of response lengths (cv)",
    "max_response_tokens": "cap on the response length",
    "max_staleness": "steps of staleness, so samples in flight",
    "mode": "refill or barrier",
    "logprob_passes": "extra forward passes",
    "offload": "optimizer states",
    "compiled": "trainer kernels",
}
_FIRST = {
    "rollout": "the generation time of a step, or engine rates at two concurrencies (rlsize measure)",
    "train": "the train time of a step, log-prob passes and update apart",
    "sync": "the time of a weight sync",
    "memory": "the KV cache tokens that an engine logs at start-up",
    "step": "one whole step beside its phase times, and the mean and the longest response",
}
_QUIET = frozenset({"tail_seconds", "cache_concurrency", "longest_response_seconds", "quickest_mode"})
_MATTERS = 1.01  # times longer or shorter from which an assumption is worth a line


def predict_step_report(
    outlook: StepOutlook,
    assumed: Sequence[Assumption],
    inputs: Sequence[Figure],
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Report:
    """
    The report of `rlsize predict step`.

    Args:
        outlook: What to expect.
        assumed: What nobody said, those that matter most first.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    limit = Figure(
        key="limited_by", value=outlook.limited_by, provenance="predicted", source=_LIMITS[outlook.limited_by]
    )
    quickest = Figure(key="quickest_mode", value=_verdict(outlook), provenance="predicted", source="table of modes")
    tables = {"parts": _parts(outlook), "modes": _modes(outlook)}
    mattering = [entry for entry in assumed if max(entry.times, 1 / entry.times) >= _MATTERS]
    if mattering:
        tables["assumed"] = _assumed(mattering)
    return Report(
        command="predict step",
        headline=_headline(outlook),
        results=(*outlook.results, limit, quickest),
        inputs=tuple(inputs),
        tables=tables,
        warnings=(*warnings, *_warnings(outlook)),
        notes=(*notes, *_notes(outlook), *_measure(outlook)),
        chart=step_chart(outlook),
        quiet=_QUIET,
    )


def step_does_not_fit_report(
    plan: LoopPlan, reason: str, way_out: str, inputs: Sequence[Figure], warnings: Sequence[str] = ()
) -> Report:
    """
    The report about a loop whose engine or trainer does not fit.

    Args:
        plan: The loop.
        reason: Why it does not, in a line.
        way_out: What would fit, in a sentence.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
    """
    said = f"{reason[0].upper()}{reason[1:]} ({plan.way.loop} {place(plan.way)})."
    return Report(
        command="predict step",
        headline=f"{said} {way_out}",
        results=(Figure(key="step_fits", value=False, provenance="predicted", source=reason),),
        inputs=tuple(inputs),
        warnings=tuple(warnings),
        no=True,
    )


def _headline(outlook: StepOutlook) -> str:
    plan, step = outlook.plan, outlook.figure("step_seconds")
    low, high = step.band or (step.number, step.number)
    text = (
        f"A step of {plan.train.model.name} takes {show(step.value, step.key)} ({show(low, step.key)} to "
        f"{show(high, step.key)}), {place(plan.way)} {plan.train.gpu.name}, {plan.way.loop}"
    )
    return f"{text}; {_winner(outlook)}."


def place(way: Way) -> str:
    """The GPUs of a way in words."""
    if way.shared:
        return f"on {way.trainer_gpus:g} shared"
    return f"on {way.rollout_gpus:g} + {way.trainer_gpus:g}"


def _winner(outlook: StepOutlook) -> str:
    """Which mode is the quickest, as far as that can be told."""
    best = outlook.quickest
    if len([mode for mode in outlook.modes if mode.seconds is not None]) == 1:
        return "no other way to lay it out was possible"
    close = [mode.way.loop for mode in outlook.modes if mode.close]
    if not close:
        return f"{best.way.loop} is the quickest" + (" way" if best.way == outlook.plan.way else " of all modes")
    return f"{_list([best.way.loop, *close])} are too close to call as the quickest"


def _verdict(outlook: StepOutlook) -> str:
    close = [mode.way.loop for mode in outlook.modes if mode.close]
    return f"too close to call: {_list([outlook.quickest.way.loop, *close])}" if close else outlook.quickest.way.loop


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _parts(outlook: StepOutlook) -> Table:
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "part": PARTS[part.name],
            "name": part.name,
            "seconds": part.seconds,
            "share_fraction": part.share,
            "scales": part.scales,
        }
        for part in step_parts(outlook.plan, outlook.plan.way, outlook.worked)
        if part.seconds.number > 0
    )
    return Table(
        title="Where the step goes",
        columns=(
            Column("part", "part", "left"),
            Column("seconds", "time"),
            Column("share_fraction", "share"),
            Column("scales", "shrinks with", "left"),
        ),
        rows=rows,
    )


def _modes(outlook: StepOutlook) -> Table:
    rows = tuple(_mode(mode) for mode in outlook.modes)
    refused = [f"{mode.way.loop}: {mode.refused}" for mode in outlook.modes if mode.refused]
    note = (
        "low and high: 80 % bands; times longer than the quickest: 80 % interval on the same draws, too close to call "
        "where it holds 1"
    )
    return Table(
        title="The same work on the same GPUs in other modes",
        columns=(
            Column("mode", "mode", "left"),
            Column("gpus", "GPUs"),
            Column("step_seconds", "step"),
            Column("low_seconds", "low"),
            Column("high_seconds", "high"),
            Column("longer", "times longer"),
            Column("verdict", "verdict", "left"),
        ),
        rows=rows,
        marked=0,
        note="\n".join([note, *refused]),
    )


def _mode(mode: Mode) -> dict[str, Cell]:
    way = mode.way
    row: dict[str, Cell] = {
        "mode": way.loop,
        "gpus": f"{way.trainer_gpus:g}" if way.shared else f"{way.rollout_gpus:g} + {way.trainer_gpus:g}",
        "rollout_gpus": way.rollout_gpus,
        "trainer_gpus": way.trainer_gpus,
        "step_seconds": mode.seconds,
        "low_seconds": None,
        "high_seconds": None,
        "longer": "",
        "times_longer": mode.times,
        "verdict": "quickest",
    }
    if mode.seconds is None:
        return row | {"verdict": "cannot run"}
    low, high = mode.seconds.band or (mode.seconds.number, mode.seconds.number)
    row |= {"low_seconds": low, "high_seconds": high}
    if mode.times is not None:
        ends = mode.times.band or (mode.times.number, mode.times.number)
        row["longer"] = f"{ends[0]:.2f} to {ends[1]:.2f}"
        row["verdict"] = "too close" if mode.close else "slower"
    return row


def _assumed(assumed: Sequence[Assumption]) -> Table:
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "input": _TOLD_INPUTS[entry.key],
            "key": entry.key,
            "taken": entry.taken,
            "instead": entry.instead,
            "times_longer": entry.times,
            "change": f"x {entry.times:.2f}",
        }
        for entry in assumed
    )
    return Table(
        title="What nobody said, and what else it could be",
        columns=(
            Column("input", "input", "left", wide=True),
            Column("taken", "taken", "left", wide=True),
            Column("instead", "else", "left", wide=True),
            Column("change", "step then"),
        ),
        rows=rows,
    )


def _notes(outlook: StepOutlook) -> list[str]:
    parts = step_parts(outlook.plan, outlook.plan.way, outlook.worked)
    stuck = [part for part in parts if part.scales == NOTHING and part.seconds.number > 0]
    seconds, share = (sum(number) for number in zip(*((p.seconds.number, p.share.number) for p in stuck), strict=True))
    names = _list([PARTS[part.name] for part in stuck])
    notes = [f"{show(seconds, '_seconds')} of the step ({share:.0%}) do not shrink with GPUs: {names}."]
    batch, longest = (outlook.figure(key) for key in ("samples_in_flight", "longest_response_tokens"))
    notes.append(
        f"{show(batch.value)} samples at once on an instance, {_LIMITS[outlook.limited_by]}; the longest response of a "
        f"step has about {longest.number:,.0f} tokens."
    )
    notes.append("Of the trainer's memory only states are checked here, no activations: rlsize memory bills both.")
    return notes


def _warnings(outlook: StepOutlook) -> list[str]:
    if outlook.outlived is None:
        return []
    longest, least = (show(seconds, "_seconds") for seconds in outlook.outlived)
    text = (
        f"async: the longest response takes about {longest}, longer than a staleness of "
        f"{outlook.plan.max_staleness.number:g} allows; the step holds where such samples go on over a sync or may be "
        f"staler, and is {least} or more where the trainer waits for them"
    )
    return [text]


def _measure(outlook: StepOutlook) -> list[str]:
    """What the band comes from, and what to measure first."""
    notes = []
    if outlook.doubts:
        largest = "; ".join(f"{doubt.meaning} ({doubt.share:.0%})" for doubt in outlook.doubts[:3])
        notes.append(f"The band comes from: {largest}.")
    if outlook.stages:
        notes.append(f"Measure first: {_FIRST[outlook.stages[0].name]}; rlsize calibrate takes it.")
    return notes
