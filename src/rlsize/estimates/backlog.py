"""How fast samples pile up when the fleet outruns the trainer, and how stale they get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import imbalance, matching
from rlsize.estimates.working import apply, with_bands
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogQuestion:
    """
    What is known about a fleet that may outrun its trainer.

    Args:
        instances: Rollout instances. [instance]
        instance_rate: Response tokens per second of one instance. [token/s/instance]
        headroom: Derating; 1 shows the worst case, since a backlog grows fastest at nameplate. [1]
        consumption: Response tokens trained per second. [token/s]
        tokens_generated_per_trained_token: Waste factor. [1]
        batch_tokens: Response tokens per optimizer step. [token]
        seconds: Time since the backlog was empty. [s]
        max_staleness: Staleness cap. [step]
        samples_per_step: Samples per optimizer step. [sample]
        in_flight: Samples being generated. [sample]
    """

    instances: Figure
    instance_rate: Figure
    headroom: Figure
    consumption: Figure
    tokens_generated_per_trained_token: Figure
    batch_tokens: Figure = absent("batch_tokens", "--batch-tokens")
    seconds: Figure = absent("seconds", "--seconds")
    max_staleness: Figure = absent("max_staleness_steps", "--max-staleness")
    samples_per_step: Figure = absent("samples_per_step", "--samples")
    in_flight: Figure = absent("in_flight_samples", "--in-flight")


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogAnswer:
    """
    Figures, and staleness over time for the picture.

    Args:
        results: Growth, backlog, the two staleness numbers and when each reaches the cap; what the budget allows.
        history: Time, staleness of a newly queued sample, age of the oldest queued one, both in steps.
    """

    results: tuple[Figure, ...]
    history: tuple[tuple[float, float, float], ...]


def grow_backlog(question: BacklogQuestion, random: Random | None = None) -> BacklogAnswer:
    """The backlog after a time, how stale samples get, and when a cap is reached."""
    return BacklogAnswer(results=tuple(with_bands(_results, question, random)), history=_history(question))


def _results(question: BacklogQuestion) -> list[Figure]:
    required = apply(
        "required_tokens_per_second",
        matching.required_supply,
        consumption=question.consumption,
        tokens_generated_per_trained_token=question.tokens_generated_per_trained_token,
    )
    supply = apply(
        "supply_tokens_per_second",
        matching.fleet_supply,
        instances=question.instances,
        instance_rate=question.instance_rate,
        headroom=question.headroom,
    )
    growth = apply("backlog_tokens_per_second", imbalance.backlog_growth, supply=supply, required_supply=required)
    backlog = apply("backlog_tokens", imbalance.backlog_after, growth=growth, seconds=question.seconds)
    taken = apply(
        "generated_tokens_per_step",
        matching.required_supply,
        consumption=question.batch_tokens,
        tokens_generated_per_trained_token=question.tokens_generated_per_trained_token,
    )
    step = apply(
        "train_seconds", matching.train_time, tokens_per_step=question.batch_tokens, consumption=question.consumption
    )
    newest = apply("new_sample_staleness_steps", imbalance.new_sample_staleness, backlog=backlog, tokens_per_step=taken)
    age = apply(
        "oldest_sample_age_seconds",
        imbalance.oldest_sample_age,
        seconds=question.seconds,
        supply=supply,
        required_supply=required,
    )
    oldest = apply("oldest_sample_age_steps", imbalance.age_in_steps, age_seconds=age, seconds_per_step=step)
    return [
        replace(growth, key="backlog_tokens_per_second"),
        backlog,
        newest,
        oldest,
        age,
        *_caps(question, growth, taken, step, supply, required),
        *_budget(question, step),
        supply,
        required,
    ]


def _caps(
    question: BacklogQuestion, growth: Figure, taken: Figure, step: Figure, supply: Figure, required: Figure
) -> list[Figure]:
    """When each kind of staleness reaches the cap; per step of cap where no cap is given."""
    cap = (
        question.max_staleness
        if question.max_staleness.known
        else Figure(key="max_staleness_steps", value=1, provenance="default")
    )
    keys = ("new_sample_reaches_cap_seconds", "oldest_sample_reaches_cap_seconds")
    if growth.known and growth.number == 0:
        return [
            Figure(key=key, value=None, provenance="predicted", missing="a growing backlog (never reached)")
            for key in keys
        ]
    new = apply(
        keys[0], imbalance.seconds_until_new_sample_is_stale, max_staleness=cap, tokens_per_step=taken, growth=growth
    )
    old = apply(
        keys[1],
        imbalance.seconds_until_oldest_is_stale,
        max_staleness=cap,
        seconds_per_step=step,
        supply=supply,
        required_supply=required,
    )
    return [new, old]


def _budget(question: BacklogQuestion, step: Figure) -> list[Figure]:
    """The queue that the staleness budget allows, and the stall that it absorbs."""
    queue = apply(
        "queue_allowed_samples",
        imbalance.queue_allowed,
        max_staleness=question.max_staleness,
        samples_per_step=question.samples_per_step,
        in_flight=question.in_flight,
    )
    stall = apply(
        "stall_absorbed_seconds",
        imbalance.stall_absorbed,
        queue_samples=queue,
        samples_per_step=question.samples_per_step,
        seconds_per_step=step,
    )
    return [queue, stall]


def _history(question: BacklogQuestion, points: int = 60) -> tuple[tuple[float, float, float], ...]:
    if not question.seconds.known or not question.batch_tokens.known:
        return ()
    history = []
    for index in range(points + 1):
        moment = replace(question.seconds, value=question.seconds.number * index / points)
        found = {figure.key: figure for figure in _results(replace(question, seconds=moment))}
        history.append(
            (moment.number, found["new_sample_staleness_steps"].number, found["oldest_sample_age_steps"].number)
        )
    return tuple(history)
