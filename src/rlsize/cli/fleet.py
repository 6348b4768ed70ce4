"""`rlsize fleet`: how many rollout instances match this trainer."""

from __future__ import annotations

from rlsize.cli import asking, flags
from rlsize.cli.inputs import Inputs
from rlsize.equations import matching
from rlsize.estimates.working import apply
from rlsize.planner.fleet import FleetQuestion, size_fleet
from rlsize.reports.fleet import fleet_report
from rlsize.reports.report import Report


def fleet(
    scenario: flags.ScenarioFile = None,
    consume: flags.Consume = None,
    batch_tokens: flags.BatchTokens = None,
    train_seconds: flags.TrainSeconds = None,
    prompts: flags.Prompts = None,
    group: flags.Group = None,
    response_tokens: flags.ResponseTokens = None,
    per_instance: flags.PerInstance = None,
    accept_lower_bound: flags.AcceptLowerBound = False,
    headroom: flags.Headroom = None,
    tokens_per_trained_token: flags.Waste = None,
    instances: flags.Instances = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    trainer_gpus: flags.TrainerGpus = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    model: flags.ModelName = None,
    params: flags.Params = None,
    gpu: flags.GpuName = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How many rollout instances match this trainer.

    Example:  rlsize fleet --consume 39321 --per-instance 4000
    """
    inputs = Inputs(scenario, profiles)
    batch = asking.batch_tokens(inputs, batch_tokens, prompts, group, response_tokens)
    train = asking.train_seconds(inputs, train_seconds)
    consumption = asking.consumption(inputs, consume, batch, train)
    rate, derate = asking.instance_rate(inputs, per_instance, headroom, accept_lower_bound=accept_lower_bound)
    rollout_price, trainer_price = asking.gpu_hours(inputs, gpu_hour, rollout_gpu_hour, trainer_gpu_hour, price)
    count = inputs.number("instances", "--instances", instances, flags.COUNT, scenario="placement.instances")
    question = FleetQuestion(
        consumption=consumption,
        instance_rate=rate,
        headroom=derate,
        tokens_generated_per_trained_token=asking.waste(inputs, tokens_per_trained_token),
        instances=count if count.known else None,
        batch_tokens=batch,
        gpus_per_instance=asking.gpus_per_instance(inputs, gpus_per_instance),
        trainer_gpus=inputs.number("trainer_gpus", "--trainer-gpus", trainer_gpus, flags.COUNT, scenario="placement.trainer_gpus"),
        rollout_gpu_hour=rollout_price,
        trainer_gpu_hour=trainer_price,
    )
    warnings = _plausible(inputs, question, model, params, gpu)
    inputs.settle()
    return fleet_report(size_fleet(question, asking.random_for(question, seed)), inputs.shown(), [*inputs.warnings, *warnings], inputs.notes)


def _plausible(inputs: Inputs, question: FleetQuestion, model: str | None, params: str | None, gpu_name: str | None) -> list[str]:
    """Warnings about rates that only just fit the hardware; faults for those that cannot."""
    profile = asking.gpu(inputs, gpu_name)
    if profile is None:
        return []
    active = asking.active_params(inputs, model, params)
    train = apply("training_flops_per_token", matching.training_flops_per_token, active_params=active)
    decode = apply("generation_flops_per_token", matching.generation_flops_per_token, active_params=active)
    found = [
        asking.check_mfu(inputs, question.consumption, train, question.trainer_gpus, profile, "the trainer's consumption"),
        asking.check_mfu(inputs, question.instance_rate, decode, question.gpus_per_instance, profile, "an instance's rate"),
    ]
    return [warning for warning in found if warning]
