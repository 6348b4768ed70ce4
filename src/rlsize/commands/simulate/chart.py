"""Pictures of a simulation: what happens in each optimizer step, and who does what when."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from rlsize.commands.simulate.span_bars import bars_of
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.pictures import Gantt, Panels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlsize.reports.chart import Role
    from rlsize.simulator.history import Span
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
    charts = (
        Chart(
            title="Backlog: finished samples that wait to be trained",
            x_label=x_label,
            y_label="samples",
            series=(_series(ledger, "backlog", "backlog_samples", "main"),),
            marks=marks,
        ),
        Chart(
            title="Staleness" + ("" if cap is None else f" (cap: {cap})"),
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
