"""`rlsize fleet`: how many rollout instances match this trainer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.loop.sides import IN_LOOP_RATE, sides
from rlsize.planner.fleet import FleetAnswer, FleetQuestion, caching_savings, size_fleet
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.running_loop import bounded
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, CHECKS, MATCH, PRICES, REFUSED, WASTE, asks
from rlsize.shell.rates import fleet_question
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.loop.sides import Sides
    from rlsize.reports.chart import Role

_BASES: tuple[Role, ...] = ("nameplate", "expected")
_MUCH = 1.25  # of the trainer's own time: a step that long waits for more than the match of two rates


@asks(
    Inputs=(*MATCH, ("instances", "--instances"), "gpus_per_instance", "trainer_gpus", *ANSWER),
    Waste=WASTE,
    Prefix_caching=("prompt_tokens", "block_tokens", "routing", "hit_fraction", "prefill_tokens_per_second"),
    Prices=PRICES,
    Model_and_GPU=CHECKS,
    Refused=REFUSED,
)
def fleet(inputs: Inputs) -> Report:
    """
    How many rollout instances match this trainer.

    Example:  rlsize fleet --consume 39321 --per-instance 4000
    """
    both = sides(inputs)
    if both.loop is None and "model" not in inputs.used:
        inputs.looked.discard("model")  # nothing came of it: no loop, and no rate that it was needed for
    question = fleet_question(inputs, both)
    prompts = inputs.gives("prompt_tokens") and inputs.ask("prompt_tokens").value  # of no length nothing is cached
    caching, routing = _caching(inputs, question) if prompts else ({}, "")
    inputs.settle()
    prices = question.rollout_gpu_hour, question.trainer_gpu_hour
    listed = {figure.source for figure in prices if "price profile" in figure.source}
    inputs.notes += [f"Per GPU-hour: {source}." for source in sorted(listed)]
    answer = size_fleet(question, both.draws(inputs, question))
    savings = _savings(inputs, caching, routing, answer) if caching else []
    if both.loop is not None:  # which is another one than the match, so what is told of that has keys that say so
        answer = replace(answer, results=tuple(_of_the_match(figure) for figure in answer.results))
    inputs.notes += _loop_note(both)
    return bounded(_report(inputs, answer, savings, both.turns), both.bound)


def _loop_note(both: Sides) -> list[str]:
    """That a described loop waits for more than rates tell, where that is much of its step."""
    if both.found is None or not both.train_seconds.known:
        return []
    step, least = both.found.results["step_seconds"], both.train_seconds.number
    if step.number <= _MUCH * least:
        return []
    told = f"a step takes {show(step.value, step.key)}, with its long tail, cap and weight syncs"
    return [f"Rates alone match here. In this loop {told}: `rlsize predict step` says what it waits for."]


def _of_the_match(figure: Figure) -> Figure:
    """A result about a fleet that is not the loop's."""
    names = {"instances": "judged_instances", "rollout_gpus": "judged_rollout_gpus"}
    shared = figure.key.startswith(("matched", "nameplate", "expected", "required"))
    return figure if shared else replace(figure, key=names.get(figure.key, f"nameplate_{figure.key}"))


def _caching(inputs: Inputs, question: FleetQuestion) -> tuple[dict[str, Figure], str]:
    """What is known about prompts and caches, by key, and how the samples of a group reach instances."""
    lengths = {key: inputs.ask(key) for key in ("group_size", "prompt_tokens", "response_tokens")}
    block = inputs.used.get("block_tokens") or inputs.ask("block_tokens", default=16, why="vLLM's default on GPUs")
    routing = inputs.choose("routing")
    caches = {key: inputs.ask(key) for key in ("hit_fraction", "prefill_tokens_per_second")}
    rates = {"instance_tokens_per_second": question.instance_rate, "headroom": question.headroom}
    return {**lengths, "block_tokens": block, **caches, **rates}, routing


def _savings(inputs: Inputs, known: Mapping[str, Figure], routing: str, answer: FleetAnswer) -> list[Figure]:
    """
    What prefix caching would save.

    Raises:
        InputError: Prefill alone would take longer than there is time.
    """
    found = {figure.key: figure for figure in answer.results}
    count = Figure(key="instances", value=answer.judged, provenance="predicted")
    required = found["required_tokens_per_second"]
    savings = caching_savings({**known, "instances": count, "required_tokens_per_second": required}, routing)
    share = next((figure for figure in savings if figure.key == "prefill_time_fraction" and figure.known), None)
    if share is not None and share.number >= 1.0:
        what = f"prefill alone would take {100 * share.number:.0f} % of the time"
        todo = "check --prefill-rate, --prompt-tokens, --response-tokens and --hit-ratio against the instance rate"
        inputs.fault(what, "--prefill-rate", todo)
        inputs.settle()
    return savings


