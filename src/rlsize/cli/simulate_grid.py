"""`rlsize simulate --sweep`: a grid of alternatives, with the same seeds for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from rlsize.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.cli.inputs import Inputs
    from rlsize.cli.simulate import Orders
    from rlsize.cli.simulate_setting import Simulated
    from rlsize.reports.report import Report

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
    from rlsize.cli.simulate import INTERRUPTED, leave, run
    from rlsize.cli.simulate_runs import Job
    from rlsize.cli.simulate_sweep import points_of
    from rlsize.reports.simulate_grid import Point, grid_answer

    points = points_of(inputs, said["sweep"], known)
    for name in ("trace", "history"):
        if said[name] is not None:
            inputs.fault("a grid has many runs, and this shows one", f"--{name}", "leave it out, or leave --sweep out")
    inputs.settle()
    loops = [_loop(inputs, said, point) for point in points]
    if all(isinstance(loop, InputError) for loop in loops):
        raise next(loop for loop in loops if isinstance(loop, InputError))
    jobs, owners = [], []
    for index, loop in enumerate(loops):
        if not isinstance(loop, InputError):
            jobs += [Job(simulated=loop, steps=orders.steps, seed=seed) for seed in orders.seeds]
            owners += [index] * len(orders.seeds)
    done, interrupted = run(jobs, orders)
    if not done:
        raise typer.Exit(INTERRUPTED)
    rows = []
    for index, (point, loop) in enumerate(zip(points, loops, strict=True)):
        outcomes = tuple(done[i].outcome for i, owner in enumerate(owners) if owner == index and i in done)
        refused = loop.faults[0].what if isinstance(loop, InputError) else ""
        rows.append(Point(said=point, outcomes=outcomes, refused=refused))
    warnings = list(inputs.warnings)
    if interrupted:
        warnings.append(f"interrupted: {len(done)} of {len(jobs)} runs are in this answer")
    report = grid_answer(rows, inputs.shown(), warnings, inputs.notes[:_MOST_NOTES])
    return leave(report) if interrupted else report


def _loop(inputs: Inputs, said: Mapping[str, Any], point: Mapping[str, str]) -> Simulated | InputError:
    """The loop of a point, or why there is none; what all points share is noted once."""
    from rlsize.cli.simulate_setting import simulated

    own = inputs.apart()
    try:
        found = simulated(own, {**said, **point})
    except InputError as error:
        return error
    swept = set(point)
    for key, figure in own.used.items():
        if key not in swept:
            inputs.used.setdefault(key, figure)
    inputs.notes += [note for note in own.notes if note not in inputs.notes]
    inputs.warnings += [warning for warning in own.warnings if warning not in inputs.warnings]
    return found
