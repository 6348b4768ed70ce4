"""`rlsize iteration`: how long one iteration takes, and how many fit in a day."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from rlsize.commands import asking, flags, predicted
from rlsize.equations import matching
from rlsize.planner.iteration import (
    COLOCATED,
    NOTHING_THROWN_AWAY,
    OVERLAPPED,
    SYNC,
    IterationQuestion,
    Source,
)
from rlsize.estimates.working import apply
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure, absent
from rlsize.planner.iteration_plan import plan_iteration
from rlsize.reports.iteration import iteration_report
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.command import quantity
from rlsize.shell.inputs import Inputs
from rlsize.shell.rates import load
from rlsize.shell.rates import trainer_gpus as planned_trainer

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLLOUT = "Rollout (groups, a token rate, or its time)"
MODES: Mapping[str, str] = MappingProxyType(
    {
        SYNC: SYNC, OVERLAPPED: OVERLAPPED, COLOCATED: COLOCATED,
        "disaggregated": SYNC, "partial": SYNC, "one-step-off": OVERLAPPED, "async": OVERLAPPED,
    }
)  # fmt: skip

_SECONDS = Quantity("s", least=1e-6)
_LENGTH = Quantity("token", least=1.0)
_PART_ROUND = 1e-9
_LEAST = 1e-3  # a rate or a headroom below it is a slip, and its times are beyond floats


def iteration(
    scenario: flags.ScenarioFile = None,
    samples: Annotated[str | None, quantity("--samples", "Samples per optimizer step: prompts x group.")] = None,
    prompts: flags.Prompts = None,
    group: flags.Group = None,
    train_seconds: flags.TrainSeconds = None,
    mode: Annotated[
        str | None, quantity("--mode", "sync, overlapped or colocated; sync when not given.", metavar="NAME")
    ] = None,
    instances: Annotated[str | None, quantity("--instances", "Rollout instances.", ROLLOUT)] = None,
    group_seconds: Annotated[
        str | None, quantity("--group-seconds", "Time of one group on one instance.", ROLLOUT)
    ] = None,
    per_instance: Annotated[
        str | None,
        quantity(
            "--per-instance",
            "Response tokens per second of one instance: a number or a rates file.",
            ROLLOUT,
            "NUMBER|FILE",
        ),
    ] = None,
    response_tokens: Annotated[
        str | None, quantity("--response-tokens", "Mean response length in tokens.", ROLLOUT)
    ] = None,
    headroom: Annotated[str | None, quantity("--headroom", "Derating of that rate, 0 to 1.", ROLLOUT)] = None,
    accept_lower_bound: flags.AcceptLowerBound = False,
    tokens_per_trained_token: flags.Waste = None,
    rollout_seconds: Annotated[
        str | None, quantity("--rollout-seconds", "Time to generate the samples of a step.", ROLLOUT)
    ] = None,
    sync_seconds: Annotated[
        str | None, quantity("--sync-seconds", "Weight sync per step, as far as nothing hides it.")
    ] = None,
    swap_seconds: Annotated[
        str | None,
        quantity("--swap-seconds", "Seconds that a colocated step spends changing over, both ways together."),
    ] = None,
    rollout_gpus: flags.RolloutGpus = None,
    trainer_gpus: flags.TrainerGpus = None,
    verify_seconds: Annotated[
        str | None, quantity("--verify-seconds", "Time of one verifier to score one sample.")
    ] = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How long one iteration takes, and how many fit in a day.

    Example:  rlsize iteration --instances 8 --group 8 --group-seconds 3 --samples 256 --train-seconds 5
    """
    inputs = Inputs(scenario, profiles)
    predicted.offer(
        inputs,
        calibration,
        trainer_gpus=trainer_gpus,
        rollout_gpus=rollout_gpus,
        response_tokens=response_tokens,
        samples_per_step=samples,
        prompts_per_step=prompts,
    )
    chosen = inputs.word("mode", "--mode", mode, MODES, scenario="placement.mode", default=SYNC) or SYNC
    source = _source(
        inputs, {"--rollout-seconds": rollout_seconds, "--group-seconds": group_seconds, "--per-instance": per_instance}
    )
    group_size = inputs.number("group_size", "--group", group, flags.POSITIVE, scenario="workload.group_size")
    if source == "rate":
        load(inputs, per_instance, accept_lower_bound=accept_lower_bound)
    rate, derate = _rate(inputs, source, per_instance, headroom)
    size = asking.gpus_per_instance(inputs, None)
    question = IterationQuestion(
        mode=MODES[chosen],
        source=source,
        samples=_samples(inputs, samples, prompts),
        tokens_generated_per_trained_token=_waste(inputs, source, tokens_per_trained_token),
        group_size=group_size,
        instances=asking.instances(inputs, instances, size),
        group_seconds=inputs.number(
            "group_seconds", "--group-seconds", group_seconds, _SECONDS, scenario="rates.group_seconds"
        ),
        instance_rate=rate,
        headroom=derate,
        response_tokens=inputs.number(
            "response_tokens", "--response-tokens", response_tokens, _LENGTH, scenario="workload.response_tokens.mean"
        ),
        rollout_seconds=inputs.number("rollout_seconds", "--rollout-seconds", rollout_seconds, _SECONDS),
        train_seconds=predicted.train_seconds(inputs, asking.train_seconds(inputs, train_seconds)),
        sync_seconds=_sync(inputs, sync_seconds),
        swap_seconds=inputs.number("swap_seconds", "--swap-seconds", swap_seconds, flags.SECONDS_OR_NONE),
        verify_seconds=inputs.number("verify_seconds", "--verify-seconds", verify_seconds, _SECONDS),
        rollout_gpus=inputs.number(
            "rollout_gpus", "--rollout-gpus", rollout_gpus, flags.COUNT, scenario="placement.rollout_gpus"
        ),
        trainer_gpus=planned_trainer(inputs, trainer_gpus),
    )
    _check(inputs, question)
    _say_twice(inputs, question)
    _check_mfu(inputs, question, size)
    inputs.settle()
    return iteration_report(
        plan_iteration(question, asking.random_for(question, seed)), inputs.shown(), inputs.warnings, inputs.notes
    )


