"""`rlsize observe`: what running engines generate, read from their metrics pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.cli import flags
from rlsize.cli.command import TERMINAL, quantity
from rlsize.cli.inputs import Inputs
from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.reports.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.cli.watching import Watched
    from rlsize.facts.figure import Figure
    from rlsize.facts.observations import Observation

ACCESS = "Access"
INTERRUPTED = 130

Urls = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="URL...", help="The engines: http://HOST:PORT, https://HOST/metrics, or HOST:PORT.", show_default=False
    ),
]
Pages = Annotated[
    list[str] | None,
    typer.Option(
        "--pages",
        metavar="FIRST SECOND",
        help="Two saved pages of the same engines instead of URLs; repeatable, once for each server.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
Prometheus = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="A Prometheus server that scrapes the engines, instead of their URLs.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
Selector = Annotated[
    str | None,
    typer.Option(
        "--selector",
        metavar="MATCHERS",
        help="Which engines of --prometheus, by their labels: 'job=\"rollout\"'.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="End of the window of --prometheus: ISO 8601 with a zone, or seconds since 1970; now without it.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
Window = Annotated[str | None, quantity("--window", "How long to watch: seconds, or 5m, 1h; 300 by default.")]
Every = Annotated[str | None, quantity("--every", "Seconds between two looks; 5 by default.")]
Seconds = Annotated[str | None, quantity("--seconds", "Time between the two saved pages.")]
MaxNumSeqs = Annotated[
    str | None, quantity("--max-num-seqs", "The engines' limit on running requests, where it is their plateau.")
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="Write a rates file that `fleet --per-instance` takes.",
        rich_help_panel="Output",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]
TokenFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="File with a bearer token; RLSIZE_BEARER_TOKEN or RLSIZE_BASIC_AUTH without it.",
        rich_help_panel=ACCESS,
        show_default=False,
    ),
]
Authority = Annotated[
    str | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        help="Certificates to trust instead of the system's (PEM).",
        rich_help_panel=ACCESS,
        show_default=False,
    ),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Do not check certificates.", rich_help_panel=ACCESS)]
Timeout = Annotated[str | None, quantity("--timeout", "Most seconds for one page; 10 by default.", ACCESS)]


def observe(
    context: typer.Context,
    urls: Urls = None,
    pages: Pages = None,
    seconds: Seconds = None,
    prometheus: Prometheus = None,
    selector: Selector = None,
    at: At = None,
    window: Window = None,
    every: Every = None,
    group: flags.Group = None,
    max_num_seqs: MaxNumSeqs = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    save: Save = None,
    force: Force = False,
    token_file: TokenFile = None,
    ca: Authority = None,
    insecure: Insecure = False,
    timeout: Timeout = None,
) -> Report:
    """
    Read running engines' metrics: rate, saturation, stragglers.

    Example:  rlsize observe http://engine-0:8000 http://engine-1:8000 --save rates.yaml
    """
    from rlsize.cli.watching import AccessFlags, from_pages, from_prometheus, live

    inputs = Inputs()
    group_figure = inputs.number("group_size", "--group", group, flags.POSITIVE)
    limit = inputs.number("max_num_seqs", "--max-num-seqs", max_num_seqs, flags.COUNT)
    gpus = inputs.number("gpus_per_instance", "--gpus-per-instance", gpus_per_instance, flags.GPUS_PER_INSTANCE)
    _check_sources(inputs, {"URL": urls, "--pages": pages, "--prometheus": prometheus})
    _check_windows(inputs, pages, seconds, {"--window": window, "--every": every})
    _check_prometheus(inputs, prometheus, {"--selector": selector, "--at": at}, every)
    plot = context.obj.get("plot")
    check_files(inputs, [save, plot if plot != TERMINAL else None], force=force)
    access = AccessFlags(token_file, ca, insecure, timeout)
    if pages:
        watched = from_pages(inputs, pages, seconds)
    elif prometheus:
        watched = from_prometheus(inputs, prometheus, selector, window, at, access)
    else:
        watched = live(inputs, urls or [], window, every, access)
    seen = _observation(watched, group_figure, limit)
    _report_left(seen, watched)
    return _answer(context, inputs, seen, watched, gpus, save, force=force)


def _check_sources(inputs: Inputs, sources: Mapping[str, object]) -> None:
    """Exactly one source says where the engines' numbers come from."""
    named = [flag for flag, value in sources.items() if value]
    if len(named) > 1:
        inputs.fault(f"{' and '.join(named)} do not mix", named[-1], "name one or the other")
    if not named:
        inputs.fault(
            "no engine is named",
            "URL",
            "name the engines, as in `rlsize observe http://engine-0:8000`, two saved pages with --pages, or a "
            "--prometheus that scrapes them",
        )


