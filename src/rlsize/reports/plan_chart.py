"""The pictures of a plan: step against cost, throughput against split, and what matters most."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.reports.chart import Bar, Chart, Gantt, Mark, Panels, Series
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.planner.choice import Choice
    from rlsize.planner.plan import Planned
    from rlsize.planner.tornado import Swing
    from rlsize.reports.chart import Role

_ROLES: tuple[Role, ...] = ("rollout", "trainer", "other", "nameplate", "sync")
AXES = {
    "step_seconds": "step time [s]",
    "cost_per_step_usd": "cost per step [usd]",
    "gpu_hours_per_step": "GPU-hours per step",
    "gpus": "GPUs",
}
"""What stands along the axis of a metric."""


def plan_chart(answer: Planned, chosen: Choice) -> Panels:
    """All three below each other, as far as there is something to draw."""
    charts = front_chart(answer, chosen), split_chart(answer, chosen), tornado_chart(answer, chosen)
    best, runner = chosen.best.place.words, chosen.runner_up
    title = f"{best} GPUs is the best plan of those searched"
    if runner is not None and runner.close:
        title = f"{best} GPUs it is, with {runner.place.words} too close to call"
    step = chosen.evaluation.results["step_seconds"]
    subtitle = f"{answer.found.worked_out:,} candidates searched; {best}: {show(step.value, step.key)}"
    return Panels(title=title, charts=tuple(chart for chart in charts if chart is not None), subtitle=subtitle)


def front_chart(answer: Planned, chosen: Choice) -> Chart | None:
    """Step time against cost: the plans that no other beats in both."""
    front = answer.found.front
    if not front:
        return None
    priced = answer.found.priced
    modes = dict.fromkeys(family.place.loop for family in front)
    series = []
    for mode, role in zip(modes, _ROLES, strict=False):
        alike = [one for one in front if one.place.loop == mode]
        line = Series.of(mode, ((one.step_seconds, one.cost) for one in alike), role, dots=True)
        series.append(replace(line, labels=tuple(one.place.words.removeprefix(f"{mode} ") for one in alike)))
    best = chosen.best.family
    series.append(Series.of(f"{chosen.best.place.words}, chosen", [(best.step_seconds, best.cost)], "limit", dots=True))
    return Chart(
        title="No plan is better in both step time and cost than these",
        x_label=AXES["step_seconds"],
        y_label=AXES["cost_per_step_usd" if priced else "gpu_hours_per_step"],
        series=tuple(series),
        zoomed=True,
    )


def split_chart(answer: Planned, chosen: Choice) -> Chart | None:
    """What both sides could do at each split, and what the loop makes of it."""
    splits = answer.splits
    if len(splits) < 2:  # noqa: PLR2004 (a line needs two points)
        return None
    xs = tuple(split.rollout_gpus for split in splits)
    return Chart(
        title="The loop is at its best where both sides keep up with each other",
        x_label=f"rollout GPUs of {chosen.best.place.gpus:g}",
        y_label="samples per second",
        series=(
            Series(name="rollout fleet", xs=xs, ys=tuple(split.rollout for split in splits), role="rollout"),
            Series(name="trainer", xs=xs, ys=tuple(split.trainer for split in splits), role="trainer"),
            Series(name="loop", xs=xs, ys=tuple(split.loop for split in splits), role="limit"),
        ),
        marks=(Mark(at=float(chosen.best.place.rollout_gpus), label="chosen"),),
    )


def tornado_chart(answer: Planned, chosen: Choice) -> Chart | None:
    """How far each input moves the answer, by itself."""
    swings = answer.swings[:6]
    if not swings:
        return None
    best = chosen.best.results[chosen.metric]
    bars: list[Bar] = []
    for swing in swings:
        ends: tuple[tuple[str, float, Role], ...] = (("low", swing.low, "rollout"), ("high", swing.high, "trainer"))
        bars += [
            Bar(lane=_lane(swing), start=min(value, best), end=max(value, best), name=f"input {name}", role=role)
            for name, value, role in ends
            if value != best
        ]
    first = swings[0].meaning
    return Gantt(
        title=f"{first[0].upper()}{first[1:]} moves the answer most",
        x_label=AXES.get(chosen.metric, chosen.metric.replace("_", " ")),
        lanes=tuple(_lane(swing) for swing in swings),
        spans=tuple(bars),
        marks=(Mark(at=best, label="as planned"),),
    )


def _lane(swing: Swing) -> str:
    low, high = (f"{end - 1:+.0%}" for end in swing.ends)
    return f"{swing.meaning}, {low} to {high}"
