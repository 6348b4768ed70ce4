"""What to say about a plan: the choice in a sentence, its figures, and what stands around it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rlsize.equations import planning
from rlsize.estimates.figures import ends
from rlsize.facts.figure import Figure
from rlsize.loop.knobs import KINDS, kind_of
from rlsize.planner.choice import AS_GOOD
from rlsize.planner.evaluation import central_results, memory_of
from rlsize.planner.space import REASONS, keeps, misasked
from rlsize.quantities.table import QUANTITIES
from rlsize.reports.plan_chart import plan_chart
from rlsize.reports.report import Column, Decision, Later, Report, Table, Unseen, tables_of
from rlsize.reports.running_loop import WORTH_A_WORD, dropped_words
from rlsize.reports.wording import interval, numbered, words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.loop.assumed import Assumption
    from rlsize.planner.choice import Alternative, Choice
    from rlsize.planner.least_change import LeastChange
    from rlsize.planner.options import FleetOption, Placement
    from rlsize.planner.plan import Planned
    from rlsize.planner.simulation import Ranked
    from rlsize.planner.space import Limit

BEST = "best_"
"""What keys of the best plan begin with in JSON: it is another loop than the one that was said."""
GOALS = {"time": "the shortest step", "cost": "the least cost per step", "gpus": "the fewest GPUs"}
"""What each objective looks for."""
_DECIDING = ("step_seconds", "cost_per_step_usd", "trainer_idle_fraction", "rollout_idle_fraction", "gpus")
_SECONDS = {
    "generation_seconds": "generation",
    "train_seconds": "training",
    "sync_exposed_seconds": "the weight sync",
    "overhead_seconds": "switching and handling",
}
_CHOSEN = ("recompute", "offload", "chunked_loss", "micro_batch_tokens")  # beside the layout of a trainer
_LONGER = 1.1  # than either side takes: a step that something else holds up
_NEVER_ALONE = frozenset({"heads", "layers", "experts"})  # reasons of some layouts, beside which there are others
_FEW = 3  # reasons that are told

_FRONT_SHOWN = 8
_METRICS = {"time": "step time", "cost": "cost per step", "gpus": "number of GPUs"}


def plan_report(
    answer: Planned,
    told: Mapping[str, Any],
    ranked: Sequence[Ranked] = (),
    assumed: Sequence[Assumption] | None = None,
) -> Report:
    """
    The report of `rlsize plan`.

    Args:
        answer: The plan.
        told: What a report says of the inputs: those it was worked out from, warnings and notes.
        ranked: The best plans as the simulator ranks them, where it was asked.
        assumed: What nobody said and that moves its step; None where nobody worked that out.
    """
    inputs, warnings, notes = told["inputs"], told["warnings"], told["notes"]
    chosen = answer.chosen
    if chosen is None:
        return _nothing(answer, inputs, warnings, notes)
    order, doubted = _simulated_order(chosen, ranked)

    def tables() -> dict[str, Table]:
        return tables_of(
            candidates=candidates(chosen),
            simulated=simulated_ranks(chosen, ranked) if ranked else None,
            next_gpus=next_gpus(answer),
            sensitivity=sensitivity(answer, chosen),
            rejected=rejections(answer),
            front=front_table(answer),
        )

    # What an instance and the trainer are made of
    found = {figure.key: figure for figure in _placement(chosen)}
    own = [f"{words(key)} {show(found[key].value, key)}" for key in _CHOSEN if key in found]
    share = f", memory fraction {found['memory_fraction'].number:g}" if "memory_fraction" in found else ""
    sides = f"instances {found['rollout_layout'].value}{share}; trainer {found['trainer_layout'].value}"
    return Report(
        command="plan",
        headline=headline(answer, chosen),
        results=(*_placement(chosen), *chosen.evaluation.results.values()),
        of=BEST,
        inputs=inputs,
        tables=Later(tables),
        warnings=(*warnings, *([order] if doubted else []), *tight(chosen)),
        notes=(*verdicts(answer, chosen), _searched(answer), *notes, *([order] if order and not doubted else [])),
        done=told["done"],
        chart=plan_chart(answer, chosen),
        quiet=frozenset({"tail_seconds", "sync_seconds", "gpu_hours_per_step", "loop_tokens_per_gpu_second"}),
        decision=Decision(
            take=[f"{', '.join([sides, *own])}."],
            figures=[*_DECIDING, *(("run_seconds", "cost_per_run_usd") if answer.outlook.problem.steps.known else ())],
            yours=[*_as_written(chosen)],
            why=[_longer_side(chosen), *_other_modes(answer, chosen)],
            sure=[*_unlaunched(answer), *_lost(chosen), *([order] if order else []), *_swing(answer, chosen)],
            cheapest=[_cheapest(chosen)],
            change=[
                *_other_batch(answer),
                *_flips(answer),
                *_next_gpus(answer),
                *_as_good(chosen),
                *_more_gpus(answer, chosen),
            ],
            assumed=assumed,
            then="--save plan.yaml, then rlsize check plan.yaml",
        ),
    )


def _longer_side(chosen: Choice) -> str:
    """What holds a step up, and what both sides take."""
    side = next(figure for figure in _placement(chosen) if figure.key == "bottleneck")
    parts = [f"{name} {show(chosen.best.results[key], key)}" for key, name in _SECONDS.items()]
    if side.value == "late samples":
        return f"Late samples decide: {', '.join(parts)}."
    return f"The {side.value} is the longer side: {', '.join(parts)}."


def _swing(answer: Planned, chosen: Choice) -> Iterator[str]:
    """The input that moves the answer most."""
    for swing in answer.swings[:1]:
        ends_of = f"{show(swing.low, chosen.metric)} to {show(swing.high, chosen.metric)}"
        yield f"Least sure of the {swing.meaning}: x {swing.ends[0]:.2f} to {swing.ends[1]:.2f} gives {ends_of}."


def _cheapest(chosen: Choice) -> str:
    """The plan that costs least among those that may be as good."""
    priced = all(one.results.get("cost_per_step_usd") is not None for one in (chosen.best, *chosen.others))
    key = "cost_per_step_usd" if priced else "gpu_hours_per_step"
    usual = chosen.best.results[key]
    less = [one for one in chosen.others if one.results[key] < (1.0 - WORTH_A_WORD) * usual]
    one = next((one for one in sorted(less, key=lambda one: one.results[key]) if one.equal or one.close), None)
    if one is None:
        return "this one: nothing that may be as good costs less."
    cost, step = show(one.results[key], key), _beside(one.results["step_seconds"], chosen)
    unit = "GPU hours " if key == "gpu_hours_per_step" else ""
    more = show(float(planning.overshoot(value=usual, limit=one.results[key])), "_fraction")
    return f"{one.place.words}: {unit}{cost} a step, {show(usual, key)} for the above ({more} more); {step} a step."


def _beside(seconds: float, chosen: Choice) -> str:
    """A step in the unit of the best one's, with which people compare it."""
    return show(seconds, "step_seconds", chosen.best.results["step_seconds"])


