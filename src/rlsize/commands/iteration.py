"""`rlsize iteration`: how long one iteration takes, and how many fit in a day."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import matching
from rlsize.errors import Refused
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent
from rlsize.loop.instance_count import instances
from rlsize.loop.plausible import judge
from rlsize.loop.rates import busy_seconds, instance_rate, waste
from rlsize.loop.seed import random_for
from rlsize.loop.sides import (
    alone,
    described_loop,
    fleet_gpus,
    instance_alone,
    instance_size,
    joint_draws,
    loops_own,
    refuse_wall_clock,
    trainer_alone,
)
from rlsize.loop.workload import samples
from rlsize.planner.iteration import NOTHING_THROWN_AWAY, IterationQuestion, Source, mode_rows, plan_iteration
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table, without_reasons
from rlsize.reports.running_loop import bounded
from rlsize.rules.phases import COLOCATED, OVERLAPPED, SYNC
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, REFUSED, asks
from rlsize.shell.rates import trainer_gpus
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.loop.resolve import Loop
    from rlsize.planner.evaluation import Evaluation

MODES: Mapping[str, str] = {
    SYNC: SYNC, OVERLAPPED: OVERLAPPED, COLOCATED: COLOCATED,
    "disaggregated": SYNC, "partial": SYNC, "one-step-off": OVERLAPPED, "async": OVERLAPPED,
}  # fmt: skip
_SOURCES: Mapping[str, Source] = {
    "rollout_seconds": "said",
    "group_seconds": "groups",
    "instance_tokens_per_second": "rate",
}
_CALLED = {"iteration_seconds": "step_seconds", "iterations_per_day": "steps_per_day"}  # in the answer of a loop
_PARTS = ("rollout", "training", "both at once", "sync or change-over")  # bottom to top
_PART_ROUND = 1e-9
_LEAST = 1e-3  # a rate or a headroom below it is a slip, and its times are beyond floats
_NEEDS = "give --group-seconds; or --per-instance with --response-tokens; or --rollout-seconds"


@asks(
    Inputs=(
        "samples_per_step", "prompts_per_step", "group_size", "train_seconds", "mode", "accept_lower_bound",
        "tokens_generated_per_trained_token", "sync_seconds", "swap_seconds", "gpus", "rollout_gpus", "trainer_gpus",
        "verify_seconds", *ANSWER,
    ),
    Rollout=(
        "instances", "group_seconds", "instance_tokens_per_second", "response_tokens", "headroom", "rollout_seconds",
    ),
    Refused=REFUSED,
)  # fmt: skip
def iteration(inputs: Inputs) -> Report:
    """
    How long one iteration takes, and how many fit in a day.

    Example:  rlsize iteration --instances 8 --group 8 --group-seconds 3 --samples 256 --train-seconds 5
    """
    told = [key for key in _SOURCES if inputs.by_flag(key)]
    if len(told) > 1:
        flags = " ".join(map(inputs.flag, told))
        inputs.fault("say the rollout time once", flags, "each of them gives it; keep one")
    if inputs.by_flag("samples_per_step") and inputs.by_flag("prompts_per_step"):
        todo = "keep --prompts where you count prompts, --samples where you count samples"
        inputs.fault("say the batch once", "--samples --prompts", todo)
    own = bool({"rollout_seconds", "group_seconds"} & {*told}) or inputs.gives("group_seconds")
    loop, found = (None, None) if own else described_loop(inputs)
    if loop is not None and loop.refused:
        raise Refused(loop.refused)
    if loop is not None and found is not None:
        return _of_the_loop(inputs, loop, found)
    by_rate = inputs.gives("instance_tokens_per_second") or inputs.gives("model")
    usual: Source = "rate" if by_rate and not inputs.gives("group_seconds") else "groups"
    question = _question(inputs, _SOURCES[told[0]] if told else usual)
    inputs.settle()
    results = plan_iteration(question, random_for(inputs, question.known))
    return _report(inputs, question, results)


def _of_the_loop(inputs: Inputs, loop: Loop, found: Evaluation) -> Report:
    """One iteration of a loop that is described: its step, and its phases laid out in other ways."""
    from rlsize.loop.answer import agreed

    generation, train, step = (
        loops_own(inputs, loop, found.results[f"{part}_seconds"]) for part in ("generation", "train", "step")
    )
    rollout = replace(generation, key="rollout_seconds")
    mode = {"synchronous": SYNC, "colocated": COLOCATED}.get(loop.pools.loop, OVERLAPPED)
    # What a loop's step holds beside its phases
    phases = max(rollout.number, train.number) if mode == OVERLAPPED else rollout.number + train.number
    source = "sync, overheads and uneven phases of the loop"
    rest = Figure(key="unhidden_seconds", value=max(0.0, step.number - phases), provenance="predicted", source=source)
    shared = loop.pools.shared
    nothing = absent("rollout_gpus", "pools of their own"), absent("trainer_gpus", "pools of their own")
    pools = nothing if shared else (found.results["rollout_gpus"], found.results["trainer_gpus"])
    asked = {
        "samples_per_step": samples(inputs),
        "group_size": inputs.ask("group_size"),
        "tokens_generated_per_trained_token": NOTHING_THROWN_AWAY,
        "rollout_seconds": rollout,
        "train_seconds": train,
        "sync_seconds": Figure(key="unhidden_seconds", value=0.0, source="in the change-overs") if shared else rest,
        "swap_seconds": rest if shared else inputs.ask("swap_seconds"),
        "verify_seconds": _verify(inputs),
        "rollout_gpus": pools[0],
        "trainer_gpus": pools[1],
    }
    refuse_wall_clock(inputs)
    inputs.settle()
    draws = joint_draws(loop, {"generation_seconds": rollout, "train_seconds": train})
    question = IterationQuestion(mode=mode, source="said", known=asked)
    results = (*agreed(plan_iteration(question, draws), found, _CALLED), found.results["step_seconds"])
    inputs.notes.append(
        "Sync, overheads and uneven phases are in it as one part; `rlsize predict step` tells them apart."
    )
    return bounded(_report(inputs, question, results), loop.bound)


def _question(inputs: Inputs, source: Source) -> IterationQuestion:
    """The question of closed forms: of what was said, measured, or predicted of a stage alone."""
    refuse_wall_clock(inputs)
    mode = inputs.choose("mode", MODES, default=SYNC)
    group = inputs.ask("group_size")
    rate, headroom = _rate(inputs, source)
    size = instance_size(inputs)
    many, thrown = samples(inputs), _waste(inputs, source)
    count = instances(inputs, fleet_gpus(inputs), size)
    said = {key: inputs.ask(key) for key in ("group_seconds", "response_tokens", "rollout_seconds")}
    train, exposed = _train(inputs)
    known = {
        **said,
        "samples_per_step": many,
        "tokens_generated_per_trained_token": thrown,
        "group_size": group,
        "instances": count,
        "instance_tokens_per_second": rate,
        "headroom": headroom,
        "train_seconds": train,
        "sync_seconds": _sync(inputs, exposed),
        "swap_seconds": inputs.ask("swap_seconds"),
        "verify_seconds": _verify(inputs),
        "rollout_gpus": inputs.ask("rollout_gpus"),
        "trainer_gpus": trainer_gpus(inputs),
    }
    _check(inputs, source, known)
    sync = known["sync_seconds"]
    if source == "rate" and sync.known and sync.number > 0 and headroom.known and headroom.number < 1:
        inputs.notes.append(
            "Headroom covers sync pauses too: with sync seconds beside it they count twice, unless it leaves them out."
        )
    tokens = said["response_tokens"]
    batch = apply("batch_tokens", matching.tokens_per_step, prompts=many, group_size=1.0, response_tokens=tokens)
    key = "consumption_tokens_per_second"
    trained = apply(key, matching.consumption, tokens_per_step=batch, train_seconds=train)
    trained = replace(trained, source="--train-seconds")
    judge(inputs, "trainer", trained, known["trainer_gpus"], "the trainer's consumption")
    judge(inputs, "rollout", rate, size, "an instance's rate")
    return IterationQuestion(mode=MODES[mode], source=source, known=known)


def _rate(inputs: Inputs, source: Source) -> tuple[Figure, Figure]:
    """Rate of an instance, and its headroom, where the rollout time follows from them."""
    if source != "rate":
        if inputs.by_flag("headroom"):
            todo = "give --per-instance, or leave it out"
            inputs.fault("derates a token rate, and there is none", "--headroom", todo)
        return absent("instance_tokens_per_second", "--per-instance"), absent("headroom", "--headroom")
    rate, headroom = instance_rate(inputs)
    rate, reason = alone(inputs, rate, instance_alone)
    if not inputs.rates_failed:
        todo = "give --per-instance: a number, or a rates file from `rlsize observe --save`"
        inputs.need(rate, todo + reason)
    for figure in (rate, headroom):
        if figure.known and figure.number < _LEAST:
            what = f"{figure.value:g} is too small; it must be at least {_LEAST:g}"
            inputs.fault(what, figure.source, "check the number")
    return rate, headroom


def _train(inputs: Inputs) -> tuple[Figure, Figure]:
    """Busy seconds of the trainer: said, measured, the loop's, or of a trainer alone; and the loop's sync with them."""
    train, no_sync = busy_seconds(inputs), absent("sync_exposed_seconds", "--sync-seconds")
    if train.known:
        return train, no_sync
    loop, found = described_loop(inputs)
    if loop is not None and found is not None and found.results:
        own, sync = (loops_own(inputs, loop, found.results[key]) for key in ("train_seconds", "sync_exposed_seconds"))
        return inputs.keep(own), sync
    train, reason = alone(inputs, train, trainer_alone)
    inputs.need(train, "give the busy trainer seconds per optimizer step" + reason)
    return train, no_sync


def _waste(inputs: Inputs, source: Source) -> Figure:
    """Tokens generated per trained token; a rollout time that was said holds what is thrown away."""
    key = "tokens_generated_per_trained_token"
    if source != "said":
        return waste(inputs)
    if inputs.by_flag(key):
        todo = "leave it out, or give what the rollout time follows from"
        inputs.fault("is part of a rollout time that is said", inputs.flag(key), todo)
    return NOTHING_THROWN_AWAY


def _sync(inputs: Inputs, predicted: Figure) -> Figure:
    """The part of a sync that nothing hides: said, the loop's, or none."""
    every = inputs.ask("sync_every", assume=False)
    sync = inputs.ask("sync_seconds")
    if sync.known and every.known and every.number > 1 and sync.number > 0 and not inputs.by_flag("sync_seconds"):
        others = f"with one every {every.number:g} steps the others are shorter by it"
        inputs.notes.append(f"This is an iteration with a weight sync; {others}.")
    if sync.known or predicted.known:
        return sync if sync.known else inputs.keep(predicted)
    return inputs.ask("sync_seconds", default=0.0, why="no sync is counted")


