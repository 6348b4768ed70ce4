"""A capacity review: a plan with all that a reviewer asks of it, as a page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rlsize.commands.report.widget import Start, lesson_widget
from rlsize.equations import decode_step, matching, money, rollout_batch
from rlsize.planner.evaluation import evaluation
from rlsize.reports.page import Page, Section, figures_table
from rlsize.reports.plan import GOALS, headline, place_words, tight, verdicts
from rlsize.reports.plan_chart import front_chart, split_chart, tornado_chart
from rlsize.reports.plan_tables import (
    candidates,
    front_table,
    limits_table,
    next_gpus,
    rejections,
    sensitivity,
    simulated_ranks,
)
from rlsize.reports.report import Column, Table
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.commands.report.widget import Phases
    from rlsize.facts.figure import Figure
    from rlsize.planner.choice import Choice
    from rlsize.planner.options import Placement
    from rlsize.planner.plan import Planned
    from rlsize.planner.simulation import Ranked
    from rlsize.reports.decision import Decision

T = TypeVar("T")

_MONTH, _HOUR, _RUNGS = 30, 3600.0, 6  # days, seconds; numbers of GPUs that are told

_KEY = (
    "step_seconds", "steps_per_day", "cost_per_step_usd", "gpus", "trainer_idle_fraction", "rollout_idle_fraction",
    "run_seconds", "cost_per_run_usd",
)  # fmt: skip
_PHASES: dict[str, Phases] = {"colocated": "colocated", "synchronous": "in turn"}
_ORDER = {"given": 0, "measured": 1, "predicted": 2, "default": 3}
_WINDOW = "several hundred optimizer steps"
_AGAIN = "Measure the side that the answer depends on most, calibrate with it, and plan again"
_GUARD = "Keep the plan as a baseline, and guard it in CI"


def review_page(
    answer: Planned,
    chosen: Choice,
    inputs: Sequence[Figure],
    *,
    title: str,
    question: str,
    command: str,
    made_with: str,
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
    ranked: Sequence[Ranked] = (),
    decision: Decision | None = None,
) -> Page:
    """
    The page of a capacity review.

    Args:
        answer: The plan.
        chosen: Its choice.
        inputs: What it was worked out from.
        title: What the page is about.
        question: What was asked; put into words where it is empty.
        command: The command that made it.
        made_with: Program, version and facts.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
        ranked: The best plans as the simulator ranks them.
        decision: What `plan` says of it, which stands first.
    """
    results = chosen.evaluation.results
    return Page(
        title=title,
        question=question or _question(answer, chosen),
        recommendation=f"Take {headline(chosen)}",
        facts=tuple(results[key] for key in _KEY if key in results and results[key].known),
        sections=(
            *([] if decision is None else [_decision(answer, chosen, decision)]),
            *_sections(answer, chosen, inputs, notes, ranked),
        ),
        widget=lesson_widget(_start(answer, chosen)),
        warnings=(*warnings, *tight(chosen)),
        command=command,
        made_with=made_with,
    )


def _question(answer: Planned, chosen: Choice) -> str:
    """The question in a sentence."""
    problem, space = answer.outlook.problem, answer.space
    what = problem.model.title if problem.model is not None else "this loop"
    where = f"{space.gpus:g} {chosen.best.place.trainer.gpu or 'GPUs'}" if space.gpus else "the pools that are offered"
    limits = f", within {len(space.limits)} limits" if space.limits else ""
    return f"How should {what} be trained on {where}: in which mode, split how, for {GOALS[chosen.objective]}{limits}?"


def _decision(answer: Planned, chosen: Choice, decision: Decision) -> Section:
    """What to take, what it costs beside the loop of today and other numbers of GPUs, and what would change it."""
    return Section(
        title="The decision",
        text=(*decision.take, *_today(chosen)),
        listed=(*(f"Cheapest: {one}" for one in decision.cheapest), *_worth(answer), *decision.change, *decision.why),
        tables=(_ladder(answer, chosen),),
    )


def _today(chosen: Choice) -> Iterator[str]:
    """What it costs to leave the loop as it is."""
    own, best = chosen.written, chosen.best
    if own is None or own.place == best.place:
        return
    key = "cost_per_step_usd" if "cost_per_step_usd" in best.results else "gpu_hours_per_step"
    more, unit = own.results[key] - best.results[key], "" if key == "cost_per_step_usd" else " GPU-hours"
    month = float(money.cost_per_run(cost_per_step=abs(more), steps=_MONTH * own.results["steps_per_day"]))
    sure = "which is too close to call" if own.close or own.equal else "the cost of waiting"
    yield (
        f"Today's loop, {own.place.words}, takes {show(own.results['step_seconds'], 'step_seconds')} a step; this one "
        f"{show(best.results['step_seconds'], 'step_seconds')}. For as many steps as today makes in a month of "
        f"{_MONTH} days it takes {show(month, key)}{unit} {'less' if more > 0 else 'more'}, {sure}."
    )


def _worth(answer: Planned) -> Iterator[str]:
    """From which worth of an hour on the next GPUs pay."""
    for one in answer.neighbours:
        cost, sooner = one.change.get("cost_per_step_usd"), -one.change["step_seconds"]
        if one.gpus > 0 and cost is not None and cost > 0 and sooner > 0:
            hour = float(money.cost_per_run(cost_per_step=cost, steps=_HOUR / sooner))
            side = "both sides" if one.place.shared else f"the {one.side}"
            yield f"Take {one.gpus:g} GPUs more for {side} where an hour sooner is worth {show(hour, '_usd')} or more."


def _ladder(answer: Planned, chosen: Choice) -> Table:
    """The quickest plan that each number of GPUs makes without waste, each with its band."""
    best = chosen.best.place
    steps = {family.gpus: family.place for family in reversed(answer.found.front)} | {float(best.gpus): best}
    places = [steps[gpus] for gpus in sorted(steps)]
    first = max(min(places.index(best) - _RUNGS // 2, len(places) - _RUNGS), 0)
    places = places[first : first + _RUNGS]
    found = [(place, evaluation(answer.outlook, place).results) for place in places]
    cost = "cost_per_step_usd" if found[0][1]["cost_per_step_usd"].known else "gpu_hours_per_step"
    keys = ("step_seconds", "steps_per_day", cost, "run_seconds", "cost_per_run_usd")
    told = [key for key in keys if found[0][1][key].known]
    cells = (
        Column("gpus", "GPUs", of=lambda row: float(row[0].gpus)),
        Column("plan", "plan", "left", of=lambda row: row[0].words),
        *(Column(key, words(key), of=partial(_figure, key)) for key in told),
    )
    return Table.of("What each number of GPUs gives", found, cells, marked=places.index(best))


def _figure(key: str, row: tuple[Placement, Mapping[str, Figure]]) -> Figure:
    return row[1][key]


def _sections(
    answer: Planned, chosen: Choice, inputs: Sequence[Figure], notes: Sequence[str], ranked: Sequence[Ranked]
) -> Iterator[Section]:
    found, known = answer.found, [figure for figure in chosen.evaluation.results.values() if figure.known]
    yield Section(
        title="The plan",
        text=(f"{place_words(chosen.best.place)}.",),
        tables=_there(
            _where(chosen.evaluation.placement),
            figures_table("What it gives", known, "80 % bands, on joint draws of all uncertain inputs"),
            limits_table(answer, chosen),
        ),
        pictures=_there(front_chart(answer, chosen), split_chart(answer, chosen)),
    )
    yield Section(
        title="Alternatives",
        listed=tuple(verdicts(answer, chosen)),
        tables=_there(candidates(chosen), simulated_ranks(chosen, ranked) if ranked else None, front_table(answer)),
    )
    yield Section(
        title="What the next GPUs would bring",
        text=("Each row changes one side by the next number of GPUs that it can take, all else as it is planned.",),
        tables=(next_gpus(answer),),
    )
    yield Section(
        title="What the answer depends on",
        text=("Each input by itself, moved over its band, or by a fifth where nobody gave it a spread.",),
        tables=_there(sensitivity(answer, chosen)),
        pictures=_there(tornado_chart(answer, chosen)),
    )
    yield Section(
        title="What was left out",
        text=(f"{found.worked_out:,} candidates were worked out; {found.feasible:,} keep all limits.",),
        tables=_there(rejections(answer)),
    )
    ordered = sorted(inputs, key=lambda figure: _ORDER.get(figure.provenance, len(_ORDER)))
    yield Section(
        title="Assumptions, and where they come from",
        text=("What was given or measured stands first, what was taken by default last: these are worth a look.",),
        tables=(figures_table("Inputs", ordered),),
        listed=tuple(notes),
    )
    yield Section(title="How to verify it after the change", listed=_checks(chosen), numbered=True)


def _there(*found: T | None) -> tuple[T, ...]:
    return tuple(one for one in found if one is not None)


def _where(placement: Mapping[str, Figure]) -> Table:
    """Mode, GPUs and layouts; degrees of one are left out."""
    told = (one for key, one in placement.items() if not (key.endswith("_parallel") and one.value == 1))
    what = Column("placement", "what", "left", of=lambda figure: words(figure.key))
    return Table.of("Where it runs", told, (what, Column("value", "as planned", of=lambda figure: figure)))


def _checks(chosen: Choice) -> tuple[str, ...]:
    """How to see, after the change, that it did what it should."""
    results = chosen.evaluation.results
    cost, cap = results["cost_per_step_usd"], results["staleness_steps"].number
    return (
        "Record the allocation and its cost as they are, as the target of a rollback.",
        f"Make the change, and wait for {_WINDOW}.",
        f"Compare the step: {_high(results['step_seconds'])} or less is inside the band of this plan.",
        f"Compare the share of a step in which the trainer waits: at most {_high(results['trainer_idle_fraction'])}.",
        f"See that the backlog is bounded, and no sample trained is more than {cap:g} optimizer steps old."
        if cap
        else "See that no sample is carried over from one step to the next.",
        "See that requests waiting at the engines stay bounded, and that the prefix-cache hit ratio has not fallen.",
        f"Work the cost of a step out again: at most {_high(cost)}. If throughput rose and cost rose more, go back."
        if cost.known
        else f"Work the GPU-hours of a step out again: at most {_high(results['gpu_hours_per_step'])}.",
        f"{_AGAIN}: rlsize measure, rlsize calibrate, rlsize plan --calibration.",
        f"{_GUARD}: rlsize plan --save plan.yaml, rlsize check --baseline plan.yaml.",
    )


def _high(figure: Figure) -> str:
    """The high end of a band, or the value where it is a point."""
    value = figure.band[1] if figure.band is not None else figure.number
    return show(value, figure.key)


def _start(answer: Planned, chosen: Choice) -> Start:
    """What the sliders stand at: the plan."""
    place, results, problem = chosen.best.place, chosen.best.results, answer.outlook.problem
    samples, group = problem.samples.number, problem.group_size.number
    rollout_gpus = float(place.trainer_gpus if place.shared else place.rollout_gpus)

    def gpu_rate(seconds: float, gpus: float) -> float:
        """Trained tokens per second of one GPU of a pool that takes so long for a step."""
        tokens = problem.response_tokens.number
        rate = rollout_batch.batch_rate(samples=samples, response_tokens=tokens, seconds=seconds)
        return float(matching.rate_per_gpu(rate=rate, gpus=gpus))

    exposed = decode_step.both_times(first=results["sync_exposed_seconds"], second=results["overhead_seconds"])
    return Start(
        loop=_PHASES.get(place.loop, "overlapped"),
        gpus=float(place.gpus),
        rollout_gpus=rollout_gpus,
        response_tokens=problem.response_tokens.number,
        rollout_gpu_rate=gpu_rate(results["generation_seconds"], rollout_gpus) * problem.waste.number,
        trainer_gpu_rate=gpu_rate(results["train_seconds"], float(place.trainer_gpus)),
        prompts_per_step=float(rollout_batch.per_instance(amount=samples, instances=group)),
        group_size=group,
        max_staleness=max(place.staleness, 1.0),
        gpu_hour=_gpu_hour(chosen),
        tokens_generated_per_trained_token=problem.waste.number,
        exposed_seconds=float(exposed),
    )


def _gpu_hour(chosen: Choice) -> float | None:
    """One price for both pools: that of the mix."""
    place = chosen.best.place
    trainer, rollout = place.trainer.gpu_hour, place.fleet.gpu_hour
    if not trainer.known or (not place.shared and not rollout.known):
        return None
    if place.shared:
        return trainer.number
    share = float(rollout_batch.share_of(part=place.rollout_gpus, whole=place.gpus))
    prices = {"on_demand_gpu_hour": trainer.number, "preemptible_gpu_hour": rollout.number}
    return float(money.blended_gpu_hour(**prices, preemptible_fraction=share))