def _next_gpus(answer: Planned) -> Iterator[str]:
    """What the next GPUs on each side bring."""
    for one in (one for one in answer.neighbours if one.gpus > 0):
        seconds = one.change["step_seconds"]
        change = f"{show(abs(seconds), 'step_seconds')} {'longer' if seconds > 0 else 'shorter'}"
        side = "both sides" if one.place.shared else f"the {one.side}"
        yield f"{numbered(round(one.gpus), 'GPU')} more for {side}: a step {change}."


def _flips(answer: Planned) -> Iterator[str]:
    """What would make another plan the better one."""
    for swing in (swing for swing in answer.swings if swing.flips):
        yield f"With the {swing.meaning} x {swing.ends[0]:.2f} or {swing.ends[1]:.2f}, better: {swing.flips}."


def place_words(place: Placement) -> str:
    """Where a plan runs, in a phrase."""
    fleet, kind = place.fleet.gpu, place.trainer.gpu
    if place.shared:
        return f"{place.trainer_gpus:g} {kind or fleet or 'GPUs'}, colocated"
    mode = f"{place.loop}, staleness {place.staleness:g}" if place.loop in {"async", "hybrid"} else place.loop
    own = "" if fleet == kind else f" {fleet or ''}"
    return f"{place.rollout_gpus:g}{own} + {place.trainer_gpus:g} {kind or 'GPUs'}, {mode}"


