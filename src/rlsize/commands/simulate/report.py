"""What to say about a simulation: each figure beside the first-order formula's, and why they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rlsize.commands.simulate.chart import gantt, over_steps
from rlsize.commands.simulate.runs import COMPILED, compiled_figure, played_by
from rlsize.facts.figure import Figure
from rlsize.reports.chart import Panels
from rlsize.reports.report import Column, Decision, Report, Table, Unseen, tables_of
from rlsize.reports.wording import numbered, words
from rlsize.simulator.first_order import rungs
from rlsize.simulator.outcome import spread_over
from rlsize.units import show, time_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlsize.commands.simulate.runs import Done, Recorded
    from rlsize.loop.assumed import Assumption
    from rlsize.shell.inputs import Inputs
    from rlsize.simulator.outcome import Outcome, Spread
    from rlsize.simulator.setting import RuleSetting, Setting

_TELLING = (
    "step_seconds", "trainer_idle_fraction", "rollout_unused_fraction", "staleness_mean_steps", "cost_per_step_usd",
)  # fmt: skip
_SMALL = 0.005  # relative difference from the first order that is not worth a word
_WAITS = 0.1  # of the time: a side that waits less hardly waits
_MANY = 10.0  # relative difference that no percentage tells
_FEW_STEPS = 100
_MOST_SHOWN = 8  # of the staleness table
_NOTHING = 1e-6  # in any unit: rounding


class SimulationAnswer(NamedTuple):
    """
    What a simulation came to.

    Args:
        setting: What was simulated.
        outcomes: Of each seed.
        first_order: The closed forms' answers, by measure.
        parts: What the loop says of the parts of a step that were played.
        ladder: What simpler loops came to, each with one cause more; the whole loop is not among them.
        recorded: Accounts and spans for a picture, where one is wanted.
        done: All runs, those of simpler loops among them.
        assumed: What nobody said and that moves the step; None where nobody worked that out.
    """

    setting: Setting
    outcomes: tuple[Outcome, ...]
    first_order: Mapping[str, float | None]
    parts: tuple[Figure, ...] = ()
    ladder: tuple[tuple[str, Outcome], ...] = ()
    recorded: Recorded | None = None
    done: tuple[Done, ...] = ()
    assumed: tuple[Assumption, ...] | None = None


def simulate_report(answer: SimulationAnswer, inputs: Inputs) -> Report:
    """
    The report of `rlsize simulate`.

    Args:
        answer: What the simulation came to.
        inputs: What it was made of, with its warnings and notes.
    """
    spreads = {name: spread_over(answer.outcomes, name) for name in MEASURES if name in answer.outcomes[0].measures}
    seeds = len(answer.outcomes)
    runs = f"{numbered(seeds, 'run')} of {answer.outcomes[0].steps:,} steps"
    results = tuple(
        Figure(key=key_of(name), value=spread.mean, provenance="predicted", source=f"simulated: mean over {runs}")
        for name, spread in spreads.items()
    )
    series = {key_of(name) if name != "steps" else name: row for name, row in answer.outcomes[0].over_time.items()}
    parts = tuple(dict(zip(series, values, strict=True)) for values in zip(*series.values(), strict=True))
    tables = tables_of(
        measures=_measures_table(answer, spreads),
        causes=_causes_table(answer) if answer.ladder else None,
        staleness=_staleness_table(answer) if len(answer.outcomes[0].staleness) > 1 else None,
        over_time=Table(title="", columns=(), rows=parts, shown=0),  # for JSON and CSV; --plot draws it
    )
    return Report(
        headline=_headline(answer, spreads, runs),
        results=(*results, *answer.parts, compiled_figure(answer.done)),
        inputs=inputs.shown(),
        tables=tables,
        warnings=(*_warnings(answer, spreads), *inputs.warnings),
        notes=(*_notes(answer), *inputs.notes),
        chart=_chart(answer, spreads),
        quiet=frozenset((*map(key_of, spreads), COMPILED)),
        decision=Decision(
            figures=[key_of(name) for name in _TELLING],
            why=[*_moved_by(answer, spreads)],
            sure=[_halves(spreads, seeds), *(note for note in _notes(answer) if note.startswith("Few steps"))],
            change=[*_waits(answer.setting.rules, spreads)],
            assumed=answer.assumed,
            then="--sweep max_staleness=0:8 tries other values of a key; --plot draws it",
        ),
    )


def _moved_by(answer: SimulationAnswer, spreads: Mapping[str, Spread]) -> Iterator[str]:
    """What makes the step longer or shorter than the formula has it, most first; else what the formula says."""
    changes = sorted(changes_of(answer, "step_seconds"), key=lambda entry: -abs(entry[1]))
    first, end = answer.first_order["step_seconds"], spreads["step_seconds"].mean
    telling = [entry for entry in changes if abs(entry[1]) > _SMALL * end]
    told = [f"{cause} {_signed(change, 'step_seconds', end)}" for cause, change in telling]
    if first is not None:
        beyond = f": {', '.join(told)}" if told else "; nothing beside it matters"
        yield f"The first order has {number_shown(first, 'step_seconds', end)}{beyond}."


def _halves(spreads: Mapping[str, Spread], seeds: int) -> str:
    """How far seeds lie apart."""
    if seeds == 1:
        return "one run: --seeds 4 tells how far runs lie apart."
    told = [f"{SHORT[name]} {_half(spreads[name], name)}" for name in _TELLING[:3] if name in spreads]
    return f"95 % over {seeds} seeds: {', '.join(told)}."


def _waits(rules: RuleSetting, spreads: Mapping[str, Spread]) -> Iterator[str]:
    """Which side waits, so what would shorten the step."""
    trainer, fleet = spreads["trainer_idle_fraction"].mean, spreads["rollout_unused_fraction"].mean
    sides = f"the trainer waits {show(trainer, '_fraction')}, the fleet {show(fleet, '_fraction')}"
    if rules.in_turn:
        yield f"The sides take turns ({sides}): whatever makes either quicker or overlaps them shortens the step."
    elif max(trainer, fleet) < _WAITS:
        yield f"Neither side waits much: {sides}; only more of both shortens the step."
    elif min(trainer, fleet) > _WAITS:
        yield f"Both sides wait ({sides}): what holds samples up, not more GPUs."
    else:
        short = "the fleet is short" if trainer > fleet else "the trainer is short"
        yield f"{short.capitalize()}: {sides}."


def _headline(answer: SimulationAnswer, spreads: Mapping[str, Spread], runs: str) -> str:
    step, first = spreads["step_seconds"], answer.first_order["step_seconds"]
    beside = beside_first_order(step.mean, first) if first else ""
    idle = show(spreads["trainer_idle_fraction"].mean, "_fraction")
    stale = number_shown(spreads["staleness_mean_steps"].mean, "staleness_mean_steps")
    text = f"{show(step.mean, 'step_seconds')} per step over {runs}{beside}"
    return f"{text}; trainer idle {idle}, samples {stale} steps stale in the mean."


def beside_first_order(mean: float, first: float) -> str:
    """How a simulated step differs from the first order's, both in s."""
    change = mean / first - 1.0
    if abs(change) < _SMALL:
        return ", as the first-order formula says"
    if change > _MANY:
        return f", {mean / first:,.0f} times the first-order {show(first, '_seconds')}"
    where = "above" if change > 0 else "below"
    return f", {abs(change):.1%} {where} the first-order ".replace("%", " %") + show(first, "_seconds", mean)


