"""`rlsize cost`: what an optimizer step, a sample and a run cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import matching
from rlsize.errors import InputError
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent
from rlsize.loop.plausible import judge
from rlsize.loop.pools import pools
from rlsize.loop.prices import gpu_hours, price_text, say_date
from rlsize.loop.rates import busy_seconds
from rlsize.loop.seed import random_for
from rlsize.loop.sides import described_loop, joint_draws, loops_own
from rlsize.loop.workload import batch_tokens, samples
from rlsize.planner.cost import POOLS, CostAnswer, CostQuestion, price_step, step_time
from rlsize.reports.chart import Chart, Series
from rlsize.reports.loop_verdicts import bounded, refused_report
from rlsize.reports.report import Column, Report, Table
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, PRICES, asks
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.loop.resolve import Loop
    from rlsize.planner.evaluation import Evaluation

_PRICES = ("gpu_hour_usd", "rollout_gpu_hour_usd", "trainer_gpu_hour_usd", "preemptible_gpu_hour_usd")
_STEP = (
    "give the wall clock of a step; or --train-seconds with --trainer-idle; or model, GPU and lengths, to predict it"
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
        return refused_report("cost", loop.refused, inputs.shown(), inputs.warnings, inputs.notes)
    batch = batch_tokens(inputs)
    waits = {side: inputs.ask(f"{side}_idle_fraction") for side in ("trainer", "rollout")}
    prices = gpu_hours(inputs)
    wall, busy = _step_seconds(inputs)
    rollout, trainer = _pools(inputs)
    if loop is not None and found is not None:
        wall, waits, (rollout, trainer) = _of_the_loop(inputs, loop, found)
    question = CostQuestion(
        rollout_gpus=rollout,
        trainer_gpus=trainer,
        step_seconds=wall,
        train_seconds=busy,
        samples=samples(inputs),
        batch_tokens=batch,
        steps=inputs.ask("steps"),
        rollout_idle=waits["rollout"],
        trainer_idle=waits["trainer"],
        rollout_gpu_hour=prices[0],
        trainer_gpu_hour=prices[1],
        preemptible_gpu_hour=_preemptible_price(inputs),
        preemptible_fraction=_or_none(inputs, "preemptible_fraction"),
        lost_fraction=_or_none(inputs, "lost_fraction"),
    )
    _check(inputs, question)
    if loop is None:
        say_date(inputs)
        _check_mfu(inputs, question)
    inputs.settle()
    leaves = {figure.key: figure for figure in (wall, *waits.values())}
    draws = joint_draws(loop, leaves) if loop is not None else random_for(inputs, question)
    answer = price_step(question, draws)
    if found is not None and not question.preemptible_fraction.value:
        from rlsize.loop.answer import agreed

        answer = replace(answer, results=agreed(answer.results, found))
    report = cost_report(answer, inputs.shown(), inputs.warnings, inputs.notes)
    return report if loop is None else bounded(report, loop.bound)


def _of_the_loop(
    inputs: Inputs, loop: Loop, found: Evaluation
) -> tuple[Figure, dict[str, Figure], tuple[Figure, Figure]]:
    """Wall clock, idle shares and GPUs of a loop; a shared fleet has no GPUs of its own."""
    known = found.results
    waits = {side: loops_own(inputs, loop, known[f"{side}_idle_fraction"]) for side in ("trainer", "rollout")}
    both = (known["rollout_gpus"], known["trainer_gpus"])
    if loop.pools.shared:
        both = (Figure(key="rollout_gpus", value=0, source="colocated"), both[1])
    return loops_own(inputs, loop, known["step_seconds"]), waits, both


def _pools(inputs: Inputs) -> tuple[Figure, Figure]:
    """GPUs of the rollout fleet and of the trainer; a fleet that shares the trainer's has none of its own."""
    if inputs.gives("mode") and inputs.choose("mode") == "colocated":
        shared = pools(inputs).gpus
        none = Figure(key="rollout_gpus", value=0, source=f"{inputs.place('mode')}: colocated")
        return none, replace(shared, key="trainer_gpus")
    total, rollout, trainer = (inputs.ask(key) for key in ("gpus", "rollout_gpus", "trainer_gpus"))
    if total.known and rollout.known != trainer.known:
        key, one = ("trainer_gpus", rollout) if rollout.known else ("rollout_gpus", trainer)
        rest = apply(key, matching.remaining_gpus, gpus=total, rollout_gpus=one)
        if rest.number > 0:
            inputs.keep(rest)
            rollout, trainer = (one, rest) if rollout.known else (rest, one)
    return rollout, trainer


def _check_mfu(inputs: Inputs, question: CostQuestion) -> None:
    """Refuse a step of a scenario that its trainer cannot do in the time, even without waiting."""
    busy = question.train_seconds if question.train_seconds.known else question.step_seconds
    key = "consumption_tokens_per_second"
    trained = apply(key, matching.consumption, tokens_per_step=question.batch_tokens, train_seconds=busy)
    judge(inputs, "trainer", replace(trained, source=busy.source), question.trainer_gpus, "the trainer's consumption")


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
    try:
        profile = inputs.price_named(str(name))
    except InputError:  # gpu_hours has told it, where it matters
        return said
    spot = profile.spot_usd_per_gpu_hour
    if spot is None:
        return said
    source = price_text(profile)
    return inputs.keep(Figure(key="preemptible_gpu_hour_usd", value=spot.value, source=source, verified=spot.verified))


def _check(inputs: Inputs, question: CostQuestion) -> None:
    inputs.need(
        question.rollout_gpus, "give the GPUs of the rollout fleet; --mode colocated where it has none of its own"
    )
    inputs.need(question.trainer_gpus, "give the GPUs of the trainer")
    if not step_time(question).known:
        inputs.need(question.step_seconds, _STEP)
    if inputs.by_flag("lost_fraction") and not question.preemptible_fraction.value:
        todo = "give --preemptible-fraction, or leave it out"
        inputs.fault("says what preemption loses, and nothing is preemptible", "--lost-fraction", todo)


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
