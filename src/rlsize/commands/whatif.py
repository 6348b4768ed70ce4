"""`rlsize whatif`: every change of a run by one step, ranked by what a trained token costs then."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rlsize.errors import Refused
from rlsize.facts.figure import Figure
from rlsize.loop.knobs import KINDS
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.reports.wording import interval, peak_words
from rlsize.shell.command import BASE, option, switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.launches import in_own_keys
from rlsize.shell.quantity_flags import ALGORITHM, ANSWER, LOOP, PRICES, WORKLOAD, ScenarioFile, asks
from rlsize.units import listed, show
from rlsize.verdicts.whatif import best_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rlsize.facts.calibration import OwnPhase
    from rlsize.loop.knobs import Change
    from rlsize.loop.phases import Phases
    from rlsize.loop.resolve import Loop
    from rlsize.reports.report import Cell
    from rlsize.verdicts.whatif import Outcome

_KINDS_OF_GPUS = ("a100-80-sxm", "h100-sxm", "h200-sxm", "b200-sxm")
_FEWEST_PAIRED = 2

_RESULTS = (
    "step_seconds", "generation_seconds", "train_seconds", "update_seconds", "logprob_seconds", "sync_seconds",
    "overhead_seconds", "trainer_idle_fraction", "rollout_idle_fraction", "loop_tokens_per_gpu_second",
    "cost_per_step_usd", "gpu_hours_per_step", "rollout_memory_headroom_fraction", "trainer_memory_headroom_fraction",
)  # fmt: skip
_VERDICTS = {"fits": "yes", "not sure": "not sure", "dies": "no"}
_MOST_SEEN = 6
_PAIRS_SEEN = 2  # of each class
_WIDE = 1.15  # upper over lower end of a band from which it is said why
_LABEL = 44  # characters beside a picture, so that it keeps most of the width
_AS_MUCH = 1.005  # a gain that is told as none


@asks(beside_files=True, Loop=LOOP, Workload=WORKLOAD, Passes=ALGORITHM, Prices=PRICES, Inputs=ANSWER)
def whatif(
    inputs: Inputs,
    scenario: ScenarioFile = None,
    changes: list[str] | None = option(
        "--set", "Your own change, such as rollout.kv_dtype=fp8; repeatable.", "Changes", "KEY=VALUE"
    ),
    other_gpus: list[str] | None = option(
        "--other-gpu", "A kind of GPU to run on instead; repeatable.", "Changes", "NAME"
    ),
    told: list[str] | None = option(
        BASE, "Any key of a scenario as the loop has it already; repeatable.", "Inputs", "KEY=VALUE"
    ),
    own_only: bool = switch("--own-only", "Only what `--set` and `--other-gpu` say, not every step.", "Changes"),
) -> Report:
    """
    What each change of a run would do: step, cost, idle and memory.

    Example:  rlsize whatif examples/unmeasured-8b.yaml --set rollout.tensor_parallel=2
    """
    from rlsize.loop.knobs import Change, single_steps
    from rlsize.shell.launches import can_change
    from rlsize.shell.progress import late_progress
    from rlsize.verdicts.whatif import outcome_in, outcomes, pairs

    inputs.read(scenario, told or ())
    base = outcome_in(inputs, Change({}))
    if base.found is None or base.loop is None or base.refused:
        inputs.notes.append("`rlsize memory` names the changes that make it fit.")
        raise Refused(base.refused)
    shown, said = inputs.shown(), tuple(inputs.notes)
    own = list(_own(inputs, changes or (), base))
    every = [] if own_only else single_steps(inputs, base.loop, [] if other_gpus else _KINDS_OF_GPUS)
    steps = [Change({"gpu": name}) for name in other_gpus or ()]
    steps += [one for one in every if can_change(inputs, _said(one.values)) or "gpu" in one.values]
    with late_progress("trying each change") as tell:
        seen: set[str] = set()
        single = outcomes(inputs, base, _distinct(inputs, steps, seen), tell)
        both = outcomes(inputs, base, _distinct(inputs, pairs(single), seen), tell)
    return whatif_report(inputs, base, (own, single, both), shown, said)


def _distinct(inputs: Inputs, changes: Iterable[Change], seen: set[str]) -> Iterator[Change]:
    """Changes that differ where the loop runs: two quantities may be told by one key."""
    for change in changes:
        words = in_own_keys(inputs, _said(change.values))
        if words not in seen:
            seen.add(words)
            yield change


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """What of a change a launch would say."""
    return {key: value for key, value in values.items() if value is not None}


def _own(inputs: Inputs, texts: Sequence[str], base: Outcome) -> Iterator[Outcome]:
    """The user's own changes, each alone, and all of them together."""
    from rlsize.loop.knobs import Change
    from rlsize.verdicts.whatif import outcome_in

    every = [[text] for text in texts] + ([list(texts)] if len(texts) >= _FEWEST_PAIRED else [])
    for some in every:
        other, values = inputs.with_sets(some)
        yield outcome_in(other, Change(values, told=", ".join(some)), base)


