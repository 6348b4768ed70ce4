"""`rlsize report`: a capacity review as one page that needs nothing beside it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from rlsize.equations import decode_step, iteration, kernel_time, loop_time, matching, money, rl_step, rollout_batch
from rlsize.errors import Fault, InputError
from rlsize.facts.figure import Figure
from rlsize.planner.evaluation import central_results, evaluation
from rlsize.reports.page import (
    Comparison,
    Formula,
    Output,
    Page,
    Section,
    Slider,
    Strip,
    StripPart,
    Widget,
    figures_table,
    rounded,
)
from rlsize.reports.plan import (
    GOALS,
    candidates,
    front_table,
    headline,
    limits_table,
    next_gpus,
    place_words,
    rejections,
    sensitivity,
    simulated_ranks,
    tight,
    verdicts,
)
from rlsize.reports.plan_chart import front_chart, split_chart, tornado_chart
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import words
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import PLANNED, asks
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlsize.facts.figure import Provenance, Value
    from rlsize.planner.choice import Choice
    from rlsize.planner.options import Placement
    from rlsize.planner.plan import Planned
    from rlsize.planner.simulation import Ranked
    from rlsize.planner.tornado import Swing
    from rlsize.reports.report import Decision

FORMS = (".html", ".md")

T = TypeVar("T")

_MONTH, _HOUR, _RUNGS = 30, 3600.0, 6  # days, seconds; numbers of GPUs that are told

_KEY = (
    "step_seconds", "steps_per_day", "cost_per_step_usd", "gpus", "trainer_idle_fraction", "rollout_idle_fraction",
    "run_seconds", "cost_per_run_usd",
)  # fmt: skip
_PHASES: dict[str, Phases] = {"colocated": "colocated", "synchronous": "in turn"}
_ORDER = {"given": 0, "measured": 1, "predicted": 2, "default": 3}
_SAID: dict[Provenance, str] = {"given": "are given", "measured": "measured", "default": "taken by default"}
_SHOWN_BY = {
    "rollout": "generation_seconds", "trainer": "train_seconds", "sync": "sync_seconds", "overhead": "overhead_seconds",
}  # fmt: skip
_WINDOW = "several hundred optimizer steps"
_AGAIN = "Measure the side that the answer depends on most, calibrate with it, and plan again"
_GUARD = "Keep the plan as a baseline, and guard it in CI"

Phases: TypeAlias = Literal["overlapped", "in turn", "colocated"]
"""How the phases of a step follow each other: both at once, one after the other, or so on the same GPUs."""
CONSTANTS = {"one_gpu": 1.0, "no_gpus": 0.0}
"""What formulas need beside sliders and what a plan holds."""
_RANGE = 8.0  # a slider goes from an eighth of its start to eight times as much
_LEAST_TOKENS, _MOST_TOKENS = 128.0, 131072.0
_LEAST_SHARE, _MOST_SHARE = 0.05, 0.95
_MOST_STALENESS = 16.0
_LARGE = 100.0  # a rate whose decimals nobody needs
_NODE = 8.0  # GPUs; clusters grow by nodes where they are made of such nodes
_SIDES = ("rollout", "trainer", "neither, they are balanced")
_POOLS = (
    StripPart("rollout_gpus", "rollout", "rollout", "rollout_idle_gpus"),
    StripPart("trainer_gpus", "trainer", "trainer", "trainer_idle_gpus"),
)
_TURNS = (
    StripPart("rollout_seconds", "generation", "rollout"),
    StripPart("train_seconds", "training", "trainer"),
    StripPart("exposed_seconds", "neither", "waiting"),
)
_STRIPS: dict[Phases, Strip] = {
    "overlapped": Strip(label="GPUs", parts=_POOLS, mark="balanced_rollout_gpus", mark_label="balanced split"),
    "in turn": Strip(label="GPUs", parts=_POOLS),
    "colocated": Strip(label="A step", parts=_TURNS),
}


@asks(PLANNED, once=True)
def report(
    inputs: Inputs,
    output: str | None = option("--output|-o", "The page: FILE.html or FILE.md.", None, "FILE"),
    title: str | None = option("--title", "Its title.", None, "TEXT"),
    question: str | None = option("--question", "The question that it answers.", None, "TEXT"),
    force: Force = False,
) -> Report:
    """
    Write a capacity review as one page, with sliders.

    Example:  rlsize report examples/unmeasured-8b.yaml -o review.html
    """
    from rlsize.shell.planning import with_engines
    from rlsize.writers.files import check_target, write_whole
    from rlsize.writers.html_page import html_text
    from rlsize.writers.markdown_page import page_markdown

    source = "plan" if inputs.file is None else PurePath(inputs.file.document.name).stem
    path = output or f"{source if source != '--set' else 'plan'}-review.html"
    form = PurePath(path).suffix.lower()
    if form not in FORMS:
        raise InputError(Fault(f"{path} is no page", "--output", f"end it in {' or '.join(FORMS)}"))
    check_target(path, force)
    inputs = with_engines(inputs)
    told, page = review_page(inputs, path, title, question)
    if page is None:
        return told
    write_whole(path, html_text(page) if form == ".html" else page_markdown(page), force=force)
    best = tuple(replace(figure, key=told.of + figure.key) for figure in told.results if figure.known)
    return Report(
        headline=f"Wrote {path}. {told.headline}",
        results=(Figure(key="page", value=path, provenance="given", source="--output"), *best),
        inputs=told.inputs,
        warnings=told.warnings,
        notes=tuple(inputs.notes),
        quiet=frozenset(figure.key for figure in best),
    )


def review_page(
    inputs: Inputs, path: str, title: str | None = None, question: str | None = None
) -> tuple[Report, Page | None]:
    """
    What `plan` says, and the page of a capacity review; None where there is no plan.

    Args:
        inputs: What is asked.
        path: Where the page goes.
        title: What it is about; put into words where nobody said.
        question: What was asked; likewise.
    """
    from rlsize.reports.plan import plan_report
    from rlsize.shell.answer import facts_digest
    from rlsize.shell.planning import assumed_by, search
    from rlsize.version import VERSION

    found, ranked = search(inputs)
    answer, chosen = found.planned, found.planned.chosen
    assumed = None if chosen is None else assumed_by(inputs, found.loop, chosen.best.place)
    told = plan_report(answer, inputs.told(), ranked, assumed)
    if chosen is None or told.decision is None:
        return told, None
    model, results, grown = answer.outlook.problem.model, chosen.evaluation.results, [*_grown(inputs, answer)]
    page = Page(
        title=title or f"Capacity review: {model.title if model is not None else 'an RL loop'}",
        question=question or _question(answer, chosen),
        recommendation=f"Take {headline(answer, chosen)}",
        facts=tuple(results[key] for key in _KEY if key in results and results[key].known),
        sections=(
            _decision(answer, chosen, told.decision),
            _risks(answer, chosen, told, grown),
            *_sections(answer, chosen, told.inputs, inputs.notes, ranked),
        ),
        widget=lesson_widget(_start(answer, chosen)),
        warnings=(*inputs.warnings, *tight(chosen)),
        command=inputs.command_line("report", {"--title": title, "--question": question, "-o": path}),
        made_with=f"rlsize {VERSION}, facts {facts_digest(inputs.folders)}",
    )
    return told, page


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


class Grown(NamedTuple):
    """
    What is planned where more is asked for.

    Args:
        case: What is more.
        planned: The answer; None where it cannot be asked.
        why: Why not.
    """

    case: str
    planned: Planned | None
    why: str = ""


def _grown(inputs: Inputs, answer: Planned) -> Iterator[Grown]:
    """The same question with responses twice as long, and with a model twice the size."""
    from rlsize.estimates.model_size import model_size
    from rlsize.shell.planning import search

    problem, cap = answer.outlook.problem, inputs.used.get("max_response_tokens")
    longer: dict[str, Value] = {"response_tokens": 2 * problem.response_tokens.number}
    longer |= {"max_response_tokens": 2 * cap.number} if cap is not None and cap.known else {}
    cases = {"responses twice as long": longer}
    if problem.model is not None:
        size = model_size(problem.model)
        experts = f"-A{2 * size.active_params.number / 1e9:.3f}B" if problem.model.architecture.moe else ""
        larger = f"{problem.model.name}@{2 * size.params.number / 1e9:.3f}B{experts}"
        cases["a model twice the size"] = {"model": larger}
    for case, values in cases.items():
        try:
            yield Grown(case, search(inputs.instead(**values, simulated_plans=None))[0].planned)
        except InputError as error:
            yield Grown(case, None, error.faults[0].what)


def _risks(answer: Planned, chosen: Choice, told: Report, grown: Sequence[Grown]) -> Section:
    """What would make the answer another one, and how it would show; what it rests on, and what more would need."""
    kinds = Counter(figure.provenance for figure in told.inputs if not figure.equation)
    known = ", ".join(f"{kinds[kind]} {words}" for kind, words in _SAID.items())
    moved = "; ".join(one.told for one in (told.decision.assumed if told.decision else None) or ())
    return Section(
        title="Risks, and what would show them",
        text=(
            f"Of the inputs, {known}. "
            + (f"What nobody said moves a step so: {moved}." if moved else "None of the last moves a step by 5 %."),
        ),
        tables=_there(_risk_table(answer, chosen), _growth(chosen, grown)),
    )


def _risk_table(answer: Planned, chosen: Choice) -> Table | None:
    """Each input moved by itself: from where on it shows, and what it makes of the answer."""
    if not answer.swings:
        return None
    problem = answer.outlook.problem
    lengths = {figure.key: figure.number for figure in (problem.response_tokens, problem.response_cv) if figure.known}
    now = {key: chosen.best.results[part] for key, part in _SHOWN_BY.items()} | lengths

    def shows(swing: Swing) -> str:
        key, end = _SHOWN_BY.get(swing.name, swing.name), swing.ends[swing.high > swing.low]
        if swing.name not in now:
            return f"x {end:.2f}"
        return f"{words(key)} {show(float(kernel_time.slowed(seconds=now[swing.name], slowdown=end)), key)}"

    cells = (
        Column("risk", "risk", "left", wide=True, of=lambda swing: swing.meaning),
        Column("shows_as", "shows as", "left", wide=True, of=shows),
        Column(chosen.metric, f"{words(chosen.metric)} then", of=lambda swing: max(swing.low, swing.high)),
        Column("better_plan", "better plan then", "left", wide=True, of=lambda swing: swing.flips or "the same"),
    )
    note = "each by itself, at the end of its band, or a fifth more where nobody gave it a spread"
    return Table.of("What may come otherwise", answer.swings, cells, note=note)


def _growth(chosen: Choice, grown: Sequence[Grown]) -> Table:
    """The best plans where more is asked for, beside the one that was asked for."""
    key = "cost_per_step_usd" if "cost_per_step_usd" in chosen.best.results else "gpu_hours_per_step"

    def best(planned: Planned | None) -> tuple[str, Mapping[str, float]]:
        if planned is None:
            return "", {}
        if planned.chosen is not None:
            return planned.chosen.best.place.words, planned.chosen.best.results
        near = planned.nearest
        if near is None:
            return "none fits", {}
        return f"{near.place.words}, beyond the limits", central_results(planned.outlook, near.place)

    cells = (
        Column("case", "where", "left", of=lambda row: row[0].case),
        Column("plan", "best plan", "left", wide=True, of=lambda row: row[1] or row[0].why),
        *(Column(name, words(name), of=partial(_result, name)) for name in ("step_seconds", "steps_per_day", key)),
    )
    return Table.of("What more would need", [(one, *best(one.planned)) for one in grown], cells)


def _result(key: str, row: tuple[Grown, str, Mapping[str, float]]) -> float | None:
    return row[2].get(key)


def _figure(key: str, row: tuple[Placement, Mapping[str, Figure]]) -> Figure:
    return row[1][key]


def _sections(
    answer: Planned, chosen: Choice, inputs: Sequence[Figure], notes: Sequence[str], ranked: Sequence[Ranked]
) -> Iterator[Section]:
    """How to verify an answer; then, as an appendix, all that it was chosen from."""
    found, known = answer.found, [figure for figure in chosen.evaluation.results.values() if figure.known]
    yield Section(title="How to verify it after the change", listed=_checks(chosen), numbered=True)
    yield Section(
        title="Appendix: the plan",
        text=(f"{place_words(chosen.best.place)}.",),
        tables=_there(
            _where(chosen.evaluation.placement),
            figures_table("What it gives", known, "80 % bands, on joint draws of all uncertain inputs"),
            limits_table(answer, chosen),
        ),
        pictures=_there(front_chart(answer, chosen), split_chart(answer, chosen)),
        apart=True,
    )
    yield Section(
        title="Appendix: what the answer depends on",
        text=("Each input by itself, moved over its band, or by a fifth where nobody gave it a spread.",),
        tables=_there(sensitivity(answer, chosen)),
        pictures=_there(tornado_chart(answer, chosen)),
        apart=True,
    )
    yield Section(
        title="Appendix: alternatives",
        listed=tuple(verdicts(answer, chosen)),
        tables=_there(candidates(chosen), simulated_ranks(chosen, ranked) if ranked else None, front_table(answer)),
        apart=True,
    )
    yield Section(
        title="Appendix: what the next GPUs would bring",
        text=("Each row changes one side by the next number of GPUs that it can take, all else as it is planned.",),
        tables=(next_gpus(answer),),
        apart=True,
    )
    yield Section(
        title="Appendix: what was left out",
        text=(f"{found.worked_out:,} candidates were worked out; {found.feasible:,} keep all limits.",),
        tables=_there(rejections(answer)),
        apart=True,
    )
    ordered = sorted(inputs, key=lambda figure: _ORDER.get(figure.provenance, len(_ORDER)))
    yield Section(
        title="Appendix: assumptions, and where they come from",
        text=("What was given or measured stands first, what was taken by default last: these are worth a look.",),
        tables=(figures_table("Inputs", ordered),),
        listed=tuple(notes),
        apart=True,
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """
    What the sliders stand at when the page opens, and what they leave as it is.

    Args:
        loop: How the phases of a step follow each other.
        gpus: GPUs of both pools.
        rollout_gpus: GPUs of the rollout fleet, fewer than all of them; not asked for where the loop is colocated.
        response_tokens: Mean response length.
        rollout_gpu_rate: Response tokens per second that one rollout GPU generates.
        trainer_gpu_rate: Response tokens per second that one trainer GPU consumes.
        prompts_per_step: Prompts of an optimizer step.
        group_size: Samples of one prompt.
        max_staleness: Staleness cap in optimizer steps.
        gpu_hour: Price of a GPU-hour; None where nobody said, and then nothing is said of cost.
        tokens_generated_per_trained_token: What is thrown away; not changed by a slider.
        exposed_seconds: Part of a step that neither phase hides: weight sync, overhead, swaps; not changed by a slider.
    """

    loop: Phases = "overlapped"
    gpus: float
    rollout_gpus: float
    response_tokens: float
    rollout_gpu_rate: float
    trainer_gpu_rate: float
    prompts_per_step: float
    group_size: float
    max_staleness: float = 1.0
    gpu_hour: float | None = None
    tokens_generated_per_trained_token: float = 1.0
    exposed_seconds: float = 0.0

    @property
    def priced(self) -> bool:
        """Whether there is a price to work out costs with."""
        return bool(self.gpu_hour)


def lesson_widget(start: Start) -> Widget:
    """
    The sliders of cluster, split, output length, rates, staleness and price, and what follows from them to first order.

    Args:
        start: What they stand at when the page opens; every rate, length and number of GPUs is above zero.
    """
    cost = " and costs {cost}" if start.priced else ""
    idle = "" if start.loop == "colocated" else " Idle GPUs: {idle}."
    longer = "Bottleneck" if start.loop == "overlapped" else "Longer phase"
    return Widget(
        title="Try other numbers",
        text=_assumed(start),
        sliders=tuple(_sliders(start)),
        constants={
            "prompts_per_step": start.prompts_per_step,
            "group_size": start.group_size,
            "headroom": 1.0,  # rates are those of the loop as it runs
            "tokens_generated_per_trained_token": start.tokens_generated_per_trained_token,
            "exposed_seconds": start.exposed_seconds,
            **CONSTANTS,
        },
        formulas=loop_formulas(start.loop, priced=start.priced),
        outputs=tuple(_outputs(start)),
        summary=f"{longer}: {{bottleneck}}. A step takes {{step}}{cost}.{idle}",
        strip=_STRIPS[start.loop],
    )


def _assumed(start: Start) -> str:
    how = {
        "overlapped": "both sides work at once",
        "in turn": "the two sides work one after the other",
        "colocated": "all GPUs generate, then all of them train",
    }[start.loop]
    held = [f"{show(start.prompts_per_step)} prompts of {show(start.group_size)} samples a step"]
    if start.exposed_seconds:
        held.insert(0, f"{show(start.exposed_seconds, '_seconds')} of each step that neither phase hides")
    if start.tokens_generated_per_trained_token != 1.0:
        held.insert(0, f"{show(start.tokens_generated_per_trained_token)} tokens generated per trained token")
    return (
        f"First order: rates grow linearly with GPUs and do not change with the output length, and {how}. "
        f"Held as in the plan: {', '.join(held)}. The plan also counts how unevenly steps go, so its own "
        "step is longer than that of the sliders where both sides are nearly balanced."
    )


def _sliders(start: Start) -> Iterator[Slider]:
    yield _scale("gpus", "Cluster size", "GPUs", start.gpus, step=_NODE if start.gpus % _NODE == 0 else 1.0, decimals=0)
    if start.loop != "colocated":
        share = start.rollout_gpus / start.gpus
        shares = _around("rollout_fraction", "Rollout share of the GPUs", "%", share, (_LEAST_SHARE, _MOST_SHARE))
        yield replace(shares, step=0.01, factor=100.0)
    range_ = _LEAST_TOKENS, _MOST_TOKENS
    tokens = _around("response_tokens", "Output tokens of a sample, mean", "tokens", start.response_tokens, range_)
    yield replace(tokens, log=True)
    yield _scale("rollout_gpu_rate", "Rollout rate of a GPU", "tok/s", start.rollout_gpu_rate)
    yield _scale("trainer_gpu_rate", "Trainer rate of a GPU", "tok/s", start.trainer_gpu_rate)
    if start.loop == "overlapped":
        yield _around("max_staleness", "Staleness cap", "steps", start.max_staleness, (1.0, _MOST_STALENESS))
    if start.gpu_hour:
        yield _scale("gpu_hour", "Price of a GPU-hour", "USD", start.gpu_hour, decimals=2)


def _around(key: str, label: str, unit: str, start: float, ends: tuple[float, float]) -> Slider:
    """A slider between two ends, or from its start where that lies outside."""
    least, most = min(ends[0], start), max(ends[1], start)
    return Slider(key=key, label=label, unit=unit, least=least, most=most, step=1.0, start=start)


def _scale(key: str, label: str, unit: str, start: float, step: float = 0.0, decimals: int | None = None) -> Slider:
    """A slider of some percent at a time around its start."""
    least, most = start / _RANGE, start * _RANGE
    if decimals is None:
        decimals = 0 if start >= _LARGE else 2
    return Slider(
        key=key,
        label=label,
        unit=unit,
        least=max(round(least / step) * step, step) if step else rounded(least),
        most=most if step else rounded(most),
        step=step,
        start=start,
        log=True,
        decimals=decimals,
    )


def _outputs(start: Start) -> Iterator[Output | Comparison]:
    """What is shown, of what such a loop has."""
    yield Comparison(key="bottleneck", label="Bottleneck", first="rollout_rate", second="trainer_rate", words=_SIDES)
    for pool, label in (("rollout", "Rollout pool"), ("trainer", "Trainer pool"), ("loop", "Loop")):
        yield Output(key=pool, label=label, text="{} tok/s", keys=(f"{pool}_rate",), decimals=0)
    if start.loop != "colocated":
        yield _gpus("pools", "Split", ("rollout_gpus", "trainer_gpus"))
        yield _gpus("idle", "Idle GPUs", ("rollout_idle_gpus", "trainer_idle_gpus"))
    if start.loop == "overlapped":
        yield _gpus("balanced", "Balanced split", ("balanced_rollout_gpus", "balanced_trainer_gpus"))
    yield Output(key="step", label="Step time", text="{} s", keys=("step_seconds",))
    yield Output(key="day", label="Steps in a day", text="{}", keys=("steps_per_day",), decimals=0)
    if start.priced:
        yield Output(key="cost", label="Cost of a step", text="${}", keys=("cost_per_step",))
    if start.loop == "overlapped":
        yield Output(key="queue", label="Samples in flight, at most", text="{}", keys=("in_flight",), decimals=0)


def _gpus(key: str, label: str, keys: tuple[str, str]) -> Output:
    """GPUs of both pools."""
    return Output(key=key, label=label, text="{} rollout + {} trainer", keys=keys, decimals=1)


def _formula(key: str, equation: Callable[..., Any], **renamed: str) -> Formula:
    """A formula whose arguments are called like what goes into them, but for some."""
    inputs = {name: renamed.get(name, name) for name in signature(equation).parameters}
    return Formula(key=key, equation=equation, inputs=inputs)


_STEP = {"iteration_seconds": "step_seconds"}
_IDLE = (  # GPUs of each pool that wait, on average over a step
    _formula("rollout_idle_fraction", loop_time.waiting_fraction, busy_seconds="rollout_seconds", **_STEP),
    _formula("trainer_idle_fraction", loop_time.waiting_fraction, busy_seconds="train_seconds", **_STEP),
    _formula("rollout_idle_gpus", matching.idle_gpus, gpus="rollout_gpus", idle_fraction="rollout_idle_fraction"),
    _formula("trainer_idle_gpus", matching.idle_gpus, gpus="trainer_gpus", idle_fraction="trainer_idle_fraction"),
    _formula("idle_gpus", rl_step.gpus_of_both, rollout_gpus="rollout_idle_gpus", trainer_gpus="trainer_idle_gpus"),
)
_TRAINED_RATE = _formula(  # what one rollout GPU feeds the trainer with
    "rollout_trained_rate", matching.trained_token_supply, gpus="one_gpu", gpu_rate="rollout_gpu_rate"
)
_SWAPPED = {"throughput": "full_rate", "swap_seconds": "exposed_seconds"}
_LOOP_RATE = _formula("loop_rate", matching.throughput_with_swap, **_SWAPPED)
_POOL_SIZES = (
    _formula("rollout_gpus", matching.pool_gpus, fraction="rollout_fraction"),
    _formula("trainer_gpus", matching.remaining_gpus),
)
_STEPS: dict[Phases, tuple[Formula, ...]] = {
    "overlapped": (
        _formula("full_rate", matching.loop_throughput),
        _LOOP_RATE,
        _formula("step_seconds", iteration.overlapped_iteration_time, exposed_sync_seconds="exposed_seconds"),
        *_IDLE,
        _TRAINED_RATE,
        _formula("balanced_rollout_gpus", matching.balanced_rollout_gpus, rollout_gpu_rate="rollout_trained_rate"),
        _formula("balanced_trainer_gpus", matching.remaining_gpus, rollout_gpus="balanced_rollout_gpus"),
        _formula("in_flight", rl_step.allowed_in_flight),
    ),
    "in turn": (
        _formula("step_seconds", iteration.synchronous_iteration_time, exposed_sync_seconds="exposed_seconds"),
        *_IDLE,
        _formula("goodput", money.goodput),
        _formula("loop_rate", matching.pool_rate, gpu_rate="goodput"),
    ),
    "colocated": (
        _TRAINED_RATE,
        _formula("full_rate", matching.colocated_throughput, rollout_gpu_rate="rollout_trained_rate"),
        _LOOP_RATE,
        _formula("step_seconds", iteration.colocated_iteration_time, swap_seconds="exposed_seconds"),
    ),
}


def loop_formulas(loop: Phases, priced: bool) -> tuple[Formula, ...]:
    """
    What follows from a loop's sliders, in the order in which it is worked out.

    Args:
        loop: How its phases follow each other.
        priced: Whether there is a price.
    """
    together = loop == "colocated"
    rollout, trainer = ("gpus", "gpus") if together else ("rollout_gpus", "trainer_gpus")
    paid = {"rollout_gpus": rollout, "trainer_gpus": "no_gpus" if together else trainer}
    prices = {"rollout_gpu_hour": "gpu_hour", "trainer_gpu_hour": "gpu_hour"}
    return (
        *(() if together else _POOL_SIZES),
        _formula("tokens_per_step", matching.tokens_per_step, prompts="prompts_per_step"),
        _formula("samples_per_step", matching.samples_per_step, prompts="prompts_per_step"),
        _formula("rollout_rate", matching.trained_token_supply, gpus=rollout, gpu_rate="rollout_gpu_rate"),
        _formula("trainer_rate", matching.pool_rate, gpus=trainer, gpu_rate="trainer_gpu_rate"),
        _formula("completions_per_second", loop_time.completions_from_tokens, supply="rollout_rate"),
        _formula("rollout_seconds", iteration.rollout_seconds),
        _formula("train_seconds", matching.train_time, consumption="trainer_rate"),
        *_STEPS[loop],
        _formula("steps_per_day", iteration.iterations_per_day, iteration_seconds="step_seconds"),
        *((_formula("cost_per_step", money.cost_per_step, **paid, **prices),) if priced else ()),
    )
