"""`rlsize observe`: the rates of what runs, or of what was benchmarked, from whatever tells of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import quantiles
from typing import TYPE_CHECKING

import typer

from rlsize.errors import Fault, UnfinishedError
from rlsize.estimates.figures import measured
from rlsize.estimates.headroom import headroom_left
from rlsize.estimates.length_fit import pasted
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import HEADROOM_PARTS
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.reports.running_loop import apart_words, instances_table
from rlsize.reports.wording import words
from rlsize.shell.answer import check_files, deliver
from rlsize.shell.command import Force, argument, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.live_engines import WATCH, WatchFlags, check_watch, watched_engines
from rlsize.shell.named_inputs import NamedInputs, named_inputs
from rlsize.shell.observation import POOLS, pools_of, rates_of, read_run, save_observation
from rlsize.shell.quantity_flags import PRICES, asks
from rlsize.units import listed, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.observations import Observation
    from rlsize.facts.rates import Rates
    from rlsize.facts.run_log import RunSummary
    from rlsize.reports.chart import Role
    from rlsize.shell.live_engines import Engines

_LONG_WINDOW = "more than two pages"
_QUIET = frozenset((
    "lower_bound", "kv_cache_tokens", "instances_left_out", "page_gpus_per_instance", "response_samples",
    "response_cv_error",
))  # fmt: skip
_QUANTILES = ("response_p50_tokens", "response_p90_tokens", "response_p99_tokens")


@asks(beside_files=True, Inputs=(*WATCH, "concurrency", "prompt_share", *POOLS), Prices=PRICES)
def observe(
    inputs: Inputs,
    context: typer.Context,
    watch: WatchFlags,
    sources: list[str] | None = argument(
        "SOURCE...", "Engines (http://HOST:PORT), a training log, a benchmark's result files; - is stdin."
    ),
    save: str | None = option("--save", "Write a rates file that `fleet --per-instance` takes.", "Output", "FILE"),
    record: str | None = option(
        "--record",
        "Write what was seen with pools and prices: a baseline for `diagnose --before`, a way back.",
        "Output",
        "FILE",
    ),
    learn: str | None = option(
        "--learn", "Write what the log's keys were taken to mean: a file for --map to correct.", "Output", "FILE"
    ),
    force: Force = False,
) -> Report:
    """
    The rates of what runs: from engines, Prometheus, training logs, benchmarks.

    Example:  rlsize observe examples/operate/starving.jsonl
    """
    for key in ("skipped_steps", "group_size", "max_num_seqs"):
        inputs.ask(key)
    pools = pools_of(inputs)
    plot = context.obj.get("plot")
    check_files(inputs, save, record, learn, plot, force=force)
    found = named_inputs(inputs, sources or [], watch.format, mapped=bool(watch.map))
    engines = check_watch(inputs, found, watch)
    _check_kinds(inputs, found, record, learn, engines=engines)
    if found.results:
        from rlsize.commands.observe.benchmark import observed_results

        size, needed = pools.gpus_per_instance, save is not None
        report, rates = observed_results(inputs, found.results, watch.format, size, needed=needed)
        return _with_done(report, _saved(save, rates, force=force))
    for key in ("concurrency", "prompt_share"):
        if inputs.gives(key):
            inputs.fault("is for the runs of a benchmark", inputs.flag(key), "leave it out")
    run = read_run(inputs, found.logs, watch.format, watch.map or ())
    if not engines:
        inputs.settle()
    seen = watched_engines(inputs, found, watch, trainer=not found.logs) if engines else None
    run = run if seen is None or found.logs else seen.run
    rates = rates_of(run, seen, pools)
    report = _report(inputs, run, seen)
    notes = [*_saved(save, rates, force=force), *_learned(learn, run, force=force)]
    if record is not None:
        save_observation(record, found.logs, report.results, (run, seen), pools, force=force)
        notes.append(f"Recorded {record}; compare later with `rlsize diagnose ... --before {record}`.")
    report = _with_done(report, notes)
    nothing = save is not None and rates is None
    if not nothing:
        return replace(report, interrupted=seen is not None and seen.watched.interrupted)
    deliver(report, context.obj)
    why = "the log tells neither train times nor tokens" if seen is None else "no instance generated a token"
    raise UnfinishedError(Fault(f"{why}, so there is no rate to save", save or "", "watch a fleet at work"))


def _check_kinds(inputs: Inputs, found: NamedInputs, record: str | None, learn: str | None, *, engines: bool) -> None:
    """Note sources that say nothing to `observe`, or do not go together."""
    for name in (*found.scenarios, *found.observations):
        inputs.fault("says nothing of what runs now", name, "`rlsize diagnose` takes it beside engines and logs")
    if learn is not None and not found.logs:
        inputs.fault("says what the keys of a training log mean, and none is named", "--learn", "name the log")
    if found.results and record is not None:
        inputs.fault("records a run, and a benchmark is none", "--record", "save its rate with --save")
    if found.results and (engines or found.logs):
        what = "a benchmark's result stands beside a running loop"
        inputs.fault(what, found.results[0], "observe them one after the other")
    if not (engines or found.logs or found.results or inputs.faults):
        inputs.fault(
            "nothing to observe is named",
            "SOURCE",
            "name engines, as in `rlsize observe http://engine-0:8000`, two saved pages with --pages, a --prometheus "
            "that scrapes them, a training log or a benchmark's result",
        )


def _report(inputs: Inputs, run: RunSummary, engines: Engines | None) -> Report:

    if engines is None:
        return run_log_report(run, inputs.shown(), inputs.warnings)
    return observe_report(engines.seen, run, inputs.shown(), [*engines.doubts, *inputs.warnings])


def _with_done(report: Report, done: Sequence[str]) -> Report:
    return replace(report, notes=(*report.notes, *done), done=tuple(done))


def _learned(path: str | None, run: RunSummary, *, force: bool) -> list[str]:
    """Write what keys were taken to mean, where it is wanted; what to do with it."""
    if path is None:
        return []
    from rlsize.writers.files import write_whole
    from rlsize.writers.yaml_file import mapping_text

    write_whole(path, mapping_text(run), force)
    return [f"Wrote {path}; correct it, and give it as --map {path}."]


def _saved(path: str | None, rates: Rates | None, *, force: bool) -> list[str]:
    """Write a rates file, where one is wanted and there are rates; what to do with it."""
    if path is None or rates is None:
        return []
    from rlsize.writers.files import write_whole
    from rlsize.writers.yaml_file import rates_text

    write_whole(path, rates_text(rates), force)
    if rates.instance_tokens_per_second is None:
        return [f"Wrote {path}, the trainer's rate alone: engines, or --per-instance, tell that of an instance."]
    ask = "" if rates.consumption_tokens_per_second else " --consume ..."
    return [f"Wrote {path}; size with `rlsize fleet{ask} --per-instance {path}`."]


def observe_report(
    seen: Observation, run: RunSummary, inputs: Sequence[Figure] = (), warnings: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize observe` on engines.

    Args:
        seen: What the fleet did.
        run: What the training log beside it says; without steps where there is none.
        inputs: What was asked.
        warnings: What happened on the way and casts doubt.
    """
    left = headroom_left(seen.includes)
    report = Report(
        headline=_headline(seen),
        results=(*_rates(seen), left, *_conditions(seen)),
        inputs=tuple(inputs),
        tables={"instances": instances_table(seen)},
        warnings=(*seen.warnings, *warnings),
        notes=(_included(seen, left), *_scenario(seen)),
        chart=_chart(seen),
        quiet=_QUIET,
    )
    if not run.steps:
        return report
    other = run_log_report(run)
    known = {figure.key for figure in report.results}
    return replace(
        report,
        headline=f"{report.headline} {other.headline}",
        results=(*report.results, *(figure for figure in other.results if figure.key not in known)),
        tables={**report.tables, **other.tables},
        warnings=(*report.warnings, *other.warnings),
        notes=(*report.notes, *other.notes),
    )