def whatif_report(
    inputs: Inputs, base: Outcome, found: Sequence[Sequence[Outcome]], shown: tuple[Figure, ...], notes: tuple[str, ...]
) -> Report:
    """
    The report.

    Args:
        inputs: What was said, for the words of changes.
        base: The loop as it is.
        found: The user's own changes, the single ones, and pairs.
        shown: What the loop was worked out from.
        notes: What explains it.
    """
    own, single, both = found
    those = {} if base.found is None else base.found.results  # phases of a rate are not told apart
    results = tuple(those[key] for key in _RESULTS if key in those)
    results += () if base.phases is None else (_fullest(base.phases),)
    tables = {"own": _table("Your changes", inputs, own, base)} if own else {}
    for name, kind in zip(("unchanged", "numerics", "changed"), KINDS, strict=True):
        ones = [one for one in single if one.change.kind == kind and not one.other_gpu]
        if ones:
            tables[name] = _table(kind.capitalize(), inputs, ones, base, most=_MOST_SEEN, mixed=False)
    others = [one for one in single if one.other_gpu]
    if others:
        tables["other_gpus"] = _table("Other kinds of GPUs", inputs, others, base)
    if both:
        first = [one for kind in KINDS for one in [pair for pair in both if pair.change.kind == kind][:_PAIRS_SEEN]]
        every = [*first, *(one for one in both if one not in first)]
        tables["pairs"] = _table("Two changes at once", inputs, every, base, most=len(first))
    return Report(
        command="whatif",
        headline=_headline(inputs, base, sorted([*own, *single], key=lambda one: one.rank)),
        results=results,
        inputs=shown,
        tables=tables,
        warnings=tuple(inputs.warnings),
        notes=(*notes, *_beside(base.loop)),
        chart=_chart(inputs, [*own, *single]),
        no=any(not one.runs for one in own),
    )


def _headline(inputs: Inputs, base: Outcome, single: Sequence[Outcome]) -> str:
    step = base.found.results["step_seconds"] if base.found is not None else Figure(key="step_seconds", value=None)
    loop = base.loop
    least = "at least " if loop is not None and loop.bound and loop.problem.run is None else ""
    text = f"As it is, a step takes {least}{show(step.value, step.key)} ({interval(step)})"
    told = []
    for kind in KINDS:
        best = best_of(single, kind)
        if best is not None and best.gain is not None:
            told.append(f"{_words(inputs, best)} gives {best.gain.number:.3g} times ({kind})")
    return f"{text}. Trained tokens for what they cost: {'; '.join(told) or 'no single change brings more'}."


def _words(inputs: Inputs, one: Outcome) -> str:
    """A change as the user said it, else in the keys of the framework, else in those of a scenario."""
    return one.change.told or in_own_keys(inputs, {k: v for k, v in one.change.values.items() if v is not None})


def _beside(loop: Loop | None) -> list[str]:
    """What the run has of its own, and which changes it goes with."""
    if loop is None or loop.problem.run is None:
        return []
    waits, passes = (
        listed([f"{one.phase} {show(one.seconds, '_seconds')}" for one in loop.problem.run.own if _told(one, grows)])
        for grows in (False, True)
    )
    found = peak_words(loop.problem.run.memory)
    if waits:
        found.append(f"Beside what the model knows, a step of the run waits: {waits}. No GPU or layout shortens that.")
    if passes:
        found.append(
            f"Its passes have work that the model does not know: {passes}. It grows with tokens; how far other GPUs or "
            "layouts shorten it nobody knows, which widens bands."
        )
    return found


def _told(one: OwnPhase, grows: bool) -> bool:
    return one.grows == grows and one.seconds >= 1.0