def headline(answer: Planned, chosen: Choice) -> str:
    """The choice in a sentence."""
    results, runner = chosen.evaluation.results, chosen.runner_up
    step, cost = results["step_seconds"], results["cost_per_step_usd"]
    band = "" if step.band is None else f" ({interval(step)})"
    money = f", {show(cost.value, cost.key)} a step" if cost.known else ""
    text = f"{place_words(chosen.best.place)}: a step takes {show(step.value, step.key)}{band}{money}"
    if runner is None:
        return f"{text}; nothing else can be launched." if answer.unlaunched else f"{text}; nothing else is possible."
    if runner.equal:
        return f"{text}; {runner.place.words} does as well."
    if runner.close:
        return f"{text}; {runner.place.words} is too close to call."
    return f"{text}, {GOALS[chosen.objective]} of what was searched."


def _placement(chosen: Choice) -> Iterator[Figure]:
    """Mode, layouts and what else is chosen, and which side takes longer."""
    placement, best = chosen.evaluation.placement, chosen.best
    yield placement["mode"]
    for key, side in (("rollout_layout", best.place.fleet), ("trainer_layout", best.place.trainer)):
        yield Figure(key=key, value=side.name, provenance="predicted", source="the plan")
    yield from (placement[key] for key in ("memory_fraction",) if key in placement)
    if not best.place.trainer.seconds.known:
        yield from (placement[key] for key in _CHOSEN if key in placement)
    generated, trained = best.results["generation_seconds"], best.results["train_seconds"]
    longer, source = "rollout" if generated > trained else "trainer", "the side that takes longer for a step"
    beside = best.results["sync_exposed_seconds"] + best.results["overhead_seconds"]
    if best.place.loop == "async" and best.results["step_seconds"] - beside > _LONGER * max(generated, trained):
        longer = "late samples"
        source = "long samples hold both sides up: the cap on staleness lets few others start"
    yield Figure(key="bottleneck", value=longer, provenance="predicted", source=source)


def _simulated_order(chosen: Choice, ranked: Sequence[Ranked]) -> tuple[str, bool]:
    """What the simulator's order says, and whether it doubts the choice; nothing where it ranked no plan."""
    able = [entry for entry in ranked if not entry.refused]
    if not able:
        return "", False
    order = sorted(able, key=lambda entry: entry.step_seconds)
    if [entry.step_seconds for entry in able] == [entry.step_seconds for entry in order]:
        return f"The simulator keeps the order of the best {len(able)}.", False
    if order[0].one is chosen.best:
        return "The simulator changes the order behind the best plan.", False
    return f"the simulator changes the order: {order[0].one.place.words} has the shortest step there", True


def tight(chosen: Choice) -> Iterator[str]:
    """What may not be enough: what comes too late, and memory on the draws."""
    yield from dropped_words(chosen.evaluation.results)
    if chosen.doubted:
        yield "its memory may not be enough: `rlsize memory` says which phase takes how much"


def _searched(answer: Planned) -> str:
    """What was searched."""
    space, found = answer.space, answer.found
    modes = ", ".join(space.loops)
    fleets = {(one.gpu, one.name) for one in space.fleets}
    ways = f"{len(fleets)} ways to build instances, {len(space.trainers)} to spread the trainer"
    return f"Searched: {found.worked_out:,} candidates ({modes}; {ways}); {found.feasible:,} keep all limits."


