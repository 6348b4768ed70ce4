"""Pictures of a simulation: what happens in each optimizer step, and who does what when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from rlsize.reports.chart import Bar, Chart, Gantt, Mark, Panels, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rlsize.reports.chart import Role
    from rlsize.simulator.ledger import Ledger, Span

MOST_POINTS = 300  # of a line; longer runs are drawn in parts of several steps
_CAUSES: tuple[tuple[str, str, Role], ...] = (
    ("training", "train_seconds", "update"),
    ("waiting for samples", "waiting_seconds", "waiting"),
    ("weight sync", "sync_seconds", "sync"),
    ("overhead", "overhead_seconds", "other"),
    ("failure", "failure_seconds", "failure"),
)
_UNITS = ((900.0, 1.0, "s"), (3 * 3600.0, 60.0, "min"), (float("inf"), 3600.0, "h"))  # for times that are as long
_INSTANCE = "instance "

MOST_BARS = 20_000
_TOUCHING = 1e-9  # of the time shown: spans that are no further apart follow each other
# What may differ within a bar, and shall: share of the slots by which batches differ, share of the time shown that a
# bar lasts at least. Each rung draws fewer bars than the one before.
_RUNGS = (
    (0.0, 0.0), (1 / 64, 0.0), (1 / 32, 1 / 4000), (1 / 16, 1 / 2000), (1 / 12, 1 / 1000), (1 / 8, 1 / 500),
    (1 / 6, 1 / 250), (1 / 4, 1 / 120),
)  # fmt: skip
_ROLES: Mapping[str, Role] = {
    "update": "update", "logprob": "logprob", "waiting": "waiting",
    "sync": "sync", "swap": "swap", "failure": "failure", "overhead": "other",
}  # fmt: skip


def over_steps(ledger: Ledger, warm_up: int, title: str, subtitle: str = "") -> Panels:
    """
    Backlog, staleness and seconds of each optimizer step.

    Args:
        ledger: The accounts of a run of at least one step.
        warm_up: Steps at its start that do not count, marked where there are any.
        title: The takeaway.
        subtitle: The inputs.
    """
    part = ceil(len(ledger) / MOST_POINTS)
    x_label = "optimizer step" + (f" (each point: {part} steps)" if part > 1 else "")
    marks = (Mark(at=warm_up + 0.5, label="warm-up ends"),) if 0 < warm_up < len(ledger) else ()
    bare, cap = tuple(replace(mark, label="") for mark in marks), ledger.max_staleness
    older = "; samples that go on get older" if cap is not None and max(ledger.columns["most_stale"]) > cap else ""
    charts = (
        Chart(
            title="Backlog: finished samples that wait to be trained",
            x_label=x_label,
            y_label="samples",
            series=(_series(ledger, "backlog", "backlog_samples", "main"),),
            marks=marks,
        ),
        Chart(
            title="Staleness" + ("" if cap is None else f" (cap: {cap:g} batches ahead{older})"),
            x_label=x_label,
            y_label="optimizer steps",
            series=(
                _series(ledger, "waiting, oldest", "oldest_age_steps", "other", max),
                _series(ledger, "trained, most", "most_stale", "trainer", max),
                _series(ledger, "trained, mean", "staleness_mean", "main"),
            ),
            marks=(*bare, *(() if cap is None else (Mark(at=cap, label="", axis="y"),))),
        ),
        Chart(
            title="Where the time of a step goes",
            x_label=x_label,
            y_label="seconds",
            kind="areas",
            series=tuple(_series(ledger, *cause) for cause in _CAUSES if any(ledger.columns[cause[1]])),
            marks=bare,
        ),
    )
    return Panels(title=title, subtitle=subtitle, charts=charts)


def gantt(spans: Sequence[Span], slots: int, title: str, subtitle: str = "") -> Gantt:
    """
    Who does what when: trainer, weight sync, and how full each instance's batch is.

    Args:
        spans: What a recorder was given, in any order.
        slots: Samples that an instance runs at once.
        title: The takeaway.
        subtitle: The inputs.
    """
    begin = min((span.start for span in spans), default=0.0)
    end = max((span.end for span in spans), default=1.0)
    unit, name = next((unit, name) for longest, unit, name in _UNITS if end - begin <= longest)
    # Trainer, sync, and all instances up to the last that did anything
    tracks = {span.track for span in spans}
    numbers = [int(track.removeprefix(_INSTANCE)) for track in tracks if track.startswith(_INSTANCE)]
    shown = [track for track in ("trainer", "sync") if track in tracks]
    return Gantt(
        title=title,
        subtitle=subtitle,
        x_label=f"time ({name})",
        lanes=((*shown, *(f"{_INSTANCE}{number}" for number in range(max(numbers, default=-1) + 1)))),
        spans=bars_of(spans, slots, unit),
        full=slots,
        shade_label="samples in the batch",
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _series(
    ledger: Ledger, name: str, column: str, role: Role, worth: Callable[[Sequence[float]], float] = _mean
) -> Series:
    columns = ledger.columns
    if column == "staleness_mean":
        pairs = zip(columns["staleness_sum"], columns["trained_samples"], strict=True)
        values = [total / count if count else 0.0 for total, count in pairs]
    else:
        values = list(columns[column])
    part = ceil(len(values) / MOST_POINTS)
    starts = range(0, len(values), part)
    groups = [values[start : start + part] for start in starts]
    xs = tuple(start + (len(group) + 1) / 2 for start, group in zip(starts, groups, strict=True))
    ys = tuple(worth(group) for group in groups)
    return Series(name=name, xs=xs, ys=ys, role=role, steps=column.endswith("_seconds"))


def bars_of(spans: Sequence[Span], slots: int, unit: float) -> tuple[Bar, ...]:
    """
    Bars for spans.

    Args:
        spans: In any order; those of one track do not overlap.
        slots: Samples that an instance runs at once.
        unit: What times are counted in. [s]

    Returns:
        At most `MOST_BARS`, unless there are as many tracks: similar batches are averaged, short ones with what is
        beside them, idleness included.
    """
    tracks: dict[str, list[Span]] = {}
    for span in spans:
        if span.end > span.start:
            tracks.setdefault(span.track, []).append(span)
    for own in tracks.values():
        own.sort(key=lambda span: span.start)
    instances = {track: own for track, own in tracks.items() if track.startswith(_INSTANCE)}
    phases = {track: own for track, own in tracks.items() if track not in instances}
    edges = [edge for own in tracks.values() for edge in (own[0].start, own[-1].end)]
    long = max(edges, default=0.0) - min(edges, default=0.0)
    few = _few(phases, MOST_BARS // 5, long, slots, unit)
    return (*few, *_few(instances, MOST_BARS - len(few), long, slots, unit))


def _few(tracks: Mapping[str, Sequence[Span]], most: int, long: float, slots: int, unit: float) -> list[Bar]:
    """Bars of some tracks, coarser and coarser until they are few enough."""

    def bars(near: float, least: float) -> Iterator[Bar]:
        rules = _Rules(near * slots, least * long, _TOUCHING * long, slots, unit)
        return chain.from_iterable(_bars(track, own, rules) for track, own in tracks.items())

    for near, least in _RUNGS:
        found = list(islice(bars(near, least), most + 1))  # no more than tells that there are too many
        if len(found) <= most:
            return found
    # no more bars than `most` last as long as this share of the time shown
    return list(bars(_RUNGS[-1][0], len(tracks) / max(most - len(tracks), 1)))


class _Rules(NamedTuple):
    near: float  # batches that differ by no more are alike [1]
    least: float  # a bar lasts at least so long, if something follows it [s]
    touching: float  # gaps that are none [s]
    slots: int
    unit: float


@dataclass(slots=True)
class _Open:
    """A bar that may still grow."""

    start: float
    end: float
    name: str  # of what came last
    low: int  # smallest batch in it
    high: int
    filled: float = 0.0  # batch times seconds
    seconds: dict[str, float] = field(default_factory=dict)  # of each name


def _bars(track: str, spans: Iterable[Span], rules: _Rules) -> Iterator[Bar]:
    """Bars of one track."""
    held: _Open | None = None
    for start, end, name, batch in _with_gaps(track, spans, rules):
        if held is None or not _grows(held, name, batch, rules):
            if held is not None:
                yield from _closed(held, track, rules)
            held = _Open(start, end, name, batch, batch)
        held.end, held.name, held.low, held.high = end, name, min(held.low, batch), max(held.high, batch)
        held.filled += batch * (end - start)
        held.seconds[name] = held.seconds.get(name, 0.0) + end - start
    if held is not None:
        yield from _closed(held, track, rules)


def _with_gaps(track: str, spans: Iterable[Span], rules: _Rules) -> Iterator[tuple[float, float, str, int]]:
    """Start, end, name and batch of each span, and of the time in between, which has no name."""
    last: float | None = None
    for span in spans:
        if last is not None and span.start - last > rules.touching:
            yield last, span.start, "", 0
            last = span.start
        name = "busy" if track.startswith(_INSTANCE) else span.name
        yield (span.start if last is None else last), span.end, name, span.batch
        last = span.end


def _grows(held: _Open, name: str, batch: int, rules: _Rules) -> bool:
    """Whether what follows a bar becomes part of it."""
    near = max(held.high, batch) - min(held.low, batch) <= rules.near
    return held.end - held.start < rules.least or (near and name == held.name)


def _closed(held: _Open, track: str, rules: _Rules) -> Iterator[Bar]:
    start, end = held.start / rules.unit, held.end / rules.unit
    if track.startswith(_INSTANCE):
        mean = held.filled / (held.end - held.start)
        if mean > 0.0:
            yield Bar(lane=track, start=start, end=end, shade=min(mean / rules.slots, 1.0))
        return
    name = max(held.seconds, key=lambda name: held.seconds[name])
    if not name:
        return
    if track == "sync":
        short = name.replace("version ", "v")
        yield Bar(lane=track, start=start, end=end, name="sync", role="sync", label=short)
    else:
        yield Bar(lane=track, start=start, end=end, name=name, role=_ROLES.get(name, "other"))
