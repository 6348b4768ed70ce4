"""Engines that run, seen over a window: live, from saved pages or their own logs, or through a Prometheus."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rlsize.errors import Fault, InputError, UnfinishedError, noting
from rlsize.facts.figure import Figure
from rlsize.shell.access import AUTHORITY, INSECURE, TOKEN_FILE, access_to, blamed
from rlsize.shell.command import option, tell
from rlsize.shell.progress import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.counters import Snapshot
    from rlsize.facts.evidence import EngineLoad
    from rlsize.facts.observations import Observation
    from rlsize.facts.run_log import RunSummary as Summary
    from rlsize.readers.http_pages import Target
    from rlsize.readers.metrics.pages import Reading
    from rlsize.readers.prometheus import Trainer
    from rlsize.shell.inputs import Inputs
    from rlsize.shell.named_inputs import NamedInputs

MOST_SNAPSHOTS = 100_000  # of one engine at one moment; about 350 MB
_ENDS = 2  # looks that a rate needs
WATCH = ("skipped_steps", "group_size", "max_num_seqs", "seconds", "every_seconds", "timeout_seconds")
"""What is asked of a loop that is watched."""


_MAP = "What a key of the log means, as in generation_seconds=t_gen_ms; or a file from --learn; repeatable."
Map = Annotated[list[str] | None, option("--map", _MAP, metavar="QUANTITY=KEY")]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFlags:
    """How a running loop is looked at, as flags say it."""

    format: str | None = option("--format", "The format of the file, where its content does not tell.", metavar="NAME")
    map: Map = None
    pages: list[str] | None = option(
        "--pages",
        "Two saved pages of the same engines instead of URLs; repeatable, once for each server.",
        metavar="FIRST SECOND",
    )
    prometheus: str | None = option(
        "--prometheus", "A Prometheus server that scrapes the engines, instead of their URLs.", metavar="URL"
    )
    selector: str | None = option(
        "--selector", "Which engines of --prometheus, by their labels: 'job=\"rollout\"'.", metavar="MATCHERS"
    )
    trainer_selector: str | None = option(
        "--trainer-selector", "Which trainer of --prometheus, where it has several.", metavar="MATCHERS"
    )
    at: str | None = option(
        "--at",
        "End of the window of --prometheus: ISO 8601 with a zone, or seconds since 1970; now without it.",
        metavar="TIME",
    )
    window: str | None = option("--window", "How long to watch: seconds, or 5m, 1h; 300 when not given.")
    token_file: str | None = TOKEN_FILE
    ca: str | None = AUTHORITY
    insecure: bool = INSECURE


class Time(NamedTuple):
    """A clock that never goes back, and a way to wait."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


TIME = Time()


class Watched(NamedTuple):
    """
    What was read, over which window, and how that ended.

    Args:
        readings: The pages that were read, or why not.
        window: How long the window was meant to be. [s]
        interrupted: Whether the user broke it off.
        full: Whether it grew too large to go on.
        ended: When it ended, in seconds since 1970; None for just now. [s]
        trainer: The trainer as a Prometheus has it, where that was asked for.
    """

    readings: list[Reading]
    window: float
    interrupted: bool = False
    full: bool = False
    ended: float | None = None
    trainer: Trainer | None = None


class Engines(NamedTuple):
    """
    Engines that were watched.

    Args:
        watched: How.
        seen: What they did.
        load: What they had to do.
        run: The trainer, as their Prometheus has it; empty where that was not asked for, or has none.
        tail: How much of its waiting was for a few long samples.
    """

    watched: Watched
    seen: Observation
    load: EngineLoad
    run: Summary
    tail: Figure

    @property
    def names(self) -> list[str]:
        """Those that could be read."""
        return [one.instance for one in self.seen.used]

    @property
    def doubts(self) -> list[str]:
        """What happened on the way and casts doubt."""
        from rlsize.readers.metrics.pages import missed_looks

        found = missed_looks(self.watched.readings)
        if self.watched.interrupted:
            found.append(f"interrupted after {self.watched.window:.0f} s; this is what was seen until then")
        return found


