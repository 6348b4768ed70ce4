"""What to say about a grid of simulated loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.commands.simulate.measures import SHORT, key_of, meaning, number_shown
from rlsize.facts.figure import Figure
from rlsize.reports.chart import Chart, Panels, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import words
from rlsize.simulator.outcome import spread_over
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.reports.chart import Role
    from rlsize.simulator.outcome import Outcome

_TOLD = (
    "step_seconds", "trainer_idle_fraction", "rollout_unused_fraction", "staleness_mean_steps", "over_cap_fraction",
    "tokens_generated_per_trained_token", "cost_per_step_usd",
)  # fmt: skip
_MOST_COLUMNS = 7  # that fit
_LEAST_TELLING = ("tokens_generated_per_trained_token", "over_cap_fraction", "staleness_mean_steps")  # left to JSON
_ROLES: tuple[Role, ...] = ("rollout", "trainer", "other", "logprob", "swap", "failure")
_ROUNDED = 0.005  # what two decimals do not show
_ENDS = 2  # points that a line needs
_MOST_LINES = len(_ROLES)  # a colour for each
_DRAWN = (
    ("step_seconds", "Time of an optimizer step", "seconds"),
    ("trainer_idle_fraction", "Trainer idle", "share of its time"),
    ("staleness_mean_steps", "Mean staleness", "optimizer steps"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """
    One point of a grid.

    Args:
        said: What is said there, by key.
        outcomes: Of each seed; none where there can be no such loop, or nothing finished.
        refused: Why there can be none.
    """

    said: Mapping[str, str]
    outcomes: tuple[Outcome, ...]
    refused: str = ""


def grid_answer(
    points: Sequence[Point], inputs: Sequence[Figure], warnings: Sequence[str], notes: Sequence[str]
) -> Report:
    """
    The report of `rlsize simulate --sweep`.

    Args:
        points: The grid, in its order.
        inputs: What all points share.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    done = [point for point in points if point.outcomes]
    best = min(done, key=lambda point: spread_over(point.outcomes, "step_seconds").mean)
    cheapest = _cheapest(done)
    seconds = spread_over(best.outcomes, "step_seconds").mean
    loops = f"{len(done)} loop{'s' if len(done) > 1 else ''}"
    headline = f"Of {loops} the quickest step is {show(seconds, '_seconds')}, at {_name(best)}"
    if cheapest is not None and cheapest is not best:
        cost = spread_over(cheapest.outcomes, "cost_per_step_usd").mean
        headline += f"; the cheapest costs {show(cost, '_usd')}, at {_name(cheapest)}"
    return Report(
        command="simulate",
        headline=f"{headline}.",
        results=(
            Figure(key="points", value=len(done), provenance="predicted", source="points that were run"),
            Figure(
                key="simulated_best_step_seconds", value=seconds, provenance="predicted", source="the quickest step"
            ),
        ),
        inputs=tuple(inputs),
        tables={"grid": _table(points, best)},
        warnings=(*_refusals(points), *warnings),
        notes=("All points meet the same samples: their lengths belong to groups, not to moments.", *notes),
        chart=_chart(done, headline),
        quiet=frozenset({"points", "simulated_best_step_seconds"}),
    )


def _refusals(points: Sequence[Point]) -> list[str]:
    """Why some points have no answer; one sentence for each reason."""
    found: dict[str, list[Point]] = {}
    for point in points:
        if point.refused:
            found.setdefault(point.refused, []).append(point)
    return [
        f"{len(refused)} of {len(points)} points {'has' if len(refused) == 1 else 'have'} no answer, such as "
        f"{_name(refused[0])}: {why}"
        for why, refused in found.items()
    ]


def _cheapest(done: Sequence[Point]) -> Point | None:
    priced = [point for point in done if "cost_per_step_usd" in point.outcomes[0].measures]
    return min(priced, key=lambda point: spread_over(point.outcomes, "cost_per_step_usd").mean, default=None)


def _name(point: Point) -> str:
    return ", ".join(f"{words(key)} {value}" for key, value in point.said.items())


def _table(points: Sequence[Point], best: Point) -> Table:
    rows: list[dict[str, Any]] = []
    told = [
        name
        for name in _TOLD
        if any(
            name in point.outcomes[0].measures and _worth_telling(points, name) for point in points if point.outcomes
        )
    ]
    for point in points:
        row: dict[str, Any] = dict(point.said)
        for name in told if point.outcomes else ():
            spread = spread_over(point.outcomes, name)
            key = key_of(name)
            row |= {key: spread.mean, f"{key}_low": spread.low, f"{key}_high": spread.high}
            row[f"_{name}"] = number_shown(spread.mean, name)
        row["refused"] = point.refused
        rows.append(row)
    columns = [Column(key, words(key)) for key in points[0].said]
    hidden = _LEAST_TELLING[: max(0, len(columns) + len(told) - _MOST_COLUMNS)]
    told = [name for name in told if name not in hidden]
    columns += [Column(f"_{name}", SHORT[name]) for name in told]
    return Table(
        title="", columns=tuple(columns), rows=tuple(rows), marked=list(points).index(best), note=meaning(told)
    )


def _worth_telling(points: Sequence[Point], name: str) -> bool:
    """Whether a measure differs from its usual value anywhere."""
    usual = {"over_cap_fraction": 0.0, "tokens_generated_per_trained_token": 1.0}.get(name)
    means = [spread_over(point.outcomes, name).mean for point in points if point.outcomes]
    return usual is None or any(abs(mean - usual) > _ROUNDED for mean in means)


def _chart(done: Sequence[Point], headline: str) -> Panels | None:
    """Step time, idle trainer and staleness over the number that has most values, a line for each of the others."""
    numeric = [key for key in done[0].said if all(_number(point.said[key]) is not None for point in done)]
    if not numeric or len({point.said[numeric[0]] for point in done}) < _ENDS:
        return None
    axis = max(numeric, key=lambda key: len({point.said[key] for point in done}))
    lines: dict[str, list[Point]] = {}
    for point in done:
        others = ", ".join(f"{words(key)} {value}" for key, value in point.said.items() if key != axis)
        lines.setdefault(others, []).append(point)
    shown = dict(list(lines.items())[:_MOST_LINES])
    charts = tuple(
        Chart(
            title=title,
            x_label=words(axis),
            y_label=label,
            percent=name.endswith("_fraction"),
            series=tuple(_line(name, axis, *entry, index) for index, entry in enumerate(shown.items())),
        )
        for name, title, label in _DRAWN
    )
    seeds = len(done[0].outcomes)
    subtitle = f"{f'mean over {seeds} seeds' if seeds > 1 else 'one seed'}, the same for all points"
    return Panels(title=headline.partition(";")[0], subtitle=subtitle, charts=charts)


def _line(measure: str, axis: str, name: str, line: Sequence[Point], index: int) -> Series:
    return Series(
        name=name or words(measure),
        xs=tuple(_number(point.said[axis]) or 0.0 for point in line),
        ys=tuple(spread_over(point.outcomes, measure).mean for point in line),
        role=_ROLES[index % len(_ROLES)],
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