def _report(inputs: Inputs, answer: FleetAnswer, savings: Sequence[Figure], turns: str) -> Report:
    figures, given = ({figure.key: figure for figure in told} for told in (answer.results, inputs.shown()))
    return Report(
        headline=_headline(answer, figures, given, turns),
        results=(*answer.results, *savings),
        tables={"neighbours": _neighbours(answer)},
        chart=_chart(answer, figures["required_tokens_per_second"], given["headroom"]),
        quiet=frozenset({"matched_instances_exact"}) | {figure.key for figure in savings if not figure.known},
        **inputs.told(notes=(*_observed_note(answer, figures), *_caching_note(savings, answer.matched))),
    )


def _headline(answer: FleetAnswer, figures: dict[str, Figure], given: dict[str, Figure], turns: str) -> str:
    required = show(figures["required_tokens_per_second"].value, "_tokens_per_second")
    each = given.get("instance_tokens_per_second") or given[IN_LOOP_RATE]
    rate = show(each.value, "_tokens_per_second")
    noun = "instance matches" if answer.matched == 1 else "instances match"
    noun = "instances suffice" if answer.held_back else noun
    headroom = show(given["headroom"].value)
    match = f"{answer.matched:,} rollout {noun}: {required} needed, {rate} each, headroom {headroom}."
    if answer.judged == answer.matched:
        return match
    if turns:
        match = f"{match} The sides of a loop that is {turns} take turns; where both ran all the time:"
        return f"{match} with {answer.judged}, {_judgement(figures)}."
    return f"{match} With {answer.judged}: {_judgement(figures)}."


def _judgement(figures: dict[str, Figure]) -> str:
    idle, growth = figures["expected_trainer_idle_fraction"], figures["expected_backlog_tokens_per_second"]
    if idle.number > 0:
        return f"the trainer is expected to wait {show(idle.value, idle.key)} of every step"
    if growth.number > 0:
        return f"a backlog of {show(growth.value, growth.key)} is expected without backpressure"
    return "neither side waits"


def _observed_note(answer: FleetAnswer, figures: dict[str, Figure]) -> list[str]:
    """Why a lower bound does not ask for more instances than were observed."""
    if not answer.held_back:
        return []
    bound = figures["matched_instances_exact"]
    text = (
        f"The observed fleet met the demand with {answer.matched} instances, held back: no more are needed, though its "
        f"rate, taken for all that they can do, would ask for {bound.number:.3g}. Idle and growth below take that rate "
        "and look worse than they are. To learn whether fewer would do, measure under load."
    )
    return [text]


def _caching_note(savings: Sequence[Figure], matched: int) -> list[str]:
    """What the hit ratio to expect means for the match, before anybody buys GPUs."""
    found = {figure.key: figure for figure in savings}
    expected = found.get("expected_prefix_cache_hit_fraction")
    if expected is None or not expected.known:
        return []
    text = f"Prefix caching: expect {show(expected.value, expected.key)} of prompt tokens from the cache"
    after = found["matched_instances_after_caching"]
    if not after.known:
        return [f"{text}; give {after.missing} to see the match once the cache reaches it."]
    if after.number >= matched:
        return [f"{text}; the match stays at {matched} once it does."]
    fewer = f"once it does, {show(after.value)} instances match"
    return [f"{text}; {fewer}. Fix that before adding GPUs, then measure again."]


def _neighbours(answer: FleetAnswer) -> Table:
    """One row for each instance count around the match."""
    cost = answer.neighbours[0]["expected_cost_per_step_usd"]
    columns = (
        Column("instances", "inst."),
        Column("trainer_idle_fraction", "idle"),
        Column("backlog_tokens_per_second", "growth"),
        Column("expected_trainer_idle_fraction", "exp. idle"),
        Column("expected_backlog_tokens_per_second", "exp. growth"),
        *([Column(cost.key, "exp. cost/step")] if cost.known else []),
    )
    lacking = "" if cost.known else f"\ncost per step needs {cost.missing}"
    note = f"nameplate takes the rate as it is; expected (exp.) derates it by the headroom{lacking}"
    marked = [row["instances"].value for row in answer.neighbours].index(answer.matched)
    return Table(title="One more, one fewer", columns=columns, rows=answer.neighbours, marked=marked, note=note)


def _chart(answer: FleetAnswer, required: Figure, headroom: Figure) -> Chart:
    """Nameplate and expected supply against the instance count, with what is needed and the match marked."""
    series = (
        Series.of(
            f"{basis} supply",
            ((row["instances"].number, row[f"{basis}_supply_tokens_per_second"].number) for row in answer.neighbours),
            basis,
        )
        for basis in _BASES
    )
    asked = Mark(at=float(answer.judged), label=f"asked: {answer.judged}")
    return Chart(
        title=f"{answer.matched} rollout instances cover the trainer at headroom {show(headroom.value)}",
        x_label="rollout instances",
        y_label="response tokens per second",
        series=tuple(series),
        marks=(
            Mark(at=required.number, label=f"needed: {show(required.value, '_tokens_per_second')}", axis="y"),
            Mark(at=float(answer.matched), label=f"match: {answer.matched}"),
            *([asked] if answer.judged != answer.matched else []),
        ),
    )