def check_watch(inputs: Inputs, named: NamedInputs, said: WatchFlags) -> bool:
    """Note what contradicts itself; whether any engine is named at all."""
    driver = [file for file in named.engine_logs if file in named.logs]
    if driver and (named.urls or said.pages or said.prometheus):
        named.engine_logs = [file for file in named.engine_logs if file not in driver]
        inputs.notes.append(f"The engines' own pages count, not their lines in {', '.join(driver)}.")
    named_ways = ("URLs", named.urls), ("logs of engines", named.engine_logs)
    ways = [way for way, value in (*named_ways, ("--pages", said.pages), ("--prometheus", said.prometheus)) if value]
    if len(ways) > 1:
        inputs.fault(f"{' and '.join(ways)} do not mix", ways[-1], "name one or the other")
    if said.pages and not inputs.gives("seconds"):
        inputs.fault("the time between the two pages is missing", "--seconds", "give it, as in --seconds 60")
    if inputs.gives("seconds") and not said.pages:
        inputs.fault("is the time between saved pages", "--seconds", "for running engines give --window")
    live = {"--window": said.window is not None, "--every": inputs.gives("every_seconds")}
    given = [flag for flag, there in live.items() if there]
    if said.pages and given:
        inputs.fault("is for running engines", given[0], "saved pages take --seconds")
    for flag in given if not ways else ():
        inputs.fault("is for running engines, and none is named", flag, "name them, or leave it out")
    check_selectors(inputs, said)
    if said.prometheus:
        _check_prometheus(inputs, named, said)
    return bool(ways)


def check_selectors(inputs: Inputs, said: WatchFlags) -> None:
    """Note flags that choose of a Prometheus where none is named."""
    own = {"--selector": said.selector, "--trainer-selector": said.trainer_selector, "--at": said.at}
    for flag in [flag for flag, value in own.items() if value is not None and not said.prometheus]:
        inputs.fault("is for engines that a Prometheus scrapes", flag, "name it with --prometheus")


def _check_prometheus(inputs: Inputs, named: NamedInputs, said: WatchFlags) -> None:
    if said.trainer_selector is not None and named.logs:
        inputs.fault("is for a trainer without a log, and one is named", "--trainer-selector", "leave one of them out")
    if inputs.gives("every_seconds"):
        inputs.fault("is for engines that are watched", "--every", "Prometheus scraped at its own pace")


def watched_engines(
    inputs: Inputs, named: NamedInputs, said: WatchFlags, *, recorded: bool = False, trainer: bool = False
) -> Engines:
    """
    The engines, watched.

    Args:
        inputs: Takes the faults.
        named: What was named.
        said: How it is looked at.
        recorded: Whether a Prometheus is asked for what rules recorded, before pages.
        trainer: Whether it is asked for the trainer, too.

    Raises:
        InputError: All faults of the inputs so far; nothing is asked for before.
        UnfinishedError: None of them could be read.
    """
    for key in _OF_ENGINES:
        inputs.ask(key)
    if said.pages:
        watched = _from_pages(inputs, said.pages)
    elif said.prometheus:
        watched = from_prometheus(inputs, said.prometheus, said, recorded=recorded, trainer=trainer)
    elif named.engine_logs:
        watched = _from_logs(inputs, named.engine_logs, said)
    else:
        watched = live_looks(inputs, named.urls, said, moving=False)()
    return engines_of(inputs, watched)