def _verify(inputs: Inputs) -> Figure:
    """Time of one verifier to score one sample; absent where scoring takes none."""
    said = inputs.ask("verify_seconds", assume=False)
    return said if said.known and said.number > 0 else absent("verify_seconds", "--verify-seconds")


def _check(inputs: Inputs, source: Source, known: Mapping[str, Figure]) -> None:
    """What each way to say the rollout time cannot do without."""
    if source == "said":
        return
    inputs.need(known["samples_per_step"], "give --samples, or --prompts with --group")
    inputs.need(known["instances"], "give the number of rollout instances")
    if source == "rate":
        todo = "give the mean response length: a rate counts tokens, a batch counts samples"
        inputs.need(known["response_tokens"], todo)
        return
    inputs.need(known["group_size"], "give the samples of one prompt")
    inputs.need(known["group_seconds"], _NEEDS)
    many, count, group = (known[key] for key in ("samples_per_step", "instances", "group_size"))
    if not (many.known and count.known and group.known):
        return
    # the rate of whole rounds of groups is too quick for a batch that does not fill its last round
    round_ = count.number * group.number
    rounds = many.number / round_
    if abs(rounds - round(rounds)) > _PART_ROUND:
        inputs.warnings.append(
            f"{many.number:g} samples are {rounds:.3g} rounds of {round_:g} (instances x group): a part of "
            "a round takes as long as a whole one, so the rollout takes longer than the mean rate says"
        )


