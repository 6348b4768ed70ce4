"""Engines of a running loop, watched however the flags say: live, from saved pages, or through a Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import typer

from rlsize.errors import Fault, UnfinishedError
from rlsize.facts.evidence import EngineLoad

if TYPE_CHECKING:
    from rlsize.commands.sources import Sources
    from rlsize.commands.watching import AccessFlags, Watched
    from rlsize.facts.figure import Figure
    from rlsize.facts.observations import Observation
    from rlsize.shell.inputs import Inputs

INTERRUPTED = 130


class WatchFlags(NamedTuple):
    """What the flags say of watching."""

    pages: list[str] | None
    seconds: str | None
    prometheus: str | None
    selector: str | None
    at: str | None
    window: str | None
    every: str | None
    access: AccessFlags


class Engines(NamedTuple):
    """Engines that were watched: how, what they did, and what they had to do."""

    watched: Watched
    seen: Observation
    load: EngineLoad


def check_watch(inputs: Inputs, sources: Sources, said: WatchFlags) -> bool:
    """Note what contradicts itself; whether any engine is named at all."""
    ways = {
        "URLs": sources.urls,
        "logs of engines": sources.engine_logs,
        "--pages": said.pages,
        "--prometheus": said.prometheus,
    }
    named = [way for way, value in ways.items() if value]
    if len(named) > 1:
        inputs.fault(f"{' and '.join(named)} do not mix", named[-1], "name one or the other")
    _check_windows(inputs, said, named=bool(named))
    _check_prometheus(inputs, said)
    return bool(named)


def _check_windows(inputs: Inputs, said: WatchFlags, *, named: bool) -> None:
    """Saved pages lie some time apart; running engines are watched over a window."""
    if said.pages and not said.seconds:
        inputs.fault("the time between the two pages is missing", "--seconds", "give it, as in --seconds 60")
    if said.seconds and not said.pages:
        inputs.fault("is the time between saved pages", "--seconds", "for running engines give --window")
    live = {"--window": said.window, "--every": said.every}
    for flag in [flag for flag, value in live.items() if value and said.pages][:1]:
        inputs.fault("is for running engines", flag, "saved pages take --seconds")
    for flag in [flag for flag, value in live.items() if value and not named]:
        inputs.fault("is for running engines, and none is named", flag, "name them, or leave it out")


def _check_prometheus(inputs: Inputs, said: WatchFlags) -> None:
    """Some flags are for a Prometheus only, and one for whoever looks himself."""
    own = {"--selector": said.selector, "--at": said.at}
    for flag in [flag for flag, value in own.items() if value is not None and not said.prometheus]:
        inputs.fault("is for engines that a Prometheus scrapes", flag, "name it with --prometheus")
    if said.prometheus and said.every:
        inputs.fault("is for engines that are watched", "--every", "Prometheus scraped at its own pace")


def watched_engines(inputs: Inputs, sources: Sources, said: WatchFlags, group: Figure, limit: Figure) -> Engines:
    """
    The engines, watched.

    Raises:
        InputError: All faults of the inputs so far; nothing is asked for before.
        UnfinishedError: None of them could be read.
    """
    from rlsize.commands.watching import from_logs, from_pages, from_prometheus, live
    from rlsize.estimates.engine_load import engine_load
    from rlsize.estimates.observing import observation
    from rlsize.readers.metrics.pages import histories

    if said.pages:
        watched = from_pages(inputs, said.pages, said.seconds)
    elif said.prometheus:
        watched = from_prometheus(inputs, said.prometheus, said.selector, said.window, said.at, said.access)
    elif sources.engine_logs:
        watched = from_logs(inputs, sources.engine_logs, said.window)
    else:
        watched = live(inputs, sources.urls, said.window, said.every, said.access)
    found, unread = histories(watched.readings)
    seen = observation(
        found,
        unread,
        watched.window,
        group_size=group.number if group.known else None,
        largest_batch=limit.number if limit.known else None,
    )
    _report_left(seen, watched)
    used = {one.instance for one in seen.used}
    return Engines(watched, seen, engine_load({name: each for name, each in found.items() if name in used}))


def _report_left(seen: Observation, watched: Watched) -> None:
    """Give up where no instance is left: there is nothing to answer."""
    if seen.used:
        return
    if watched.interrupted:
        from rlsize.shell.failures import tell

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


def told(engines: Engines | None) -> list[str]:
    """What happened while they were watched and casts doubt."""
    if engines is None:
        return []
    from rlsize.readers.metrics.pages import missed_looks

    watched = engines.watched
    found = missed_looks(watched.readings)
    if watched.interrupted:
        found.append(f"interrupted after {watched.window:.0f} s; this is what was seen until then")
    return found
