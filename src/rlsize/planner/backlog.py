"""How fast samples pile up when the fleet outruns the trainer, and how stale they get."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.estimates.figures import with_bands
from rlsize.estimates.flow import flow_of
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass
from rlsize.rules.queue import RULES

if TYPE_CHECKING:
    from random import Random

    from rlsize.estimates.figures import Draw


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
    max_staleness: Figure = absent("max_staleness", "--max-staleness")
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


_TOLD = (
    "backlog_tokens_per_second", "backlog_tokens", "new_sample_staleness_steps", "oldest_sample_age_steps",
    "oldest_sample_age_seconds", "new_sample_reaches_cap_seconds", "oldest_sample_reaches_cap_seconds",
    "queue_allowed_samples", "stall_absorbed_seconds", "supply_tokens_per_second", "required_tokens_per_second",
)  # fmt: skip
_NEVER = "a growing backlog (never reached)"
_ONE_STEP = Figure(key="max_staleness", value=1, provenance="default")  # times to the cap are per step of it


def grow_backlog(question: BacklogQuestion, random: Random | tuple[Draw, ...] | None = None) -> BacklogAnswer:
    """The backlog after a time, how stale samples get, and when a cap is reached."""
    return BacklogAnswer(results=with_bands(_results(question), random), history=_history(question))


def _results(question: BacklogQuestion) -> list[Figure]:
    cap = question.max_staleness
    flow = flow_of(question, RULES, counted_staleness=cap if cap.known else _ONE_STEP)
    growth = flow["backlog_tokens_per_second"]
    steady = growth.known and growth.number == 0
    return [absent(key, _NEVER) if steady and "reaches_cap" in key else flow[key] for key in _TOLD]


def _history(question: BacklogQuestion, points: int = 60) -> tuple[tuple[float, float, float], ...]:
    if not question.seconds.known or not question.batch_tokens.known:
        return ()
    history = []
    for index in range(points + 1):
        moment = replace(question.seconds, value=question.seconds.number * index / points)
        flow = flow_of(replace(question, seconds=moment), RULES)
        ages = (flow[key].number for key in ("new_sample_staleness_steps", "oldest_sample_age_steps"))
        history.append((moment.number, *ages))
    return tuple(history)
