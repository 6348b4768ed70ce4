"""`rlsize observe`: the rates of what runs, or of what was benchmarked, from whatever tells of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from rlsize.errors import Fault, UnfinishedError
from rlsize.reports.report import Report
from rlsize.shell.answer import check_files, deliver
from rlsize.shell.command import Force, argument, option
from rlsize.shell.ending import INTERRUPTED
from rlsize.shell.inputs import Inputs
from rlsize.shell.live_engines import WATCH, WatchFlags, check_watch, watched_engines
from rlsize.shell.named_inputs import NamedInputs, named_inputs
from rlsize.shell.observation import POOLS, pools_of, rates_of, read_run, save_observation
from rlsize.shell.quantity_flags import PRICES, asks_beside_files

if TYPE_CHECKING:
    from rlsize.facts.rates import Rates
    from rlsize.facts.run_summary import RunSummary
    from rlsize.shell.live_engines import Engines


@asks_beside_files(Inputs=(*WATCH, "concurrency", "prompt_share", *POOLS), Prices=PRICES)
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
        return replace(report, notes=(*report.notes, *_saved(save, rates, force=force)))
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
    report = replace(report, notes=(*report.notes, *notes))
    nothing = save is not None and rates is None
    if not (nothing or (seen is not None and seen.watched.interrupted)):
        return report
    deliver(report, context.obj)
    if not nothing:
        raise typer.Exit(INTERRUPTED)
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
    from rlsize.commands.observe.report import observe_report, run_log_report

    if engines is None:
        return run_log_report(run, inputs.shown(), inputs.warnings)
    return observe_report(engines.seen, run, inputs.shown(), [*engines.doubts, *inputs.warnings])


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