def _headline(seen: Observation) -> str:
    rate = show(seen.mean, "_tokens_per_second")
    count = f"{len(seen.used)} instance{'s' if len(seen.used) > 1 else ''}"
    over = f"{count} watched for {show(seen.window_seconds, '_seconds')}"
    if seen.lower_bound:
        return f"At least {rate} per instance, a lower bound: {over} and not asked for all that they can do."
    return f"{rate} per instance: {over}, {seen.why}."


def _rates(seen: Observation) -> list[Figure]:
    source = f"{seen.keys.get('generation_tokens', 'generation_tokens')} over {show(seen.window_seconds, '_seconds')}"
    total = sum(instance.tokens_per_second or 0.0 for instance in seen.used)
    stragglers = sum(1 for instance in seen.used if instance.straggler)
    return [
        measured("instance_tokens_per_second", seen.mean, source, deviation=seen.spread or 0.0),
        measured("spread_tokens_per_second", seen.spread, source, "two instances"),
        measured("busy_instance_tokens_per_second", seen.busy_mean, source, _LONG_WINDOW),
        measured("fleet_tokens_per_second", total, source),
        measured("instances_used", len(seen.used)),
        measured("instances_left_out", len(seen.instances) - len(seen.used)),
        measured("stragglers", stragglers),
        measured("saturated_fraction", seen.saturated_fraction, seen.why, _LONG_WINDOW),
        measured("lower_bound", seen.lower_bound, seen.why),
        measured("window_seconds", seen.window_seconds),
    ]


