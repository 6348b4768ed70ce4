"""Tables of trainers: layouts that are worked out in the same way stand together, and each has its own answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.planner.small_problems import Posed, fleets_of, predicted, trainers_of

from rlsize.planner import tables
from rlsize.planner.evaluation import MEMORY_KEYS, memory_of
from rlsize.planner.options import TriedDegrees
from rlsize.planner.search import search, tabulated
from rlsize.planner.step_parts import trainer_parts

if TYPE_CHECKING:
    from rlsize.estimates.step_assembly import Loop
    from rlsize.planner.families import Objective

DENSE = TriedDegrees(offload=(False, True), chunked_loss=(False, True))
MOE = TriedDegrees(tensor=(1, 2, 16), pipeline=(1, 2, 5), context=(1, 4), expert=(1, 4, 16), recompute=("full", "none"))


def posed(model: str, degrees: TriedDegrees, loops: tuple[Loop, ...] = ("async",)) -> Posed:
    """A loop whose trainer is spread in all ways."""
    fleets = fleets_of(model, "h100-sxm", (8,))
    trainers = trainers_of(model, "h100-sxm", 64.0, 2300.0, degrees)
    return predicted(model, fleets, trainers, gpus=64.0, micro_batches=(4096.0, 16384.0), loops=loops, uneven=True)


@pytest.mark.parametrize(("model", "degrees"), [("qwen3-8b", DENSE), ("qwen3-30b-a3b", MOE)])
def test_a_layout_among_others_has_the_answer_that_it_has_by_itself(
    model: str, degrees: TriedDegrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last digit: time, memory, and what is left out; dense layouts and those of experts, uneven stages too."""
    monkeypatch.setattr(tables, "_undominated", every)
    loop = posed(model, degrees)
    together = tabulated(loop.outlook.central, loop.space)
    monkeypatch.setattr(tables, "_alike", lambda trainer, _: id(trainer))
    alone = tabulated(loop.outlook.central, loop.space)
    assert together.rejected == alone.rejected
    assert together.trainers
    assert together.uneven
    for one, other in ((together.trainers, alone.trainers), (together.uneven, alone.uneven)):
        for (found, _), (own, _) in zip(one, other, strict=True):
            assert len(found.gpus) > 20
            for name in ("options", "gpus", "micro_batches", "trained", "headroom", "burdens"):
                assert np.array_equal(getattr(found, name), getattr(own, name)), name


@pytest.mark.parametrize("objective", ["time", "cost", "gpus"])
@pytest.mark.parametrize(("model", "degrees"), [("qwen3-8b", DENSE), ("qwen3-30b-a3b", MOE)])
def test_trainers_that_others_are_as_good_as_are_the_best_of_nothing(
    model: str, degrees: TriedDegrees, objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search without them finds the same plans, and counts them; far fewer are worked out."""
    loop = posed(model, degrees)
    terms = loop.outlook.central
    few = tabulated(terms, loop.space)
    found = search(terms, loop.space, objective, tables=few)
    monkeypatch.setattr(tables, "_undominated", every)
    many = tabulated(terms, loop.space)
    assert search(terms, loop.space, objective, tables=many) == found
    assert 3 * len(few.trainers[0][0].gpus) < len(many.trainers[0][0].gpus)


@pytest.mark.parametrize("loops", [("colocated",), ("synchronous", "colocated")])
def test_engines_that_stay_awake_take_what_they_keep_from_trainers_that_share_their_gpus(
    loops: tuple[Loop, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best plan leaves them room; it is the one that is best among all trainers, and as good beside other modes."""
    loop = posed("qwen3-8b", DENSE, loops)
    terms, space = loop.outlook.central, replace(loop.space, held=0.5)
    found = search(terms, space, "time", tables=tabulated(terms, space))
    alone = search(terms, replace(space, loops=("colocated",)), "time")
    asleep = search(terms, replace(space, held=0.0), "time")
    best, free = found.modes["colocated"], asleep.modes["colocated"]
    assert memory_of(terms, best.place)[MEMORY_KEYS[1]] >= space.margin + 0.5
    assert memory_of(terms, free.place)[MEMORY_KEYS[1]] < space.margin + 0.5
    assert best.place == alone.modes["colocated"].place
    assert free.step_seconds < best.step_seconds
    monkeypatch.setattr(tables, "_undominated", every)
    assert search(terms, space, "time", tables=tabulated(terms, space)) == found


def every(columns: dict[str, Any], _shares: Any) -> Any:
    """All entries."""
    return np.arange(len(columns["gpus"]))


def test_layouts_are_asked_about_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far fewer times than there are layouts."""
    asked: list[Any] = []

    def noting(*given: Any) -> Any:
        asked.append(given)
        return trainer_parts(*given)

    monkeypatch.setattr(tables, "trainer_parts", noting)
    loop = posed("qwen3-8b", DENSE)
    tabulated(loop.outlook.central, loop.space)
    assert len(asked) < len({option.name for option in loop.space.trainers})
