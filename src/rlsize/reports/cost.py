"""What to say about cost: a step by pool, a sample, a million tokens, a day, a run; where prices come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.planner.cost import POOLS, step_time
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.planner.cost import CostAnswer
    from rlsize.facts.figure import Figure

_PRICES = ("gpu_hour_usd", "rollout_gpu_hour_usd", "trainer_gpu_hour_usd", "preemptible_gpu_hour_usd")


def cost_report(
    answer: CostAnswer, inputs: Sequence[Figure], warnings: Sequence[str], notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize cost`.

    Args:
        answer: What a step and a run cost.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    found = {figure.key: figure for figure in answer.results}
    return Report(
        command="cost",
        headline=_headline(answer, found),
        results=answer.results,
        inputs=tuple(inputs),
        tables={"pools": _pools_table(answer)},
        warnings=tuple(warnings),
        notes=(*_price_notes(inputs), *_preemption_note(answer), *notes),
        chart=_chart(answer, found),
        quiet=frozenset(
            {
                "rollout_cost_per_step_usd",
                "trainer_cost_per_step_usd",
                "rollout_idle_cost_per_step_usd",
                "trainer_idle_cost_per_step_usd",
            }
        ),
    )


def _headline(answer: CostAnswer, found: Mapping[str, Figure]) -> str:
    step, hours = found["cost_per_step_usd"], found["gpu_hours_per_step"]
    wall = f"{show(step_time(answer.question).value, '_seconds')} on {show(_gpus(answer))} GPUs"
    if not step.known:
        return f"A step takes {show(hours.value, hours.key)} GPU-hours ({wall}); its cost needs {step.missing}."
    text = f"A step costs {show(step.value, step.key)} ({wall})"
    extra = [
        f"{show(figure.value, figure.key)} {what}"
        for key, what in (
            ("cost_per_million_trained_tokens_usd", "per million trained tokens"),
            ("cost_per_day_usd", "a day"),
            ("cost_per_run_usd", "a run"),
        )
        if (figure := found[key]).known
    ]
    return f"{text}: {', '.join(extra)}."


def _gpus(answer: CostAnswer) -> float:
    gpus: Figure = answer.pools[-1]["gpus"]
    return gpus.number


def _pools_table(answer: CostAnswer) -> Table:
    columns = [
        Column("pool", "pool", "left"),
        Column("gpus", "GPUs"),
        Column("gpu_hours_per_step", "GPU-hours/step"),
        Column("gpu_hour_usd", "$/GPU-hour"),
        Column("cost_per_step_usd", "cost/step"),
    ]
    if answer.question.rollout_idle.known or answer.question.trainer_idle.known:
        columns.append(Column("idle_cost_per_step_usd", "of it waiting"))
    return Table(
        title="By pool",
        columns=tuple(columns),
        rows=answer.pools,
        note="GPUs that wait are paid for like those that work",
    )


def _price_notes(inputs: Sequence[Figure]) -> list[str]:
    """Where each price comes from: a profile with its date and region, or whoever typed it."""
    known = [figure for figure in inputs if figure.key in _PRICES]
    said = [f"{_priced(figure)} {show(figure.value, figure.key)} ({figure.source})" for figure in known]
    return [f"Per GPU-hour: {'; '.join(said)}."] if said else []


def _priced(figure: Figure) -> str:
    pool = figure.key.removesuffix("gpu_hour_usd").removesuffix("_")
    return pool or "both pools"


def _preemption_note(answer: CostAnswer) -> list[str]:
    question = answer.question
    if not question.preemptible_fraction.value:
        return []
    text = "Preemptible GPUs are priced by useful hours, price over 1 - lost share"
    return [f"{text}; if the measured step already contains what preemption lost, leave --lost-fraction out."]


def _chart(answer: CostAnswer, found: Mapping[str, Figure]) -> Chart | None:
    costs = {pool: found[f"{pool}_cost_per_step_usd"] for pool in POOLS}
    if not all(figure.known for figure in costs.values()):
        return _hours_chart(answer, found)
    bars = {"per step": {pool: figure.number for pool, figure in costs.items()}}
    idle = {pool: found[f"{pool}_idle_cost_per_step_usd"] for pool in POOLS}
    if any(figure.known for figure in idle.values()):
        bars["of it waiting"] = {pool: figure.number if figure.known else 0.0 for pool, figure in idle.items()}
    if answer.question.preemptible_fraction.value and answer.on_demand_usd.known:
        bars["with no preemptible GPU"] = {"rollout": answer.on_demand_usd.number, "trainer": costs["trainer"].number}
    largest = max(POOLS, key=lambda pool: costs[pool].number)
    total = found["cost_per_step_usd"]
    return Chart(
        title=f"{show(total.value, total.key)} per step, {_share(costs[largest], total)} of it for the {largest} GPUs",
        x_label="",
        y_label="dollars per optimizer step",
        series=_series(bars),
        kind="stacked",
        subtitle=f"{show(step_time(answer.question).value, '_seconds')} per step",
    )


def _hours_chart(answer: CostAnswer, found: Mapping[str, Figure]) -> Chart | None:
    hours = {str(row["pool"]): row["gpu_hours_per_step"] for row in answer.pools}
    total = found["gpu_hours_per_step"]
    return Chart(
        title=f"{show(total.value)} GPU-hours per step; a price would make it dollars",
        x_label="",
        y_label="GPU-hours per optimizer step",
        series=_series({"per step": {pool: hours[pool].number for pool in POOLS}}),
        kind="stacked",
        subtitle=f"{show(step_time(answer.question).value, '_seconds')} per step",
    )


def _series(bars: Mapping[str, Mapping[str, float]]) -> tuple[Series, ...]:
    roles: dict[str, Any] = {"rollout": "rollout", "trainer": "trainer"}
    return tuple(
        Series(name=pool, xs=tuple(bars), ys=tuple(parts[pool] for parts in bars.values()), role=roles[pool])
        for pool in POOLS
    )


def _share(part: Figure, total: Figure) -> str:
    return show(part.number / total.number if total.number else 0.0, "_fraction")