def _conditions(seen: Observation) -> list[Figure]:
    def key(*names: str) -> str:
        return ", ".join(seen.keys[name] for name in names if name in seen.keys)

    syncs = "a page that counts them"
    return [
        measured("mean_response_tokens", seen.mean_response_tokens, key("response_tokens.sum"), "finished samples"),
        *_lengths(seen, key("response_buckets")),
        measured("mean_prompt_tokens", seen.mean_prompt_tokens, key("prompt_lengths.sum"), "finished samples"),
        measured("group_size", seen.group_size, key("samples_per_request.sum"), "--group"),
        measured(
            "prefix_cache_hit_fraction",
            seen.prefix_cache_hit_fraction,
            key("prefix_cache_hits", "prefix_cache_queries"),
            "a page that counts cache hits",
        ),
        seen.affine_prefix_cache_hit_fraction,
        measured("preemptions_per_second", seen.preemptions_per_second, key("preemptions"), "a page that counts them"),
        measured("weight_syncs", seen.weight_syncs, key("weight_syncs"), syncs),
        measured("weight_sync_seconds", seen.weight_sync_seconds, key("weight_sync_seconds"), syncs),
        measured("kv_cache_tokens", seen.kv_cache_tokens, key("kv_cache_tokens"), "a page that states it"),
        measured("page_gpus_per_instance", seen.gpus_per_instance, "the engines' pages", "a page that states it"),
    ]


def _lengths(seen: Observation, source: str) -> list[Figure]:
    """The distribution of response lengths, as scenarios have it."""
    fit = seen.lengths
    if fit is None or fit.cv is None:
        missing = fit.why if fit is not None else "a page with a histogram of lengths, and finished samples"
        return [absent("response_cv", missing)]  # the one that a scenario needs speaks for all
    source = f"likeliest lognormal for {fit.samples:,.0f} samples in the buckets of {source}"
    return [
        measured("response_cv", fit.cv, source, deviation=fit.cv_error or 0.0),
        measured("max_response_tokens", fit.cap, fit.cap_from, "samples that reach a cap"),
        *(measured(key, value, source) for key, value in zip(_QUANTILES, fit.quantiles or (), strict=True)),
        measured("response_samples", fit.samples, source),
        measured("response_cv_error", fit.cv_error, source, "a likelihood with a peak"),
    ]


def _included(seen: Observation, left: Figure) -> str:
    held = "; ".join(f"{part.replace('_', ' ')} ({why})" for part, why in seen.includes.items())
    start = f"The rate already includes {held}." if held else "The rate includes no part of headroom yet."
    rest = [part.replace("_", " ") for part in HEADROOM_PARTS if part not in seen.includes]
    return f"{start} Headroom {show(left.value)} is left for {listed(rest)}."


