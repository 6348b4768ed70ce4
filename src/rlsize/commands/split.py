"""`rlsize split`: how to split N GPUs between rollout and trainer."""

from __future__ import annotations

from typing import Annotated

from rlsize.commands import asking, flags, predicted
from rlsize.equations import matching
from rlsize.estimates.working import apply
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import PLAIN_HEADROOM
from rlsize.planner.split import SplitQuestion, split_gpus
from rlsize.reports.report import Report
from rlsize.reports.split import split_report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.command import quantity
from rlsize.shell.inputs import Inputs
from rlsize.shell.rates import load


def split(
    scenario: flags.ScenarioFile = None,
    gpus: Annotated[str | None, quantity("--gpus", "GPUs of both pools.")] = None,
    rollout_rate: Annotated[
        str | None,
        quantity("--rollout-tokens-per-second|--rollout-tps", "Response tokens per second of one rollout GPU."),
    ] = None,
    trainer_rate: Annotated[
        str | None,
        quantity(
            "--trainer-tokens-per-second|--trainer-tps|--learn-tps", "Response tokens per second of one trainer GPU."
        ),
    ] = None,
    per_instance: flags.PerInstance = None,
    accept_lower_bound: flags.AcceptLowerBound = False,
    consume: flags.Consume = None,
    train_seconds: flags.TrainSeconds = None,
    trainer_gpus: Annotated[
        str | None, quantity("--trainer-gpus", "Trainer GPUs that the consumption was measured on.")
    ] = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    headroom: flags.Headroom = None,
    tokens_per_trained_token: flags.Waste = None,
    oversampling: flags.Oversampling = None,
    kept_fraction: flags.KeptFraction = None,
    dropped_fraction: flags.DroppedFraction = None,
    batch_tokens: flags.BatchTokens = None,
    prompts: flags.Prompts = None,
    group: flags.Group = None,
    response_tokens: flags.ResponseTokens = None,
    swap_seconds: Annotated[
        str | None,
        quantity("--swap-seconds", "Seconds that a colocated step spends changing over, both ways together."),
    ] = None,
    model: flags.ModelName = None,
    params: flags.Params = None,
    gpu: flags.GpuName = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How to split N GPUs between rollout and trainer.

    Example:  rlsize split --gpus 64 --rollout-tps 2000 --trainer-tps 6000
    """
    inputs = Inputs(scenario, profiles)
    predicted.offer(
        inputs, calibration, model=model, gpu=gpu, gpus_per_instance=gpus_per_instance, trainer_gpus=trainer_gpus
    )
    load(inputs, per_instance, accept_lower_bound=accept_lower_bound)
    size = _gpus_per_instance(inputs, gpus_per_instance)
    batch = asking.batch_tokens(inputs, batch_tokens, prompts, group, response_tokens)
    rollout, derate = _rollout_rate(inputs, rollout_rate, per_instance, headroom, size)
    question = SplitQuestion(
        gpus=inputs.number("gpus", "--gpus", gpus, flags.COUNT, scenario="cluster.gpus"),
        rollout_gpu_rate=rollout,
        trainer_gpu_rate=_trainer_rate(inputs, trainer_rate, consume, train_seconds, trainer_gpus, batch),
        gpus_per_instance=size,
        headroom=derate,
        tokens_generated_per_trained_token=asking.waste(
            inputs, tokens_per_trained_token, oversampling, kept_fraction, dropped_fraction
        ),
        batch_tokens=batch,
        swap_seconds=inputs.number("swap_seconds", "--swap-seconds", swap_seconds, flags.SECONDS_OR_NONE),
    )
    for figure in (question.gpus, question.rollout_gpu_rate, question.trainer_gpu_rate):
        inputs.need(figure, "a split needs the GPU count and both rates per GPU" + _unpredicted(inputs, figure))
    profile, one = asking.gpu(inputs, gpu), Figure(key="gpus", value=1, provenance="default", source="one GPU")
    warnings = asking.implausible(
        inputs,
        profile,
        asking.active_params(inputs, model, params) if profile else absent("active_params", "--model"),
        (question.trainer_gpu_rate, one, "a trainer GPU's rate"),
        (question.rollout_gpu_rate, one, "a rollout GPU's rate"),
    )
    inputs.settle()
    answer = split_gpus(question, asking.random_for(question, seed))
    return split_report(answer, inputs.shown(), [*inputs.warnings, *warnings], inputs.notes)


def _unpredicted(inputs: Inputs, figure: Figure) -> str:
    """Why a rate is not predicted."""
    behind = {"rollout_gpu_tokens_per_second": "instance_tokens_per_second"}
    return "" if figure.key == "gpus" else predicted.why_not(inputs, behind.get(figure.key, "train_seconds"))


def _gpu_rate(inputs: Inputs, side: str, flag: str, text: str | None) -> Figure:
    key = f"{side}_gpu_tokens_per_second"
    return inputs.number(key, flag, text, flags.TOKEN_RATE, scenario=f"rates.{key}")


def _rollout_rate(
    inputs: Inputs, text: str | None, per_instance: str | None, headroom: str | None, size: Figure
) -> tuple[Figure, Figure]:
    """The rate of one rollout GPU: said, or that of an instance over its GPUs; and the headroom that goes with it."""
    said = _gpu_rate(inputs, "rollout", "--rollout-tokens-per-second", text)
    stated = inputs.rates is not None or inputs.said("rates.instance_tokens_per_second") is not None
    if per_instance is not None or (stated and not said.known):
        if text is not None:
            inputs.fault("two rates of the rollout side", "--rollout-tokens-per-second, --per-instance", "keep one")
        rate, derate = asking.instance_rate(inputs, per_instance, headroom, default_headroom=PLAIN_HEADROOM)
        return _per_gpu(inputs, "rollout", rate, size), derate
    derate = inputs.number(
        "headroom",
        "--headroom",
        headroom,
        flags.HEADROOM,
        scenario="rates.headroom",
        default=PLAIN_HEADROOM,
        why="rates as they are",
    )
    rate = said if said.known else predicted.instance_rate(inputs, said)
    return said if rate is said else _per_gpu(inputs, "rollout", rate, size), derate


def _trainer_rate(
    inputs: Inputs, text: str | None, consume: str | None, train: str | None, gpus: str | None, batch: Figure
) -> Figure:
    """The rate of one trainer GPU: said, or the consumption over the GPUs that it was measured on."""
    said = _gpu_rate(inputs, "trainer", "--trainer-tokens-per-second", text)
    seconds = asking.train_seconds(inputs, train)
    flagged = consume is not None or train is not None
    if text is not None and flagged:
        inputs.fault("two rates of the trainer", "--trainer-tokens-per-second, --consume", "keep one")
    stated = inputs.said("rates.consumption_tokens_per_second") is not None or (batch.known and seconds.known)
    if said.known and not (flagged and text is None):
        return said
    pool = inputs.number("trainer_gpus", "--trainer-gpus", gpus, flags.COUNT, scenario="placement.trainer_gpus")
    if not (flagged or stated):
        return _predicted_trainer(inputs, said, batch, pool)
    return _per_gpu(inputs, "trainer", asking.consumption(inputs, consume, batch, seconds), pool)


def _predicted_trainer(inputs: Inputs, unknown: Figure, batch: Figure, pool: Figure) -> Figure:
    """The rate of one trainer GPU from a predicted step, on the trainer's GPUs or on half of all."""
    total = inputs.used.get("gpus")
    if not pool.known and total is not None and predicted.wanted(inputs):
        half = max(1, int(total.number) // 2)
        pool = inputs.keep(Figure(key="trainer_gpus", value=half, provenance="default", source="half of the GPUs"))
    seconds = predicted.train_seconds(inputs, absent("train_seconds", "--train-seconds")) if batch.known else batch
    if not (seconds.known and pool.known):
        return unknown
    rate = apply("consumption_tokens_per_second", matching.consumption, tokens_per_step=batch, train_seconds=seconds)
    return _per_gpu(inputs, "trainer", rate, pool)


def _per_gpu(inputs: Inputs, side: str, rate: Figure, gpus: Figure) -> Figure:
    return inputs.keep(apply(f"{side}_gpu_tokens_per_second", matching.rate_per_gpu, rate=rate, gpus=gpus))


def _gpus_per_instance(inputs: Inputs, text: str | None) -> Figure:
    said = asking.gpus_per_instance(inputs, text)
    if said.known or inputs.faults:
        return said
    return inputs.keep(
        Figure(key="gpus_per_instance", value=1, provenance="default", source="default of --gpus-per-instance")
    )
