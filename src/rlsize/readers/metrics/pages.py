"""
Pages of engines, saved or live, as counters; and how a fleet is watched over a window.

Clock and sleep are parameters: nothing here knows the time by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import InputError, noting, refuse
from rlsize.facts.counters import EngineCounters, Snapshot
from rlsize.readers.http_pages import Page, fetch
from rlsize.readers.metrics.exposition import LARGEST_PAGE, page_text
from rlsize.readers.metrics.kinds import text_engines
from rlsize.readers.yaml_documents import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rlsize.errors import Fault
    from rlsize.readers.http_pages import Access, Target


class Reading(NamedTuple):
    """
    One attempt to read one page.

    Args:
        instance: Whose page.
        snapshots: Its engines, with the moment of reading; empty where it could not be read.
        fault: Why it could not be read.
    """

    instance: str
    snapshots: tuple[Snapshot, ...] = ()
    fault: Fault | None = None


def page_counters(content: bytes, instance: str) -> list[EngineCounters]:
    """
    The engines on a page.

    Raises:
        InputError: It is no page of an engine that rlsize reads, or a damaged one.
    """
    return text_engines(page_text(content, instance), instance)


def saved_page(path: str) -> list[EngineCounters]:
    """
    The engines on a saved page.

    Raises:
        InputError: The file or the page cannot be read.
    """
    return page_counters(read_bytes(path, LARGEST_PAGE), path)


def saved_window(pairs: Sequence[tuple[str, str]], seconds: float) -> list[Reading]:
    """
    Saved pages as readings: of each pair, the first page and one that was read `seconds` later.

    Raises:
        InputError: A file or page cannot be read; the faults of all at once.
    """
    readings: list[Reading] = []
    faults: list[Fault] = []
    names = [Path(first).name for first, _ in pairs]
    if len(set(names)) < len(names):  # whole paths where two have the same name
        names = [first for first, _ in pairs]
    for name, pair in zip(names, pairs, strict=True):
        for path, moment in zip(pair, (0.0, seconds), strict=True):
            with noting(faults):
                readings.append(_reading(name, moment, saved_page(path)))
    refuse(faults)
    return readings


def live_reader(targets: Sequence[Target], access: Access, clock: Callable[[], float]) -> Callable[[], list[Reading]]:
    """A function that reads the pages of all targets once, together."""
    return lambda: [_live(outcome) for outcome in fetch(targets, access, clock)]


def watched(
    read: Callable[[], list[Reading]],
    window: float,
    every: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[list[Reading]]:
    """
    One round of readings at the start of the window, one every few seconds, and one at its end.

    Args:
        read: Reads all pages once.
        window: How long to watch. [s]
        every: Seconds between two rounds; a round that takes longer skips those it missed. [s]
        clock: Seconds on a clock that never goes back.
        sleep: Waits so many seconds.
    """
    start = clock()
    due = 0.0
    while True:
        yield read()
        if due >= window:
            return
        passed = clock() - start
        due = min(window, max(due + every, every * (passed // every + 1)))
        if due > passed:
            sleep(due - passed)


def histories(readings: Iterable[Reading]) -> tuple[dict[str, list[Snapshot]], dict[str, str]]:
    """
    Readings sorted by engine.

    Returns:
        The snapshots of each engine in their order, and the instances that could never be read with their last fault.
    """
    found: dict[tuple[str, str], list[Snapshot]] = {}
    faults: dict[str, str] = {}
    for reading in readings:
        if reading.fault is not None:
            faults[reading.instance] = reading.fault.what
        for snapshot in reading.snapshots:
            found.setdefault((reading.instance, snapshot.counters.rank), []).append(snapshot)
    several = {instance for instance, _ in found if sum(1 for other, _ in found if other == instance) > 1}
    names = {key: f"{key[0]} engine {key[1]}" if key[0] in several else key[0] for key in found}
    read = {instance for instance, _ in found}
    return (
        {names[key]: snapshots for key, snapshots in found.items()},
        {instance: fault for instance, fault in faults.items() if instance not in read},
    )


def missed_looks(readings: Iterable[Reading]) -> list[str]:
    """A sentence for each instance that could be read at some moments and not at others."""
    looks: dict[str, list[Reading]] = {}
    for reading in readings:
        looks.setdefault(reading.instance, []).append(reading)
    found = []
    for instance, all_looks in looks.items():
        faults = [reading.fault for reading in all_looks if reading.fault is not None]
        if faults and len(faults) < len(all_looks):
            found.append(
                f"{instance} could not be read at {len(faults)} of {len(all_looks)} moments: it {faults[-1].what}"
            )
    return found


def _live(outcome: Page | tuple[Target, Fault]) -> Reading:
    if not isinstance(outcome, Page):
        target, fault = outcome
        return Reading(target.shown, fault=fault)
    try:
        found = page_counters(outcome.content, outcome.target.shown)
    except InputError as error:
        return Reading(outcome.target.shown, fault=error.faults[0])
    return _reading(outcome.target.shown, outcome.seconds, found)


def _reading(instance: str, seconds: float, found: list[EngineCounters]) -> Reading:
    return Reading(instance, tuple(Snapshot(seconds=seconds, counters=counters) for counters in found))