def _nothing(answer: Planned, inputs: Sequence[Figure], warnings: Sequence[str], notes: Sequence[str]) -> Report:
    """The report where no plan is possible."""
    sources = {limit.key: limit.source for limit in answer.space.limits}
    ways = [_change_words(change, sources.get(change.key, "")) for change in answer.changes]
    least = f" The least change that makes one possible: {ways[0]}." if ways else ""
    why, others = _why_none(answer)
    needed = [change.needed for change in answer.changes[:1] if change.key == "gpus"]
    return Report(
        command="plan",
        headline=f"{why}.{least}",
        results=(Figure(key="plan_exists", value=False, provenance="predicted", source="the search"),),
        inputs=tuple(inputs),
        tables=tables_of(rejected=rejections(answer)),
        warnings=tuple(warnings),
        notes=(*(f"Or: {way}." for way in ways[1:]), *_nearest(answer), *others, _searched(answer), *notes),
        no=True,
        decision=Decision(
            why=[*_left_out(answer), *others, _searched(answer)],
            change=[*(f"Or: {way}." for way in ways[1:]), *_nearest(answer)],
            then=f"the same with --gpus {needed[0]:g}" if needed else _instead(answer),
        ),
    )


def _instead(answer: Planned) -> str:
    """What to ask where no plan is possible, by what left most of them out."""
    if answer.runs_as_said:
        return "rlsize predict step with the same inputs: what the loop gives as it is said"
    if answer.nearest is not None:
        return "the same with limits that the nearest plan keeps"
    if answer.found.rejected.counts.keys() & {"rollout_memory", "trainer_memory", "room"}:
        return "rlsize memory bills what does not fit"
    return "the same with another split, mode or framework"


def _left_out(answer: Planned) -> Iterator[str]:
    """What most candidates were left out for, and the one that misses by least; nothing where numbers cannot be."""
    rejected = answer.found.rejected
    if not answer.found.worked_out and misasked(answer.space, answer.outlook.problem):
        return
    for reason, count in rejected.counts.most_common(_FEW):
        narrow = rejected.nearest.get(reason)
        nearest = f"; {narrow.what} misses by {show(narrow.short, '_fraction')}" if narrow is not None else ""
        yield f"{count:,.0f} left out, as {REASONS.get(reason) or f'{words(reason)} is beyond the limit'}{nearest}."


def _nearest(answer: Planned) -> Iterator[str]:
    """The plan that is the least beyond the limits, and by how much of each."""
    near = answer.nearest
    if near is None:
        return
    results = central_results(answer.outlook, near.place) | memory_of(answer.outlook.central, near.place)
    told = [
        f"{words(limit.key)} {show(float(results[limit.key]), limit.key)}, "
        f"{'at least' if limit.least else 'at most'} {show(limit.value, limit.key)} asked"
        for limit in answer.space.limits
        if limit.key in results and not keeps(limit, float(results[limit.key]))
    ]
    yield f"The nearest plan: {near.place.words}: {'; '.join(told)}."


def _why_none(answer: Planned) -> tuple[str, list[str]]:
    """Why no plan is possible: what most of those that were found are refused for, else what the nearest one misses."""
    if answer.refusals:
        refused = Counter(answer.refusals).most_common()
        others = [f"{count} of {len(answer.refusals)} are refused otherwise: {why}." for why, count in refused[1:_FEW]]
        stays = "; as it is said the loop can run" if answer.runs_as_said else ""
        return f"No plan can be launched: {refused[0][0]}{stays}", others
    rejected = answer.found.rejected
    if {limit.key for limit in answer.space.limits} & rejected.counts.keys():
        return "No plan keeps all limits", []
    asked = "" if answer.found.worked_out else misasked(answer.space, answer.outlook.problem)
    nearest = min(rejected.nearest, key=lambda reason: rejected.nearest[reason].short, default="")
    common = [reason for reason, _ in rejected.counts.most_common() if reason not in _NEVER_ALONE]
    why = REASONS[next(iter((*filter(None, [nearest]), *common, *rejected.counts, "room")))]
    return f"No plan is possible: {asked or (REASONS['room'] if 'room' in rejected.counts else why)}", []