def _table(
    title: str, inputs: Inputs, found: Sequence[Outcome], base: Outcome, *, most: int | None = None, mixed: bool = True
) -> Table:
    """Changes of one class or of several, the best first; people see at most so many of those that help."""
    helpful = sum(one.helps for one in found)
    shown = None if most is None else min(most, max(helpful, 1))
    left = 0 if shown is None else len(found) - shown
    what = "tokens per GPU-hour" if found[0].other_gpu else "trained tokens for what they cost"
    note = f"{what}, over those of the run as it is"

    def ends(one: Outcome) -> tuple[float | None, float | None]:
        return (one.gain and one.gain.band) or (None, None)

    def result(one: Outcome, key: str) -> Cell:
        return None if one.found is None else one.found.results.get(key)

    def kind(one: Outcome) -> str:
        return one.change.kind.removeprefix("training ")

    cells: tuple[Column | Unseen, ...] = (
        Column("change", "change", "left", wide=True, pasted=True, of=partial(_words, inputs)),
        Column("relative_yield", "tokens/cost", of=lambda one: one.gain),
        Column("_band", "80 % band", "left", of=lambda one: interval(one.gain) if one.gain and one.gain.band else ""),
        Unseen("low", lambda one: ends(one)[0]),
        Unseen("high", lambda one: ends(one)[1]),
        Column("step_seconds", "step", of=lambda one: result(one, "step_seconds")),
        *(Unseen(key, partial(result, key=key)) for key in _RESULTS if key != "step_seconds"),
        Unseen("worst_phase_bytes_per_gpu", lambda one: None if one.phases is None else _fullest(one.phases)),
        Column("verdict", "fits", "left", of=lambda one: "no" if one.refused else _VERDICTS[one.verdict]),
        Column("training", "training", "left", of=kind) if mixed else Unseen("training", kind),
        Unseen("reason", lambda one: one.refused or _doubt(one, base)),
    )
    note = f"{note}; {left} more{'' if mixed else ' bring less'}: --json" if left > 0 else note
    now = None if base.found is None else base.found.results["step_seconds"].if_known
    return replace(Table.of(title, found, cells, shown=shown, note=note), beside=now)


def _fullest(phases: Phases) -> Figure:
    """What a GPU holds in the phase that fills it most."""
    source = f"{phases.worst.name} of the {phases.worst.pool} GPUs"
    return replace(phases.worst.held, key="worst_phase_bytes_per_gpu", source=source)


def _doubt(one: Outcome, base: Outcome) -> str:
    """Why the band of a change is wide, where it is: what nobody measured."""
    band = None if one.gain is None else one.gain.band
    told = [text for text in one.doubts if text not in base.doubts]
    told += ["tokens per GPU-hour: how much more an hour of that GPU may cost"] if one.other_gpu else []
    return "; ".join(told) if one.other_gpu or (band and band[1] > _WIDE * band[0]) else ""


def _short(words: str) -> str:
    """
    A change for a picture: its keys by their last two parts, or one; of many keys the first.

    >>> _short("a.rollout.n=8"), _short("a.rollout.n=8, a.trainer.number_of_all_nodes=2, a.trainer.gpus_per_node=4")
    ('rollout.n=8', 'rollout.n=8 + 2 more')
    """
    keys = re.sub(r"[\w.+]+\.(?=[\w]+\.[\w]+=)", "", words)
    first, *more = keys.split(", ")
    if len(keys) <= _LABEL:
        return keys
    first = first if len(first) <= _LABEL else first.rpartition(".")[2]
    return f"{first} + {len(more)} more" if more else first


def _takeaway(inputs: Inputs, best: Sequence[Outcome]) -> str:
    """What brings most without touching the training; other GPUs have another price, which decides."""
    kept = (one for one in best if one.change.kind == KINDS[0] and not one.other_gpu)
    first = next(kept, None)
    if first is None or first.gain is None or first.gain.number <= _AS_MUCH:
        return "No single change that leaves the training as it is brings more"
    return f"{_short(_words(inputs, first))} trains {first.gain.number:.2f} times as much for its cost"


def _chart(inputs: Inputs, found: Sequence[Outcome]) -> Chart:
    """What each change brings, with its band."""
    best = sorted(
        (one for one in found if one.runs and one.gain is not None),
        key=lambda one: -(one.gain.number if one.gain else 0.0),
    )[:15]
    series = []
    for kind in KINDS:
        ones = [(_short(_words(inputs, one)), one.gain) for one in best if one.change.kind == kind]
        known = [(name, gain) for name, gain in ones if gain is not None]
        if known:
            points = Series.of(kind, [(name, gain.number) for name, gain in known])
            series.append(replace(points, bands=tuple(gain.band for _, gain in known)))
    return Chart(
        title=_takeaway(inputs, best),
        x_label="trained tokens for their cost, over the run's (80 % band)",
        y_label="",
        series=tuple(series),
        kind="ranges",
        marks=(Mark(at=1.0, label="as it is", axis="x"),),
    )