def _measures_table(answer: SimulationAnswer, spreads: Mapping[str, Spread]) -> Table:
    first = answer.first_order
    seen = [name for name, spread in spreads.items() if MEASURES[name].seen == "always" or _not_zero(name, spread)]
    interval = Column("_interval", "95 %", of=lambda name: _half(spreads[name], name))
    cells: tuple[Column | Unseen, ...] = (
        Unseen("measure", key_of),
        Column("_what", "", "left", of=measure_name),
        Column("_simulated", "simulated", of=lambda name: number_shown(spreads[name].mean, name)),
        *([interval] if len(answer.outcomes) > 1 else []),
        Column("_first_order", "first order", of=lambda name: _shown(first.get(name), name, spreads[name].mean)),
        Column("cause", "mostly by", "left", wide=True, of=lambda name: main_cause(answer, name, spreads[name])),
        Unseen("value", lambda name: spreads[name].mean),
        Unseen("low", lambda name: max(0.0, spreads[name].low)),
        Unseen("high", lambda name: spreads[name].high),
        Unseen("first_order", first.get),
    )
    return Table.of("", dict.fromkeys((*seen, *spreads)), cells, shown=len(seen))


def _not_zero(name: str, spread: Spread) -> bool:
    return MEASURES[name].seen == "unless zero" and bool(spread.mean)


