"""
Engines' counters from a Prometheus server: the very samples that it scraped, page by page, not its own rates.

All series of one scrape bear the same time, so the samples of a target at one time are its page as it was then. They
are read by the same functions as pages, so that a counter gives the same rate however it is read. Where rules recorded
engines under one name, that name may be read instead; the counters of a trainer become rows of a log.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from urllib.parse import urlencode

from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.facts import published
from rlsize.facts.counters import Snapshot
from rlsize.facts.run_log import RunLog, RunMode, StepRecord
from rlsize.readers.byte_sources import json_of
from rlsize.readers.http_pages import LOGIN_VARIABLE, OK, TOKEN_VARIABLE, Page, fetch, without
from rlsize.readers.metrics.exposition import LARGEST_VALUE, Series
from rlsize.readers.metrics.kinds import KINDS, RULES
from rlsize.readers.metrics.pages import Reading
from rlsize.readers.metrics.tables import word
from rlsize.units import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlsize.facts.counters import EngineCounters
    from rlsize.readers.http_pages import Access, Target
    from rlsize.readers.metrics.tables import EngineKind

MOST_PAGES = 100_000  # of all targets; as many as a watch keeps
STALE_LOOKS = 3.0  # scrapes that a target may have missed at the window's end ...
STALE_SHARE = 0.1  # ... unless that is less than this share of the window
_SEVERAL = 3
_SOUGHT = "vllm:generation_tokens_total, sglang:realtime_tokens_total, trtllm_generation_tokens_total and the like"
_PLACE = ("cluster", "namespace", "instance", "pod")  # labels that tell targets apart
_COPIES = ("job", "prometheus", "prometheus_replica", "loop")  # labels that only tell who scraped or recorded them
_FIELDS = {
    "step_seconds": published.STEP, "wait_seconds": published.WAIT, "sync_seconds": published.SYNC,
    "update_seconds": published.BUSY, "response_tokens": published.TRAINED, "updates": published.STEPS,
}  # fmt: skip
_GAUGES = {
    "queued_samples": published.QUEUED, "largest_staleness_steps": published.AGE,
    "staleness_steps": published.STALENESS,
}  # fmt: skip
_TRAINER = {**_FIELDS, **_GAUGES}
_RATED = {  # fields of a row that stands for one second, by the signal that rules record
    "idle": "wait_seconds", "sync": "sync_seconds", "trained": "response_tokens", "queue": "queued_samples",
    "age": "largest_staleness_steps",
}  # fmt: skip

YEAR = 365 * 86_400.0
LATEST = 1e11  # seconds since 1970
PATH = "/api/v1/query"
REFUSALS = frozenset({400, 401, 403, 404, 405, 413, 422, 429, 500, 502, 503, 504})
WRONG = frozenset({400, 413, 422})  # what was asked is at fault, not the server
LONGEST_TEXT = 200
_SMALLER = "ask for a shorter --window, or for fewer engines with --selector"

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": YEAR}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:ms|[smhdwy]))+")
_PART = re.compile(r"([0-9]+)(ms|[smhdwy])")


class Scraped(NamedTuple):
    """
    What a server had scraped in a window.

    Args:
        readings: Every target's pages, in the order of time; a target that fell silent has none, and a fault.
        end: When the window ended, in seconds since 1970. [s]
        warnings: What is doubtful about it.
        loop: The loop whose rules recorded it; empty where it is not known.
    """

    readings: list[Reading]
    end: float
    warnings: tuple[str, ...]
    loop: str = ""


class Trainer(NamedTuple):
    """
    A trainer as its counters tell it.

    Args:
        log: Its steps; where only signals were recorded, rows of one second each, of which shares and rates hold.
        ends: When each step was first seen to have ended, in seconds of the window; none where rows are no steps. [s]
        gap: How long after its end a step may be seen at most: the time between two samples. [s]
    """

    log: RunLog
    ends: tuple[float, ...]
    gap: float


def scraped(
    server: Target,
    access: Access,
    clock: Callable[[], float],
    matchers: str,
    window: float,
    end: float | None = None,
    *,
    recorded: bool = False,
) -> Scraped:
    """
    Engines as a Prometheus server saw them.

    Args:
        server: Where it is.
        access: How to ask.
        clock: Seconds on a clock that never goes back.
        matchers: Label matchers that choose the engines; empty for all.
        window: How long the window is. [s]
        end: When it ends, in seconds since 1970; now, by the server's clock, where None. [s]
        recorded: Whether series that rules recorded are read where there are any, and not pages: they are what alerts
            are about, whatever the engines call their own.

    Raises:
        UnfinishedError: The server cannot be reached, or refuses.
        InputError: It is no Prometheus, the query is wrong, or no series are there.
    """
    until = end if end is not None else server_time(server, access, clock)
    asked = ", ".join(part for part in (f'__name__=~"{wanted_names()}"', matchers) if part)
    found, told = raw_samples(server, access, clock, f"{{{asked}}}", window, until)
    found = [samples for samples in found if any(kind.wanted(samples.name) for kind in KINDS)]
    own = [samples for samples in found if samples.name.startswith(RULES)]
    others = [samples for samples in found if not samples.name.startswith(RULES)]
    found = own if own and (recorded or not _engine(others)) else others
    engines = [samples for samples in found if any(kind.prefix.match(samples.name) for kind in KINDS)]
    if not engines:
        chosen = f" for {{{word(matchers, 200)}}}" if matchers else ""
        what = f"has no series of engines{chosen} in a window of {window:g} s; sought were {_SOUGHT}"
        raise InputError(Fault(what, server.shown, "check --selector and --at; does Prometheus scrape the engines?"))
    targets, copies = _targets(found)
    named = _named(targets)
    if sum(len(_moments(own)) for own in named.values()) > MOST_PAGES:
        what = f"has more than {MOST_PAGES:,} pages of these engines in the window"
        raise InputError(Fault(what, server.shown, "ask for a shorter --window, or fewer engines with --selector"))
    readings = [reading for name, own in named.items() for reading in _pages(name, own, window, until)]
    loops = {samples.labels.get("loop", "") for own in named.values() for samples in own}
    warnings = (*(f"Prometheus says: {text}" for text in told), *copies)
    return Scraped(readings, until, warnings, loops.pop() if len(loops) == 1 else "")


def trainer_steps(
    server: Target, access: Access, clock: Callable[[], float], matchers: str, window: float, seen: Scraped
) -> Trainer | None:
    """
    The trainer as a Prometheus server saw it: by the counters of `rlsize export`, else by what rules recorded of it.

    Args:
        server: Where it is.
        access: How to ask.
        clock: Seconds on a clock that never goes back.
        matchers: Label matchers that choose it; empty where there is one.
        window: How long the window is. [s]
        seen: Its engines: when the window ends, and whose loop it is.

    Returns:
        None where nothing tells of a trainer.

    Raises:
        UnfinishedError: The server cannot be reached, or refuses.
        InputError: It is no Prometheus, the query is wrong, or there are several trainers.
    """
    names = "|".join((*_TRAINER.values(), published.LOOP, *published.SIGNALS.values()))
    asked = ", ".join(part for part in (f'__name__=~"{names}"', matchers) if part)
    found, _ = raw_samples(server, access, clock, f"{{{asked}}}", window, seen.end)
    counted = [samples for samples in found if not samples.name.startswith(RULES)]
    targets, _ = _targets(counted)
    trainers = [own for own in targets.values() if any(samples.name == published.STEP for samples in own)]
    if not trainers:
        loops: dict[str, list[Samples]] = {}
        for samples in found:
            loops.setdefault(samples.labels.get("loop", ""), []).append(samples)
        trainers = [loops[seen.loop]] if seen.loop in loops else list(loops.values())
    if len(trainers) > 1:
        names = ", ".join(word(str(dict(own[0].labels))) for own in trainers[:_SEVERAL])
        todo = "choose one: --trainer-selector 'instance=\"HOST:PORT\"'"
        raise InputError(Fault(f"has {len(trainers)} trainers, {names} among them", server.shown, todo))
    if not trainers:
        return None
    values = {samples.name: dict(samples.values) for samples in trainers[0]}
    moments = _moments(trainers[0])
    gap = max((after - before for before, after in pairwise(moments)), default=0) / 1000.0
    steps = _counted_steps(values, moments) if published.STEP in values else _signalled(values, moments)
    start = seen.end - window
    ends = tuple(moment / 1000.0 - start for moment, _ in steps) if published.STEP in values else ()
    fields = _TRAINER if published.STEP in values else {field: published.SIGNALS[key] for key, field in _RATED.items()}
    modes = {samples.labels.get("mode") for samples in trainers[0] if samples.name == published.LOOP}
    log = RunLog(
        source=server.shown,
        framework="",
        form="Prometheus",
        mode=next((mode for mode in get_args(RunMode) if mode in modes), "unknown"),
        steps=tuple(row for _, row in steps),
        keys={field: name for field, name in fields.items() if name in values},
    )
    return Trainer(log, ends, gap)


def _counted_steps(values: Mapping[str, Mapping[int, float]], moments: Sequence[int]) -> list[tuple[int, StepRecord]]:
    """A row for each sample at which the seconds of steps have grown, with what all counters have grown by."""
    steps, last = values[published.STEP], None
    found: list[tuple[int, StepRecord]] = []
    for moment in (one for one in moments if one in steps):
        if last is not None and steps[moment] > steps[last]:
            row = {
                field: max(0.0, own[moment] - own[last])
                for field, name in _FIELDS.items()
                if moment in (own := values.get(name, {})) and last in own
            }
            row |= {field: own[moment] for field, name in _GAUGES.items() if moment in (own := values.get(name, {}))}
            row["updates"] = max(1.0, row.get("updates", 1.0))
            number = int(values.get(published.STEPS, {}).get(moment, len(found) + 1))
            found.append((moment, StepRecord(step=number, **row)))
        if last is None or steps[moment] != steps[last]:
            last = moment
    return found


def _signalled(values: Mapping[str, Mapping[int, float]], moments: Sequence[int]) -> list[tuple[int, StepRecord]]:
    """A row of a second for each sample of what rules recorded."""
    told = {field: values.get(published.SIGNALS[signal], {}) for signal, field in _RATED.items()}
    return [
        (
            moment,
            StepRecord(step=index, step_seconds=1.0, **{f: own[moment] for f, own in told.items() if moment in own}),
        )
        for index, moment in enumerate(moments, 1)
    ]


def wanted_names() -> str:
    """The regular expression that all names of metrics match that some kind of engine is read from."""
    parts = [f"{kind.prefix.pattern}(?:{'|'.join(sorted(kind.names))})" for kind in KINDS]
    return "|".join([*parts, *sorted({name for kind in KINDS for name in kind.bare})])


def _targets(found: Iterable[Samples]) -> tuple[dict[tuple[str, ...], list[Samples]], list[str]]:
    """The series of each target, by what tells it apart; one that was scraped twice counts once, and that is said."""
    groups: dict[tuple[str, ...], dict[tuple[str, ...], list[Samples]]] = {}
    for samples in found:
        place = tuple(samples.labels.get(name, "") for name in _PLACE)
        copy = tuple(samples.labels.get(name, "") for name in _COPIES)
        if not any(place[2:]):  # nothing but who scraped it tells it apart
            place, copy = (*place, *copy), ()
        groups.setdefault(place, {}).setdefault(copy, []).append(samples)
    chosen = {
        place: max(copies.values(), key=lambda own: (_engine(own), sum(len(samples.values) for samples in own)))
        for place, copies in groups.items()
    }
    twice = [place for place, copies in groups.items() if sum(1 for own in copies.values() if _engine(own)) > 1]
    if not twice:
        return chosen, []
    first = word(" ".join(filter(None, twice[0])))
    return chosen, [f"{len(twice)} targets were scraped by several jobs and count once each, {first} among them"]


def _engine(own: Sequence[Samples]) -> bool:
    return any(kind.prefix.match(samples.name) for samples in own for kind in KINDS)


def _named(targets: Mapping[tuple[str, ...], list[Samples]]) -> dict[str, list[Samples]]:
    """Targets by a name: pod or instance, with more where two share it; those that are no engines are left out."""
    engines = {place: own for place, own in targets.items() if _engine(own)}
    short = {place: word(place[3] or place[2] or " ".join(filter(None, place))) for place in engines}
    many = {name for name in short.values() if sum(1 for other in short.values() if other == name) > 1}
    names = {place: word(" ".join(filter(None, place))) if name in many else name for place, name in short.items()}
    return {names[place] or "engine": engines[place] for place in sorted(engines)}


def _moments(own: Sequence[Samples]) -> list[int]:
    return sorted({moment for samples in own for moment, _ in samples.values})


def _pages(name: str, own: Sequence[Samples], window: float, end: float) -> list[Reading]:
    """A target's pages, or the fault that there is no end of them."""
    last = _moments(own)
    silent = end - last[-1] / 1000.0 if last else window
    gaps = [(after - before) / 1000.0 for before, after in pairwise(last)]
    if silent > max(STALE_LOOKS * median(gaps) if gaps else 0.0, STALE_SHARE * window):
        what = f"fell silent: the last sample is {silent:.0f} s older than the window's end"
        todo = "is it down, or no longer scraped? --at looks at an earlier window"
        return [Reading(name, fault=Fault(what, name, todo))]
    found: dict[int, list[EngineCounters]] = {}
    for kind in KINDS:
        for moment, page in _series(own, kind).items():
            found.setdefault(moment, []).extend(kind.read(page, name))
    start = round(1000 * (end - window))
    readings = [
        Reading(name, tuple(Snapshot(seconds=(moment - start) / 1000.0, counters=one) for one in engines))
        for moment, engines in sorted(found.items())
        if engines
    ]
    return readings or [Reading(name, fault=Fault("has no samples of its tokens", name, "does it count them?"))]


