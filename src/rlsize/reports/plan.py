"""What to say about a plan: the choice in a sentence, its figures, and what stands around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.plan_chart import plan_chart
from rlsize.reports.plan_limits import rejections
from rlsize.reports.plan_ranks import rank_words, simulated_ranks
from rlsize.reports.plan_tables import candidates, front_table, next_gpus, tornado_table
from rlsize.reports.plan_verdicts import verdicts
from rlsize.reports.report import Report
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.planner.choice import Alternative, Choice
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Outlook
    from rlsize.planner.plan import Planned
    from rlsize.planner.simulation import Ranked

BEST = "best_"
"""What keys of the best plan begin with in JSON: it is another loop than the one that was said."""
_QUIET = frozenset({"tail_seconds", "sync_seconds", "gpu_hours_per_step", "loop_tokens_per_gpu_second"})
_TITLES = {"time": "the shortest step", "cost": "the least cost per step", "gpus": "the fewest GPUs"}


def plan_report(
    answer: Planned,
    inputs: Sequence[Figure],
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
    ranked: Sequence[Ranked] = (),
) -> Report:
    """
    The report of `rlsize plan`.

    Args:
        answer: The plan.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
        ranked: The best plans as the simulator ranks them, where it was asked.
    """
    chosen = answer.chosen
    if chosen is None:
        return _nothing(answer, inputs, warnings)
    order, doubted = rank_words(chosen, ranked)
    warnings = (*warnings, *([order] if doubted else []))
    notes = (*notes, *([order] if order and not doubted else []))
    tables = {"candidates": candidates(chosen)}
    if ranked:
        tables["simulated"] = simulated_ranks(chosen, ranked)
    tables["next_gpus"] = next_gpus(answer)
    if answer.swings:
        tables["sensitivity"] = tornado_table(answer)
    if answer.found.rejected.counts:
        tables["rejected"] = rejections(answer)
    tables["front"] = front_table(answer)
    return Report(
        command="plan",
        headline=headline(chosen),
        results=(*_words(chosen), *chosen.evaluation.results.values()),
        of=BEST,
        inputs=tuple(inputs),
        tables=tables,
        warnings=(*warnings, *tight(answer)),
        notes=(*verdicts(answer), *_space(answer), *notes),
        chart=plan_chart(answer),
        quiet=_QUIET,
    )


def place_words(one: Alternative) -> str:
    """Where a plan runs, in a phrase."""
    place = one.place
    kind = place.trainer.gpu or place.fleet.gpu or "GPUs"
    if place.shared:
        return f"{place.trainer_gpus:g} {kind}, colocated"
    kinds = f"{place.fleet.gpu or ''} + {place.trainer_gpus:g} {place.trainer.gpu or 'GPUs'}"
    if place.fleet.gpu == place.trainer.gpu:
        return f"{place.rollout_gpus:g} + {place.trainer_gpus:g} {kind}, {_mode(one)}"
    return f"{place.rollout_gpus:g} {kinds}, {_mode(one)}"


def _mode(one: Alternative) -> str:
    place = one.place
    return f"{place.loop}, staleness {place.staleness:g}" if place.loop in {"async", "hybrid"} else place.loop


def headline(chosen: Choice) -> str:
    """The choice in a sentence."""
    best, results = chosen.best, chosen.evaluation.results
    step = results["step_seconds"]
    band = "" if step.band is None else f" ({show(step.band[0], step.key)} to {show(step.band[1], step.key)})"
    cost = results["cost_per_step_usd"]
    money = f", {show(cost.value, cost.key)} a step" if cost.known else ""
    text = f"{place_words(best)}: a step takes {show(step.value, step.key)}{band}{money}"
    runner = chosen.runner_up
    if runner is None:
        return f"{text}; nothing else is possible."
    if runner.close or runner.equal:
        verdict = "does as well" if runner.equal else "is too close to call"
        return f"{text}; {runner.place.words} {verdict}."
    return f"{text}, {_TITLES[chosen.objective]} of what was searched."


def _words(chosen: Choice) -> list[Figure]:
    placement = chosen.evaluation.placement
    bottleneck = (
        "rollout" if chosen.best.results["generation_seconds"] > chosen.best.results["train_seconds"] else "trainer"
    )
    found = [placement["mode"], _layout("rollout_layout", chosen.best.place.fleet.name)]
    found.append(_layout("trainer_layout", chosen.best.place.trainer.name))
    known = not chosen.best.place.trainer.seconds.known
    found += [placement[key] for key in ("recompute", "micro_batch_tokens") if key in placement and known]
    source = "the side that takes longer for a step"
    return [*found, Figure(key="bottleneck", value=bottleneck, provenance="predicted", source=source)]


def _layout(key: str, text: str) -> Figure:
    return Figure(key=key, value=text, provenance="predicted", source="the plan")


def late_words(outlook: Outlook, place: Placement | None) -> list[str]:
    """What it means that the longest response of a loop outlives its staleness cap; nothing where it does not."""
    if place is None:
        return []
    from rlsize.planner.choice import family_of, outlived

    late = outlived(outlook, family_of(outlook, place, priced=False))
    return [] if late is None else [outlived_words(late, place.staleness)]


def outlived_words(late: tuple[float, float], staleness: float) -> str:
    """
    What it means that the longest response outlives the staleness cap.

    Args:
        late: Its time, and the step of a trainer that waits for it. [s]
        staleness: The cap. [1]
    """
    longest, least = (show(seconds, "step_seconds") for seconds in late)
    return (
        f"the longest response takes about {longest}, longer than a staleness of {staleness:g} allows: the step "
        f"holds where such samples go on over a sync or may be staler, and is {least} or more where the trainer waits "
        "for them"
    )


def tight(answer: Planned) -> list[str]:
    """Memory that may not be enough, on the draws."""
    chosen = answer.chosen
    if chosen is None:
        return []
    found = []
    if chosen.outlived is not None:
        found.append(outlived_words(chosen.outlived, chosen.best.place.staleness))
    for side in ("rollout", "trainer"):
        left = chosen.evaluation.results[f"{side}_memory_headroom_fraction"]
        if left.band is not None and left.band[0] < 0:
            share = show(left.value, left.key)
            found.append(f"the {side}'s memory may not be enough: {share} should be left, and at the low end none is")
    return found


def _space(answer: Planned) -> list[str]:
    """What was searched."""
    space, found = answer.space, answer.found
    modes = ", ".join(space.loops)
    ways = f"{len(space.fleets)} ways to build instances, {len(space.trainers)} to spread the trainer"
    return [f"Searched: {found.worked_out:,} candidates ({modes}; {ways}); {found.feasible:,} keep all limits."]


def _nothing(answer: Planned, inputs: Sequence[Figure], warnings: Sequence[str]) -> Report:
    """The report where no plan is possible."""
    rejected = answer.found.rejected
    sources = {limit.key: limit.source for limit in answer.space.limits}
    ways = [
        change_words(change.key, change.now, change.needed, sources.get(change.key, "")) for change in answer.changes
    ]
    least = f" The least change that makes one possible: {ways[0]}." if ways else ""
    return Report(
        command="plan",
        headline=f"No plan keeps all limits.{least}",
        results=(Figure(key="plan_exists", value=False, provenance="predicted", source="the search"),),
        inputs=tuple(inputs),
        tables={"rejected": rejections(answer)} if rejected.counts else {},
        warnings=tuple(warnings),
        notes=(*(f"Or: {way}." for way in ways[1:]), *_space(answer)),
        no=True,
    )


def change_words(key: str, now: float, needed: float, source: str = "") -> str:
    """A least change in words."""
    if key == "memory_margin":
        return f"let {needed:.1%} of memory stay free, not {now:.0%} (--memory-margin)"
    if key == "gpus":
        return f"{needed:g} GPUs, not {now:g} (--gpus)"
    said = f" (limited by {source})" if source else ""
    return f"a {words(key)} of {show(needed, key)}, not {show(now, key)}{said}"