def _shown(value: float | None, name: str, beside: float | None) -> str:
    return "" if value is None else number_shown(value, name, beside)


def _half(spread: Spread, name: str) -> str:
    return half_shown(spread.high - spread.mean, name, spread.mean)


def main_cause(answer: SimulationAnswer, name: str, spread: Spread) -> str:
    """The cause that moves a measure furthest from its first-order answer; empty where it hardly moves."""
    changes = changes_of(answer, name)
    first = answer.first_order.get(name)
    if not changes or first is None:
        return ""
    difference = spread.mean - first
    scale = max(abs(first), abs(spread.mean))
    if number_shown(first, name) == number_shown(spread.mean, name):
        return ""
    if abs(difference) <= max(_SMALL * scale, (spread.high - spread.low) / 2):
        return ""
    cause, change = max(changes, key=lambda entry: entry[1] * (1 if difference > 0 else -1))
    return cause if change * difference > 0 else ""


def changes_of(answer: SimulationAnswer, name: str) -> list[tuple[str, float]]:
    """By how much each cause moves a measure, beginning at the first-order answer; of the first seed."""
    before = answer.first_order.get(name)
    if before is None or not answer.ladder:
        return []
    changes = []
    causes = [cause for cause, _ in answer.ladder]
    values = [outcome.measures.get(name) for _, outcome in answer.ladder] + [answer.outcomes[0].measures.get(name)]
    for cause, value in zip([*causes, rungs(answer.setting)[-1][0]], values, strict=True):
        if value is None:
            return []
        changes.append((cause, value - before))
        before = value
    return changes


def _causes_table(answer: SimulationAnswer) -> Table:
    found: dict[str, dict[str, Any]] = {}
    shown = [name for name in _TELLING if answer.first_order.get(name) is not None]
    ends = {name: answer.outcomes[0].measures.get(name) for name in shown}
    for name in shown:
        for cause, change in changes_of(answer, name):
            row = found.setdefault(cause, {"cause": cause})
            row[key_of(name)], row[f"_{name}"] = change, _signed(change, name, ends[name])
    first = _row("first order", {name: answer.first_order[name] for name in shown}, ends)
    last = _row("simulated, first seed", ends, ends)
    columns = (Column("cause", "", "left"), *(Column(f"_{name}", SHORT[name]) for name in shown))
    rows = (first, *found.values(), last)
    return Table(title="From the first order to the simulation", columns=columns, rows=rows, note=meaning(shown))


def _row(cause: str, values: Mapping[str, float | None], ends: Mapping[str, float | None]) -> dict[str, Any]:
    told = {f"_{name}": _shown(value, name, ends[name]) for name, value in values.items()}
    return {"cause": cause, **{key_of(name): value for name, value in values.items()}, **told}