def _source(inputs: Inputs, said: dict[str, str | None]) -> Source:
    """What the rollout time follows from: the one flag that was given, else what the scenario has."""
    kinds: dict[str, Source] = {"--rollout-seconds": "said", "--group-seconds": "groups", "--per-instance": "rate"}
    given = [flag for flag, text in said.items() if text is not None]
    if len(given) > 1:
        inputs.fault("say the rollout time once", " ".join(given), "each of them gives it; keep one")
    if given:
        return kinds[given[0]]
    if inputs.said("rates.group_seconds") is None and inputs.said("rates.instance_tokens_per_second") is not None:
        return "rate"
    unsaid = inputs.said("rates.group_seconds") is None
    return "rate" if unsaid and predicted.wanted(inputs) else "groups"


def _check_mfu(inputs: Inputs, question: IterationQuestion, size: Figure) -> None:
    """Refuse rates of a scenario that its GPUs cannot reach."""
    batch = apply(
        "batch_tokens",
        matching.tokens_per_step,
        prompts=question.samples,
        group_size=1.0,
        response_tokens=question.response_tokens,
    )
    trained = apply(
        "consumption_tokens_per_second",
        matching.consumption,
        tokens_per_step=batch,
        train_seconds=question.train_seconds,
    )
    inputs.warnings += asking.implausible(
        inputs,
        asking.gpu(inputs, None),
        asking.active_params(inputs, None, None),
        (replace(trained, source="--train-seconds"), question.trainer_gpus, "the trainer's consumption"),
        (question.instance_rate, size, "an instance's rate"),
    )


