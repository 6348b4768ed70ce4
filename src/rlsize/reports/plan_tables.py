"""The tables of a plan: candidates, the next GPU, limits, what was left out, and what matters most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import planning
from rlsize.planner.space import REASONS
from rlsize.reports.report import Column, Table, Unseen
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.planner.choice import Alternative, Choice
    from rlsize.planner.options import FleetOption, Placement
    from rlsize.planner.plan import Planned
    from rlsize.planner.simulation import Ranked
    from rlsize.planner.space import Limit

_FRONT_SHOWN = 8
_METRICS = {"time": "step time", "cost": "cost per step", "gpus": "number of GPUs"}


def candidates(chosen: Choice) -> Table:
    """The best plans, and the one that the scenario has."""
    found = [chosen.best, *chosen.others, *([] if chosen.written is None else [chosen.written])]
    cost = Unseen("cost_per_step_usd", lambda one: one.results.get("cost_per_step_usd"))
    hours = Unseen("gpu_hours_per_step", lambda one: one.results["gpu_hours_per_step"])
    priced = any(one.results.get("cost_per_step_usd") is not None for one in found)

    def verdict(one: Alternative) -> str:
        name = "yours" if one is chosen.written else ""
        if one.times is None:
            return name or "best"
        told = "as good" if one.equal else "too close" if one.close else f"x {one.times.number:.2f}"
        return f"{name}: {told}" if name else told

    cells: tuple[Column | Unseen, ...] = (
        Column("_plan", "plan", "left", of=lambda one: one.place.words),
        Unseen("mode", lambda one: one.place.loop),
        Unseen("rollout_gpus", lambda one: one.place.rollout_gpus),
        Unseen("trainer_gpus", lambda one: one.place.trainer_gpus),
        Column("max_staleness", "stale", of=lambda one: one.place.staleness),
        Column("_instance", "instance", "left", of=lambda one: _instance(one.place.fleet)),
        Column("_trainer", "trainer", "left", wide=True, of=lambda one: one.place.trainer.name),
        Unseen("rollout_layout", lambda one: one.place.fleet.name),
        Unseen("trainer_layout", lambda one: one.place.trainer.name),
        Column("step_seconds", "step", of=lambda one: one.results["step_seconds"]),
        Column(cost.key, "cost", of=cost.of) if priced else cost,
        hours if priced else Column(hours.key, "GPU-h", of=hours.of),
        Unseen("trainer_idle_fraction", lambda one: one.results["trainer_idle_fraction"]),
        Unseen("rollout_idle_fraction", lambda one: one.results["rollout_idle_fraction"]),
        Unseen("times_best", lambda one: 1.0 if one.times is None else one.times.number),
        Unseen("times_best_low", lambda one: one.times and one.times.band and one.times.band[0]),
        Unseen("times_best_high", lambda one: one.times and one.times.band and one.times.band[1]),
        Column("verdict", "verdict", "left", of=verdict),
    )
    best = _METRICS[chosen.objective]
    note = f"best by {best}; too close: the 80 % interval of the ratio on the same draws holds 1"
    return Table.of("The best plans", found, cells, marked=0, note=note)


def _instance(fleet: FleetOption) -> str:
    return fleet.name.removeprefix(fleet.gpu).strip() or fleet.name


def simulated_ranks(chosen: Choice, ranked: Sequence[Ranked]) -> Table:
    """The best plans as the simulator ranks them; those that it refuses come last."""
    known = [chosen.best, *chosen.others]
    cells = (
        Column("plan", "plan", "left", wide=True, of=lambda entry: entry.one.place.words),
        Column("predicted_rank", "rank", of=lambda entry: 1.0 + known.index(entry.one)),
        Column("predicted_step_seconds", "predicted", of=lambda entry: entry.one.results["step_seconds"]),
        Column("simulated_step_seconds", "simulated", of=lambda entry: None if entry.refused else entry.step_seconds),
        Column("simulated_low_seconds", "low", of=lambda entry: None if entry.refused else entry.low),
        Column("simulated_high_seconds", "high", of=lambda entry: None if entry.refused else entry.high),
        Unseen("refused", lambda entry: entry.refused or None),
    )
    entries = sorted(ranked, key=lambda one: (True, 0.0) if one.refused else (False, one.step_seconds))
    return Table.of("As the simulator ranks them", entries, cells, note="low and high: 95 % over seeds")


def next_gpus(answer: Planned) -> Table:
    """What a unit of GPUs more or less on each side brings."""
    cost = "cost_per_step_usd"
    priced = any(one.change.get(cost) is not None for one in answer.neighbours)
    change = Unseen("cost_change_usd", lambda one: one.change.get(cost))
    told = Column(change.key, "cost change", of=change.of, told=lambda one: _signed(one.change.get(cost), cost))
    cells: tuple[Column | Unseen, ...] = (
        Column("side", "side", "left"),
        Column("gpus_change", "GPUs", of=lambda one: one.gpus),
        Column("split", "then", of=lambda one: _split(one.place)),
        Column("step_seconds", "step", of=lambda one: one.results["step_seconds"]),
        Column(
            "step_change_seconds",
            "step change",
            of=lambda one: one.change["step_seconds"],
            told=lambda one: _signed(one.change["step_seconds"], "step_seconds"),
        ),
        Unseen("step_change_per_gpu_seconds", lambda one: one.change["step_seconds"] / one.gpus if one.gpus else None),
        told if priced else change,
        Column("trainer_idle_fraction", "trainer idle", of=lambda one: one.results["trainer_idle_fraction"]),
        Column("rollout_idle_fraction", "rollout idle", of=lambda one: one.results["rollout_idle_fraction"]),
    )
    return Table.of("The next GPUs on each side", answer.neighbours, cells)


def _split(place: Placement) -> str:
    return f"{place.trainer_gpus:g}" if place.shared else f"{place.rollout_gpus:g} + {place.trainer_gpus:g}"


def _signed(value: float | None, key: str) -> str | None:
    return None if value is None else f"{'-' if value < 0 else '+'}{show(abs(value), key)}"


def sensitivity(answer: Planned, chosen: Choice) -> Table | None:
    """The inputs that matter most; None where nothing moves the answer."""
    cells = (
        Column("input", "input", "left", wide=True, of=lambda swing: swing.meaning),
        Unseen("low_factor", lambda swing: swing.ends[0]),
        Unseen("high_factor", lambda swing: swing.ends[1]),
        Column("_ends", "moved", "left", of=lambda swing: f"x {swing.ends[0]:.2f} to {swing.ends[1]:.2f}"),
        Unseen("basis"),
        Column("low", "at low", told=lambda swing: show(swing.low, chosen.metric)),
        Column("high", "at high", told=lambda swing: show(swing.high, chosen.metric)),
        Column(
            "better_plan", "better plan then", "left", True, lambda one: one.flips or None, lambda one: one.flips or "-"
        ),
    )
    return Table.of("What the answer is most sensitive to", answer.swings, cells) if answer.swings else None


def rejections(answer: Planned) -> Table | None:
    """What each constraint left out, and the narrowest of it; None where all was kept."""
    counts, nearest = answer.found.rejected.counts, answer.found.rejected.nearest
    least = {limit.key: limit.least for limit in answer.space.limits}

    def why(reason: str) -> str:
        return REASONS.get(reason) or f"{reason} {'below' if least.get(reason) else 'above'} the limit"

    cells = (
        Column("constraint", "left out because", "left", wide=True, of=str, told=why),
        Column("left_out", "how many", of=lambda reason: float(counts[reason])),
        Unseen("nearest", lambda reason: nearest[reason].what if reason in nearest else None),
        Unseen("short_fraction", lambda reason: nearest[reason].short if reason in nearest else None),
        Column(
            "_short", "nearest miss by", of=lambda one: show(nearest[one].short, "_fraction") if one in nearest else ""
        ),
        Column("_nearest", "which", "left", wide=True, of=lambda one: nearest[one].what if one in nearest else ""),
    )
    return Table.of("What was left out", [reason for reason, _ in counts.most_common()], cells) if counts else None


def limits_table(answer: Planned, chosen: Choice) -> Table | None:
    """The limits that were set, and what the plan makes of them; None without limits."""
    results = chosen.evaluation.results
    limits = [limit for limit in answer.space.limits if limit.key in results and results[limit.key].known]

    def plan(limit: Limit) -> float:
        return results[limit.key].number

    def room(limit: Limit) -> float:
        beyond = float(planning.overshoot(value=plan(limit), limit=limit.value)) if limit.value else 0.0
        return beyond if limit.least else -beyond

    cells = (
        Column("quantity", "limit on", "left", of=lambda limit: limit.key, told=lambda limit: words(limit.key)),
        Column("bound", "", "left", of=lambda limit: "at least" if limit.least else "at most"),
        Column("limit", "limit", of=lambda limit: limit.value, told=lambda limit: show(limit.value, limit.key)),
        Column("value", "plan", of=plan, told=lambda limit: show(results[limit.key].value, limit.key)),
        Column("margin_fraction", "room", of=room, told=lambda limit: show(abs(room(limit)), "_fraction")),
        Column("source", "from", "left", wide=True),
    )
    return Table.of("Limits, all kept", limits, cells) if limits else None


def front_table(answer: Planned) -> Table:
    """The plans that no other beats in both step and cost: dollars where all prices are known, else GPU-hours."""
    key, title = ("cost_per_step_usd", "cost") if answer.found.priced else ("gpu_hours_per_step", "GPU-h")
    cells = (
        Column("mode", "mode", "left", of=lambda family: family.place.loop),
        Column("split", "GPUs", of=lambda family: _split(family.place)),
        Unseen("gpus"),
        Column("step_seconds", "step"),
        Column(key, title, of=lambda family: family.cost),
    )
    more = len(answer.found.front) - _FRONT_SHOWN
    note = "no other plan is better in both" + (f"; {more} more in --json" if more > 0 else "")
    return Table.of("Step against cost", answer.found.front, cells, shown=_FRONT_SHOWN, note=note)