def _signed(change: float, name: str, end: float | None) -> str:
    text = number_shown(abs(change), name, end)
    nothing = abs(change) < _NOTHING or not any(digit in text for digit in "123456789")
    return "0" if nothing else f"{'+' if change > 0 else '-'}{text}"


def _staleness_table(answer: SimulationAnswer) -> Table:
    shares: dict[int, float] = {}
    for outcome in answer.outcomes:
        for lag, share in outcome.staleness.items():
            shares[lag] = shares.get(lag, 0.0) + share / len(answer.outcomes)
    lags = sorted(shares)
    cells = (
        Unseen("staleness_steps", int),
        Column("_lag", "staleness (steps)", of=str),
        Column("samples_fraction", "share of trained samples", of=shares.__getitem__),
    )
    rest = float(sum(shares[lag] for lag in lags[_MOST_SHOWN:]))
    note = f"and {number_shown(rest, '_fraction')} above" if rest else ""
    shown = min(len(lags), _MOST_SHOWN)
    return Table.of("Staleness of the samples trained", lags, cells, shown=shown, note=note)


def _warnings(answer: SimulationAnswer, spreads: Mapping[str, Spread]) -> Iterator[str]:
    grows = max(outcome.grows for outcome in answer.outcomes)
    if grows:
        yield (
            f"the backlog grows by {grows:,.0f} samples a step and never settles: means over the run say little; cap "
            "the staleness or the queue"
        )
    cap, over = answer.setting.rules.max_staleness, spreads["over_cap_fraction"].mean
    if over > 0 and cap is not None:
        yield (
            f"{number_shown(over, '_fraction')} of the samples are above the cap of {cap:g}: admission counts samples, "
            "and slow ones come late; --late-samples drop throws them away, --late-samples wait waits for them"
        )


def _notes(answer: SimulationAnswer) -> Iterator[str]:
    first = answer.outcomes[0]
    yield played_by(answer.done)
    yield f"The first {first.warm_up} of {first.steps:,} steps are warm-up and not counted."
    if first.steps - first.warm_up < _FEW_STEPS:
        yield "Few steps: p95 and rare events need hundreds (--steps)."
    if answer.first_order.get("staleness_mean_steps") is not None and answer.setting.rules.mode == "async":
        yield "Staleness to first order is a formula from notes on others' runs; the simulation is what counts."


def _chart(answer: SimulationAnswer, spreads: Mapping[str, Spread]) -> Panels | None:
    recorded = answer.recorded
    if recorded is None:
        return None
    setting = answer.setting
    engines = " + ".join(f"{kind.instances} instances x {kind.slots} slots" for kind in setting.kinds)
    subtitle = f"{setting.rules.mode}, {engines}, {setting.work.samples:,} samples a step"
    step, first = spreads["step_seconds"].mean, answer.first_order["step_seconds"]
    title = f"{show(step, 'step_seconds')} per step{beside_first_order(step, first) if first else ''}"
    panels = over_steps(recorded.ledger, answer.outcomes[0].warm_up, title, subtitle)
    who = gantt(recorded.spans, max(kind.slots for kind in setting.kinds), "A few steps: who does what when")
    return Panels(title=panels.title, subtitle=panels.subtitle, charts=(*panels.charts, who))


class Measure(NamedTuple):
    """What people call a measure (a dash: part of the one above; empty: as its key says), and when they see it."""

    what: str = ""
    seen: Literal["always", "unless zero", "in JSON"] = "always"