def _change_words(change: LeastChange, source: str = "") -> str:
    """A least change in words, with what it alters and what a step takes then."""
    key, now, needed = change.key, change.now, change.needed
    if key == "memory_margin":
        text = f"let {needed:.1%} of memory stay free, not {now:.0%} (--memory-margin)"
    elif key == "gpus":
        text = f"{needed:g} GPUs, not {now:g} (--gpus)"
    elif key in QUANTITIES and now is None:
        row = QUANTITIES[key]
        text = f"{words(key)} {needed if isinstance(needed, str) else f'{needed:g}'} ({row.flag or row.scenario})"
    elif key in QUANTITIES and QUANTITIES[key].flag and not source:
        text = f"{needed:g} {words(key)}, not {now:g} ({QUANTITIES[key].flag})"
    else:
        said = f" (limited by {source})" if source else ""
        text = f"a {words(key)} of {show(needed, key)}, not {show(now, key)}{said}"
    kind = kind_of({key: needed})
    text += "" if kind == KINDS[0] else f": {kind}"
    if change.beside is not None:
        text += f", with {_change_words(change.beside)}"
    if change.best is not None:
        text += f"; {change.best.place.words} takes {show(change.best.step_seconds, 'step_seconds')} a step"
    return text


def verdicts(answer: Planned, chosen: Choice) -> list[str]:
    """Why the runner-up lost, and whether to stay colocated, to give GPUs back, or not to buy."""
    gpus = (*_as_good(chosen), *_more_gpus(answer, chosen), *_other_batch(answer))
    return [*_lost(chosen), *_unlaunched(answer), *_other_modes(answer, chosen), *gpus, *_as_written(chosen)]


def _lost(chosen: Choice) -> Iterator[str]:
    """Why the runner-up lost."""
    runner = chosen.runner_up
    if runner is None or runner.times is None:
        return
    name, times = runner.place.words, runner.times
    why = _reasons(runner, chosen.best)
    if runner.equal:
        yield f"The runner-up, {name}, does as well."
    elif runner.close:
        low, high = ends(times)
        span = f"{low:.2f} to {high:.2f} times the best on the same draws"
        yield f"The runner-up, {name}, is too close to call: {span}{f' ({why})' if why else ''}."
    else:
        yield f"The runner-up, {name}, lost: {times.number:.3g} times the best{f'; {why}' if why else ''}."


def _unlaunched(answer: Planned) -> Iterator[str]:
    """What is better, and why what runs the loop cannot be launched on it."""
    for family, why in answer.unlaunched.values():
        step = show(family.step_seconds, "step_seconds")
        yield f"{family.place.words.capitalize()} would take {step}, and cannot be launched: {why}."


def _reasons(one: Alternative, best: Alternative) -> str:
    """What of a plan's step is longer or shorter, most important first."""
    least = WORTH_A_WORD * best.results["step_seconds"]
    texts = [
        f"{_SECONDS[part]} takes {show(abs(seconds), 'step_seconds')} {'longer' if seconds > 0 else 'less'}"
        for part, seconds in one.why
        if abs(seconds) > least
    ]
    cheaper = one.results.get("cost_per_step_usd", 0.0) - best.results.get("cost_per_step_usd", 0.0)
    if cheaper > 0 and not texts:
        return f"it costs {show(cheaper, 'cost_per_step_usd')} more"
    return ", ".join(texts[:2])


def _other_modes(answer: Planned, chosen: Choice) -> Iterator[str]:
    """What less staleness would cost, what stands in the place of hybrid, and whether to stay colocated."""
    best, fresher, shared = chosen.best, chosen.fresher, chosen.best_of("colocated")
    if fresher is not None:
        change = fresher.step_seconds - best.family.step_seconds
        if change < WORTH_A_WORD * best.family.step_seconds:
            yield f"A staleness of {fresher.place.staleness:g} does as well: the step is the same but for noise."
        else:
            yield f"With a staleness of {fresher.place.staleness:g} a step takes {show(change, 'step_seconds')} longer."
    if best.place.loop == "hybrid":
        plain = next((one for one in chosen.others if one.place.loop != "hybrid"), None)
        step = "" if plain is None else _beside(plain.results["step_seconds"], chosen)
        instead = "" if plain is None else f"; without it, {plain.place.words} takes {step}"
        yield f"Hybrid needs a framework that lends waiting trainer GPUs to the fleet{instead}."
    if best.place.shared:
        which = " that can be launched" if answer.unlaunched else ""
        yield f"Stay colocated: no split of these GPUs{which} does better."
    elif shared is not None and shared.close:
        yield "Colocated is too close to call: splitting the GPUs is not worth a move by itself."