def engines_of(inputs: Inputs, watched: Watched) -> Engines:
    """
    What was read of engines, and what it means.

    Raises:
        UnfinishedError: None of them could be read.
    """
    from rlsize.estimates.engine_load import engine_load
    from rlsize.estimates.observing import observation
    from rlsize.readers.metrics.pages import histories

    found, unread = histories(watched.readings)
    size, batch = (figure.if_known for figure in map(inputs.ask, _OF_ENGINES))
    seen = observation(found, unread, watched.window, group_size=size, largest_batch=batch)
    if not seen.used and watched.interrupted:
        fault = Fault("interrupted before any engine could be read twice", "observe", "let it run longer")
        tell(UnfinishedError(fault))
        raise typer.Exit(INTERRUPTED)
    if not seen.used:  # there is nothing to answer
        todos = {reading.instance: reading.fault.todo for reading in watched.readings if reading.fault}
        left = ((one, todos.get(one.instance, "watch it again")) for one in seen.instances)
        raise UnfinishedError(*(Fault(one.left_out, one.instance, todo) for one, todo in left))
    used = {one.instance for one in seen.used}
    kept = {name: each for name, each in found.items() if name in used}
    run, tail = _trained(inputs, watched.trainer, kept)
    return Engines(watched, seen, engine_load(kept), run, tail)


_OF_ENGINES = ("group_size", "max_num_seqs")
_OF_SIGNALS = (
    "trainer_idle_fraction", "sync_pause_fraction", "trained_tokens_per_second", "queued_samples",
    "largest_staleness_steps",
)  # fmt: skip
"""What rows that are no steps tell."""


def _trained(
    inputs: Inputs, trainer: Trainer | None, engines: Mapping[str, Sequence[Snapshot]]
) -> tuple[Summary, Figure]:
    """A trainer that a Prometheus has, summed up, and how much of its waiting was for a few long samples."""
    from rlsize.estimates.run_summary import run_summary
    from rlsize.estimates.waits import tail_of_wait
    from rlsize.facts.run_log import RunSummary

    if trainer is None or not trainer.log.steps:
        return RunSummary(), tail_of_wait({}, (), (), (), 0.0)
    run, rows = run_summary(trainer.log, 0), trainer.log.steps
    waited = [(index, one.step_seconds or 0.0, one.wait_seconds) for index, one in enumerate(rows)]
    timed = [(index, step, wait) for index, step, wait in waited if wait is not None]
    steps, waits = [step for _, step, _ in timed], [wait for *_, wait in timed]
    ends = [trainer.ends[index] for index, *_ in timed] if trainer.ends else []
    if trainer.ends:
        inputs.notes.append(f"The trainer: {len(rows)} steps by its counters in {trainer.log.source}.")
    else:
        kept = {key: one for key, one in run.figures.items() if key in _OF_SIGNALS}
        run = replace(run, steps=(), columns={}, figures=kept)
        inputs.notes.append(
            f"The trainer: by the shares that rules recorded in {trainer.log.source}; they tell no steps."
        )
    return run, tail_of_wait(engines, ends, steps, waits, trainer.gap)


def _from_pages(inputs: Inputs, pages: list[str]) -> Watched:
    """
    Saved pages as readings, two of each server.

    Raises:
        InputError: All faults of the inputs so far and of all pages.
    """
    from rlsize.readers.metrics.pages import saved_window

    apart = inputs.ask("seconds")
    readings: list[Reading] = []
    if len(pages) % 2:
        inputs.fault(f"{pages[-1]} has no second page", "--pages", "give two pages of each server: FIRST SECOND")
    for path in sorted({path for path in pages if pages.count(path) > 1}):
        inputs.fault(f"{path} is named twice", "--pages", "give each saved page once")
    with noting(inputs.faults):
        readings = saved_window(list(zip(pages[::2], pages[1::2], strict=False)), apart.number if apart.known else 1.0)
    inputs.settle()
    return Watched(readings, apart.number)