def _series(own: Sequence[Samples], kind: EngineKind) -> dict[int, list[Series]]:
    """A target's pages of one kind, by the milliseconds of their scrape."""
    wanted = [samples for samples in own if kind.wanted(samples.name)]
    pages: dict[int, list[Series]] = {}
    for samples in wanted if any(kind.prefix.match(samples.name) for samples in wanted) else ():
        for moment, value in samples.values:
            if 0 <= value <= LARGEST_VALUE:
                pages.setdefault(moment, []).append(Series(samples.name, samples.labels, value, 0))
    return pages


def duration(text: str) -> float | None:
    """
    Seconds of a duration as Prometheus writes it; None where it is none.

    >>> duration("5m"), duration("1h30m"), duration("300")
    (300.0, 5400.0, None)
    """
    if not _DURATION.fullmatch(text.strip()):
        return None
    return sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(text))


def moment(text: str) -> float:
    """
    A moment in seconds since 1970.

    Args:
        text: Such seconds, or an ISO 8601 date and time with its zone.

    Raises:
        ValueError: It is neither.

    >>> moment("2026-03-01T12:00:00Z"), moment("1772366400.5")
    (1772366400.0, 1772366400.5)
    """
    try:
        seconds = float(text)
    except ValueError:
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text[:40]!r} is no moment") from None
        if found.tzinfo is None:
            raise ValueError(f"{text[:40]} has no time zone") from None
        seconds = found.timestamp()
    if not math.isfinite(seconds) or not 0 < seconds < LATEST:
        raise ValueError(f"{text[:40]} is no moment since 1970")
    return seconds


