"""`rlsize backlog`: how fast samples pile up, and how stale they get."""

from __future__ import annotations

from typing import Annotated

from rlsize.commands import asking, flags, predicted
from rlsize.estimates.backlog import BacklogQuestion, grow_backlog
from rlsize.facts.headroom import PLAIN_HEADROOM
from rlsize.reports.backlog import backlog_report
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.command import quantity
from rlsize.shell.inputs import Inputs
from rlsize.shell.rates import load
from rlsize.shell.rates import trainer_gpus as planned_trainer


def backlog(
    scenario: flags.ScenarioFile = None,
    instances: flags.Instances = None,
    per_instance: flags.PerInstance = None,
    accept_lower_bound: flags.AcceptLowerBound = False,
    headroom: flags.Headroom = None,
    consume: flags.Consume = None,
    batch_tokens: flags.BatchTokens = None,
    train_seconds: flags.TrainSeconds = None,
    prompts: flags.Prompts = None,
    group: flags.Group = None,
    response_tokens: flags.ResponseTokens = None,
    tokens_per_trained_token: flags.Waste = None,
    oversampling: flags.Oversampling = None,
    kept_fraction: flags.KeptFraction = None,
    dropped_fraction: flags.DroppedFraction = None,
    seconds: Annotated[str | None, quantity("--seconds", "Time since the backlog was empty: 600, 10 min.")] = None,
    max_staleness: Annotated[str | None, quantity("--max-staleness", "Staleness cap in optimizer steps, k.")] = None,
    samples: Annotated[str | None, quantity("--samples", "Samples per optimizer step.")] = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    trainer_gpus: flags.TrainerGpus = None,
    model: flags.ModelName = None,
    params: flags.Params = None,
    gpu: flags.GpuName = None,
    in_flight: Annotated[str | None, quantity("--in-flight", "Samples being generated.")] = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How fast samples pile up, and how stale they get.

    Example:  rlsize backlog --instances 15 --per-instance 4000 --consume 39321.6 --batch-tokens 786432 --seconds 600
    """
    inputs = Inputs(scenario, profiles)
    predicted.offer(
        inputs, calibration, model=model, gpu=gpu, gpus_per_instance=gpus_per_instance, trainer_gpus=trainer_gpus
    )
    load(inputs, per_instance, accept_lower_bound=accept_lower_bound)
    batch = asking.batch_tokens(inputs, batch_tokens, prompts, group, response_tokens)
    consumption = asking.consumption(inputs, consume, batch, asking.train_seconds(inputs, train_seconds))
    rate, derate = asking.instance_rate(inputs, per_instance, headroom, default_headroom=PLAIN_HEADROOM)
    size = asking.gpus_per_instance(inputs, gpus_per_instance)
    question = BacklogQuestion(
        instances=asking.instances(inputs, instances, size),
        instance_rate=rate,
        headroom=derate,
        consumption=consumption,
        tokens_generated_per_trained_token=asking.waste(
            inputs, tokens_per_trained_token, oversampling, kept_fraction, dropped_fraction
        ),
        batch_tokens=batch,
        seconds=inputs.number("seconds", "--seconds", seconds, flags.SECONDS),
        max_staleness=inputs.number(
            "max_staleness_steps", "--max-staleness", max_staleness, flags.STALENESS, scenario="placement.max_staleness"
        ),
        samples_per_step=asking.samples(inputs, samples),
        in_flight=inputs.number("in_flight_samples", "--in-flight", in_flight, flags.STALENESS),
    )
    inputs.need(question.instances, "give the number of rollout instances")
    pool = planned_trainer(inputs, trainer_gpus)
    warnings = asking.implausible(
        inputs,
        asking.gpu(inputs, gpu),
        asking.active_params(inputs, model, params),
        (consumption, pool, "the trainer's consumption"),
        (rate, size, "an instance's rate"),
    )
    inputs.settle()
    answer = grow_backlog(question, asking.random_for(question, seed))
    return backlog_report(answer, inputs.shown(), [*inputs.warnings, *warnings], inputs.notes)
