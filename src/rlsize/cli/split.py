"""`rlsize split`: how to split N GPUs between rollout and trainer."""

from __future__ import annotations

from typing import Annotated

from rlsize.cli import asking, flags
from rlsize.cli.command import quantity
from rlsize.cli.inputs import Inputs
from rlsize.equations import matching
from rlsize.estimates.working import apply
from rlsize.facts.figure import Figure
from rlsize.planner.split import SplitQuestion, split_gpus
from rlsize.reports.report import Report
from rlsize.reports.split import split_report


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
    gpus_per_instance: flags.GpusPerInstance = None,
    headroom: flags.Headroom = None,
    tokens_per_trained_token: flags.Waste = None,
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
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How to split N GPUs between rollout and trainer.

    Example:  rlsize split --gpus 64 --rollout-tps 2000 --trainer-tps 6000
    """
    inputs = Inputs(scenario, profiles)
    question = SplitQuestion(
        gpus=inputs.number("gpus", "--gpus", gpus, flags.COUNT, scenario="cluster.gpus"),
        rollout_gpu_rate=_gpu_rate(inputs, "rollout", "--rollout-tokens-per-second", rollout_rate),
        trainer_gpu_rate=_gpu_rate(inputs, "trainer", "--trainer-tokens-per-second", trainer_rate),
        gpus_per_instance=_gpus_per_instance(inputs, gpus_per_instance),
        headroom=inputs.number(
            "headroom",
            "--headroom",
            headroom,
            flags.FRACTION,
            scenario="rates.headroom",
            default=1.0,
            why="rates as they are",
        ),
        tokens_generated_per_trained_token=asking.waste(inputs, tokens_per_trained_token),
        batch_tokens=asking.batch_tokens(inputs, batch_tokens, prompts, group, response_tokens),
        swap_seconds=inputs.number("swap_seconds", "--swap-seconds", swap_seconds, flags.SECONDS_OR_NONE),
    )
    for figure in (question.gpus, question.rollout_gpu_rate, question.trainer_gpu_rate):
        inputs.need(figure, "a split needs the GPU count and both rates per GPU")
    warnings = _plausible(inputs, question, model, params, gpu)
    inputs.settle()
    return split_report(
        split_gpus(question, asking.random_for(question, seed)), inputs.shown(), [*inputs.warnings, *warnings]
    )


def _gpu_rate(inputs: Inputs, side: str, flag: str, text: str | None) -> Figure:
    key = f"{side}_gpu_tokens_per_second"
    return inputs.number(key, flag, text, flags.TOKEN_RATE, scenario=f"rates.{key}")


def _gpus_per_instance(inputs: Inputs, text: str | None) -> Figure:
    said = asking.gpus_per_instance(inputs, text)
    if said.known or inputs.faults:
        return said
    return inputs.keep(
        Figure(key="gpus_per_instance", value=1, provenance="default", source="default of --gpus-per-instance")
    )


def _plausible(
    inputs: Inputs, question: SplitQuestion, model: str | None, params: str | None, gpu_name: str | None
) -> list[str]:
    profile = asking.gpu(inputs, gpu_name)
    if profile is None:
        return []
    active = asking.active_params(inputs, model, params)
    train = apply("training_flops_per_token", matching.training_flops_per_token, active_params=active)
    decode = apply("generation_flops_per_token", matching.generation_flops_per_token, active_params=active)
    one = Figure(key="gpus", value=1)
    found = [
        asking.check_mfu(inputs, question.trainer_gpu_rate, train, one, profile, "a trainer GPU's rate"),
        asking.check_mfu(inputs, question.rollout_gpu_rate, decode, one, profile, "a rollout GPU's rate"),
    ]
    return [warning for warning in found if warning]