def _as_good(chosen: Choice) -> Iterator[str]:
    """What does as well as the answer, and what it would need to be it."""
    best, rare = chosen.best, chosen.rare
    if chosen.objective != "time":
        return
    if rare is not None and rare.times is not None and rare.family.step_seconds < best.family.step_seconds:
        shorter = float(planning.overshoot(value=best.family.step_seconds, limit=rare.family.step_seconds))
        layout = f"{rare.place.fleet.name} and {rare.place.trainer.name}"
        yield f"Few run {layout}: {rare.place.words}, {shorter:.1%} shorter, is not better for sure; flags ask for it."
    for one in chosen.others:
        shorter = float(planning.overshoot(value=best.family.step_seconds, limit=one.family.step_seconds))
        if 0 < shorter <= AS_GOOD and one.close:
            more = one.family.gpus - best.family.gpus
            beside = (
                f" with {more:g} GPUs more" if more > 0 else f", {one.place.fleet.name} and {one.place.trainer.name}"
            )
            need = _beside(best.family.step_seconds / (1.0 + AS_GOOD), chosen)
            yield f"As good: {one.place.words}, {shorter:.1%} shorter{beside}. To be the answer it must take {need}."


def _other_batch(answer: Planned) -> Iterator[str]:
    """A batch near the asked one that divides better."""
    for change in answer.changes:
        yield f"A batch that divides over more GPUs: {_change_words(change)}."


def _more_gpus(answer: Planned, chosen: Choice) -> Iterator[str]:
    """Whether more GPUs would help at all."""
    there, used = answer.space.gpus, chosen.best.results["gpus"]
    if there is not None and used < there:
        yield f"{there - used:g} of {there:g} GPUs are left unused."
    more = [one for one in answer.neighbours if one.gpus > 0]
    if more and all(one.change["step_seconds"] >= 0 for one in more):
        yield "Do not buy: more GPUs on either side make no step shorter."
    elif more and all(one.change.get("cost_per_step_usd", 0.0) > 0 for one in more):
        yield "Do not buy to save money: the next GPUs on either side make a step shorter, and dearer."


def _as_written(chosen: Choice) -> Iterator[str]:
    """How the loop as the scenario has it does beside the best."""
    written = chosen.written
    if written is None or written.times is None:
        return
    low, high = ends(written.times)
    step = _beside(written.results["step_seconds"], chosen)
    text = f"As the scenario has it ({written.place.words}), a step takes {step}"
    if written.family.place == chosen.best.place:
        yield "As the scenario has it: nothing is better for sure, so there is no need to change."
    elif low <= 1.0 <= high:
        yield f"{text}: too close to call, so there is no need to change."
    else:
        yield f"{text}, {written.times.number:.3g} times the best by what is searched for."


