"""The search of a plan against plain loops over the same candidates, and what more room or a better side can do."""

from __future__ import annotations

from dataclasses import replace
from operator import le
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import NIGHTLY, tries
from tests.planner.plain_search import SIZED, Tried, plain_search, within
from tests.planner.small_problems import Posed, measured_problems, predicted_problems

from rlsize.estimates.step_assembly import USUAL_LATE
from rlsize.planner import families
from rlsize.planner import search as search_module
from rlsize.planner.evaluation import worked
from rlsize.planner.families import rounded
from rlsize.planner.search import Bar
from rlsize.planner.space import Limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.estimates.generation import Late
    from rlsize.estimates.step_assembly import Loop
    from rlsize.planner.families import Family, Found, Objective, Order

OBJECTIVES: tuple[Objective, ...] = ("time", "cost", "gpus")
LIMITED = {
    "step_seconds": False,
    "run_seconds": False,
    "cost_per_step_usd": False,
    "gpu_hours_per_step": False,
    "gpus": False,
    "rollout_gpus": False,
    "trainer_idle_fraction": False,
    "rollout_idle_fraction": False,
    "staleness_steps": False,
    "sync_fraction": False,
    "steps_per_day": True,
    "loop_tokens_per_gpu_second": True,
    "rollout_memory_headroom_fraction": True,
    "trainer_memory_headroom_fraction": True,
}
"""Results that limits are put on, and whether these are lower limits."""
SAME = 1e-9
CLEARLY = 1e-8  # two ways to work a number out may round it to either side of what counts as the same


def drawn_limits(data: st.DataObject, tried: Sequence[Tried]) -> tuple[Limit, ...]:
    """Up to two limits, each at what a candidate gives or a little beside it."""
    known = sorted({key for one in tried for key in one.results if key in LIMITED})
    limits = []
    for key in data.draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else ():
        values = sorted({one.results[key] for one in tried if key in one.results})
        value = data.draw(st.sampled_from(values)) * data.draw(st.sampled_from([1.0, 1.0, 1.01, 0.99]))
        limits.append(Limit(key=key, value=value if abs(value) > SAME else 0.0, least=LIMITED[key]))
    return tuple(limits)


def agree(posed: Posed, data: st.DataObject) -> None:
    """Search and plain loops find the same, for each objective."""
    tried = plain_search(posed.outlook, posed.space)
    limited = posed.but(limits=drawn_limits(data, tried))
    kept = within(tried, limited.space.limits)
    front: list[tuple[float, float]] = []
    for objective in OBJECTIVES:
        found = searched(limited, objective, *data.draw(st.sampled_from([(2**17, 400), (16, 3)])))
        counted = [one for one in tried if not limited.space.quickest_counts or saves_least(one, tried)]
        fit = within(counted, limited.space.limits)
        assert (found.worked_out, found.feasible) == (len(counted), len(fit))
        the_best_is_best(posed, found, kept)
        if objective == "time":  # the front is the same whatever is made small
            the_front_is_the_front(found, kept)
            front = [(family.step_seconds, family.cost) for family in found.front]
        assert [(family.step_seconds, family.cost) for family in found.front] == front


def saves_least(one: Tried, tried: Sequence[Tried]) -> bool:
    """Whether no placement that is the same but saves less memory fits too."""
    own = one.place.trainer.savings
    others = (two.place.trainer.savings for two in tried if words(two)[:-1] == words(one)[:-1])
    return not any(less != own and all(map(le, less, own)) for less in others)


