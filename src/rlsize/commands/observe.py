"""`rlsize observe`: the rates of what runs, or of what was benchmarked, from whatever tells of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.commands import flags
from rlsize.commands import watch_flags as watch
from rlsize.commands.engines import INTERRUPTED, Engines, WatchFlags, check_watch, told, watched_engines
from rlsize.commands.sources import sorted_sources
from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.reports.report import Report
from rlsize.shell.command import TERMINAL, quantity
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from rlsize.commands.recording import Pools
    from rlsize.commands.sources import Sources
    from rlsize.facts.rates import Rates
    from rlsize.facts.run_summary import RunSummary

Concurrency = Annotated[
    str | None, quantity("--concurrency", "Of a benchmark's runs, the one with so many requests in flight.")
]
PromptShare = Annotated[
    str | None, quantity("--prompt-share", "Share of prompt tokens in runs that count prompt and response together.")
]


def observe(
    context: typer.Context,
    sources: watch.Named = None,
    format: watch.FormatName = None,  # noqa: A002 (the flag's name)
    skip: watch.Skip = None,
    concurrency: Concurrency = None,
    prompt_share: PromptShare = None,
    pages: watch.Pages = None,
    seconds: watch.Seconds = None,
    prometheus: watch.Prometheus = None,
    selector: watch.Selector = None,
    at: watch.At = None,
    window: watch.Window = None,
    every: watch.Every = None,
    group: flags.Group = None,
    max_num_seqs: watch.MaxNumSeqs = None,
    instances: flags.Instances = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    rollout_gpus: flags.RolloutGpus = None,
    trainer_gpus: flags.TrainerGpus = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    save: watch.Save = None,
    record: watch.Record = None,
    force: watch.Force = False,
    token_file: watch.TokenFile = None,
    ca: watch.Authority = None,
    insecure: watch.Insecure = False,
    timeout: watch.Timeout = None,
    profiles: flags.Profiles = None,
) -> Report:
    """
    The rates of what runs: from engines, Prometheus, training logs, benchmarks.

    Example:  rlsize observe http://engine-0:8000 http://engine-1:8000 train.log --save rates.yaml
    """
    from rlsize.commands.recording import pools_of
    from rlsize.commands.running import SKIPPED_STEPS, read_run
    from rlsize.commands.watching import AccessFlags

    inputs = Inputs(None, profiles)
    skipped = inputs.number("skipped_steps", "--skip", skip, SKIPPED_STEPS)
    group_figure = inputs.number("group_size", "--group", group, flags.POSITIVE)
    limit = inputs.number("max_num_seqs", "--max-num-seqs", max_num_seqs, flags.COUNT)
    prices = (gpu_hour, rollout_gpu_hour, trainer_gpu_hour, price)
    pools = pools_of(inputs, instances, gpus_per_instance, rollout_gpus, trainer_gpus, prices)
    access = AccessFlags(token_file, ca, insecure, timeout)
    said = WatchFlags(pages, seconds, prometheus, selector, at, window, every, access)
    plot = context.obj.get("plot")
    check_files(inputs, [save, record, plot if plot != TERMINAL else None], force=force)
    found = sorted_sources(inputs, sources or [], format)
    engines = check_watch(inputs, found, said)
    _check_kinds(inputs, found, engines=engines)
    if found.results:
        from rlsize.commands.observe_results import observed_results

        chosen = (concurrency, prompt_share)
        return observed_results(inputs, found.results, format, chosen, pools, (save, record), force=force)
    for flag, text in (("--concurrency", concurrency), ("--prompt-share", prompt_share)):
        if text is not None:
            inputs.fault("is for the runs of a benchmark", flag, "leave it out")
    run = read_run(inputs, found.logs, format, skipped)
    seen = watched_engines(inputs, found, said, group_figure, limit) if engines else None
    return _answer(context, inputs, (run, seen), pools, (save, record, found), force=force)


def _check_kinds(inputs: Inputs, found: Sources, *, engines: bool) -> None:
    """Note sources that say nothing to `observe`, or do not go together."""
    for name in (*found.scenarios, *found.observations):
        inputs.fault("says nothing of what runs now", name, "`rlsize diagnose` takes it beside engines and logs")
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


def check_files(inputs: Inputs, files: list[str | None], *, force: bool) -> None:
    """Find out before the window whether what is seen can be written after it."""
    from rlsize.writers.files import check_target

    named = [file for file in files if file]
    for twice in sorted({file for file in named if named.count(file) > 1}):
        inputs.fault("is to be written twice", twice, "give each file a name of its own")
    for file in named:
        try:
            check_target(file, force)
        except InputError as error:
            inputs.faults.extend(error.faults)


def _answer(
    context: typer.Context,
    inputs: Inputs,
    seen: tuple[RunSummary, Engines | None],
    pools: Pools,
    targets: tuple[str | None, str | None, Sources],
    *,
    force: bool,
) -> Report:
    """Save what is to be saved, and say what was seen."""
    from rlsize.commands.recording import save_observation

    run, engines = seen
    save, record, found = targets
    rates = _rates(seen, pools)
    report = _report(inputs, run, engines)
    nothing = save is not None and rates is None
    notes = []
    if save is not None and rates is not None:
        notes.append(_saved(save, rates, force=force))
    if record is not None:
        names = [*found.logs, *(one.instance for one in (engines.seen.used if engines else ()))]
        fleet = None if engines is None else engines.seen
        save_observation(record, names, report.results, (run, fleet), pools, force=force)
        notes.append(f"Recorded {record}; compare later with `rlsize diagnose ... --before {record}`.")
    from dataclasses import replace

    report = replace(report, notes=(*report.notes, *notes))
    interrupted = engines is not None and engines.watched.interrupted
    if not (interrupted or nothing):
        return report
    from rlsize.shell.answer import deliver

    deliver(report, context.obj)
    if nothing:
        why = "the log tells neither train times nor tokens" if engines is None else "no instance generated a token"
        raise UnfinishedError(Fault(f"{why}, so there is no rate to save", save or "", "watch a fleet at work"))
    raise typer.Exit(INTERRUPTED)


def _report(inputs: Inputs, run: RunSummary, engines: Engines | None) -> Report:
    from rlsize.estimates.headroom import headroom_left
    from rlsize.reports.observe import observe_report
    from rlsize.reports.run_log import run_log_report, with_run

    warnings = [*told(engines), *inputs.warnings]
    if engines is None:
        return run_log_report(run, inputs.shown(), warnings)
    left = headroom_left(engines.seen.includes)
    report = observe_report(engines.seen, inputs.shown(), left, (), warnings)
    return with_run(report, run) if run.steps else report


def _rates(seen: tuple[RunSummary, Engines | None], pools: Pools) -> Rates | None:
    """Both rates, as far as they were seen; None where neither was."""
    from datetime import UTC, datetime

    from rlsize.estimates.observing import observed_rates
    from rlsize.estimates.run_rates import with_trainer

    run, engines = seen
    ended = None if engines is None else engines.watched.ended
    at = (datetime.now(UTC) if ended is None else datetime.fromtimestamp(ended, UTC)).isoformat(timespec="seconds")
    size = pools.gpus_per_instance
    fleet = None
    if engines is not None and engines.seen.mean:
        fleet = observed_rates(engines.seen, measured_at=at, gpus_per_instance=size.number if size.known else None)
    trainer = pools.trainer_gpus
    return with_trainer(fleet, run, measured_at=at, trainer_gpus=trainer.number if trainer.known else None)


def _saved(path: str, rates: Rates, *, force: bool) -> str:
    """Write a rates file; what to do with it."""
    from rlsize.writers.files import write_whole
    from rlsize.writers.rates_file import rates_text

    write_whole(path, rates_text(rates), force)
    if rates.instance_tokens_per_second is None:
        return f"Wrote {path}, the trainer's rate alone: engines, or --per-instance, tell that of an instance."
    ask = "" if rates.consumption_tokens_per_second else " --consume ..."
    return f"Wrote {path}; size with `rlsize fleet{ask} --per-instance {path}`."