def _from_logs(inputs: Inputs, files: list[str], said: WatchFlags) -> Watched:
    """
    Engines as their own logs tell of them, in the window at their ends.

    Raises:
        InputError: All faults of the inputs so far and of all logs.
    """
    from rlsize.readers.metrics.engine_logs import engine_log

    length = _window(inputs, said)
    inputs.settle()
    readings: list[Reading] = []
    seconds = 0.0
    for file in files:
        with blamed(inputs, file):
            logged = engine_log(file, length.number)
            readings += logged.readings
            seconds = max(seconds, logged.window)
            if logged.repeats:
                what = f"Ray left {logged.repeats:,} lines of {file} out as repeats of others"
                inputs.warnings.append(f"{what}: each engine's rate is that of the lines it has (RAY_DEDUP_LOGS=0)")
            inputs.notes += [f"Not used of {file}: {one.count} lines, {one.why}." for one in logged.skipped]
    inputs.settle()
    inputs.warnings.append("an engine's log rounds, and averages over its intervals: its metrics page is more exact")
    return Watched(readings, seconds)


def live_looks(inputs: Inputs, urls: list[str], said: WatchFlags, *, moving: bool) -> Callable[[], Watched]:
    """
    What watches engines over a window; or, `moving`, looks once more at each call (twice at the first).

    Raises:
        InputError: All faults of the inputs so far, the URLs and the token; nothing is asked for before.
    """
    from rlsize.readers.http_pages import targets
    from rlsize.readers.metrics.pages import live_reader

    length, every = _window(inputs, said).number, inputs.ask("every_seconds").number
    found: list[Target] = []
    with blamed(inputs, ""):
        found = targets(urls)
    access = access_to(found, inputs, said.token_file, said.ca, insecure=said.insecure)
    inputs.settle()
    read = live_reader(found, access, TIME.clock)
    rounds: deque[tuple[float, list[Reading]]] = deque()

    def window() -> Watched:
        seen = watch(read, length, min(every, length), TIME)
        if seen.full:
            what = f"more than {MOST_SNAPSHOTS:,} snapshots are kept no longer"
            inputs.warnings.append(f"{what}: engines joined, so the watch ended after {seen.window:.0f} s (--every)")
        return seen

    def look() -> Watched:
        rounds.append((TIME.clock(), read()))
        if len(rounds) == 1:
            _check_size(rounds[0][1], length, every)
            if any(one.snapshots for one in rounds[0][1]):
                TIME.sleep(every)
                return look()
        while len(rounds) > _ENDS and (
            rounds[-1][0] - rounds[0][0] > length or sum(_size(one) for _, one in rounds) > MOST_SNAPSHOTS
        ):
            rounds.popleft()
        return Watched([one for _, round_ in rounds for one in round_], rounds[-1][0] - rounds[0][0])

    return look if moving else window


def from_prometheus(
    inputs: Inputs, url: str, said: WatchFlags, *, recorded: bool, trainer: bool, engines: bool = True
) -> Watched:
    """
    Engines as a Prometheus server saw them over a window, and their trainer; each as far as it is asked for.

    Raises:
        InputError: All faults of the inputs so far; nothing is asked for before. Or no engines are there.
        UnfinishedError: The server cannot be reached, or refuses.
    """
    from rlsize.readers.http_pages import api_target
    from rlsize.readers.prometheus import Scraped, moment, scraped, server_time, trainer_steps

    length = _window(inputs, said)
    end, found = None, []
    with blamed(inputs, "--prometheus"):
        found = [api_target(url)]
        inputs.keep(Figure(key="prometheus", value=found[0].shown, source="--prometheus"))
    chosen, whose = (
        _selector(inputs, key, text)
        for key, text in (("selector", said.selector), ("trainer_selector", said.trainer_selector))
    )
    with blamed(inputs, "--at", "write seconds since 1970, or 2026-03-01T12:00:00Z"):
        end = moment(said.at) if said.at is not None else None
        inputs.keep(Figure(key="at", value=said.at, source="--at"))
    access = access_to(found, inputs, said.token_file, said.ca, insecure=said.insecure)
    inputs.settle()
    if engines:
        seen = scraped(found[0], access, TIME.clock, chosen, length.number, end, recorded=recorded)
    else:
        seen = Scraped([], end or server_time(found[0], access, TIME.clock), ())
    inputs.warnings += seen.warnings
    told: Trainer | None = None
    try:
        told = trainer_steps(found[0], access, TIME.clock, whose, length.number, seen) if trainer else None
    except InputError as error:
        if whose:
            raise
        inputs.warnings += [f"{one.where} {one.what}, and none of them counts: {one.todo}" for one in error.faults]
    return Watched(seen.readings, length.number, ended=seen.end, trainer=told)