def _report(inputs: Inputs, question: IterationQuestion, results: Sequence[Figure]) -> Report:
    found, modes = {figure.key: figure for figure in results}, mode_rows(question)
    unknown = {key for key, figure in found.items() if not figure.known and "iteration" not in key}
    return Report(
        headline=_headline(question, found),
        results=tuple(results),
        tables={"modes": _modes_table(question, modes)},
        chart=_chart(question, modes),
        quiet=frozenset(unknown),
        **inputs.told(first=_notes(question, found)),
    )


def _headline(question: IterationQuestion, found: Mapping[str, Figure]) -> str:
    prefix = question.prefixes[-1]
    whole, rollout = found[f"{prefix}iteration_seconds"], found[f"{prefix}rollout_seconds"]
    train = question.known["train_seconds"]
    parts = f"{show(rollout.value, rollout.key)} of rollout, {show(train.value, train.key)} of training"
    if not whole.known:
        return f"{parts}; a {question.mode} iteration needs {whole.missing}."
    expected = " expected" if prefix else ""
    days, share = found[f"{prefix}iterations_per_day"].number, found[f"{prefix}rollout_fraction"]
    often = f"{show(round(days))} a day" if days >= 1 else "less than one a day"
    if question.mode == COLOCATED:  # the phases run on other GPU counts than they were measured on
        parts = "both phases on all GPUs, and two change-overs"
    often = f"{often}, rollout is {show(share.value, share.key)} of it"
    return f"{show(whole.value, whole.key)}{expected} per {question.mode} iteration: {parts}; {often}."


