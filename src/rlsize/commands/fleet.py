"""`rlsize fleet`: how many rollout instances match this trainer."""

from __future__ import annotations

from dataclasses import replace

from rlsize.commands import asking, flags, predicted
from rlsize.facts.figure import Figure, absent
from rlsize.planner.caching import ROUTINGS, CachingQuestion, caching_savings
from rlsize.planner.fleet import FleetAnswer, FleetQuestion, size_fleet
from rlsize.reports.fleet import fleet_report
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.inputs import Inputs
from rlsize.shell.rates import load, observed_instances
from rlsize.shell.rates import trainer_gpus as planned_trainer


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
    oversampling: flags.Oversampling = None,
    kept_fraction: flags.KeptFraction = None,
    dropped_fraction: flags.DroppedFraction = None,
    instances: flags.Instances = None,
    prompt_tokens: flags.PromptTokens = None,
    block_size: flags.BlockSize = None,
    routing: flags.RoutingName = None,
    hit_ratio: flags.HitRatio = None,
    prefill_rate: flags.PrefillRate = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    trainer_gpus: flags.TrainerGpus = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    model: flags.ModelName = None,
    params: flags.Params = None,
    gpu: flags.GpuName = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How many rollout instances match this trainer.

    Example:  rlsize fleet --consume 39321 --per-instance 4000
    """
    inputs = Inputs(scenario, profiles)
    predicted.offer(
        inputs,
        calibration,
        model=model,
        gpu=gpu,
        prompt_tokens=prompt_tokens,
        gpus_per_instance=gpus_per_instance,
        trainer_gpus=trainer_gpus,
    )
    load(inputs, per_instance, accept_lower_bound=accept_lower_bound)
    batch = asking.batch_tokens(inputs, batch_tokens, prompts, group, response_tokens)
    train = asking.train_seconds(inputs, train_seconds)
    consumption = asking.consumption(inputs, consume, batch, train)
    rate, derate = asking.instance_rate(inputs, per_instance, headroom)
    rollout_price, trainer_price = asking.gpu_hours(inputs, gpu_hour, rollout_gpu_hour, trainer_gpu_hour, price)
    count = inputs.number("instances", "--instances", instances, flags.COUNT, scenario="placement.instances")
    question = FleetQuestion(
        consumption=consumption,
        instance_rate=rate,
        headroom=derate,
        tokens_generated_per_trained_token=asking.waste(
            inputs, tokens_per_trained_token, oversampling, kept_fraction, dropped_fraction
        ),
        instances=count if count.known else None,
        observed_instances=observed_instances(inputs),
        batch_tokens=batch,
        gpus_per_instance=asking.gpus_per_instance(inputs, gpus_per_instance),
        trainer_gpus=planned_trainer(inputs, trainer_gpus),
        rollout_gpu_hour=rollout_price,
        trainer_gpu_hour=trainer_price,
    )
    warnings = asking.implausible(
        inputs,
        asking.gpu(inputs, gpu),
        asking.active_params(inputs, model, params),
        (question.consumption, question.trainer_gpus, "the trainer's consumption"),
        (question.instance_rate, question.gpus_per_instance, "an instance's rate"),
    )
    caching = _caching(inputs, question, prompt_tokens, block_size, routing, hit_ratio, prefill_rate)
    inputs.settle()
    prices = {figure.source for figure in (rollout_price, trainer_price) if "price profile" in figure.source}
    inputs.notes += [f"Per GPU-hour: {source}." for source in sorted(prices)]
    answer = size_fleet(question, asking.random_for(question, seed))
    savings = _savings(caching, answer) if caching else []
    _check_savings(inputs, savings)
    return fleet_report(answer, inputs.shown(), [*inputs.warnings, *warnings], inputs.notes, savings)


def _caching(
    inputs: Inputs,
    question: FleetQuestion,
    prompt: str | None,
    block: str | None,
    routing: str | None,
    hits: str | None,
    prefill: str | None,
) -> CachingQuestion | None:
    """The question about prefix caching; None where the prompts are not known."""
    question_of = CachingQuestion(
        group_size=inputs.used.get("group_size", absent("group_size", "--group")),
        prompt_tokens=inputs.number(
            "prompt_tokens", "--prompt-tokens", prompt, flags.TOKENS, scenario="workload.prompt_tokens"
        ),
        response_tokens=inputs.used.get("response_tokens", absent("response_tokens", "--response-tokens")),
        block_tokens=inputs.number(
            "block_tokens",
            "--block-size",
            block,
            flags.TOKENS,
            scenario="rollout.block_size",
            default=16,
            why="vLLM's default on GPUs",
        ),
        routing=inputs.word("routing", "--routing", routing, ROUTINGS, scenario="rollout.routing", default="affine"),
        instances=absent("instances", "--instances"),
        hit_fraction=inputs.number("hit_fraction", "--hit-ratio", hits, flags.HIT_RATIO),
        prefill_rate=inputs.number("prefill_tokens_per_second", "--prefill-rate", prefill, flags.TOKEN_RATE),
        instance_rate=question.instance_rate,
        headroom=question.headroom,
        required=absent("required_tokens_per_second", "--consume"),
    )
    if question_of.prompt_tokens.known:
        return question_of
    for key in ("block_tokens", "routing"):  # defaults of a question that is not asked
        inputs.used.pop(key, None)
    return None


def _savings(caching: CachingQuestion, answer: FleetAnswer) -> list[Figure]:
    found = {figure.key: figure for figure in answer.results}
    return caching_savings(replace(caching, instances=found["instances"], required=found["required_tokens_per_second"]))


def _check_savings(inputs: Inputs, savings: list[Figure]) -> None:
    """Refuse inputs that leave no time for decoding: prefill alone would take longer than there is."""
    share = next((figure for figure in savings if figure.key == "prefill_time_fraction" and figure.known), None)
    if share is not None and share.number >= 1.0:
        inputs.fault(
            f"prefill alone would take {100 * share.number:.0f} % of the time",
            "--prefill-rate",
            "check --prefill-rate, --prompt-tokens, --response-tokens and --hit-ratio against the instance rate",
        )
        inputs.settle()
