"""`rlsize cost`: what an optimizer step, a sample and a run cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.errors import Refused
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent
from rlsize.loop.plausible import judge
from rlsize.loop.pools import pools, two_pools
from rlsize.loop.prices import gpu_hours, price_text, say_date
from rlsize.loop.rates import busy_seconds
from rlsize.loop.seed import random_for
from rlsize.loop.sides import described_loop, joint_draws, loops_own
from rlsize.loop.workload import batch_tokens, samples
from rlsize.planner.cost import POOLS, costs, pool_rows, price_step
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.running_loop import bounded
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, PRICES, asks
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.flow import Flow
    from rlsize.facts.price import Price
    from rlsize.reports.chart import Role

_PRICES = ("gpu_hour_usd", "rollout_gpu_hour_usd", "trainer_gpu_hour_usd", "preemptible_gpu_hour_usd")
_ROLES: tuple[Role, ...] = ("rollout", "trainer")
_STEP = (
    "give the wall clock of a step; or --train-seconds with --trainer-idle; or model, GPU and lengths, to predict it"
)
_PREEMPTION = (
    "Preemptible GPUs are priced by useful hours, price over 1 - lost share; if the measured step already contains "
    "what preemption lost, leave --lost-fraction out."
)


@asks(
    Inputs=(
        "mode", "gpus", "rollout_gpus", "trainer_gpus", "step_seconds", "train_seconds", "trainer_idle_fraction",
        "rollout_idle_fraction", "samples_per_step", "batch_tokens", "prompts_per_step", "group_size",
        "response_tokens", "steps", *ANSWER,
    ),
    Prices=PRICES,
    Preemptible_rollouts=("preemptible_fraction", "preemptible_gpu_hour_usd", "lost_fraction"),
)  # fmt: skip
def cost(inputs: Inputs) -> Report:
    """
    What an optimizer step, a sample and a run cost.

    Example:  rlsize cost --rollout-gpus 32 --trainer-gpus 32 --step-seconds 24 --batch-tokens 786432 --gpu-hour 2.50
    """
    stated = inputs.by_flag("step_seconds") or inputs.by_flag("trainer_idle_fraction")
    loop, found = (None, None) if stated else described_loop(inputs)
    if loop is not None and loop.refused:
        raise Refused(loop.refused)
    batch = batch_tokens(inputs)
    waits = {side: inputs.ask(f"{side}_idle_fraction") for side in ("trainer", "rollout")}
    prices = gpu_hours(inputs)
    wall, busy = _step_seconds(inputs)
    rollout, trainer = _pools(inputs)
    if loop is not None and found is not None:
        told = found.results
        waits = {side: loops_own(inputs, loop, told[f"{side}_idle_fraction"]) for side in waits}
        rollout, trainer = told["rollout_gpus"], told["trainer_gpus"]
        if loop.pools.shared:
            rollout = Figure(key="rollout_gpus", value=0, source="colocated")
        wall = loops_own(inputs, loop, told["step_seconds"])
    known = {
        "rollout_gpus": rollout,
        "trainer_gpus": trainer,
        "step_seconds": wall,
        "train_seconds": busy,
        "samples_per_step": samples(inputs),
        "batch_tokens": batch,
        "steps": inputs.ask("steps"),
        "rollout_idle_fraction": waits["rollout"],
        "trainer_idle_fraction": waits["trainer"],
        "rollout_gpu_hour_usd": prices[0],
        "trainer_gpu_hour_usd": prices[1],
        "preemptible_gpu_hour_usd": _preemptible_price(inputs),
        "preemptible_fraction": _or_none(inputs, "preemptible_fraction"),
        "lost_fraction": _or_none(inputs, "lost_fraction"),
    }
    todo = "give the GPUs of the rollout fleet; --mode colocated where it has none of its own"
    inputs.need(known["rollout_gpus"], todo)
    inputs.need(known["trainer_gpus"], "give the GPUs of the trainer")
    if not costs(known)["step_seconds"].known:
        inputs.need(known["step_seconds"], _STEP)
    if inputs.by_flag("lost_fraction") and not known["preemptible_fraction"].value:
        todo = "give --preemptible-fraction, or leave it out"
        inputs.fault("says what preemption loses, and nothing is preemptible", "--lost-fraction", todo)
    if loop is None:
        say_date(inputs)
        trains, key = known["train_seconds"] if busy.known else known["step_seconds"], "consumption_tokens_per_second"
        trained = apply(key, matching.consumption, tokens_per_step=known["batch_tokens"], train_seconds=trains)
        judge(inputs, "trainer", replace(trained, source=trains.source), trainer, "the trainer's consumption")
    inputs.settle()
    leaves = {figure.key: figure for figure in (wall, *waits.values())}
    draws = joint_draws(loop, leaves) if loop is not None else random_for(inputs, known)
    results = price_step(known, draws)
    if found is not None and not known["preemptible_fraction"].value:
        from rlsize.loop.answer import agreed

        results = agreed(results, found)
    report = _report(inputs, costs(known), results)
    return report if loop is None else bounded(report, loop.bound)


def _pools(inputs: Inputs) -> tuple[Figure, Figure]:
    """GPUs of the rollout fleet and of the trainer; a fleet that shares the trainer's has none of its own."""
    if inputs.gives("mode") and inputs.choose("mode") == "colocated":
        shared = pools(inputs).gpus
        none = Figure(key="rollout_gpus", value=0, source=f"{inputs.place('mode')}: colocated")
        return none, replace(shared, key="trainer_gpus")
    return two_pools(inputs)[1:]


