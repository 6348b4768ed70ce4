"""`rlsize simulate --sweep`: a grid of alternatives, with the same seeds for all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.commands.simulate.report import SHORT, key_of, meaning, number_shown
from rlsize.commands.simulate.runs import (
    COMPILED,
    Job,
    compiled_figure,
    nothing_finished,
    played_by,
    run,
    settled,
)
from rlsize.commands.simulate.setting import simulated
from rlsize.errors import Fault, InputError, Refused, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.chart import Chart, Panels, Series
from rlsize.reports.report import Column, Decision, Report, Table
from rlsize.reports.wording import counted, numbered, words
from rlsize.simulator.outcome import spread_over
from rlsize.simulator.run import stands_still
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rlsize.commands.simulate import Orders
    from rlsize.commands.simulate.runs import Done
    from rlsize.commands.simulate.setting import Simulated
    from rlsize.reports.chart import Role
    from rlsize.shell.inputs import Inputs
    from rlsize.simulator.outcome import Outcome

MOST_POINTS = 2000
_BEST = "simulated_best_step_seconds"
_RANGE_PARTS = (2, 3)
_FORMS = "give key=from:to, key=from:to:step or key=one,other"
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


class GridPoint(NamedTuple):
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


def grid_report(inputs: Inputs, sweeps: Sequence[str], orders: Orders) -> Report:
    """
    The report of a grid.

    Args:
        inputs: What was said.
        sweeps: `key=from:to`, `key=from:to:step` or `key=one,other`.
        orders: How to run.

    Raises:
        InputError: Something is wrong with the sweep, or with every point.
    """
    points = points_of(inputs, sweeps)
    for name, path in (("trace", orders.trace), ("history", orders.history)):
        if path is not None:
            inputs.fault("a grid has many runs, and this shows one", f"--{name}", "leave it out, or leave --sweep out")
    inputs.settle()
    loops = _loops(inputs, points)
    if all(isinstance(loop, InputError) for loop in loops):
        raise next(loop for loop in loops if isinstance(loop, InputError))
    orders = settled(orders, inputs, [loop.setting for loop in loops if not isinstance(loop, InputError)])
    jobs, owners = [], []
    for seed, (index, loop) in product(orders.seeds, enumerate(loops)):  # points share what was drawn for a seed
        if not isinstance(loop, InputError):
            jobs.append(Job(setting=loop.setting, pools=loop.pools, steps=orders.steps, seed=seed))
            owners.append(index)
    done, interrupted = run(jobs, orders)
    if not done:
        raise nothing_finished()
    runs = [[done[i] for i, owner in enumerate(owners) if owner == index and i in done] for index in range(len(loops))]
    rows = _rows(points, loops, runs)
    if not any(row.outcomes for row in rows):
        raise stands_still(next(iter(done.values())).steps)
    if interrupted:
        inputs.warnings.append(f"interrupted: {len(done)} of {len(jobs)} runs are in this answer")
    return replace(_report(rows, inputs, done.values()), interrupted=interrupted)


def points_of(inputs: Inputs, sweeps: Sequence[str]) -> list[dict[str, str]]:
    """The points of a grid: what is said there, by key, in the order of the sweeps, the last one changing fastest."""
    from rlsize.commands.simulate import SWEPT

    names = {inputs.flag(key).removeprefix("--").replace("-", "_"): key for key in SWEPT} | {key: key for key in SWEPT}
    axes: dict[str, list[str]] = {}
    for text in sweeps:
        said, sign, values = text.partition("=")
        name = said.strip().removeprefix("--").replace("-", "_")
        key = names.get(name, "")
        if key and not sign:
            inputs.fault(f"says no values for {said!r}", f"--sweep {text}", _FORMS)
        elif not key:
            inputs.fault(f"{said!r} cannot be swept", f"--sweep {text}", suggestion(name, names))
        elif key in axes:
            inputs.fault(f"{said!r} is swept twice", f"--sweep {text}", "say it once")
        else:
            axes[key] = _values(inputs, text, values)
            inputs.gives(key)  # what the scenario says of it is looked at, and gives way
    count = 1
    for found in axes.values():
        count *= max(1, len(found))
    if count > MOST_POINTS:
        inputs.fault(f"the grid has {count:,} points, more than {MOST_POINTS:,}", "--sweep", "take larger steps")
        return []
    return [dict(zip(axes, point, strict=True)) for point in product(*axes.values())]


def _values(inputs: Inputs, text: str, values: str) -> list[str]:
    """The values of one sweep."""
    if ":" not in values:
        found = [value.strip() for value in values.split(",") if value.strip()]
        if not found:
            inputs.fault("says no values", f"--sweep {text}", _FORMS)
        return found
    try:
        numbers = [float(part) for part in values.split(":")]
    except ValueError:
        numbers = []
    step = numbers[2] if len(numbers) == max(_RANGE_PARTS) else 1.0
    if len(numbers) not in _RANGE_PARTS or not all(map(isfinite, numbers)) or step <= 0 or numbers[1] < numbers[0]:
        inputs.fault(f"{values!r} is no range", f"--sweep {text}", "give from:to or from:to:step, upwards")
        return []
    steps = (numbers[1] - numbers[0]) / step + 1e-9
    if steps >= MOST_POINTS:
        inputs.fault(f"{values!r} is more than {MOST_POINTS:,} values", f"--sweep {text}", "take a larger step")
        return []
    return [f"{numbers[0] + index * step:.12g}" for index in range(int(steps) + 1)]


def _rows(
    points: Sequence[Mapping[str, str]], loops: Sequence[Simulated | InputError], runs: Sequence[Sequence[Done]]
) -> list[GridPoint]:
    """What each point came to."""
    rows = []
    for point, loop, over in zip(points, loops, runs, strict=True):
        outcomes = tuple(result.outcome for result in over if result.outcome is not None)
        refused = loop.faults[0].what if isinstance(loop, InputError) else ""
        if len(outcomes) < len(over):
            stuck = next(result for result in over if result.outcome is None)
            outcomes, refused = (), stands_still(stuck.steps).faults[0].what
        rows.append(GridPoint(said=point, outcomes=outcomes, refused=refused))
    return rows


def _loops(inputs: Inputs, points: Sequence[Mapping[str, str]]) -> list[Simulated | InputError]:
    """The loop of each point, or why there is none; inputs that all points share are noted, once."""
    found: list[Simulated | InputError] = []
    shared: dict[str, Figure] | None = None
    for point in points:
        own = inputs.instead(**point)
        try:
            found.append(simulated(own))
        except (InputError, Refused) as error:
            found.append(error if isinstance(error, InputError) else InputError(Fault(str(error))))
            continue
        before = own.used if shared is None else shared
        shared = {key: one for key, one in before.items() if key in own.used and own.used[key].value == one.value}
        inputs.notes += [note for note in own.notes if note not in inputs.notes]
        inputs.warnings += [warning for warning in own.warnings if warning not in inputs.warnings]
    inputs.used = {key: figure for key, figure in (shared or {}).items() if not points or key not in points[0]}
    return found


def _report(points: Sequence[GridPoint], inputs: Inputs, runs: Collection[Done]) -> Report:
    """What the grid came to, with what all of its points share."""
    done = [point for point in points if point.outcomes]
    best = min(done, key=lambda point: spread_over(point.outcomes, "step_seconds").mean)
    priced = [point for point in done if "cost_per_step_usd" in point.outcomes[0].measures]
    cheapest = min(priced, key=lambda point: spread_over(point.outcomes, "cost_per_step_usd").mean, default=None)
    seconds = spread_over(best.outcomes, "step_seconds").mean
    headline = f"Of {numbered(len(done), 'loop')} the quickest step is {show(seconds, '_seconds')}, at {_name(best)}"
    if cheapest is not None and cheapest is not best:
        cost = spread_over(cheapest.outcomes, "cost_per_step_usd").mean
        headline += f"; the cheapest costs {show(cost, '_usd')}, at {_name(cheapest)}"
    return Report(
        headline=f"{headline}.",
        results=(
            *counted({"points": len(done)}, "points that were run"),
            *counted({_BEST: seconds}, "the quickest step"),
            compiled_figure(runs),
        ),
        inputs=inputs.shown(),
        tables={"grid": _table(points, best)},
        warnings=(*_refusals(points), *inputs.warnings),
        notes=(
            played_by(runs),
            "All points meet the same samples: their lengths belong to groups, not to moments.",
            *inputs.notes[:6],
        ),
        chart=_chart(done, headline),
        quiet=frozenset({"points", _BEST, COMPILED}),
        decision=Decision(
            sure=[f"the same samples at every point; mean over {numbered(len(best.outcomes), 'seed')}."],
            then="the same point without --sweep tells why",
            table="grid",
        ),
    )


def _refusals(points: Sequence[GridPoint]) -> list[str]:
    """Why some points have no answer; one sentence for each reason."""
    found: dict[str, list[GridPoint]] = {}
    for point in points:
        if point.refused:
            found.setdefault(point.refused, []).append(point)
    return [
        f"{len(refused)} of {len(points)} points {'has' if len(refused) == 1 else 'have'} no answer, such as "
        f"{_name(refused[0])}: {why}"
        for why, refused in found.items()
    ]


def _name(point: GridPoint) -> str:
    return ", ".join(f"{words(key)} {value}" for key, value in point.said.items())


def _table(points: Sequence[GridPoint], best: GridPoint) -> Table:
    rows: list[dict[str, Any]] = []
    done = [point for point in points if point.outcomes]
    known = [name for name in _TOLD if any(name in point.outcomes[0].measures for point in done)]
    told = [name for name in known if _worth_telling(done, name)]
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
    at = list(points).index(best)
    return Table(title="", columns=tuple(columns), rows=tuple(rows), marked=at, note=meaning(told))


def _worth_telling(done: Sequence[GridPoint], name: str) -> bool:
    """Whether a measure differs from its usual value anywhere."""
    usual = {"over_cap_fraction": 0.0, "tokens_generated_per_trained_token": 1.0}.get(name)
    means = [spread_over(point.outcomes, name).mean for point in done]
    return usual is None or any(abs(mean - usual) > _ROUNDED for mean in means)


def _chart(done: Sequence[GridPoint], headline: str) -> Panels | None:
    """Step time, idle trainer and staleness over the number that has most values, a line for each of the others."""
    numeric = [key for key in done[0].said if all(_number(point.said[key]) is not None for point in done)]
    if not numeric or len({point.said[numeric[0]] for point in done}) < _ENDS:
        return None
    axis = max(numeric, key=lambda key: len({point.said[key] for point in done}))
    lines: dict[str, list[GridPoint]] = {}
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


def _line(measure: str, axis: str, name: str, line: Sequence[GridPoint], index: int) -> Series:
    points = ((_number(point.said[axis]) or 0.0, spread_over(point.outcomes, measure).mean) for point in line)
    return Series.of(name or words(measure), points, _ROLES[index % len(_ROLES)])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
