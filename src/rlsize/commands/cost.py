"""`rlsize cost`: what an optimizer step, a sample and a run cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from rlsize.commands import asking, flags, predicted
from rlsize.commands.unsaid import zero_unless_said
from rlsize.equations import matching
from rlsize.errors import InputError
from rlsize.planner.cost import CostQuestion, price_step, step_time
from rlsize.estimates.working import apply
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure, absent
from rlsize.reports.cost import cost_report
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.command import quantity
from rlsize.shell.inputs import Inputs

PREEMPTIBLE = "Preemptible rollouts"

_GPUS = Quantity("count", least=0, whole=True)
_SECONDS = Quantity("s", least=1e-6)
_LOST = Quantity("1", least=0.0, most=0.99)  # of nothing useful no price can be told
_NOT_ALL = Quantity("1", least=0.0, most=0.9999)


def cost(
    scenario: flags.ScenarioFile = None,
    rollout_gpus: Annotated[
        str | None, quantity("--rollout-gpus", "GPUs of the rollout fleet; 0 where it shares the trainer's.")
    ] = None,
    trainer_gpus: flags.TrainerGpus = None,
    step_seconds: Annotated[
        str | None, quantity("--step-seconds", "Wall clock of an optimizer step: training, waiting and sync.")
    ] = None,
    train_seconds: Annotated[
        str | None,
        quantity("--train-seconds", "Busy trainer seconds per step; with --trainer-idle they give the wall clock."),
    ] = None,
    trainer_idle: Annotated[
        str | None, quantity("--trainer-idle", "Share of the step that trainer GPUs wait, 0 to 1.")
    ] = None,
    rollout_idle: Annotated[
        str | None, quantity("--rollout-idle", "Share of the step that rollout GPUs wait, 0 to 1.")
    ] = None,
    samples: Annotated[str | None, quantity("--samples", "Samples per optimizer step: prompts x group.")] = None,
    batch_tokens: flags.BatchTokens = None,
    prompts: flags.Prompts = None,
    group: flags.Group = None,
    response_tokens: flags.ResponseTokens = None,
    steps: Annotated[str | None, quantity("--steps", "Optimizer steps of the run.")] = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    preemptible_fraction: Annotated[
        str | None,
        quantity("--preemptible-fraction", "Share of the rollout GPUs that is preemptible, 0 to 1.", PREEMPTIBLE),
    ] = None,
    preemptible_gpu_hour: Annotated[
        str | None, quantity("--preemptible-gpu-hour", "Dollars per GPU-hour of those.", PREEMPTIBLE)
    ] = None,
    lost_fraction: Annotated[
        str | None, quantity("--lost-fraction", "Share of their time that preemption throws away.", PREEMPTIBLE)
    ] = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    What an optimizer step, a sample and a run cost.

    Example:  rlsize cost --rollout-gpus 32 --trainer-gpus 32 --step-seconds 24 --batch-tokens 786432 --gpu-hour 2.50
    """
    inputs = Inputs(scenario, profiles)
    predicted.offer(inputs, calibration, samples_per_step=samples, trainer_gpus=trainer_gpus, rollout_gpus=rollout_gpus)
    batch = asking.batch_tokens(inputs, batch_tokens, prompts, group, response_tokens)
    idle = inputs.number("trainer_idle_fraction", "--trainer-idle", trainer_idle, _NOT_ALL)
    rollout_price, trainer_price = asking.gpu_hours(inputs, gpu_hour, rollout_gpu_hour, trainer_gpu_hour, price)
    wall, busy = _step_seconds(inputs, step_seconds, train_seconds)
    question = CostQuestion(
        rollout_gpus=_rollout_gpus(inputs, rollout_gpus),
        trainer_gpus=inputs.number(
            "trainer_gpus", "--trainer-gpus", trainer_gpus, flags.COUNT, scenario="placement.trainer_gpus"
        ),
        step_seconds=wall,
        train_seconds=busy,
        samples=asking.samples(inputs, samples),
        batch_tokens=batch,
        steps=inputs.number("steps", "--steps", steps, flags.POSITIVE),
        rollout_idle=inputs.number("rollout_idle_fraction", "--rollout-idle", rollout_idle, flags.FRACTION_OR_NONE),
        trainer_idle=idle,
        rollout_gpu_hour=rollout_price,
        trainer_gpu_hour=trainer_price,
        preemptible_gpu_hour=_preemptible_price(inputs, preemptible_gpu_hour, price),
        preemptible_fraction=zero_unless_said(
            inputs, "preemptible_fraction", "--preemptible-fraction", preemptible_fraction, flags.FRACTION_OR_NONE
        ),
        lost_fraction=zero_unless_said(inputs, "lost_fraction", "--lost-fraction", lost_fraction, _LOST),
    )
    _check(inputs, question, lost_fraction)
    _say_date(inputs)
    _check_mfu(inputs, question)
    inputs.settle()
    return cost_report(
        price_step(question, asking.random_for(question, seed)), inputs.shown(), inputs.warnings, inputs.notes
    )