def _modes_table(question: IterationQuestion, modes: Sequence[dict[str, Any]]) -> Table:
    rows = tuple(without_reasons(row) for row in modes)
    last = question.prefixes[-1]
    columns = (
        Column("mode", "mode", "left"),
        Column(f"{last}iteration_seconds", "expected" if last else "iteration"),
        Column(f"{last}iterations_per_day", "per day"),
        Column(f"{last}rollout_idle_fraction", "rollout idle"),
        Column(f"{last}trainer_idle_fraction", "trainer idle"),
        *([Column("needs", "needs", "left", wide=True)] if any(row["needs"] for row in rows) else []),
    )
    marked = [row["mode"] for row in rows].index(question.mode)
    note = "\n".join(f"{row['mode']}: {row['rule']}" for row in rows)
    return Table(title="Sync, overlapped, colocated", columns=columns, rows=rows, marked=marked, note=note)


def _notes(question: IterationQuestion, found: Mapping[str, Figure]) -> Iterator[str]:
    yield from _samples_note(question)
    swap = found["break_even_swap_seconds"]
    if swap.known:
        if swap.number > 0:
            limit = f"less than {show(swap.value, swap.key)}, both together"
            yield f"On as many GPUs a colocated loop beats the overlapped one if its change-overs take {limit}."
        else:
            yield "On as many GPUs no change-over is quick enough for a colocated loop to beat the overlapped one."
    elif question.mode == COLOCATED:
        yield "Without --rollout-gpus and --trainer-gpus the times are taken as those of the shared GPUs."
    if question.mode == OVERLAPPED:
        at_once = "the fleet makes the next batch while the trainer works on the last"
        yield f"Overlapped: {at_once}, so samples are a step old."
    if question.known["verify_seconds"].known:
        fewer = "fewer make the batch wait for its last scores"
        yield f"Verifier workers keep up with the samples while they come; {fewer}."


def _samples_note(question: IterationQuestion) -> list[str]:
    """What the sample count would be as a prompt count, where somebody may have meant that."""
    flow = question.flow()
    more, seconds = flow["as_prompts_samples"], flow["as_prompts_rollout_seconds"]
    many, size = flow["samples_per_step"], flow["group_size"]
    if many.source != "--samples" or not (more.known and seconds.known) or size.number <= 1:
        return []
    count, group, prompts = show(many.value), show(size.value), show(many.number / size.number)
    meant = f"{show(more.value)} samples and {show(seconds.value, '_seconds')} of rollout"
    said = f"{count} samples, so {prompts} prompts of {group}."
    return [f"{said} {count} prompts of {group} each would be {meant} (--prompts {many.value:g})."]


def _chart(question: IterationQuestion, modes: Sequence[dict[str, Any]]) -> Chart | None:
    prefix = question.prefixes[-1]
    rows = [row for row in modes if row[f"{prefix}iteration_seconds"].known]
    if not rows:
        return None
    bars = {str(row["mode"]): _parts(row, prefix) for row in rows}
    seconds = {str(row["mode"]): row[f"{prefix}iteration_seconds"].number for row in rows}
    series = (Series.of(name, ((mode, parts[name]) for mode, parts in bars.items())) for name in _PARTS)
    return Chart(
        title=_takeaway(seconds, question.mode),
        y_label=f"seconds per iteration{', expected' if prefix else ''}",
        series=tuple(one for one in series if any(height > 0 for height in one.ys)),
        kind="stacked",
        subtitle="each bar is the wall clock of one optimizer step",
    )


def _parts(row: Mapping[str, Any], prefix: str) -> dict[str, float]:
    """What an iteration's wall clock is made of."""
    whole, rollout, train = (row[f"{prefix}{part}_seconds"].number for part in ("iteration", "rollout", "train"))
    both = min(rollout, train) if row["mode"] == OVERLAPPED else 0.0
    rest = max(0.0, whole - rollout - train + both)
    return dict(zip(_PARTS, (rollout - both, train - both, both, rest), strict=True))


def _takeaway(seconds: Mapping[str, float], mode: str) -> str:
    quickest = min(seconds, key=lambda name: seconds[name])
    best = show(seconds[quickest], "_seconds")
    if quickest == mode or mode not in seconds:
        return f"{quickest} is the quickest of these: {best} per iteration"
    return f"{quickest} takes {best} per iteration where {mode} takes {show(seconds[mode], '_seconds')}"