class Samples(NamedTuple):
    """
    Raw samples of one series.

    Args:
        name: The metric.
        labels: Its labels.
        values: Milliseconds since 1970, and the value there; those that are no numbers are left out.
    """

    name: str
    labels: Mapping[str, str]
    values: tuple[tuple[int, float], ...]


def server_time(server: Target, access: Access, clock: Callable[[], float]) -> float:
    """
    The server's own clock, in seconds since 1970: its samples bear its times, not ours.

    Raises:
        UnfinishedError: It cannot be reached, or refuses.
        InputError: It is no Prometheus.
    """
    result, _ = _asked(server, access, clock, {"query": "time()"})
    try:
        seconds = float(result[1])
    except (TypeError, ValueError, LookupError):
        raise InputError(_stranger(server)) from None
    if not math.isfinite(seconds) or seconds <= 0:
        raise InputError(_stranger(server))
    return seconds


def raw_samples(
    server: Target, access: Access, clock: Callable[[], float], selector: str, window: float, end: float
) -> tuple[list[Samples], tuple[str, ...]]:
    """
    The samples of a window as they were scraped, and what the server warned of.

    Args:
        server: Where it is.
        access: How to ask.
        clock: Seconds on a clock that never goes back.
        selector: The series, as an instant selector.
        window: How long the window is. [s]
        end: When it ends, in seconds since 1970. [s]

    Raises:
        UnfinishedError: The server cannot be reached, or refuses.
        InputError: It is no Prometheus, or cannot make sense of the query.
    """
    query = {"query": f"{selector}[{round(1000 * window)}ms]", "time": f"{end:.3f}"}
    result, warnings = _asked(server, access, clock, query)
    if not isinstance(result, list):
        raise InputError(_stranger(server))
    return [_samples(entry, server) for entry in result], warnings


