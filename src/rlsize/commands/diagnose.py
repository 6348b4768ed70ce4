"""`rlsize diagnose`: which side of a running loop starves, and what to do in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from rlsize.commands import asking, flags
from rlsize.commands import diagnose_flags as own
from rlsize.commands import watch_flags as watch
from rlsize.commands.engines import INTERRUPTED, Engines, WatchFlags, check_watch, told, watched_engines
from rlsize.commands.failing_on import failing_words, fails
from rlsize.commands.sources import sorted_sources
from rlsize.errors import InputError
from rlsize.facts.evidence import EngineLoad, Evidence
from rlsize.facts.figure import Figure, absent
from rlsize.reports.report import Report
from rlsize.shell.inputs import Inputs
from rlsize.shell.rates import load

if TYPE_CHECKING:
    import numpy as np

    from rlsize.commands.recording import Pools
    from rlsize.commands.sources import Sources
    from rlsize.facts.evidence import Diagnosis
    from rlsize.facts.observation_file import RunObservation
    from rlsize.facts.run_summary import RunSummary
    from rlsize.verdicts.before_after import Compared

_SEED = 0  # the draws of a bootstrap are the same each time, so that an answer is


def diagnose(
    context: typer.Context,
    sources: own.Named = None,
    consume: flags.Consume = None,
    per_instance: flags.PerInstance = None,
    accept_lower_bound: flags.AcceptLowerBound = False,
    headroom: flags.Headroom = None,
    tokens_per_trained_token: flags.Waste = None,
    train_seconds: own.Expected = None,
    group: flags.Group = None,
    instances: flags.Instances = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    rollout_gpus: flags.RolloutGpus = None,
    trainer_gpus: flags.TrainerGpus = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    before: own.Before = None,
    max_idle: own.MaxIdle = None,
    max_sync: own.MaxSync = None,
    max_staleness: own.MaxStaleness = None,
    format: watch.FormatName = None,  # noqa: A002 (the flag's name)
    skip: watch.Skip = None,
    max_num_seqs: watch.MaxNumSeqs = None,
    pages: watch.Pages = None,
    seconds: watch.Seconds = None,
    prometheus: watch.Prometheus = None,
    selector: watch.Selector = None,
    at: watch.At = None,
    window: watch.Window = None,
    every: watch.Every = None,
    fail_on: own.FailOn = None,
    record: watch.Record = None,
    force: watch.Force = False,
    token_file: watch.TokenFile = None,
    ca: watch.Authority = None,
    insecure: watch.Insecure = False,
    timeout: watch.Timeout = None,
    profiles: flags.Profiles = None,
) -> Report:
    """
    Which side of a running loop starves, and what to do in which order.

    Example:  rlsize diagnose http://engine-0:8000 http://engine-1:8000 --consume 39321
    """
    from rlsize.commands.observe import check_files
    from rlsize.commands.recording import pools_of
    from rlsize.commands.running import SKIPPED_STEPS, read_run
    from rlsize.commands.watching import AccessFlags

    aside = Inputs()
    found = sorted_sources(aside, sources or [], format)
    inputs = _opened(aside, found, profiles)
    load(inputs, per_instance, accept_lower_bound=accept_lower_bound)
    skipped = inputs.number("skipped_steps", "--skip", skip, SKIPPED_STEPS)
    group_figure = inputs.number("group_size", "--group", group, flags.POSITIVE, scenario="workload.group_size")
    limit = inputs.number("max_num_seqs", "--max-num-seqs", max_num_seqs, flags.COUNT)
    prices = (gpu_hour, rollout_gpu_hour, trainer_gpu_hour, price)
    pools = pools_of(inputs, instances, gpus_per_instance, rollout_gpus, trainer_gpus, prices)
    limits = _limits(inputs, max_idle, max_sync, max_staleness)
    asked = _asked(inputs, consume, per_instance, headroom, tokens_per_trained_token, train_seconds)
    access = AccessFlags(token_file, ca, insecure, timeout)
    said = WatchFlags(pages, seconds, prometheus, selector, at, window, every, access)
    check_files(inputs, [record], force=force)
    if before is not None and record == before:
        inputs.fault("is the baseline, the way back", "--record", "write what is now to a file of its own")
    words = failing_words(inputs, fail_on, compared=before is not None)
    engines = check_watch(inputs, found, said)
    _check_sources(inputs, found, engines=engines)
    baseline = _baseline(inputs, before)
    run = read_run(inputs, found.logs, format, skipped)
    seen = watched_engines(inputs, found, said, group_figure, limit) if engines else None
    evidence = _evidence(run, seen, {**asked, **limits}, pools)
    return _answer(context, inputs, evidence, (seen, pools, baseline), (before, record, found, words), force=force)


def _opened(aside: Inputs, found: Sources, profiles: list[str] | None) -> Inputs:
    """The inputs, with the scenario if one is named."""
    if len(found.scenarios) > 1:
        aside.fault("two scenarios are named", found.scenarios[1], "name one")
    inputs = Inputs(None, profiles)
    try:
        inputs = Inputs(found.scenarios[0] if found.scenarios else None, profiles)
    except InputError as error:
        aside.blame(error, found.scenarios[0])
    inputs.faults += aside.faults
    return inputs


def _asked(
    inputs: Inputs,
    consume: str | None,
    per_instance: str | None,
    headroom: str | None,
    waste: str | None,
    train_seconds: str | None,
) -> dict[str, Figure]:
    """What is given of both rates; nothing of it is needed."""
    batch = asking.batch_tokens(inputs, None, None, None, None)
    train = inputs.number(
        "train_seconds", "--train-seconds", train_seconds, flags.SECONDS, scenario="rates.train_seconds"
    )
    rate, derate = absent("instance_tokens_per_second", "--per-instance"), absent("headroom", "--headroom")
    stated = inputs.said("rates.instance_tokens_per_second") is not None
    if per_instance is not None or stated or inputs.rates is not None:
        rate, derate = asking.instance_rate(inputs, per_instance, headroom)
    elif headroom is not None:
        derate = inputs.number("headroom", "--headroom", headroom, flags.HEADROOM)
    said = inputs.said("rates.consumption_tokens_per_second") is not None
    consumption = absent("consumption_tokens_per_second", "--consume")
    if consume is not None or said or (batch.known and train.known):
        consumption = asking.consumption(inputs, consume, batch, train)
    return {
        "consumption": consumption,
        "waste": asking.waste(inputs, waste),
        "nameplate": rate,
        "headroom": derate,
        "expected_train_seconds": replace(train, key="expected_train_seconds") if train.known else train,
    }


def _limits(inputs: Inputs, idle: str | None, sync: str | None, staleness: str | None) -> dict[str, Figure]:
    """What is accepted."""
    return {
        "idle_target": inputs.number("idle_target_fraction", "--max-idle", idle, flags.FRACTION_OR_NONE),
        "sync_target": inputs.number("sync_target_fraction", "--max-sync", sync, flags.FRACTION_OR_NONE),
        "max_staleness": inputs.number(
            "max_staleness", "--max-staleness", staleness, flags.STALENESS, scenario="placement.max_staleness"
        ),
    }


def _check_sources(inputs: Inputs, found: Sources, *, engines: bool) -> None:
    for name in found.results:
        todo = "save its rate with `rlsize observe FILE --save rates.yaml`, and give it as --per-instance rates.yaml"
        inputs.fault("is a benchmark's result, not a running loop", name, todo)
    for name in found.observations:
        inputs.fault("is a saved observation", name, "compare with it: --before FILE")
    if not (engines or found.logs or inputs.faults):
        todo = "name engines, as in `rlsize diagnose http://engine-0:8000 --consume 39321`, or a training log"
        inputs.fault("nothing that runs is named", "SOURCE", todo)


def _baseline(inputs: Inputs, path: str | None) -> RunObservation | None:
    if path is None:
        return None
    from rlsize.readers.observations import read_observation

    try:
        return read_observation(path)
    except InputError as error:
        inputs.blame(error, path)
        return None


def _evidence(run: RunSummary, seen: Engines | None, asked: dict[str, Figure], pools: Pools) -> Evidence:
    return Evidence(
        run=run,
        fleet=None if seen is None else seen.seen,
        load=EngineLoad() if seen is None else seen.load,
        instances=pools.instances,
        gpus_per_instance=pools.gpus_per_instance,
        trainer_gpus=pools.trainer_gpus,
        **asked,
    )


def _answer(
    context: typer.Context,
    inputs: Inputs,
    evidence: Evidence,
    seen: tuple[Engines | None, Pools, RunObservation | None],
    said: tuple[str | None, str | None, Sources, list[str]],
    *,
    force: bool,
) -> Report:
    """The diagnosis, and the comparison where a baseline is given."""
    import numpy as np

    from rlsize.reports.diagnose import diagnose_report
    from rlsize.verdicts.diagnosis import diagnosis

    engines, pools, baseline = seen
    before, record, named, words = said
    random = np.random.default_rng(_SEED)
    found = diagnosis(evidence, random)
    comparison: tuple[tuple[Compared, ...], list[str]] = ((), [])
    if baseline is not None and before is not None:
        comparison = _compared(evidence, pools, baseline, before, found, random)
    failed = fails(words, found, comparison[0])
    warnings = [*told(engines), *inputs.warnings]
    report = diagnose_report(evidence, found, inputs.shown(), comparison, (warnings, inputs.notes), no=failed)
    if record is not None:
        from rlsize.commands.recording import save_observation

        names = [*named.logs, *(one.instance for one in (engines.seen.used if engines else ()))]
        save_observation(record, names, report.results, (evidence.run, evidence.fleet), pools, force=force)
        note = f"Recorded {record}; compare later with --before {record}."
        report = replace(report, notes=(*report.notes, note))
    if engines is not None and engines.watched.interrupted:
        from rlsize.shell.answer import deliver

        deliver(report, context.obj)
        raise typer.Exit(INTERRUPTED)
    return report


def _compared(
    evidence: Evidence,
    pools: Pools,
    baseline: RunObservation,
    path: str,
    found: Diagnosis,
    random: np.random.Generator,
) -> tuple[tuple[Compared, ...], list[str]]:
    """Before and after, and how to go back."""
    from rlsize.commands.recording import allocation_of, prices_of
    from rlsize.reports.before_after import outcome_words, rollback_words
    from rlsize.verdicts.before_after import Side, compared

    now = Side(
        columns=evidence.run.columns,
        allocation=allocation_of(pools, evidence.run, evidence.fleet),
        prices=prices_of(pools),
    )
    then = Side(columns=baseline.columns, allocation=baseline.allocation, prices=baseline.prices)
    told = compared(then, now, random)
    return told, [outcome_words(told, path), *rollback_words(baseline, path, _shares(evidence, found))]


def _shares(evidence: Evidence, found: Diagnosis) -> dict[str, Figure]:
    """Shares that may have got better since."""
    keys = ("prefix_cache_hit_fraction", "sync_pause_fraction")
    return {key: one.figures[key] for one in found.findings for key in keys if key in one.figures} | {
        key: evidence.run.figures[key] for key in keys if key in evidence.run.figures
    }