def _check_windows(
    inputs: Inputs, pages: list[str] | None, seconds: str | None, live: Mapping[str, str | None]
) -> None:
    """Saved pages lie some time apart; running engines are watched over a window."""
    if pages and not seconds:
        inputs.fault("the time between the two pages is missing", "--seconds", "give it, as in --seconds 60")
    if seconds and not pages:
        inputs.fault("is the time between saved pages", "--seconds", "for running engines give --window")
    for flag in [flag for flag, value in live.items() if value and pages][:1]:
        inputs.fault("is for running engines", flag, "saved pages take --seconds")


def _check_prometheus(
    inputs: Inputs, prometheus: str | None, flags: Mapping[str, str | None], every: str | None
) -> None:
    """Some flags are for a Prometheus only, and one for whoever looks himself."""
    for flag in [flag for flag, value in flags.items() if value is not None and not prometheus]:
        inputs.fault("is for engines that a Prometheus scrapes", flag, "name it with --prometheus")
    if prometheus and every:
        inputs.fault("is for engines that are watched", "--every", "Prometheus scraped at its own pace")


def check_files(inputs: Inputs, files: list[str | None], *, force: bool) -> None:
    """Find out before the window whether what is seen can be written after it."""
    from rlsize.writers.files import check_target

    for file in files:
        if file:
            try:
                check_target(file, force)
            except InputError as error:
                inputs.faults.extend(error.faults)


def _observation(watched: Watched, group: Figure, limit: Figure) -> Observation:
    from rlsize.estimates.observing import observation
    from rlsize.readers.metrics.pages import histories

    found, unread = histories(watched.readings)
    return observation(
        found,
        unread,
        watched.window,
        group_size=group.number if group.known else None,
        largest_batch=limit.number if limit.known else None,
    )


def _report_left(seen: Observation, watched: Watched) -> None:
    """Give up where no instance is left: there is nothing to answer."""
    if seen.used:
        return
    if watched.interrupted:
        from rlsize.cli.failures import tell

        tell(
            UnfinishedError(Fault("interrupted before any engine could be read twice", "observe", "let it run longer"))
        )
        raise typer.Exit(INTERRUPTED)
    todos = {reading.instance: reading.fault.todo for reading in watched.readings if reading.fault}
    raise UnfinishedError(
        *(
            Fault(instance.left_out, instance.instance, todos.get(instance.instance, "watch it again"))
            for instance in seen.instances
        )
    )


def _answer(
    context: typer.Context,
    inputs: Inputs,
    seen: Observation,
    watched: Watched,
    gpus: Figure,
    save: str | None,
    *,
    force: bool,
) -> Report:
    from rlsize.estimates.headroom import headroom_left
    from rlsize.readers.metrics.pages import missed_looks
    from rlsize.reports.observe import observe_report

    warnings, notes = [*missed_looks(watched.readings), *inputs.warnings], []
    if watched.interrupted:
        warnings.append(f"interrupted after {watched.window:.0f} s; this is what was seen until then")
    nothing = save is not None and not seen.mean
    if save is not None and not nothing:
        _save(save, seen, gpus, watched.ended, force=force)
        notes.append(f"Wrote {save}; size with `rlsize fleet --consume ... --per-instance {save}`.")
    report = observe_report(seen, inputs.shown(), headroom_left(seen.includes), notes, warnings)
    if not (watched.interrupted or nothing):
        return report
    from rlsize.cli.answer import deliver

    deliver(report, context.obj)
    if nothing:
        raise UnfinishedError(
            Fault("no instance generated a token, so there is no rate to save", save or "", "watch a fleet at work")
        )
    raise typer.Exit(INTERRUPTED)


def _save(path: str, seen: Observation, gpus: Figure, ended: float | None, *, force: bool) -> None:
    from datetime import UTC, datetime

    from rlsize.estimates.observing import observed_rates
    from rlsize.writers.files import write_whole
    from rlsize.writers.rates_file import rates_text

    at = (datetime.now(UTC) if ended is None else datetime.fromtimestamp(ended, UTC)).isoformat(timespec="seconds")
    rates = observed_rates(seen, measured_at=at, gpus_per_instance=gpus.number if gpus.known else None)
    write_whole(path, rates_text(rates), force)