def _rollout_gpus(inputs: Inputs, text: str | None) -> Figure:
    """GPUs of the rollout fleet; none of its own where the scenario's loop is colocated."""
    said = inputs.number("rollout_gpus", "--rollout-gpus", text, _GPUS, scenario="placement.rollout_gpus")
    if said.known or text is not None:
        return said
    if inputs.said("placement.mode") != "colocated":
        total = inputs.number("gpus", "--rollout-gpus", None, flags.COUNT, scenario="cluster.gpus")
        trainer = inputs.number("trainer_gpus", "--trainer-gpus", None, flags.COUNT, scenario="placement.trainer_gpus")
        rest = apply("rollout_gpus", matching.remaining_gpus, gpus=total, rollout_gpus=trainer)
        return inputs.keep(rest) if rest.known and rest.number > 0 else said
    return inputs.keep(Figure(key="rollout_gpus", value=0, source=f"{inputs.where('placement.mode')}: colocated"))


def _check_mfu(inputs: Inputs, question: CostQuestion) -> None:
    """Refuse a step of a scenario that its trainer cannot do in the time, even without waiting."""
    busy = question.train_seconds if question.train_seconds.known else question.step_seconds
    trained = apply(
        "consumption_tokens_per_second",
        matching.consumption,
        tokens_per_step=question.batch_tokens,
        train_seconds=busy,
    )
    nothing = absent("instance_tokens_per_second", "--per-instance")
    inputs.warnings += asking.implausible(
        inputs,
        asking.gpu(inputs, None),
        asking.active_params(inputs, None, None),
        (replace(trained, source=busy.source), question.trainer_gpus, "the trainer's consumption"),
        (nothing, nothing, "an instance's rate"),
    )


def _step_seconds(inputs: Inputs, text: str | None, train: str | None) -> tuple[Figure, Figure]:
    """Wall clock of a step, and the train seconds that stand in for it where nobody says it."""
    said = inputs.number("step_seconds", "--step-seconds", text, _SECONDS)
    if text is None:
        busy = inputs.number("train_seconds", "--train-seconds", train, _SECONDS, scenario="rates.train_seconds")
        return said if busy.known else predicted.step_seconds(inputs, said), busy
    if train is not None:
        inputs.fault(
            "say the step once",
            "--step-seconds --train-seconds",
            "--step-seconds is the whole wall clock; keep it if you have it",
        )
    return said, absent("train_seconds", "--train-seconds")


def _preemptible_price(inputs: Inputs, text: str | None, price: str | None) -> Figure:
    """Price of a preemptible GPU-hour: said, or the one that a price profile lists beside the other."""
    said = inputs.number("preemptible_gpu_hour_usd", "--preemptible-gpu-hour", text, flags.DOLLARS)
    name = price or inputs.said("prices.profile")
    if said.known or text is not None or not name:
        return said
    try:
        profile = inputs.catalogue.get("price", str(name))
    except InputError:  # asking.gpu_hours has told it, where it matters
        return said
    spot = profile.spot_usd_per_gpu_hour
    if spot is None:
        return said
    source = asking.price_text(profile)
    return inputs.keep(Figure(key="preemptible_gpu_hour_usd", value=spot.value, source=source, verified=spot.verified))


def _check(inputs: Inputs, question: CostQuestion, lost: str | None) -> None:
    inputs.need(question.rollout_gpus, "give the GPUs of the rollout fleet; 0 where it shares the trainer's")
    inputs.need(question.trainer_gpus, "give the GPUs of the trainer")
    if not step_time(question).known:
        todo = "give the wall clock of a step; or --train-seconds with --trainer-idle"
        inputs.need(question.step_seconds, todo + predicted.why_not(inputs, "step_seconds"))
    if lost is not None and not question.preemptible_fraction.value:
        inputs.fault(
            "says what preemption loses, and nothing is preemptible",
            "--lost-fraction",
            "give --preemptible-fraction, or leave it out",
        )


def _say_date(inputs: Inputs) -> None:
    """The date and region that a scenario gives for its typed prices."""
    date, region = inputs.said("prices.as_of"), inputs.said("prices.region")
    if date or region:
        known = [text for text in (f"as of {date}" if date else "", f"region {region}" if region else "") if text]
        inputs.notes.append(f"The scenario's prices: {', '.join(known)}.")