def _rate(inputs: Inputs, source: Source, text: str | None, headroom: str | None) -> tuple[Figure, Figure]:
    if source != "rate":
        if headroom is not None:
            inputs.fault(
                "derates a token rate, and there is none", "--headroom", "give --per-instance, or leave it out"
            )
        return absent("instance_tokens_per_second", "--per-instance"), absent("headroom", "--headroom")
    found = asking.instance_rate(inputs, text, headroom)
    for figure in found:
        if figure.known and figure.number < _LEAST:
            inputs.fault(
                f"{figure.value:g} is too small; it must be at least {_LEAST:g}", figure.source, "check the number"
            )
    return found


def _samples(inputs: Inputs, samples: str | None, prompts: str | None) -> Figure:
    """Samples per optimizer step: said, or prompts x group."""
    if samples is not None and prompts is not None:
        inputs.fault(
            "say the batch once",
            "--samples --prompts",
            "keep --prompts where you count prompts, --samples where you count samples",
        )
    if samples is None:
        inputs.number("prompts_per_step", "--prompts", prompts, flags.POSITIVE, scenario="workload.prompts_per_step")
    return asking.samples(inputs, samples)


def _waste(inputs: Inputs, source: Source, text: str | None) -> Figure:
    """Tokens generated per trained token; a rollout time that was said holds what is thrown away."""
    if source != "said":
        return asking.waste(inputs, text)
    if text is not None:
        todo = "leave it out, or give what the rollout time follows from"
        inputs.fault("is part of a rollout time that is said", "--tokens-per-trained-token", todo)
    return NOTHING_THROWN_AWAY


def _sync(inputs: Inputs, text: str | None) -> Figure:
    every = inputs.said("weight_sync.every")
    figure = predicted.sync_seconds(
        inputs,
        inputs.number(
            "sync_seconds",
            "--sync-seconds",
            text,
            flags.SECONDS_OR_NONE,
            scenario="rates.sync_seconds",
            default=0.0,
            why="no sync is counted",
        ),
    )
    if text is None and every and every > 1 and figure.known and figure.number > 0:
        inputs.notes.append(
            f"This is an iteration with a weight sync; with one every {every} steps the others are shorter by it."
        )
    return figure


def _check(inputs: Inputs, question: IterationQuestion) -> None:
    """What each way to say the rollout time cannot do without."""
    todo = "give the busy trainer seconds per optimizer step"
    inputs.need(question.train_seconds, todo + predicted.why_not(inputs, "train_seconds"))
    if question.source == "said":
        return
    inputs.need(question.samples, "give --samples, or --prompts with --group")
    inputs.need(question.instances, "give the number of rollout instances")
    if question.source == "rate":
        inputs.need(
            question.response_tokens, "give the mean response length: a rate counts tokens, a batch counts samples"
        )
        return
    inputs.need(question.group_size, "give the samples of one prompt")
    inputs.need(
        question.group_seconds, "give --group-seconds; or --per-instance with --response-tokens; or --rollout-seconds"
    )
    _warn_of_part_rounds(inputs, question)


def _warn_of_part_rounds(inputs: Inputs, question: IterationQuestion) -> None:
    """The rate of whole rounds of groups is too quick for a batch that does not fill its last round."""
    if not (question.samples.known and question.instances.known and question.group_size.known):
        return
    round_ = question.instances.number * question.group_size.number
    rounds = question.samples.number / round_
    if abs(rounds - round(rounds)) > _PART_ROUND:
        inputs.warnings.append(
            f"{question.samples.number:g} samples are {rounds:.3g} rounds of {round_:g} (instances x group): a part of "
            "a round takes as long as a whole one, so the rollout takes longer than the mean rate says"
        )


def _say_twice(inputs: Inputs, question: IterationQuestion) -> None:
    """Headroom and sync seconds overlap: both may stand for the pauses of weight syncs."""
    both = question.source == "rate" and question.sync_seconds.known and question.sync_seconds.number > 0
    if both and question.headroom.known and question.headroom.number < 1:
        inputs.notes.append(
            "Headroom covers sync pauses too: with sync seconds beside it they count twice, unless it leaves them out."
        )