def _asked(
    server: Target, access: Access, clock: Callable[[], float], query: Mapping[str, str]
) -> tuple[Any, tuple[str, ...]]:
    """What a query gave, as it came, and what the server warned of."""
    page = replace(server, url=f"{server.url}{PATH}?{urlencode(query)}")
    (outcome,) = fetch([page], access, clock, REFUSALS)
    if not isinstance(outcome, Page):
        fault = outcome[1]
        todo = _SMALLER if fault.what.startswith("sends more than") else fault.todo.replace("the engine", "Prometheus")
        raise UnfinishedError(Fault(fault.what, server.shown, todo))
    if outcome.status != OK:
        raise _refused(outcome, access)
    document = json_of(outcome.content)
    if not isinstance(document, dict) or document.get("status") != "success":
        raise InputError(_stranger(server))
    data, warnings = document.get("data"), document.get("warnings")
    told = tuple(_line(text) for text in warnings[:3]) if isinstance(warnings, list) else ()
    return data.get("result") if isinstance(data, dict) else None, told


def _refused(page: Page, access: Access) -> InputError | UnfinishedError:
    document = json_of(page.content)
    said = document.get("error") if isinstance(document, dict) else ""
    reason = without(_line(said), *access.secrets(page.target)) if said else ""
    what = f"answers {page.status}{f': {reason}' if reason else ''}"
    where = page.target.shown
    if page.status in {401, 403}:
        todo = f"give a token in {TOKEN_VARIABLE} or with --token-file, or USER:PASSWORD in {LOGIN_VARIABLE}"
        return UnfinishedError(Fault(what, where, todo))
    if page.status in {404, 405}:
        return UnfinishedError(Fault(what, where, f"is Prometheus there? its API is asked at {where}{PATH}"))
    if page.status in WRONG:
        return InputError(Fault(what, where, f"check --selector; or {_SMALLER}"))
    return UnfinishedError(Fault(what, where, "try again later, or look at Prometheus's log"))


def _stranger(server: Target) -> Fault:
    return Fault("does not answer as Prometheus does", server.shown, f"is Prometheus there? {PATH} is asked")


def _line(text: object) -> str:
    """What a server says, as one short line that cannot drive a terminal."""
    words = " ".join(str(text)[: 4 * LONGEST_TEXT].split())
    return cut(word(words, len(words)), LONGEST_TEXT)


def _samples(entry: Any, server: Target) -> Samples:  # noqa: ANN401 (whatever a server sends)
    try:
        own = {str(name): str(value) for name, value in entry["metric"].items()}
        pairs = [(round(1000 * float(moment)), float(value)) for moment, value in entry["values"]]
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
        raise InputError(_stranger(server)) from None
    numbers = tuple((moment, value) for moment, value in pairs if math.isfinite(value))
    return Samples(own.pop("__name__", ""), own, numbers)
