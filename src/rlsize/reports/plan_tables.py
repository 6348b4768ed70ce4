"""The tables of a plan: candidates, the next GPU, limits, what was left out, and what matters most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import planning
from rlsize.planner.space import REASONS
from rlsize.reports.report import Column, Table
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.planner.choice import Alternative, Choice
    from rlsize.planner.options import Placement
    from rlsize.planner.plan import Neighbour, Planned
    from rlsize.planner.simulation import Ranked
    from rlsize.reports.report import Cell

_FRONT_SHOWN = 8
_METRICS = {"time": "step time", "cost": "cost per step", "gpus": "number of GPUs"}


def candidates(chosen: Choice) -> Table:
    """The best plans, and the one that the scenario has."""
    rows = [_candidate(one) for one in (chosen.best, *chosen.others)]
    if chosen.written is not None:
        rows.append(_candidate(chosen.written, "yours"))
    priced = any(row["cost_per_step_usd"] is not None for row in rows)
    columns = (
        Column("_plan", "plan", "left"),
        Column("max_staleness", "stale"),
        Column("_instance", "instance", "left"),
        Column("_trainer", "trainer", "left", wide=True),
        Column("step_seconds", "step"),
        Column("cost_per_step_usd", "cost") if priced else Column("gpu_hours_per_step", "GPU-h"),
        Column("_verdict", "verdict", "left"),
    )
    best = _METRICS[chosen.objective]
    note = f"best by {best}; too close: the 80 % interval of the ratio on the same draws holds 1"
    return Table(title="The best plans", columns=columns, rows=tuple(rows), marked=0, note=note)


def _candidate(one: Alternative, name: str = "") -> dict[str, Cell]:
    place, results, times = one.place, one.results, one.times
    fleet, trainer = place.fleet, place.trainer.name
    low, high = (None, None) if times is None or times.band is None else times.band
    verdict = name or "best"
    if times is not None:
        told = "as good" if one.equal else "too close" if one.close else f"x {times.number:.2f}"
        verdict = f"{name}: {told}" if name else told
    return {
        "_plan": one.place.words,
        "mode": place.loop,
        "rollout_gpus": place.rollout_gpus,
        "trainer_gpus": place.trainer_gpus,
        "max_staleness": place.staleness,
        "_instance": fleet.name.removeprefix(fleet.gpu).strip() or fleet.name,
        "_trainer": trainer,
        "rollout_layout": fleet.name,
        "trainer_layout": trainer,
        "step_seconds": results["step_seconds"],
        "cost_per_step_usd": results.get("cost_per_step_usd"),
        "gpu_hours_per_step": results["gpu_hours_per_step"],
        "trainer_idle_fraction": results["trainer_idle_fraction"],
        "rollout_idle_fraction": results["rollout_idle_fraction"],
        "times_best": 1.0 if times is None else times.number,
        "times_best_low": low,
        "times_best_high": high,
        "verdict": verdict,
        "_verdict": verdict,
    }


def simulated_ranks(chosen: Choice, ranked: Sequence[Ranked]) -> Table:
    """The best plans as the simulator ranks them; those that it refuses come last."""
    known = [chosen.best, *chosen.others]
    rows: list[dict[str, Cell]] = []
    for entry in sorted(ranked, key=lambda one: (True, 0.0) if one.refused else (False, one.step_seconds)):
        step, low, high = (None,) * 3 if entry.refused else (entry.step_seconds, entry.low, entry.high)
        rows.append(
            {
                "plan": entry.one.place.words,
                "predicted_rank": 1.0 + known.index(entry.one),
                "predicted_step_seconds": entry.one.results["step_seconds"],
                "simulated_step_seconds": step,
                "simulated_low_seconds": low,
                "simulated_high_seconds": high,
                "refused": entry.refused or None,
            }
        )
    columns = (
        Column("plan", "plan", "left", wide=True),
        Column("predicted_rank", "rank"),
        Column("predicted_step_seconds", "predicted"),
        Column("simulated_step_seconds", "simulated"),
        Column("simulated_low_seconds", "low"),
        Column("simulated_high_seconds", "high"),
    )
    note = "low and high: 95 % over seeds"
    return Table(title="As the simulator ranks them", columns=columns, rows=tuple(rows), note=note)


def next_gpus(answer: Planned) -> Table:
    """What a unit of GPUs more or less on each side brings."""
    rows = tuple(_neighbour(one) for one in answer.neighbours)
    priced = any(row["cost_change_usd"] is not None for row in rows)
    columns = (
        Column("side", "side", "left"),
        Column("gpus_change", "GPUs"),
        Column("split", "then"),
        Column("step_seconds", "step"),
        Column("_step_change", "step change"),
        *([Column("_cost_change", "cost change")] if priced else []),
        Column("trainer_idle_fraction", "trainer idle"),
        Column("rollout_idle_fraction", "rollout idle"),
    )
    return Table(title="The next GPUs on each side", columns=columns, rows=rows)


def _neighbour(one: Neighbour) -> dict[str, Cell]:
    step, cost = one.change["step_seconds"], one.change.get("cost_per_step_usd")
    return {
        "side": one.side,
        "gpus_change": one.gpus,
        "split": _split(one.place),
        "step_seconds": one.results["step_seconds"],
        "step_change_seconds": step,
        "step_change_per_gpu_seconds": step / one.gpus if one.gpus else None,
        "_step_change": _signed(step, "step_seconds"),
        "cost_change_usd": cost,
        "_cost_change": None if cost is None else _signed(cost, "cost_per_step_usd"),
        "trainer_idle_fraction": one.results["trainer_idle_fraction"],
        "rollout_idle_fraction": one.results["rollout_idle_fraction"],
    }


def _split(place: Placement) -> str:
    return f"{place.trainer_gpus:g}" if place.shared else f"{place.rollout_gpus:g} + {place.trainer_gpus:g}"


def _signed(value: float, key: str) -> str:
    return f"{'-' if value < 0 else '+'}{show(abs(value), key)}"


def sensitivity(answer: Planned, chosen: Choice) -> Table | None:
    """The inputs that matter most; None where nothing moves the answer."""
    rows = tuple(
        {
            "input": swing.meaning,
            "low_factor": swing.ends[0],
            "high_factor": swing.ends[1],
            "_ends": f"x {swing.ends[0]:.2f} to {swing.ends[1]:.2f}",
            "basis": swing.basis,
            "low": swing.low,
            "high": swing.high,
            "_low": show(swing.low, chosen.metric),
            "_high": show(swing.high, chosen.metric),
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
    return Table(title="What the answer is most sensitive to", columns=columns, rows=rows) if rows else None


def rejections(answer: Planned) -> Table | None:
    """What each constraint left out, and the narrowest of it; None where all was kept."""
    rejected = answer.found.rejected
    limits = {limit.key: limit for limit in answer.space.limits}
    rows: list[dict[str, Cell]] = []
    for reason, count in rejected.counts.most_common():
        narrow, limit = rejected.nearest.get(reason), limits.get(reason)
        rows.append(
            {
                "constraint": reason,
                "_constraint": REASONS.get(reason)
                or f"{reason} {'below' if limit and limit.least else 'above'} the limit",
                "left_out": float(count),
                "nearest": narrow.what if narrow else None,
                "short_fraction": narrow.short if narrow else None,
                "_short": f"{narrow.short:.1%}" if narrow else "",
                "_nearest": narrow.what if narrow else "",
            }
        )
    columns = (
        Column("_constraint", "left out because", "left", wide=True),
        Column("left_out", "how many"),
        Column("_short", "nearest miss by"),
        Column("_nearest", "which", "left", wide=True),
    )
    return Table(title="What was left out", columns=columns, rows=tuple(rows)) if rows else None


def limits_table(answer: Planned, chosen: Choice) -> Table | None:
    """The limits that were set, and what the plan makes of them; None without limits."""
    rows = []
    for limit in answer.space.limits:
        figure = chosen.evaluation.results.get(limit.key)
        if figure is None or not figure.known:
            continue
        beyond = float(planning.overshoot(value=figure.number, limit=limit.value)) if limit.value else 0.0
        rows.append(
            {
                "quantity": limit.key,
                "_quantity": words(limit.key),
                "bound": "at least" if limit.least else "at most",
                "_limit": show(limit.value, limit.key),
                "limit": limit.value,
                "value": figure.number,
                "_value": show(figure.value, figure.key),
                "_margin": f"{abs(beyond):.1%}",
                "margin_fraction": beyond if limit.least else -beyond,
                "source": limit.source,
            }
        )
    columns = (
        Column("_quantity", "limit on", "left"),
        Column("bound", "", "left"),
        Column("_limit", "limit"),
        Column("_value", "plan"),
        Column("_margin", "room"),
        Column("source", "from", "left", wide=True),
    )
    return Table(title="Limits, all kept", columns=columns, rows=tuple(rows)) if rows else None


def front_table(answer: Planned) -> Table:
    """The plans that no other beats in both step and cost: dollars where all prices are known, else GPU-hours."""
    key, title = ("cost_per_step_usd", "cost") if answer.found.priced else ("gpu_hours_per_step", "GPU-h")
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "mode": family.place.loop,
            "split": _split(family.place),
            "gpus": family.gpus,
            "step_seconds": family.step_seconds,
            key: family.cost,
        }
        for family in answer.found.front
    )
    columns = (
        Column("mode", "mode", "left"),
        Column("split", "GPUs"),
        Column("step_seconds", "step"),
        Column(key, title),
    )
    more = len(rows) - _FRONT_SHOWN
    note = "no other plan is better in both" + (f"; {more} more in --json" if more > 0 else "")
    return Table(title="Step against cost", columns=columns, rows=rows, shown=_FRONT_SHOWN, note=note)
