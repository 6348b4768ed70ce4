"""
An engine's own log as readings: the line that it writes every few seconds, added up to counters.

vLLM: `Engine 000: Avg prompt throughput: ..., Avg generation throughput: ..., Running: ..., Waiting: ...` (0.33,
`vllm/v1/metrics/loggers.py`), averages over the interval, computed prompt tokens only. SGLang: `Decode batch,
#running-req: ..., gen throughput (token/s): ..., #queue-req: ...` (0.5.23), of which tensor rank 0 is read.
"""

from __future__ import annotations

import re
from collections import deque
from datetime import datetime
from itertools import pairwise
from math import inf
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.facts.counters import EngineCounters, Snapshot
from rlsize.readers.byte_sources import shown_source
from rlsize.readers.logs.figures import CUT, UNREADABLE, Skips
from rlsize.readers.logs.source import Cursor, opened
from rlsize.readers.metrics.pages import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.facts.run_log import Skipped
    from rlsize.readers.logs.source import Line

MARKS = (b"Avg generation throughput: ", b"gen throughput (token/s): ")
"""Bytes, one of which stands in every line that is read."""

MOST_LINES = 200_000  # of all engines, the newest of each: about three days of eight of vLLM
MOST_ENGINES = 256
_USUAL = 60.0  # seconds between two lines, at most; engines write every ten, and SGLang more often
_SILENT = 3.0  # times the usual interval from which an engine is taken to have been idle in between
_SOON = 1e-3  # seconds after its last line from which it is taken so
_HALF_YEAR = 180 * 86_400.0
_LEAP_YEAR = 2000  # vLLM writes no year; one that has a 29th of February
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,12})?)"
_VLLM_TIME = re.compile(r"\b([0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}) \[")
_SGLANG_TIME = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})((?: [A-Z]+[0-9]+)*)\]")
_ORIGINS = tuple(  # what Ray, kubectl, stern, docker compose and journald write before a line
    re.compile(pattern)
    for pattern in (
        r"\(([\w.:<>=\[\]-]+ pid=\d+(?:, ip=[\w.:]+)?)\)",
        r"^\[?((?:pod/)?[\w.-]+(?:/[\w.-]+)+)\]? ",
        r"^([\w.-]{1,80}?) +\| ",
        r"^(?:[A-Z][a-z]{2} +\d+ [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.+Z-]+) ([\w.-]+ [\w.@/-]+\[\d+\]):",
        r"^([\w.-]*-[\w.-]+ [\w.-]+) (?=INFO|\(|\[)",
        r"^\[((?:rank|default)?\d{1,5})\]:",
    )
)
_LEFT_OUT = re.compile(r"\[repeated (\d{1,6})x across cluster\]")
_RANK = re.compile(r"Engine ([0-9]{1,4}):")
_FIELDS = {
    "generation": re.compile(rf"(?:Avg generation throughput|gen throughput \(token/s\)): {_NUMBER}"),
    "prompt": re.compile(rf"Avg prompt throughput: {_NUMBER}"),
    "running": re.compile(rf"(?:Running|#running-req): {_NUMBER}"),
    "waiting": re.compile(rf"(?:Waiting|Pending|#queue-req): {_NUMBER}"),
    "preemptions": re.compile(rf"Preemptions: {_NUMBER}"),
    "cache_percent": re.compile(rf"KV cache usage: {_NUMBER}%"),
    "cache": re.compile(rf"token usage: {_NUMBER}"),
    "hit_percent": re.compile(rf"Prefix cache hit rate: {_NUMBER}%"),
}
_USUALLY = ("prompt", "generation", "running", "waiting", "cache_percent", "hit_percent")
_WHOLE = re.compile(r"(?: tokens/s| reqs)?, (?:GPU )?".join(_FIELDS[name].pattern for name in _USUALLY))
"""The usual line of vLLM in one search, as a log has millions of them."""
_KEYS = {
    "vllm": {
        "generation_tokens": "Avg generation throughput x time",
        "computed_prompt_tokens": "Avg prompt throughput x time",
        "prefix_cache_hits": "Prefix cache hit rate",
        "prefix_cache_queries": "Prefix cache hit rate",
    },
    "sglang": {"generation_tokens": "gen throughput (token/s) x time"},
}