def _scenario(seen: Observation) -> list[str]:
    fit = seen.lengths
    if fit is None or fit.cv is None:
        return []
    error = f" ± {fit.cv_error:.2g}" if fit.cv_error is not None else ""
    sure = f"(cv {fit.cv:.2f}{error}, from {fit.samples:,.0f} samples)"
    return [f"`{pasted(fit)}` says these lengths in a scenario, under `workload` {sure}."]


def _chart(seen: Observation) -> Chart:
    """The instances' rates side by side, with their mean."""
    names = tuple(instance.instance for instance in seen.used)
    rates = tuple(instance.tokens_per_second or 0.0 for instance in seen.used)
    return Chart(
        title=f"{'At least ' if seen.lower_bound else ''}{show(seen.mean, '_tokens_per_second')} per instance",
        x_label="instance",
        y_label="response tokens per second",
        series=(Series(name="by wall clock", xs=names, ys=rates, role="rollout"),),
        kind="bars",
        marks=(Mark(at=seen.mean or 0.0, label="mean", axis="y"),),
    )


_PHASES = {
    "generation_seconds": "generation",
    "wait_seconds": "waiting for samples",
    "logprob_seconds": "log-probs",
    "update_seconds": "update",
    "sync_seconds": "weight sync",
    "reward_seconds": "rewards",
    "validation_seconds": "validation",
    "checkpoint_seconds": "checkpoint",
    "generation_tools_seconds": "tools, in generation",
    "other_seconds": "other",
    "step_seconds": "whole step",
}
_ROLES: dict[str, Role] = {  # of the parts of a step, from the bottom of a picture to its top
    "update_seconds": "update",
    "logprob_seconds": "logprob",
    "sync_seconds": "sync",
    "generation_seconds": "rollout",
    "wait_seconds": "waiting",
    "other_seconds": "swap",
}
_RESULTS = (
    *("step_seconds", "train_seconds", "consumption_tokens_per_second", "trained_tokens_per_second"),
    *("fleet_tokens_per_second", "trainer_idle_fraction", "sync_pause_fraction", "batch_tokens", "samples_per_step"),
    *("mean_response_tokens", "mean_prompt_tokens", "clipped_fraction", "staleness_steps", "largest_staleness_steps"),
    "mfu",
    *("queued_samples", "dropped_samples_per_step", "prefix_cache_hit_fraction", "rollout_gpus", "trainer_gpus"),
    *("reported_rollout_tokens_per_second", "reported_trainer_tokens_per_second"),
    *("reported_trainer_idle_fraction", "reported_rollout_idle_fraction", "prompt_tokens_per_step"),
    *("total_tokens_per_step", "turns", "sample_tools_seconds", "peak_allocated_bytes", "peak_reserved_bytes"),
)
_ASKED = {"step_seconds", "train_seconds", "consumption_tokens_per_second", "trainer_idle_fraction"}
_DRAWN = 1000  # steps of a picture, at most
_NAMES = {"colocated": "colocated", "synchronous": "in turn", "async": "async", "unknown": "mode not known"}


def run_log_report(run: RunSummary, inputs: Sequence[Figure] = (), warnings: Sequence[str] = ()) -> Report:
    """
    The report of `rlsize observe` on a training log.

    Args:
        run: The log, summed up.
        inputs: What was asked.
        warnings: What happened on the way and casts doubt.
    """
    known = [run.figure(key, _lacking(run, key)) for key in _RESULTS if key in _ASKED or key in run.figures]
    tables = {"phases": _phases_table(run), "keys": _keys_table(run)}
    return Report(
        headline=_run_headline(run),
        results=(*known, measured("settled_steps", len(run.steps), run.source)),
        inputs=tuple(inputs),
        tables={name: table for name, table in tables.items() if table.rows},
        warnings=(*run.warnings, *warnings),
        notes=tuple(apart_words(run)),
        chart=_phases_chart(run),
    )