def candidates(chosen: Choice) -> Table:
    """The best plans, and the one that the scenario has."""
    found = [chosen.best, *chosen.others, *([] if chosen.written is None else [chosen.written])]
    cost = Unseen("cost_per_step_usd", lambda one: one.results.get("cost_per_step_usd"))
    hours = Unseen("gpu_hours_per_step", lambda one: one.results["gpu_hours_per_step"])
    priced = any(one.results.get("cost_per_step_usd") is not None for one in found)

    def verdict(one: Alternative) -> str:
        name = "yours" if one is chosen.written else ""
        if one.times is None:
            return name or "best"
        told = "as good" if one.equal else "too close" if one.close else f"x {one.times.number:.2f}"
        return f"{name}: {told}" if name else told

    cells: tuple[Column | Unseen, ...] = (
        Column("_plan", "plan", "left", of=lambda one: one.place.words),
        Unseen("mode", lambda one: one.place.loop),
        Unseen("rollout_gpus", lambda one: one.place.rollout_gpus),
        Unseen("trainer_gpus", lambda one: one.place.trainer_gpus),
        Column("max_staleness", "stale", of=lambda one: one.place.staleness),
        Column("_instance", "instance", "left", of=lambda one: _instance(one.place.fleet)),
        Column("_trainer", "trainer", "left", wide=True, of=lambda one: one.place.trainer.name),
        Unseen("rollout_layout", lambda one: one.place.fleet.name),
        Unseen("trainer_layout", lambda one: one.place.trainer.name),
        Column("step_seconds", "step", of=lambda one: one.results["step_seconds"]),
        Column(cost.key, "cost", of=cost.of) if priced else cost,
        hours if priced else Column(hours.key, "GPU-h", of=hours.of),
        Unseen("trainer_idle_fraction", lambda one: one.results["trainer_idle_fraction"]),
        Unseen("rollout_idle_fraction", lambda one: one.results["rollout_idle_fraction"]),
        Unseen("times_best", lambda one: 1.0 if one.times is None else one.times.number),
        Unseen("times_best_low", lambda one: one.times and one.times.band and one.times.band[0]),
        Unseen("times_best_high", lambda one: one.times and one.times.band and one.times.band[1]),
        Column("verdict", "verdict", "left", of=verdict),
    )
    best = _METRICS[chosen.objective]
    note = f"best by {best}; too close: the 80 % interval of the ratio on the same draws holds 1"
    return Table.of("The best plans", found, cells, marked=0, note=note)


def _instance(fleet: FleetOption) -> str:
    return fleet.name.removeprefix(fleet.gpu).strip() or fleet.name


def simulated_ranks(chosen: Choice, ranked: Sequence[Ranked]) -> Table:
    """The best plans as the simulator ranks them; those that it refuses come last."""
    known = [chosen.best, *chosen.others]
    cells = (
        Column("plan", "plan", "left", wide=True, of=lambda entry: entry.one.place.words),
        Column("predicted_rank", "rank", of=lambda entry: 1.0 + known.index(entry.one)),
        Column("predicted_step_seconds", "predicted", of=lambda entry: entry.one.results["step_seconds"]),
        Column("simulated_step_seconds", "simulated", of=lambda entry: None if entry.refused else entry.step_seconds),
        Column("simulated_low_seconds", "low", of=lambda entry: None if entry.refused else entry.low),
        Column("simulated_high_seconds", "high", of=lambda entry: None if entry.refused else entry.high),
        Unseen("refused", lambda entry: entry.refused or None),
    )
    entries = sorted(ranked, key=lambda one: (True, 0.0) if one.refused else (False, one.step_seconds))
    return Table.of("As the simulator ranks them", entries, cells, note="low and high: 95 % over seeds")


def next_gpus(answer: Planned) -> Table:
    """What a unit of GPUs more or less on each side brings."""
    cost = "cost_per_step_usd"
    priced = any(one.change.get(cost) is not None for one in answer.neighbours)
    change = Unseen("cost_change_usd", lambda one: one.change.get(cost))
    told = Column(change.key, "cost change", of=change.of, told=lambda one: _signed(one.change.get(cost), cost))
    cells: tuple[Column | Unseen, ...] = (
        Column("side", "side", "left"),
        Column("gpus_change", "GPUs", of=lambda one: one.gpus),
        Column("split", "then", of=lambda one: one.place.split),
        Column("step_seconds", "step", of=lambda one: one.results["step_seconds"]),
        Column(
            "step_change_seconds",
            "step change",
            of=lambda one: one.change["step_seconds"],
            told=lambda one: _signed(one.change["step_seconds"], "step_seconds"),
        ),
        Unseen("step_change_per_gpu_seconds", lambda one: one.change["step_seconds"] / one.gpus if one.gpus else None),
        told if priced else change,
        Column("trainer_idle_fraction", "trainer idle", of=lambda one: one.results["trainer_idle_fraction"]),
        Column("rollout_idle_fraction", "rollout idle", of=lambda one: one.results["rollout_idle_fraction"]),
    )
    return Table.of("The next GPUs on each side", answer.neighbours, cells)


def _signed(value: float | None, key: str) -> str | None:
    return None if value is None else f"{'-' if value < 0 else '+'}{show(abs(value), key)}"