class Logged(NamedTuple):
    """
    What an engine's log says.

    Args:
        readings: Its engines, as pages would have shown them.
        window: Time from the first to the last line. [s]
        skipped: Lines that were not used.
        repeats: Lines that Ray left out, as others like them were there. [1]
    """

    readings: list[Reading]
    window: float
    skipped: tuple[Skipped, ...]
    repeats: int = 0


class _Entry(NamedTuple):
    """One line: engine, process and rank, moment, numbers by name, and how many lines like it were left out."""

    engine: str
    rank: tuple[str, str]
    seconds: float
    said: dict[str, float]
    repeats: int = 0


def engine_lines(path: str) -> int:
    """
    The most lines, at moments of their own, that any engine has in a log; 2 for more, as nobody looks on after that.

    Raises:
        InputError: It cannot be read.
    """
    begun: dict[tuple[str, str], float] = {}
    found = 0
    with opened(path, Skips()) as source:
        cursor = Cursor(source.blocks(), Skips())
        while (line := cursor.find(*MARKS)) is not None:
            found, entry = 1, _entry(line) if line.ended else None
            if entry is not None and entry.engine and entry.seconds > begun.setdefault(entry.rank, entry.seconds):
                return 2
    return found


def engine_log(path: str, window: float = inf) -> Logged:
    """
    The engines of a log.

    Args:
        path: A file, plain or packed, or `-`.
        window: How much of it counts, from its end, but two lines at least. [s]

    Raises:
        InputError: It cannot be read, or no engine has two lines in the window.
    """
    skips = Skips()
    engines: dict[tuple[str, str], deque[_Entry]] = {}
    repeats = 0
    with opened(path, skips) as source:
        cursor = Cursor(source.blocks(), skips)
        for entry in _entries(cursor, skips):
            repeats += entry.repeats
            if entry.rank in engines or len(engines) < MOST_ENGINES:
                kept = engines.setdefault(entry.rank, deque())
                _add(kept, entry)
                _forget(kept, kept[-1].seconds - window, MOST_LINES // len(engines))
    end = max((kept[-1].seconds for kept in engines.values()), default=0.0)
    for kept in engines.values():
        _forget(kept, end - window, MOST_LINES)
    name = shown_source(path)
    told = {rank: list(entries) for rank, entries in engines.items() if len(entries) > 1}
    alone = len({process for process, _ in engines}) == 1
    readings: dict[str, list[Snapshot]] = {}
    for (process, _), entries in told.items():
        instance = name if alone or not process else process
        readings.setdefault(instance, []).extend(_snapshots(instance, entries, silent=not repeats))
    if not readings:
        todo = "give a longer part of it, or the engine's metrics URL, as in http://engine-0:8000"
        raise InputError(Fault("has no engine with two whole lines of its rate", name, todo))
    for process in sorted({process for process, _ in engines} - {process for process, _ in told}):
        skips.add("the only one of its engine", process)
    return Logged(
        readings=[Reading(instance, tuple(snapshots)) for instance, snapshots in readings.items()],
        window=max(entries[-1].seconds - entries[0].seconds for entries in told.values()),
        skipped=skips.listing(),
        repeats=repeats,
    )


def _forget(entries: deque[_Entry], start: float, most: int) -> None:
    """Drop lines from before a moment, and the oldest beyond so many; the last two stay, as a rate needs them."""
    while len(entries) > 2 and (len(entries) > most or entries[0].seconds < start):  # noqa: PLR2004 (two)
        entries.popleft()


def _entries(cursor: Cursor, skips: Skips) -> Iterator[_Entry]:
    """The lines of a log that say a rate."""
    while (line := cursor.find(*MARKS)) is not None:
        if not line.ended:
            skips.add(CUT, line.place)
            continue
        found = _entry(line)
        if found is None:
            skips.add(UNREADABLE, line.place)
        elif found.engine:
            yield found


def _entry(line: Line) -> _Entry | None:
    """What a line says; None if it is damaged, without an engine if it is another rank's copy."""
    whole = _WHOLE.search(line.text)
    if whole is not None:
        said = dict(zip(_USUALLY, map(float, whole.groups()), strict=True))
    else:
        said = {name: float(found[1]) for name, pattern in _FIELDS.items() if (found := pattern.search(line.text))}
    if not {"generation", "running", "waiting"} <= said.keys():
        return None
    origin = next((found[1] for pattern in _ORIGINS if (found := pattern.search(line.text))), "")
    left_out = _LEFT_OUT.search(line.text) if "repeated" in line.text else None
    repeats = int(left_out[1]) if left_out else 0
    try:
        time = _SGLANG_TIME.search(line.text) if "#running-req" in line.text else None
        if time is not None:
            ranks = dict(re.findall(r"([A-Z]+)([0-9]+)", time[2]))
            moment = datetime.fromisoformat(f"{time[1]}Z").timestamp()
            engine = "sglang" if ranks.get("TP", "0") == "0" else ""
            return _Entry(engine, (origin, ranks.get("DP", "")), moment, said, repeats)
        time = _VLLM_TIME.search(line.text)
        if time is None:
            return None
        moment = datetime.fromisoformat(f"{_LEAP_YEAR}-{time[1]}Z").timestamp()
    except ValueError:
        return None  # no such day
    rank = _RANK.search(line.text)
    return _Entry("vllm", (origin, str(int(rank[1])) if rank else ""), moment, said, repeats)


def _add(entries: deque[_Entry], entry: _Entry) -> None:
    """Keep a line; at New Year a log without years begins again, and lines of one second are one."""
    last = entries[-1].seconds if entries else entry.seconds - 1.0
    seconds = entry.seconds
    while seconds < last - _HALF_YEAR:
        seconds += 366 * 86_400.0
    if seconds > last:
        entries.append(_Entry(entry.engine, entry.rank, seconds, entry.said))


def _snapshots(name: str, entries: Sequence[_Entry], *, silent: bool) -> list[Snapshot]:
    """
    Counters that grow by each line's rate over its interval; from the first line on.

    Args:
        name: The engine.
        entries: Its lines.
        silent: Whether no line for long means that it did nothing.
    """
    gaps = [second.seconds - first.seconds for first, second in pairwise(entries)]
    usual = min(median(gaps), _USUAL)
    totals = dict.fromkeys(("generation", "prompt", "queries", "hits", "preemptions"), 0.0)
    found = [_snapshot(name, entries[0], totals)]
    for entry, gap in zip(entries[1:], gaps, strict=True):
        worked = gap
        if silent and gap > _SILENT * usual:
            still = entry.said | {"running": 0.0, "waiting": 0.0}
            stood = (entry.seconds - gap + _SOON, entry.seconds - usual)
            found += [_snapshot(name, entry._replace(seconds=moment, said=still), totals) for moment in stood]
            worked = usual
        _grow(totals, entry.said, worked)
        found.append(_snapshot(name, entry, totals))
    return found


def _grow(totals: dict[str, float], said: dict[str, float], seconds: float) -> None:
    """Add what a line says of the time before it."""
    computed = said.get("prompt", 0.0) * seconds
    share = said.get("hit_percent", 0.0) / 100.0
    queries = computed / (1.0 - share) if share < 1.0 else 0.0
    totals["generation"] += said["generation"] * seconds
    totals["prompt"] += computed
    totals["queries"] += queries
    totals["hits"] += queries - computed if share < 1.0 else 0.0
    totals["preemptions"] += said.get("preemptions", 0.0)


def _snapshot(name: str, entry: _Entry, totals: dict[str, float]) -> Snapshot:
    said, vllm = entry.said, entry.engine == "vllm"
    hits = "hit_percent" in said
    counters = EngineCounters(
        instance=name,
        engine=entry.engine,
        rank=entry.rank[1],
        generation_tokens=totals["generation"],
        computed_prompt_tokens=totals["prompt"] if vllm else None,
        prefix_cache_queries=totals["queries"] if hits else None,
        prefix_cache_hits=totals["hits"] if hits else None,
        preemptions=totals["preemptions"] if vllm else None,
        requests_running=said["running"],
        requests_waiting=said["waiting"],
        kv_cache_usage_fraction=said.get("cache", said.get("cache_percent", 0.0) / 100.0),
        keys=_KEYS[entry.engine],
    )
    return Snapshot(seconds=entry.seconds, counters=counters)