def _step_seconds(inputs: Inputs) -> tuple[Figure, Figure]:
    """Wall clock of a step, and the train seconds that stand in for it where nobody says it."""
    wall = inputs.ask("step_seconds")
    if not wall.known:
        return wall, busy_seconds(inputs)
    if inputs.by_flag("train_seconds"):
        todo = "--step-seconds is the whole wall clock; keep it if you have it"
        inputs.fault("say the step once", "--step-seconds --train-seconds", todo)
    return wall, absent("train_seconds", "--train-seconds")


def _or_none(inputs: Inputs, key: str) -> Figure:
    """A share, else none of it; a 0 that nobody said is not worth a mention among the inputs."""
    said = inputs.ask(key)
    return said if said.known else Figure(key=key, value=0.0, provenance="default", source=f"default of {said.missing}")


def _preemptible_price(inputs: Inputs) -> Figure:
    """Price of a preemptible GPU-hour: said, or the one that a price profile lists beside the other."""
    said, (name, _) = inputs.ask("preemptible_gpu_hour_usd"), inputs.name("price")
    if said.known or inputs.by_flag("preemptible_gpu_hour_usd") or name is None:
        return said
    profile: Price | None = inputs.apart().profile("price", str(name), "")  # gpu_hours has told it, where it matters
    spot = None if profile is None else profile.spot_usd_per_gpu_hour
    if profile is None or spot is None:
        return said
    source = price_text(profile)
    return inputs.keep(Figure(key="preemptible_gpu_hour_usd", value=spot.value, source=source, verified=spot.verified))


def _report(inputs: Inputs, flow: Flow, results: Sequence[Figure]) -> Report:
    found = {figure.key: figure for figure in results}
    preempted = bool(flow["preemptible_fraction"].value)
    return Report(
        headline=_headline(flow, found),
        results=tuple(results),
        tables={"pools": _pools_table(flow)},
        chart=_chart(flow, found, preempted=preempted),
        quiet=frozenset(f"{pool}{part}_cost_per_step_usd" for pool in POOLS for part in ("", "_idle")),
        **inputs.told(first=(*_price_notes(inputs.shown()), *([_PREEMPTION] if preempted else []))),
    )


def _headline(flow: Flow, found: Mapping[str, Figure]) -> str:
    step, hours = found["cost_per_step_usd"], found["gpu_hours_per_step"]
    wall = f"{show(flow['step_seconds'].value, '_seconds')} on {show(flow['gpus'].number)} GPUs"
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


def _pools_table(flow: Flow) -> Table:
    waits = any(flow[f"{pool}_idle_fraction"].known for pool in POOLS)
    columns = (
        Column("pool", "pool", "left"),
        Column("gpus", "GPUs"),
        Column("gpu_hours_per_step", "GPU-hours/step"),
        Column("gpu_hour_usd", "$/GPU-hour"),
        Column("cost_per_step_usd", "cost/step"),
        *([Column("idle_cost_per_step_usd", "of it waiting")] if waits else []),
    )
    note = "GPUs that wait are paid for like those that work"
    return Table(title="By pool", columns=columns, rows=pool_rows(flow), note=note)


def _price_notes(inputs: Sequence[Figure]) -> list[str]:
    """Where each price comes from: a profile with its date and region, or whoever typed it."""
    known = [figure for figure in inputs if figure.key in _PRICES]
    pools = [figure.key.removesuffix("gpu_hour_usd").removesuffix("_") or "both pools" for figure in known]
    said = [f"{pool} {show(one.value, one.key)} ({one.source})" for pool, one in zip(pools, known, strict=True)]
    return [f"Per GPU-hour: {'; '.join(said)}."] if said else []


def _chart(flow: Flow, found: Mapping[str, Figure], *, preempted: bool) -> Chart:
    each = {pool: found[f"{pool}_cost_per_step_usd"] for pool in POOLS}
    if all(figure.known for figure in each.values()):
        unit, bars = "dollars", _dollars(flow, found, each, preempted=preempted)
        largest, total = max(POOLS, key=lambda pool: each[pool].number), found["cost_per_step_usd"]
        share = show(each[largest].number / total.number if total.number else 0.0, "_fraction")
        title = f"{show(total.value, total.key)} per step, {share} of it for the {largest} GPUs"
    else:
        unit, bars = "GPU-hours", {"per step": {pool: flow[f"{pool}_gpu_hours_per_step"].number for pool in POOLS}}
        title = f"{show(found['gpu_hours_per_step'].value)} GPU-hours per step; a price would make it dollars"
    return Chart(
        title=title,
        y_label=f"{unit} per optimizer step",
        series=tuple(Series.of(pool, ((bar, parts[pool]) for bar, parts in bars.items()), pool) for pool in _ROLES),
        kind="stacked",
        subtitle=f"{show(flow['step_seconds'].value, '_seconds')} per step",
    )


def _dollars(
    flow: Flow, found: Mapping[str, Figure], each: Mapping[str, Figure], *, preempted: bool
) -> dict[str, dict[str, float]]:
    """What each pool costs: as it is, of it waiting, and with no preemptible GPU."""
    bars = {"per step": {pool: figure.number for pool, figure in each.items()}}
    idle = {pool: found[f"{pool}_idle_cost_per_step_usd"] for pool in POOLS}
    if any(figure.known for figure in idle.values()):
        bars["of it waiting"] = {pool: figure.number if figure.known else 0.0 for pool, figure in idle.items()}
    on_demand = flow["on_demand_rollout_cost_per_step_usd"]
    if preempted and on_demand.known:
        bars["with no preemptible GPU"] = {"rollout": on_demand.number, "trainer": each["trainer"].number}
    return bars
