"""`rlsize predict step`: how long an optimizer step takes, where it goes, and which mode is the quickest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.estimates.figures import ends
from rlsize.facts.figure import Figure
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Decision, Report, Table, Unseen, tables_of
from rlsize.reports.wording import interval
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import AGENTS, ALGORITHM, ANSWER, INSTANCE, LOOP, TRAINER, WORKLOAD, asks
from rlsize.units import listed, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.estimates.step_assembly import StepPart
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.loop.assumed import Assumption
    from rlsize.loop.modes import Mode, StepOutlook
    from rlsize.loop.resolve import Loop, Stages

_PARTS = {
    "generation": "generation",
    "waiting": "waiting for generation",
    "tail": "tail of generation",
    "logprobs": "log-probs and scores",
    "update": "update",
    "sync": "weight sync",
    "fixed": "the rest, fixed",
    "samples": "handling of samples",
    "own": "the rest, as the run had it",
    "said": "the rest, as it was said",
}
"""What each part is called."""
_BARS = {
    "generation": ("generation", "waiting"),
    "tail of generation": ("tail",),
    "log-probs and scores": ("logprobs",),
    "update": ("update",),
    "weight sync": ("sync",),
    "overhead": ("fixed", "samples", "own", "said"),
}
_RESULTS = (
    "step_seconds", "generation_seconds", "generation_exposed_seconds", "tail_seconds", "train_seconds",
    "update_seconds", "logprob_seconds", "sync_seconds", "sync_exposed_seconds", "overhead_seconds",
    "trainer_idle_fraction", "rollout_idle_fraction", "loop_tokens_per_second", "loop_tokens_per_gpu_second",
    "steps_per_day", "longest_response_tokens", "samples_in_flight", "cache_concurrency", "longest_response_seconds",
    "limited_by", "late_dropped_fraction",
)  # fmt: skip
_FIRST = {
    "rollout": "the generation time of a step, or engine rates at two concurrencies (rlsize measure)",
    "train": "the train time of a step, log-prob passes and update apart",
    "sync": "the time of a weight sync",
    "memory": "the KV cache tokens that an engine logs at start-up",
    "step": "one whole step beside its phase times, and the mean and the longest response",
}
_TOLD = 1.01  # times longer or shorter from which an assumption is worth a row


@asks(
    Loop=(*LOOP, "overhead_seconds"),
    Workload=WORKLOAD,
    Rollout_instances=INSTANCE,
    Trainer=TRAINER,
    Passes=ALGORITHM,
    Agents=AGENTS,
    Inputs=ANSWER,
)
def predict_step(inputs: Inputs) -> Report:
    """
    How long an optimizer step of an RL loop takes, where it goes, and which mode is the quickest.

    Example:  rlsize predict step --model qwen3-8b --gpu h100-sxm --mode async --rollout-gpus 8 --trainer-gpus 8
    --prompts 64 --group 16 --response-tokens 2k
    """
    from rlsize.estimates.step_assembly import step_parts
    from rlsize.loop.agents import say_bottleneck
    from rlsize.loop.assumed import MATTERS, assumptions
    from rlsize.loop.modes import step_outlook
    from rlsize.loop.resolve import resolve
    from rlsize.reports.running_loop import dropped_words

    loop = resolve(inputs)
    stages = loop.stages
    if stages is None:
        raise InputError(*inputs.faults or [Fault("the model is missing", "--model", "name a profile")])
    if loop.place is None:
        return _does_not_fit(inputs, loop, stages)
    outlook = step_outlook(loop)
    results = [outlook.results[key] for key in _RESULTS if key in outlook.results]
    results += say_bottleneck(inputs, loop.outlook, loop.place)
    close, best = _close(outlook), outlook.quickest.place.loop
    verdict = f"too close to call: {listed([best, *close])}" if close else best
    quickest = Figure(key="quickest_mode", value=verdict, provenance="predicted", source="table of modes")
    own = outlook.modes[0]
    parts = step_parts(own.step, own.place.loop) if own.step is not None else ()
    assumed = assumptions(inputs, loop, least=_TOLD) or ()
    notes, measure = [*_notes(outlook, parts)], [*_measure(outlook)]
    # What the step is made of, the longest part first
    ranked = sorted(parts, key=lambda part: -part.seconds.number)
    longest = [f"{_PARTS[one.name]} {show(one.share.value, one.share.key)}" for one in ranked[:3]]
    return Report(
        headline=_headline(outlook, loop, stages),
        results=(*results, quickest),
        tables=tables_of(parts=_parts(parts), modes=_modes(outlook), assumed=_assumed(assumed) if assumed else None),
        chart=_chart(outlook, stages.train),
        quiet=frozenset({"tail_seconds", "cache_concurrency", "longest_response_seconds", "quickest_mode"}),
        **inputs.told(warnings=dropped_words(outlook.results), notes=(*notes, *measure)),
        decision=Decision(
            figures=("step_seconds", "steps_per_day", "trainer_idle_fraction", "rollout_idle_fraction"),
            why=[f"{listed(longest)} of the step.", *notes],
            sure=[*_spread(outlook, loop), *measure[:-1]],
            change=[*_others(outlook)],
            assumed=[one for one in assumed if one.effect >= MATTERS],
            then="rlsize plan with the same flags finds the best split; rlsize memory bills the memory",
        ),
    )


def _does_not_fit(inputs: Inputs, loop: Loop, stages: Stages) -> Report:
    """The report about a loop that cannot run."""
    from rlsize.loop.said import cannot_run

    reason, way = loop.refused, _way_out(inputs, loop, stages)
    gpus, rollout, trainer = loop.pools.gpus, loop.pools.rollout, loop.pools.trainer
    where = f"on {gpus.number:g}"
    if loop.pools.shared:
        where += " shared"
    elif loop.pools.split:
        where = f"on {rollout.number:g} + {trainer.number:g}"
    return Report(
        headline=cannot_run(reason),
        results=(Figure(key="step_fits", value=False, provenance="predicted", source=reason),),
        no=True,
        decision=Decision(change=[way], then="rlsize memory with the same flags bills all of it"),
        **inputs.told(first=[f"{loop.pools.loop} {where}: {way}"]),
    )


def _way_out(inputs: Inputs, loop: Loop, stages: Stages) -> str:
    """What would make the loop possible."""
    if isinstance(stages.engines[loop.pools.shared], str):
        fits = stages.fits
        return f"It would fit with --rollout-tensor-parallel {fits}." if fits else "No tensor parallelism holds it."
    from functools import partial

    from rlsize.loop.phases import phases_of
    from rlsize.loop.savers import savers
    from rlsize.shell.launches import can_change, in_own_keys
    from rlsize.shell.progress import late_progress

    phases = phases_of(loop)
    if loop.tried is None or phases is None or phases.dying is None:  # it is its GPUs, and not one of its phases
        return "`rlsize plan` with the same flags looks for a loop that can run."
    with late_progress("looking for what makes it fit") as tell:
        best = next(iter(savers(inputs, loop, partial(can_change, inputs), tell)), None)
    if best is None:
        return "No single change makes it fit, nor two that leave the training as it is."
    sure = "fits" if best.phases.verdict == "fits" else "may fit"
    return f"It {sure} with {in_own_keys(inputs, best.values)} ({best.kind})."


def _headline(outlook: StepOutlook, loop: Loop, stages: Stages) -> str:
    step, way = outlook.results["step_seconds"], outlook.modes[0].place
    least = "at least " if loop.bound else ""
    where = f"{way.split}{' shared' if way.shared else ''}"
    takes = f"takes {least}{show(step.value, step.key)} ({interval(step)})"
    text = f"A step of {stages.train.model.name} {takes}, on {where} {stages.train.gpu.name}, {way.loop}"
    bound = f"; {loop.bound}" if loop.bound else ""
    return f"{text}{bound}; {_winner(outlook)}."


def _winner(outlook: StepOutlook) -> str:
    """Which mode is the quickest, as far as that can be told."""
    best = outlook.quickest
    if len([mode for mode in outlook.modes if mode.seconds is not None]) == 1:
        return "no other way to lay it out was possible"
    close = _close(outlook)
    if not close:
        return f"{best.place.loop} is the quickest" + (" way" if best is outlook.modes[0] else " of all modes")
    return f"{listed([best.place.loop, *close])} are too close to call as the quickest"


def _close(outlook: StepOutlook) -> list[str]:
    """Modes that may be as quick as the quickest."""
    return [mode.place.loop for mode in outlook.modes if mode.close]


def _parts(parts: Sequence[StepPart]) -> Table:
    cells = (
        Column("part", "part", "left", of=lambda part: _PARTS[part.name]),
        Unseen("name"),
        Column("seconds", "time"),
        Column("share_fraction", "share", of=lambda part: part.share),
        Column("scales", "shrinks with", "left"),
    )
    return Table.of("Where the step goes", parts, cells)


def _modes(outlook: StepOutlook) -> Table:
    refused = [f"{mode.place.loop}: {mode.refused}" for mode in outlook.modes if mode.refused]
    note = (
        "low and high: 80 % bands; times longer than the quickest: 80 % interval on the same draws, too close to call "
        "where it holds 1"
    )
    cells = (
        Column("mode", "mode", "left", of=lambda mode: mode.place.loop),
        Column("gpus", "GPUs", of=lambda mode: mode.place.split),
        Unseen("rollout_gpus", lambda mode: mode.place.rollout_gpus),
        Unseen("trainer_gpus", lambda mode: mode.place.trainer_gpus),
        Column("step_seconds", "step", of=lambda mode: mode.seconds),
        Column("low_seconds", "low", of=lambda mode: mode.seconds and ends(mode.seconds)[0]),
        Column("high_seconds", "high", of=lambda mode: mode.seconds and ends(mode.seconds)[1]),
        Column("longer", "times longer", of=_longer),
        Unseen("times_longer", lambda mode: mode.times),
        Column("verdict", "verdict", "left", of=_verdict),
    )
    title = "The same work on the same GPUs in other modes"
    return Table.of(title, outlook.modes, cells, marked=0, note="\n".join([note, *refused]))


def _longer(mode: Mode) -> str:
    return "" if mode.seconds is None or mode.times is None else "{:.2f} to {:.2f}".format(*ends(mode.times))


def _verdict(mode: Mode) -> str:
    if mode.seconds is None:
        return "cannot run"
    return "quickest" if mode.times is None else "too close" if mode.close else "slower"


def _assumed(assumed: Sequence[Assumption]) -> Table:
    cells = (
        Column("input", "input", "left", wide=True, of=lambda entry: entry.flag),
        Unseen("key"),
        Column("taken", "taken", "left", wide=True),
        Column("instead", "else", "left", wide=True),
        Unseen("times_longer", lambda entry: entry.times),
        Column("change", "step then", of=lambda entry: f"x {entry.times:.2f}"),
    )
    return Table.of("What nobody said, and what else it could be", assumed, cells)


def _notes(outlook: StepOutlook, parts: Sequence[StepPart]) -> Iterator[str]:
    from rlsize.estimates.step_assembly import NOTHING
    from rlsize.loop.answer import LIMITS

    stuck = [part for part in parts if part.scales == NOTHING]
    if stuck:
        seconds = sum(part.seconds.number for part in stuck)
        share, names = sum(part.share.number for part in stuck), listed([_PARTS[part.name] for part in stuck])
        yield f"{show(seconds, '_seconds')} of the step ({show(share, '_fraction')}) do not shrink with GPUs: {names}."
    found = outlook.results
    if "samples_in_flight" in found:
        batch, limit = show(found["samples_in_flight"].value), LIMITS[str(found["limited_by"].value)]
        longest = f"{found['longest_response_tokens'].number:,.0f} tokens"
        many = f"{batch} samples at once on an instance, {limit}"
        yield f"{many}; the longest response of a step has about {longest}."


def _measure(outlook: StepOutlook) -> Iterator[str]:
    """What the band comes from, and what to measure first."""
    if outlook.doubts:
        largest = "; ".join(f"{doubt.meaning} ({show(doubt.share, '_fraction')})" for doubt in outlook.doubts[:3])
        yield f"The band comes from: {largest}."
    if outlook.stages:
        yield f"Measure first: {_FIRST[outlook.stages[0].name]}; rlsize calibrate takes it."


def _spread(outlook: StepOutlook, loop: Loop) -> Iterator[str]:
    """How wide the answer is, and what of it was measured."""
    known = loop.known.rate.known or loop.known.train_seconds.known or loop.problem.run is not None
    by = "some rates are known" if known else "nothing was measured on your GPUs"
    yield f"80 of 100 such loops take {interval(outlook.results['step_seconds'])}; {by}."


def _others(outlook: StepOutlook) -> Iterator[str]:
    """What other modes would take."""
    others = [mode for mode in outlook.modes[1:] if mode.seconds is not None]
    for mode in sorted(others, key=lambda mode: mode.seconds.number if mode.seconds else 0.0):
        step = show(mode.seconds.value, "step_seconds") if mode.seconds else ""
        verdict = _verdict(mode).replace("slower", "slower than the quickest")
        yield f"{mode.place.loop} on {mode.place.split}: {step} ({verdict})."


def _chart(outlook: StepOutlook, train: TrainQuestion) -> Chart:
    """Stacked bars, one for each mode that can run."""
    from rlsize.estimates.step_assembly import step_parts

    heights = {
        mode.place.loop: {part.name: part.seconds.number for part in step_parts(mode.step, mode.place.loop)}
        for mode in outlook.modes
        if mode.step is not None
    }
    series = [
        Series.of(bar, ((mode, sum(parts.get(name, 0.0) for name in names)) for mode, parts in heights.items()))
        for bar, names in _BARS.items()
    ]
    step, own = outlook.results["step_seconds"], outlook.modes[0].place.loop
    return Chart(
        title=_takeaway(outlook),
        y_label="exposed seconds of a step",
        series=tuple(entry for entry in series if any(entry.ys)),
        kind="stacked",
        subtitle=f"{train.model.title} on {train.gpu.name}; as asked, {own}: {show(step.value, step.key)}",
    )


def _takeaway(outlook: StepOutlook) -> str:
    best = outlook.quickest
    seconds = best.seconds.number if best.seconds else 0.0
    close = _close(outlook)
    if close:
        return f"{best.place.loop} takes {show(seconds, '_seconds')}; {', '.join(close)} may be as quick"
    return f"{best.place.loop} is the quickest: {show(seconds, '_seconds')} a step"