def searched(posed: Posed, objective: Order, block: int, kept: int, **more: Any) -> Found:
    """What a search finds that works out so many candidates at once, and keeps so many families."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "BLOCK", block)
        patch.setattr(families, "KEPT", kept)
        return search_module.search(posed.outlook.central, posed.space, objective, **more)


def the_best_is_best(posed: Posed, found: Found, kept: Sequence[Tried]) -> None:
    """The best of all and of each mode: what is made small, and which candidate it is."""
    assert bool(found.best) == bool(kept)
    assert set(found.modes) == {one.place.loop for one in kept}
    first = SIZED[found.objective][0]
    for loop, family in found.modes.items():
        own = [one for one in kept if one.place.loop == loop]
        assert getattr(family, first) == pytest.approx(min(one.number(first) for one in own), rel=SAME)
    for family in found.best[:1]:
        best = min(one.number(first) for one in kept)
        assert getattr(family, first) == pytest.approx(best, rel=SAME)
        assert not [one for one in kept if better(one.score(found.objective), family.score(found.objective))]
    names = {words(one) for one in kept}
    for family in [*found.best[:3], *found.front[:3]]:
        assert words(family) in names
        again = worked(posed.outlook.central, family.place)
        assert family.step_seconds == pytest.approx(float(again["step_seconds"]), rel=SAME)
        assert family.gpus == float(again["gpus"])


def better(one: Sequence[float], other: Sequence[float]) -> bool:
    """
    Whether a score is clearly lower, by its first part that differs.

    A search compares what is rounded, so parts that are the same but for noise may still lie apart there.
    """
    for left, right in zip(one, other, strict=True):
        near, far = rounded(np.array([left, right])).tolist()
        if near != far:
            return left < right * (1 - CLEARLY)
    return False


def words(one: Tried | Family) -> tuple[object, ...]:
    """What tells a candidate from all others."""
    place = one.place
    question = place.trainer.question
    tokens = None if question is None else float(question.micro_batch_tokens)
    fleet = (place.fleet.name, float(place.instances), place.transport, place.staleness)
    return (place.loop, *fleet, place.trainer.name, tokens, float(place.trainer_gpus), place.trainer.savings)


def the_front_is_the_front(found: Found, kept: Sequence[Tried]) -> None:
    """No candidate beats one of the front, each is as good as none of it in both, and it has no equals."""
    pairs = [(one.results["step_seconds"], one.cost) for one in kept]
    front = [(family.step_seconds, family.cost) for family in found.front]
    for step, cost in front:
        assert not [pair for pair in pairs if pair[0] <= step * (1 + SAME) and pair[1] < cost * (1 - CLEARLY)]
        assert not [pair for pair in pairs if pair[0] < step * (1 - CLEARLY) and pair[1] <= cost * (1 + SAME)]
    for step, cost in pairs:
        assert [one for one in front if one[0] <= step * (1 + CLEARLY) and one[1] <= cost * (1 + CLEARLY)]
    assert front == sorted(set(front))
    assert [cost for _, cost in front] == sorted({cost for _, cost in front}, reverse=True)


@pytest.mark.long
@given(measured_problems(), st.data())
@settings(max_examples=460 if NIGHTLY else 20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_plan_from_measured_rates_is_what_plain_loops_find(posed: Posed, data: st.DataObject) -> None:
    """Best, counts and front, on 460 problems in CI, with and without limits, prices, nodes and pools of two kinds."""
    agree(posed, data)


@pytest.mark.long
@given(predicted_problems(), st.data())
@settings(max_examples=tries(40))
def test_a_predicted_plan_is_what_plain_loops_find(posed: Posed, data: st.DataObject) -> None:
    """The same of 40 problems of small models, with memory that does not hold everything."""
    agree(posed, data)


@given(predicted_problems(), st.sampled_from(OBJECTIVES))
@settings(max_examples=tries(20))
def test_the_best_alone_is_the_best_of_all(posed: Posed, objective: Objective) -> None:
    """Of a search that keeps nothing else; and candidates are counted without their times."""
    terms, space = posed.outlook.central, posed.space
    found, alone = (search_module.search(terms, space, objective, alone=alone) for alone in (False, True))
    assert list(map(key, alone.best[:1])) == list(map(key, found.best[:1]))
    count, fewest = search_module.counted(search_module.tabulated(terms, space))
    assert count == found.worked_out
    assert (fewest < np.inf) == bool(found.best)
    if found.best:
        tables = search_module.just(search_module.tabulated(terms, space), fewest)
        least = search_module.search(terms, space, "gpus", tables=tables, alone=True).best[0]
        known = search_module.search(terms, space, "gpus", alone=True).best[0]
        assert fewest == known.gpus
        assert key(least) == key(known)


@given(predicted_problems(), st.sampled_from(OBJECTIVES), st.booleans(), st.sampled_from([(2**17, 400), (16, 3)]))
@settings(max_examples=tries(40))
def test_a_bound_leaves_out_nothing_that_is_told(
    posed: Posed, objective: Objective, usual: bool, size: tuple[int, int]
) -> None:
    """Where late samples are dropped: all families, to the last bit, and those below a bar, as without a bound."""
    late: dict[Loop, Late] = {**USUAL_LATE, "async": "drop", "hybrid": "drop"}
    outlook = replace(posed.outlook, problem=replace(posed.outlook.problem, late=late))
    dropping = Posed(outlook, replace(posed.space, loops=("synchronous", "hybrid", "async")))
    found = searched(dropping, objective, *size, usual=usual)
    bars = [
        Bar(step_seconds=1.1 * one.step_seconds, cost=1.1 * one.cost, gpus=one.gpus, burden=burden)
        for one in found.best[:1]
        for burden in (2.0, np.inf)
    ]
    ways: list[tuple[Order, dict[str, Any]]] = [(objective, {}), (objective, {"alone": True})]
    ways += [("plain", {"bar": bar}) for bar in bars]

    def tried() -> list[object]:
        tables = search_module.tabulated(outlook.central, dropping.space)  # where searches note what they find
        return [told(searched(dropping, order, *size, usual=usual, tables=tables, **way)) for order, way in ways]

    bounded = tried()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "at_least", lambda parts: 0.0 * parts.update_seconds)
        assert tried() == bounded


def told(found: Found) -> list[object]:
    """All families that a search tells."""
    splits = {split: key(family) for split, family in found.splits.items()}
    modes = {mode: key(family) for mode, family in found.modes.items()}
    rare = found.rare and key(found.rare)
    return [list(map(key, found.best)), list(map(key, found.front)), modes, splits, rare]


def key(family: Family) -> tuple[object, ...]:
    """A family and what it gives."""
    return (*words(family), family.step_seconds, family.cost, family.gpus)
