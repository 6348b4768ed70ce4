"""Pictures of a simulation: what happens in each optimizer step, and who does what when."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import ceil
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rlsize.reports.chart import Bar, Chart, Gantt, Mark, Panels, Series
from rlsize.simulator.ledger import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rlsize.reports.chart import Role
    from rlsize.simulator.ledger import Ledger

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


def _series(
    ledger: Ledger, name: str, column: str, role: Role, worth: Callable[[Sequence[float]], float] = fmean
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
        At most `MOST_BARS`, unless there are as many tracks: of too many, short ones are averaged with what is beside
        them, idleness included.
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
    """Bars of some tracks: as they are, or as long as lets no more of them be than `most`."""

    def bars(least: float) -> Iterator[Bar]:
        for track, own in tracks.items():
            for group in _groups(own, least * long, _TOUCHING * long):
                yield from _bar(track, group, slots, unit)

    found = list(islice(bars(0.0), most + 1))  # no more than tells that there are too many
    return found if len(found) <= most else list(bars(len(tracks) / max(most - len(tracks), 1)))


def _groups(spans: Iterable[Span], least: float, touching: float) -> Iterator[list[Span]]:
    """Spans of a track that become one bar: alike, or shorter together than a bar lasts. [s]"""
    held: list[Span] = []
    for span in _with_gaps(spans, touching):
        if held and held[-1].end - held[0].start >= least and _kind(held[-1]) != _kind(span):
            yield held
            held = []
        held.append(span)
    yield held


def _kind(span: Span) -> tuple[bool | str, int]:
    return not span.track.startswith(_INSTANCE) and span.name, span.batch


def _with_gaps(spans: Iterable[Span], touching: float) -> Iterator[Span]:
    """The spans, and the time in between as spans without a name; each begins where the one before ends."""
    last: float | None = None
    for span in spans:
        if last is not None and span.start - last > touching:
            yield Span(span.track, "", last, span.start)
            last = span.start
        yield span if last is None else replace(span, start=last)
        last = span.end


def _bar(track: str, group: Sequence[Span], slots: int, unit: float) -> Iterator[Bar]:
    """The bar of some spans; none of idleness."""
    start, end = group[0].start, group[-1].end
    seconds: dict[str, float] = {}
    for span in group:
        seconds[span.name] = seconds.get(span.name, 0.0) + span.end - span.start
    name = max(seconds, key=seconds.__getitem__)
    mean = sum(span.batch * (span.end - span.start) for span in group) / (end - start)
    said: dict[str, Any] = {"name": name, "role": _ROLES.get(name, "other")}
    if track.startswith(_INSTANCE):
        said = {"shade": min(mean / slots, 1.0)} if mean > 0.0 else {}
    elif track == "sync":
        said = {"name": "sync", "role": "sync", "label": name.replace("version ", "v")}
    if said and (name or "shade" in said):
        yield Bar(lane=track, start=start / unit, end=end / unit, **said)
