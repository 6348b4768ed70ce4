"""
Engines' counters from a Prometheus server: the very samples that it scraped, page by page, not its own rates.

All series of one scrape bear the same time, so the samples of a target at one time are its page as it was then. They
are read by the same functions as pages, so that a counter gives the same rate however it is read.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.facts.counters import Snapshot
from rlsize.readers.metrics.exposition import LARGEST_VALUE, Series
from rlsize.readers.metrics.kinds import KINDS
from rlsize.readers.metrics.pages import Reading
from rlsize.readers.metrics.tables import word
from rlsize.readers.prometheus_api import raw_samples, server_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlsize.facts.counters import EngineCounters
    from rlsize.readers.http_pages import Access, Target
    from rlsize.readers.metrics.tables import EngineKind
    from rlsize.readers.prometheus_api import Samples

MOST_PAGES = 100_000  # of all targets; as many as a watch keeps
STALE_LOOKS = 3.0  # scrapes that a target may have missed at the window's end ...
STALE_SHARE = 0.1  # ... unless that is less than this share of the window
_SOUGHT = "vllm:generation_tokens_total, sglang:realtime_tokens_total, trtllm_generation_tokens_total and the like"
_PLACE = ("cluster", "namespace", "instance", "pod")  # labels that tell targets apart
_COPIES = ("job", "prometheus", "prometheus_replica")  # labels that only tell who scraped them


class Scraped(NamedTuple):
    """
    What a server had scraped in a window.

    Args:
        readings: Every target's pages, in the order of time; a target that fell silent has none, and a fault.
        end: When the window ended, in seconds since 1970. [s]
        warnings: What is doubtful about it.
    """

    readings: list[Reading]
    end: float
    warnings: tuple[str, ...]


def scraped(
    server: Target,
    access: Access,
    clock: Callable[[], float],
    matchers: str,
    window: float,
    end: float | None = None,
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

    Raises:
        UnfinishedError: The server cannot be reached, or refuses.
        InputError: It is no Prometheus, the query is wrong, or no series are there.
    """
    until = end if end is not None else server_time(server, access, clock)
    asked = ", ".join(part for part in (f'__name__=~"{wanted_names()}"', matchers) if part)
    found, told = raw_samples(server, access, clock, f"{{{asked}}}", window, until)
    found = [samples for samples in found if any(kind.wanted(samples.name) for kind in KINDS)]
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
    return Scraped(readings, until, (*(f"Prometheus says: {text}" for text in told), *copies))


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
