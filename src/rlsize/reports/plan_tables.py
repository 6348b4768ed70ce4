"""The tables of a plan: candidates, the next GPU, what was left out, and what matters most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.reports.report import Column, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.planner.choice import Alternative, Choice
    from rlsize.planner.plan import Neighbour, Planned
    from rlsize.reports.report import Cell

_FRONT_SHOWN = 8


def candidates(chosen: Choice) -> Table:
    """The best plans, and the one that the scenario has."""
    rows = [_row(one) for one in (chosen.best, *chosen.others)]
    if chosen.written is not None:
        rows.append(_row(chosen.written, "yours"))
    priced = any(row["cost_per_step_usd"] is not None for row in rows)
    columns = [
        Column("_plan", "plan", "left"),
        Column("max_staleness", "stale"),
        Column("_instance", "instance", "left"),
        Column("_trainer", "trainer", "left", wide=True),
        Column("step_seconds", "step"),
        Column("cost_per_step_usd", "cost") if priced else Column("gpu_hours_per_step", "GPU-h"),
        Column("_verdict", "verdict", "left"),
    ]
    note = f"best by {show_metric(chosen)}; too close: the 80 % interval of the ratio on the same draws holds 1"
    return Table(
        title="The best plans",
        columns=tuple(columns),
        rows=tuple(rows),
        marked=0,
        note=note,
    )


def show_metric(chosen: Choice) -> str:
    """The objective in words."""
    return {"time": "step time", "cost": "cost per step", "gpus": "number of GPUs"}[chosen.objective]


def _row(one: Alternative, name: str = "") -> dict[str, Cell]:
    place, results = one.place, one.results
    step = results["step_seconds"]
    times = one.times
    return {
        "_plan": one.place.words,
        "mode": place.loop,
        "rollout_gpus": place.rollout_gpus,
        "trainer_gpus": place.trainer_gpus,
        "max_staleness": place.staleness,
        "_instance": _short(place.fleet.name, place.fleet.gpu),
        "_trainer": place.trainer.name,
        "rollout_layout": place.fleet.name,
        "trainer_layout": place.trainer.name,
        "step_seconds": step,
        "cost_per_step_usd": results.get("cost_per_step_usd"),
        "gpu_hours_per_step": results["gpu_hours_per_step"],
        "trainer_idle_fraction": results["trainer_idle_fraction"],
        "rollout_idle_fraction": results["rollout_idle_fraction"],
        "times_best": 1.0 if times is None else times.number,
        "times_best_low": None if times is None or times.band is None else times.band[0],
        "times_best_high": None if times is None or times.band is None else times.band[1],
        "verdict": _verdict(one, name),
        "_verdict": _verdict(one, name),
    }


def _short(name: str, gpu: str) -> str:
    return name.removeprefix(gpu).strip() or name


def _verdict(one: Alternative, name: str) -> str:
    if one.times is None:
        return name or "best"
    verdict = "as good" if one.equal else "too close" if one.close else f"x {one.times.number:.2f}"
    return f"{name}: {verdict}" if name else verdict


def next_gpus(answer: Planned) -> Table:
    """What a unit of GPUs more or less on each side brings."""
    rows = tuple(_neighbour(one) for one in answer.neighbours)
    priced = any(row["cost_change_usd"] is not None for row in rows)
    columns = [
        Column("side", "side", "left"),
        Column("gpus_change", "GPUs"),
        Column("split", "then"),
        Column("step_seconds", "step"),
        Column("_step_change", "step change"),
    ]
    columns += [Column("_cost_change", "cost change")] if priced else []
    columns += [Column("trainer_idle_fraction", "trainer idle"), Column("rollout_idle_fraction", "rollout idle")]
    return Table(title="The next GPUs on each side", columns=tuple(columns), rows=rows)


def _neighbour(one: Neighbour) -> dict[str, Cell]:
    place, step = one.place, one.change["step_seconds"]
    cost = one.change.get("cost_per_step_usd")
    return {
        "side": one.side,
        "gpus_change": one.gpus,
        "split": f"{place.trainer_gpus:g}" if place.shared else f"{place.rollout_gpus:g} + {place.trainer_gpus:g}",
        "step_seconds": one.results["step_seconds"],
        "step_change_seconds": step,
        "step_change_per_gpu_seconds": step / one.gpus if one.gpus else None,
        "_step_change": _signed(step, "step_seconds"),
        "cost_change_usd": cost,
        "_cost_change": None if cost is None else _signed(cost, "cost_per_step_usd"),
        "trainer_idle_fraction": one.results["trainer_idle_fraction"],
        "rollout_idle_fraction": one.results["rollout_idle_fraction"],
    }


def _signed(value: float, key: str) -> str:
    sign = "-" if value < 0 else "+"
    return f"{sign}{show(abs(value), key)}"


def tornado_table(answer: Planned) -> Table:
    """The inputs that matter most."""
    chosen = answer.chosen
    key = chosen.metric if chosen is not None else "step_seconds"
    rows = tuple(
        {
            "input": swing.meaning,
            "low_factor": swing.ends[0],
            "high_factor": swing.ends[1],
            "_ends": f"x {swing.ends[0]:.2f} to {swing.ends[1]:.2f}",
            "basis": swing.basis,
            "low": swing.low,
            "high": swing.high,
            "_low": show(swing.low, key),
            "_high": show(swing.high, key),
            "better_plan": swing.flips or None,
            "_better": swing.flips or "-",
        }
        for swing in answer.swings
    )
    columns = (
        Column("input", "input", "left", wide=True),
        Column("_ends", "moved", "left"),
        Column("_low", "at low"),
        Column("_high", "at high"),
        Column("_better", "better plan then", "left", wide=True),
    )
    return Table(title="What the answer is most sensitive to", columns=columns, rows=rows)


def front_table(answer: Planned) -> Table:
    """The plans that no other beats in both step and cost."""
    rows: list[Mapping[str, Any]] = [
        {
            "mode": family.place.loop,
            "split": f"{family.place.trainer_gpus:g}"
            if family.place.shared
            else f"{family.place.rollout_gpus:g} + {family.place.trainer_gpus:g}",
            "gpus": family.gpus,
            "step_seconds": family.step_seconds,
            _cost_key(answer): family.cost,
        }
        for family in answer.found.front
    ]
    columns = (
        Column("mode", "mode", "left"),
        Column("split", "GPUs"),
        Column("step_seconds", "step"),
        Column(_cost_key(answer), "cost" if _cost_key(answer).endswith("usd") else "GPU-h"),
    )
    return Table(
        title="Step against cost",
        columns=columns,
        rows=tuple(rows),
        shown=_FRONT_SHOWN,
        note="no other plan is better in both"
        + (f"; {len(rows) - _FRONT_SHOWN} more in --json" if len(rows) > _FRONT_SHOWN else ""),
    )


def _cost_key(answer: Planned) -> str:
    """What cost is counted in: dollars where all prices are known, else GPU-hours."""
    return "cost_per_step_usd" if answer.found.priced else "gpu_hours_per_step"
