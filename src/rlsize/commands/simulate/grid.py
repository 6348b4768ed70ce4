"""`rlsize simulate --sweep`: a grid of alternatives, with the same seeds for all of them."""

from __future__ import annotations

from itertools import product
from math import isfinite
from typing import TYPE_CHECKING

from rlsize.commands.simulate.grid_words import Point, grid_answer
from rlsize.commands.simulate.runs import Job
from rlsize.commands.simulate.setting import simulated
from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.commands.simulate.command import Orders
    from rlsize.commands.simulate.runs import Done
    from rlsize.commands.simulate.setting import Simulated
    from rlsize.facts.figure import Figure
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs

MOST_POINTS = 2000
_MOST_NOTES = 6
_RANGE_PARTS = (2, 3)
_FORMS = "give key=from:to, key=from:to:step or key=one,other"


def grid_report(inputs: Inputs, sweeps: Sequence[str], orders: Orders, known: Sequence[str]) -> Report:
    """
    The report of a grid.

    Args:
        inputs: What was said.
        sweeps: `key=from:to`, `key=from:to:step` or `key=one,other`.
        orders: How to run.
        known: Keys of what may be swept.

    Raises:
        InputError: Something is wrong with the sweep, or with every point.
    """
    from rlsize.commands.simulate.command import leave, nothing_finished, run, stands_still

    points = points_of(inputs, sweeps, known)
    for name, path in (("trace", orders.trace), ("history", orders.history)):
        if path is not None:
            inputs.fault("a grid has many runs, and this shows one", f"--{name}", "leave it out, or leave --sweep out")
    inputs.settle()
    loops = _loops(inputs, points)
    if all(isinstance(loop, InputError) for loop in loops):
        raise next(loop for loop in loops if isinstance(loop, InputError))
    jobs, owners = [], []
    for index, loop in enumerate(loops):
        if not isinstance(loop, InputError):
            seeds = orders.seeds
            jobs += [Job(setting=loop.setting, pools=loop.pools, steps=orders.steps, seed=seed) for seed in seeds]
            owners += [index] * len(seeds)
    done, interrupted = run(jobs, orders)
    if not done:
        raise nothing_finished()
    rows = _rows(points, loops, owners, done)
    if not any(row.outcomes for row in rows):
        raise stands_still(next(iter(done.values())))
    warnings = list(inputs.warnings)
    if interrupted:
        warnings.append(f"interrupted: {len(done)} of {len(jobs)} runs are in this answer")
    report = grid_answer(rows, inputs.shown(), warnings, inputs.notes[:_MOST_NOTES])
    return leave(report, orders) if interrupted else report


def points_of(inputs: Inputs, sweeps: Sequence[str], known: Sequence[str]) -> list[dict[str, str]]:
    """The points of a grid: what is said there, by key, in the order of the sweeps, the last one changing fastest."""
    names = {inputs.flag(key).removeprefix("--").replace("-", "_"): key for key in known} | {key: key for key in known}
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
    points: Sequence[Mapping[str, str]],
    loops: Sequence[Simulated | InputError],
    owners: Sequence[int],
    done: Mapping[int, Done],
) -> list[Point]:
    """What each point came to; `owners` has the point of each job."""
    rows = []
    for index, (point, loop) in enumerate(zip(points, loops, strict=True)):
        over = [done[i] for i, owner in enumerate(owners) if owner == index and i in done]
        outcomes = tuple(result.outcome for result in over if result.outcome is not None)
        refused = loop.faults[0].what if isinstance(loop, InputError) else ""
        if len(outcomes) < len(over):
            outcomes, refused = (), next(result.stood_still for result in over if result.outcome is None)
        rows.append(Point(said=point, outcomes=outcomes, refused=refused))
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
        shared = own.used if shared is None else _alike(shared, own.used)
        inputs.notes += [note for note in own.notes if note not in inputs.notes]
        inputs.warnings += [warning for warning in own.warnings if warning not in inputs.warnings]
    inputs.used = {key: figure for key, figure in (shared or {}).items() if not points or key not in points[0]}
    return found


def _alike(first: Mapping[str, Figure], second: Mapping[str, Figure]) -> dict[str, Figure]:
    """Figures that have the same value in both."""
    return {key: figure for key, figure in first.items() if key in second and second[key].value == figure.value}