def _selector(inputs: Inputs, key: str, text: str | None) -> str:
    """Label matchers, written anew so that nothing gets out of their braces; empty where none are said."""
    from rlsize.shell.selectors import matchers, selector_text

    flag = f"--{key.replace('_', '-')}"
    found = selector_text(matchers(text, flag, inputs.faults)) if text else ""
    inputs.keep(Figure(key=key, value=found or None, source=flag))
    return found


def _window(inputs: Inputs, said: WatchFlags) -> Figure:
    """How long to watch; durations may be written as Prometheus writes them, too: 5m, 1h30m."""
    from rlsize.readers.prometheus import duration

    if said.window is not None:
        seconds = duration(said.window)
        inputs.texts["window_seconds"] = said.window if seconds is None else f"{seconds:g}"
    return inputs.ask("window_seconds")


def watch(read: Callable[[], list[Reading]], window: float, every: float, clock: Time) -> Watched:
    """
    Read engines over a window, with a progress bar on a terminal; what was read so far if the user breaks off.

    If no engine can be read at the first look, it is the last one. What a watch keeps is bounded: one that would keep
    too many snapshots is refused at its first look, and one that does since engines joined ends early.

    Args:
        read: Reads all pages once.
        window: How long to watch. [s]
        every: Seconds between two rounds. [s]
        clock: Tells the time and waits.

    Raises:
        InputError: So many engines cannot be looked at so often for so long.
    """
    from rlsize.readers.metrics.pages import watched

    readings: list[Reading] = []
    kept = 0
    start = clock.clock()
    with _progress(window) as show:
        try:
            for round_ in watched(read, window, every, clock.clock, clock.sleep):
                if not readings:
                    _check_size(round_, window, every)
                readings += round_
                kept += _size(round_)
                if all(reading.fault for reading in readings):  # the first look: nobody is there to wait for
                    break
                if kept > MOST_SNAPSHOTS:
                    return Watched(readings, min(window, clock.clock() - start), full=True)
                show(clock.clock() - start)
        except KeyboardInterrupt:
            return Watched(readings, min(window, clock.clock() - start), interrupted=True)
    return Watched(readings, window)


def _size(round_: list[Reading]) -> int:
    """Snapshots that a round keeps; a page that could not be read may be read next time."""
    return sum(max(1, len(reading.snapshots)) for reading in round_)


def _check_size(first: list[Reading], window: float, every: float) -> None:
    engines, rounds = _size(first), math.ceil(window / every) + 1
    if engines * rounds <= MOST_SNAPSHOTS:
        return
    seldom = math.ceil(window / max(1, MOST_SNAPSHOTS // engines - 1))
    kept = f"the {MOST_SNAPSHOTS:,} snapshots that are kept"
    what = f"{engines:,} engines looked at {rounds:,} times are more than {kept}"
    raise InputError(Fault(what, "--every", f"look every {seldom:,} s, watch a shorter --window, or fewer engines"))


@contextmanager
def _progress(window: float) -> Iterator[Callable[[float], None]]:
    """A bar on stderr where that is a terminal; nothing elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(TextColumn("watching"), BarColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("watching", total=window)
        yield lambda passed: bar.update(task, completed=min(window, passed))
