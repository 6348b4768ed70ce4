"""`rlsize simulate --sweep`: a grid of alternatives, with the same seeds for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.commands.simulate import Orders
    from rlsize.commands.simulate_runs import Done
    from rlsize.commands.simulate_setting import Simulated
    from rlsize.facts.figure import Figure
    from rlsize.reports.report import Report
    from rlsize.reports.simulate_grid import Point
    from rlsize.shell.inputs import Inputs

_MOST_NOTES = 6


def grid_report(inputs: Inputs, said: Mapping[str, Any], orders: Orders, known: Sequence[str]) -> Report:
    """
    The report of a grid.

    Args:
        inputs: Scenario and profiles.
        said: What the flags say.
        orders: How to run.
        known: Flags that may be swept.

    Raises:
        InputError: Something is wrong with the sweep, or with every point.
    """
    from rlsize.commands.simulate import leave, nothing_finished, run, stands_still
    from rlsize.commands.simulate_runs import Job
    from rlsize.commands.simulate_sweep import points_of
    from rlsize.reports.simulate_grid import grid_answer

    points = points_of(inputs, said["sweep"], known)
    for name in ("trace", "history"):
        if said[name] is not None:
            inputs.fault("a grid has many runs, and this shows one", f"--{name}", "leave it out, or leave --sweep out")
    inputs.settle()
    loops = _loops(inputs, said, points)
    if all(isinstance(loop, InputError) for loop in loops):
        raise next(loop for loop in loops if isinstance(loop, InputError))
    jobs, owners = [], []
    for index, loop in enumerate(loops):
        if not isinstance(loop, InputError):
            jobs += [Job(simulated=loop, steps=orders.steps, seed=seed) for seed in orders.seeds]
            owners += [index] * len(orders.seeds)
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


def _rows(
    points: Sequence[Mapping[str, str]],
    loops: Sequence[Simulated | InputError],
    owners: Sequence[int],
    done: Mapping[int, Done],
) -> list[Point]:
    """What each point came to; `owners` has the point of each job."""
    from rlsize.reports.simulate_grid import Point

    rows = []
    for index, (point, loop) in enumerate(zip(points, loops, strict=True)):
        over = [done[i] for i, owner in enumerate(owners) if owner == index and i in done]
        outcomes = tuple(result.outcome for result in over if result.outcome is not None)
        refused = loop.faults[0].what if isinstance(loop, InputError) else ""
        if len(outcomes) < len(over):
            outcomes, refused = (), next(result.stood_still for result in over if result.outcome is None)
        rows.append(Point(said=point, outcomes=outcomes, refused=refused))
    return rows


def _loops(
    inputs: Inputs, said: Mapping[str, Any], points: Sequence[Mapping[str, str]]
) -> list[Simulated | InputError]:
    """The loop of each point, or why there is none; inputs that all points share are noted, once."""
    from rlsize.commands.simulate_setting import simulated

    found: list[Simulated | InputError] = []
    shared: dict[str, Figure] | None = None
    for point in points:
        own = inputs.apart()
        try:
            found.append(simulated(own, {**said, **point}))
        except InputError as error:
            found.append(error)
            continue
        shared = own.used if shared is None else _alike(shared, own.used)
        inputs.notes += [note for note in own.notes if note not in inputs.notes]
        inputs.warnings += [warning for warning in own.warnings if warning not in inputs.warnings]
    inputs.used = {key: figure for key, figure in (shared or {}).items() if not points or key not in points[0]}
    return found


def _alike(first: Mapping[str, Figure], second: Mapping[str, Figure]) -> dict[str, Figure]:
    """Figures that have the same value in both."""
    return {key: figure for key, figure in first.items() if key in second and second[key].value == figure.value}