def _lacking(run: RunSummary, key: str) -> str:
    """What a figure lacks: a key that some step does not have, or a log that says more."""
    if key in run.keys:
        return f"{run.keys[key]} in every step"
    if key == "trainer_idle_fraction" and run.mode == "colocated":
        return "pools of their own"
    if run.unread and key != "consumption_tokens_per_second":
        return "--map, as a key of the log may say it"
    return {
        "train_seconds": "a log that times training",
        "consumption_tokens_per_second": "a log with tokens and train times",
        "trainer_idle_fraction": "a log that times waiting",
    }.get(key, "a log that has it")


def _run_headline(run: RunSummary) -> str:
    count = len(run.steps)
    over = f"{run.framework}, {_NAMES[run.mode]}: {count} settled step{'s' if count != 1 else ''}"
    step, consumed = run.figure("step_seconds"), run.figure("consumption_tokens_per_second")
    parts = [f"{show(step.value, 'step_seconds')} each"] if step.known else []
    parts += [f"the trainer consumes {show(consumed.value, consumed.key)} while it trains"] if consumed.known else []
    return f"{over}{', ' if parts else ''}{'; '.join(parts)}."


def _phases_table(run: RunSummary) -> Table:
    """Each phase per optimizer step: mean, spread over the steps, share of the step."""
    whole = run.figure("step_seconds")

    def cut(key: str, tenths: int) -> float | None:
        values = run.columns.get(key, ())
        return quantiles(values, n=10, method="inclusive")[tenths - 1] if len(values) > 1 else None

    def share(key: str) -> float | None:
        return run.figures[key].number / whole.number if whole.known and whole.number else None

    cells = (
        Column("phase", "", "left", of=_PHASES.__getitem__),
        Column("mean_seconds", "mean", of=lambda key: run.figures[key].value),
        Column("p10_seconds", "p10", of=lambda key: cut(key, 1)),
        Column("p50_seconds", "median", of=lambda key: cut(key, 5)),
        Column("p90_seconds", "p90", of=lambda key: cut(key, 9)),
        Column("share_fraction", "share", of=share),
        Unseen("key", lambda key: run.keys.get(key, "")),
    )
    return Table.of("Phases of an optimizer step", (key for key in _PHASES if key in run.figures), cells)


def _keys_table(run: RunSummary) -> Table:
    """Which key each quantity was read from, and what it counts where that is not what its name says."""
    cells = (
        Unseen("quantity", str),
        Unseen("key", run.keys.__getitem__),
        Column("_quantity", "", "left", wide=True, of=words),
        Column(
            "_key", "from", "left", wide=True, of=lambda name: run.keys[name] + " (guessed)" * (name in run.guessed)
        ),
        Column("counts", "which counts", "left", wide=True, of=lambda name: run.counts.get(name, "")),
        Unseen("guessed", run.guessed.__contains__),
    )
    return Table.of("What was read", run.keys, cells)


def _phases_chart(run: RunSummary) -> Chart | None:
    """The settled steps, their parts on top of each other; generation where nothing else runs beside it."""
    alone = run.mode in {"synchronous", "colocated"}
    parts = [key for key in _ROLES if key in run.columns and (alone or key != "generation_seconds")]
    if len(run.steps) <= 1 or not parts:  # no picture
        return None
    rising = all(second > first for first, second in pairwise(run.steps))
    places = range(0, len(run.steps), -(-len(run.steps) // _DRAWN))
    xs = tuple(float(run.steps[place] if rising else place) for place in places)  # a restart counts again from below
    idle, whole = run.figure("trainer_idle_fraction"), run.figure("step_seconds")
    takeaway = f"a step takes {show(whole.value, 'step_seconds')}" if whole.known else "time of each optimizer step"
    if idle.known:
        takeaway += f", of which the trainer waits {show(idle.value, 'x_fraction')}"
    return Chart(
        title=f"{run.framework}: {takeaway}",
        x_label="optimizer step",
        y_label="seconds",
        kind="areas",
        series=tuple(
            Series(name=_PHASES[key], xs=xs, ys=tuple(run.columns[key][place] for place in places), role=_ROLES[key])
            for key in parts
        ),
    )