MEASURES = {
    "step_seconds": Measure(),
    "step_p50_seconds": Measure("- median"),
    "step_p95_seconds": Measure("- 95th percentile"),
    "steps_per_day": Measure(seen="in JSON"),
    "trainer_idle_fraction": Measure(),
    "waiting_for_samples_fraction": Measure("- waiting for samples"),
    "sync_fraction": Measure("- weight sync"),
    "overhead_fraction": Measure("- overhead", "unless zero"),
    "failure_fraction": Measure("- failure", "unless zero"),
    "rollout_unused_fraction": Measure("rollout unused"),
    "rollout_idle_fraction": Measure("- without samples", "unless zero"),
    "tail_idle_fraction": Measure("- of it, in a tail", "unless zero"),
    "rollout_paused_fraction": Measure("- paused"),
    "rollout_lost_fraction": Measure("- lost", "unless zero"),
    "slots_busy_fraction": Measure(),
    "backlog_samples": Measure(),
    "backlog_steps": Measure(seen="in JSON"),
    "oldest_age_steps": Measure(),
    "oldest_age_max_steps": Measure(seen="in JSON"),
    "staleness_mean_steps": Measure("staleness"),
    "staleness_p95_steps": Measure("- 95th percentile"),
    "staleness_max_steps": Measure(seen="in JSON"),
    "token_staleness_mean_steps": Measure(seen="in JSON"),
    "over_cap_fraction": Measure(seen="unless zero"),
    "dropped_fraction": Measure(seen="unless zero"),
    "tokens_generated_per_trained_token": Measure("tokens per trained token"),
    "preemptions_per_step": Measure("preemptions per step", "unless zero"),
    "trained_tokens_per_second": Measure(),
    "goodput_tokens_per_gpu_second": Measure(),
    "cost_per_step_usd": Measure(),
    "gpu_hours_per_run": Measure("GPU-hours of the run"),
    "cost_per_run_usd": Measure("cost of the run"),
}
"""What a run measures, in the order in which it is read."""
SHORT = {
    "step_seconds": "step",
    "trainer_idle_fraction": "idle",
    "rollout_unused_fraction": "unused",
    "staleness_mean_steps": "staleness",
    "over_cap_fraction": "over cap",
    "tokens_generated_per_trained_token": "tokens",
    "cost_per_step_usd": "cost",
}
"""Headings of measures that stand side by side."""
_MEANT = {
    "trainer_idle_fraction": "idle: of the trainer's time",
    "rollout_unused_fraction": "unused: of the fleet's rate",
    "tokens_generated_per_trained_token": "tokens: generated per trained one",
}
_TWO_DIGITS = 10.0  # from here on, whole numbers have enough of them
_PLAIN = {"staleness_mean_steps", "staleness_p95_steps", "oldest_age_steps", "tokens_generated_per_trained_token"}
_COUNTS = {"backlog_samples", "preemptions_per_step"}


def key_of(name: str) -> str:
    """The key of a measure in an answer: of the simulated clock, so that closed forms keep theirs."""
    return f"simulated_{name}"


def measure_name(name: str) -> str:
    """What people call a measure."""
    return MEASURES[name].what or words(name)


def meaning(names: Iterable[str]) -> str:
    """What the short headings leave out, in a line."""
    return "; ".join(_MEANT[name] for name in names if name in _MEANT)


def number_shown(value: float, name: str, beside: float | None = None) -> str:
    """A value for people, short enough for a table of many; a time in the unit of the one that it stands beside."""
    if name.endswith("_fraction"):
        return f"{value:.1%}".replace("%", " %")
    if name in _PLAIN:
        return f"{value:.2f}"
    if name in _COUNTS:
        return f"{value:,.0f}"
    if name.endswith("_seconds") and beside:
        factor, unit = time_unit(beside)
        return f"{show(value * factor, '')} {unit}"
    return show(value, name)


def half_shown(half: float, name: str, mean: float) -> str:
    """Half of a confidence interval, in the unit of its mean; empty where there is none."""
    if half <= 0.0:
        return ""
    if name.endswith("_fraction"):
        return f"± {half:.1%}".replace("%", " %")
    factor, unit = time_unit(mean) if name.endswith("_seconds") else (1.0, "")
    size = half * factor
    dollars = "$" if name.endswith("_usd") else ""
    return f"± {dollars}{f'{size:,.0f}' if size >= _TWO_DIGITS else f'{size:.2g}'} {unit}".rstrip()
