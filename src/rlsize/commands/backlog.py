"""`rlsize backlog`: how fast samples pile up, and how stale they get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.headroom import PLAIN_HEADROOM
from rlsize.loop.instance_count import instances
from rlsize.loop.plausible import judge
from rlsize.loop.rates import waste
from rlsize.loop.sides import fleet_gpus, instance_size, sides
from rlsize.loop.workload import samples
from rlsize.planner.backlog import BacklogQuestion, grow_backlog
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Report
from rlsize.reports.running_loop import bounded
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, CHECKS, MATCH, REFUSED, WASTE, Unassumed, asks
from rlsize.shell.rates import trainer_gpus
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.facts.figure import Figure
    from rlsize.planner.backlog import BacklogAnswer

# AReaL (arXiv:2505.24298), a 1.5B model on AIME24: 42.0 on policy. At a staleness of 4, 8 and 16 steps decoupled PPO
# reaches 42.2, 41.0 and 38.7, plain PPO 23.3, 35.7 and 35.8.
_SAFE_STALENESS = 8


@asks(
    Inputs=(
        "instances", *MATCH, ("backlog_seconds", "--seconds"), Unassumed("max_staleness"), "samples_per_step",
        "in_flight_samples", "gpus_per_instance", "trainer_gpus", *ANSWER,
    ),
    Waste=WASTE,
    Model_and_GPU=CHECKS,
    Refused=REFUSED,
)  # fmt: skip
def backlog(inputs: Inputs) -> Report:
    """
    How fast samples pile up, and how stale they get.

    Example:  rlsize backlog --instances 15 --per-instance 4000 --consume 39321.6 --batch-tokens 786432 --seconds 600
    """
    both = sides(inputs, full=PLAIN_HEADROOM)
    size = instance_size(inputs, both)
    question = BacklogQuestion(
        instances=instances(inputs, fleet_gpus(inputs, both), size),
        instance_rate=both.rate,
        headroom=both.headroom,
        consumption=both.consumption,
        tokens_generated_per_trained_token=waste(inputs),
        batch_tokens=both.batch,
        seconds=inputs.ask("backlog_seconds"),
        max_staleness=inputs.ask("max_staleness", assume=False),
        samples_per_step=samples(inputs),
        in_flight=inputs.ask("in_flight_samples"),
    )
    inputs.need(question.instances, "give the number of rollout instances")
    if both.loop is None:
        pool = both.trainer_gpus or trainer_gpus(inputs)
        judge(inputs, "trainer", both.consumption, pool, "the trainer's consumption")
        judge(inputs, "rollout", both.rate, size, "an instance's rate")
    inputs.settle()
    answer = grow_backlog(question, both.draws(inputs, question))
    return bounded(_report(inputs, answer, both.turns), both.bound)


def _report(inputs: Inputs, answer: BacklogAnswer, turns: str) -> Report:
    found = {figure.key: figure for figure in answer.results}
    given = {figure.key: figure for figure in inputs.shown()}
    return Report(
        headline=_headline(found, given, turns),
        results=answer.results,
        chart=_chart(answer, found, given),
        **inputs.told(warnings=_stale(found), notes=_notes(found, given)),
    )


def _headline(found: dict[str, Figure], given: dict[str, Figure], turns: str) -> str:
    growth = found["backlog_tokens_per_second"]
    if growth.number == 0:
        return "No backlog: the trainer takes samples at least as fast as the fleet makes them."
    if turns:
        told = f"the two sides of a loop that is {turns} take turns, and nothing piles up"
        return f"No backlog: {told}. Where both ran all the time, it would grow by {show(growth.value, growth.key)}."
    text = f"The backlog grows by {show(growth.value, growth.key)} without backpressure"
    if not found["backlog_tokens"].known:
        return f"{text}."
    tokens, seconds = show(found["backlog_tokens"].value), show(given["backlog_seconds"].value, "_seconds")
    after, newest = f"{text}: {tokens} tokens after {seconds}", found["new_sample_staleness_steps"]
    return f"{after}, {show(newest.value)} optimizer steps deep." if newest.known else f"{after}."


def _notes(found: dict[str, Figure], given: dict[str, Figure]) -> list[str]:
    if found["backlog_tokens_per_second"].number == 0:
        return []
    both = (
        "Two numbers, both right: how late a sample that joins the queue now will be trained, and how long the one "
        "at its head has waited already."
    )
    cap = (
        "Times until the cap are for a cap of 1 step; a cap of k steps is reached k times as late (--max-staleness k)."
    )
    return [both] if _capped(given) else [both, cap]


def _capped(given: dict[str, Figure]) -> bool:
    """Whether somebody said the staleness cap."""
    return "max_staleness" in given and given["max_staleness"].provenance != "default"


def _stale(found: dict[str, Figure]) -> list[str]:
    newest = found["new_sample_staleness_steps"]
    if newest.known and newest.number > _SAFE_STALENESS:
        known = "AReaL (arXiv:2505.24298) lost accuracy beyond 8 steps with decoupled PPO, from 4 on with plain PPO"
        cure = "cap the queue (backpressure), shrink the fleet, or speed the trainer up"
        return [f"{show(newest.value)} steps of staleness, where {known}: {cure}"]
    return []


def _chart(answer: BacklogAnswer, found: dict[str, Figure], given: dict[str, Figure]) -> Chart | None:
    if not answer.history:
        return None
    newest, oldest = ([(point[0], point[side]) for point in answer.history] for side in (1, 2))
    cap = given["max_staleness"] if _capped(given) else None
    growth = show(found["backlog_tokens_per_second"].value, "_tokens_per_second")
    return Chart(
        title=f"Without backpressure the queue gains {growth}, and every sample ages",
        x_label="seconds since the queue was empty",
        y_label="optimizer steps",
        series=(
            Series.of("staleness of a newly queued sample", newest, "rollout"),
            Series.of("age of the oldest queued sample", oldest, "trainer"),
        ),
        marks=(Mark(at=cap.number, label=f"staleness cap: {show(cap.value)} steps", axis="y"),) if cap else (),
    )