def sensitivity(answer: Planned, chosen: Choice) -> Table | None:
    """The inputs that matter most; None where nothing moves the answer."""
    best = chosen.best.results[chosen.metric]
    cells = (
        Column("input", "input", "left", wide=True, of=lambda swing: swing.meaning),
        Unseen("low_factor", lambda swing: swing.ends[0]),
        Unseen("high_factor", lambda swing: swing.ends[1]),
        Column("_ends", "moved", "left", of=lambda swing: f"x {swing.ends[0]:.2f} to {swing.ends[1]:.2f}"),
        Unseen("basis"),
        Column("low", "at low", told=lambda swing: show(swing.low, chosen.metric, best)),
        Column("high", "at high", told=lambda swing: show(swing.high, chosen.metric, best)),
        Column(
            "better_plan", "better plan then", "left", True, lambda one: one.flips or None, lambda one: one.flips or "-"
        ),
    )
    return Table.of("What the answer is most sensitive to", answer.swings, cells) if answer.swings else None


def rejections(answer: Planned) -> Table | None:
    """What each constraint left out, and the narrowest of it; None where all was kept."""
    counts, nearest = answer.found.rejected.counts, answer.found.rejected.nearest
    least = {limit.key: limit.least for limit in answer.space.limits}

    def why(reason: str) -> str:
        return REASONS.get(reason) or f"{words(reason)} {'below' if least.get(reason) else 'above'} the limit"

    cells = (
        Column("constraint", "left out because", "left", wide=True, of=str, told=why),
        Column("left_out", "how many", of=lambda reason: float(counts[reason])),
        Unseen("nearest", lambda reason: nearest[reason].what if reason in nearest else None),
        Unseen("short_fraction", lambda reason: nearest[reason].short if reason in nearest else None),
        Column(
            "_short", "nearest miss by", of=lambda one: show(nearest[one].short, "_fraction") if one in nearest else ""
        ),
        Column("_nearest", "which", "left", wide=True, of=lambda one: nearest[one].what if one in nearest else ""),
    )
    return Table.of("What was left out", [reason for reason, _ in counts.most_common()], cells) if counts else None


def limits_table(answer: Planned, chosen: Choice) -> Table | None:
    """The limits that were set, and what the plan makes of them; None without limits."""
    results = chosen.evaluation.results
    limits = [limit for limit in answer.space.limits if limit.key in results and results[limit.key].known]

    def plan(limit: Limit) -> float:
        return results[limit.key].number

    def room(limit: Limit) -> float:
        beyond = float(planning.overshoot(value=plan(limit), limit=limit.value)) if limit.value else 0.0
        return beyond if limit.least else -beyond

    cells = (
        Column("quantity", "limit on", "left", of=lambda limit: limit.key, told=lambda limit: words(limit.key)),
        Column("bound", "", "left", of=lambda limit: "at least" if limit.least else "at most"),
        Column("limit", "limit", of=lambda limit: limit.value, told=lambda limit: show(limit.value, limit.key)),
        Column("value", "plan", of=plan, told=lambda limit: show(results[limit.key].value, limit.key)),
        Column("margin_fraction", "room", of=room, told=lambda limit: show(abs(room(limit)), "_fraction")),
        Column("source", "from", "left", wide=True),
    )
    return Table.of("Limits, all kept", limits, cells) if limits else None


def front_table(answer: Planned) -> Table:
    """The plans that no other beats in both step and cost: dollars where all prices are known, else GPU-hours."""
    key, title = ("cost_per_step_usd", "cost") if answer.found.priced else ("gpu_hours_per_step", "GPU-h")
    cells = (
        Column("mode", "mode", "left", of=lambda family: family.place.loop),
        Column("split", "GPUs", of=lambda family: family.place.split),
        Unseen("gpus"),
        Column("step_seconds", "step"),
        Column(key, title, of=lambda family: family.cost),
    )
    more = len(answer.found.front) - _FRONT_SHOWN
    note = "no other plan is better in both" + (f"; {more} more in --json" if more > 0 else "")
    return Table.of("Step against cost", answer.found.front, cells, shown=_FRONT_SHOWN, note=note)
