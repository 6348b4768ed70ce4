"""A plan that stands is kept where no other is better by more than what a prediction can tell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.planner.small_problems import fleet, fleets_of, measured, predicted, trainer, trainers_of

from rlsize.planner.options import Placement, TriedDegrees
from rlsize.planner.plan import planned
from rlsize.planner.space import Limit

if TYPE_CHECKING:
    from rlsize.planner.families import Objective

FLEETS = (fleet(100.0), fleet(99.0), fleet(90.0))
TRAINER = trainer(10.0)
POSED = measured(FLEETS, (TRAINER,), loops=("synchronous",), gpus=4.0, limits=(Limit(key="step_seconds", value=12.0),))


def standing(rate: int) -> Placement:
    """A plan of two instances and two trainer GPUs."""
    return Placement(loop="synchronous", fleet=FLEETS[rate], instances=2.0, trainer=TRAINER, trainer_gpus=2.0)


@pytest.mark.parametrize(
    ("objective", "rate", "kept"), [("gpus", 1, True), ("gpus", 2, False), ("time", 1, False), ("time", 0, True)]
)
def test_fewest_gpus_leave_room_for_a_step_that_is_as_good(objective: Objective, rate: int, kept: bool) -> None:
    """A step of known rates is compared to the last bit; where GPUs are counted, one within 3 % is as good."""
    own = standing(rate)
    found = planned(POSED.outlook, POSED.space, objective, written=own).chosen
    assert found is not None
    assert (found.best.place.fleet.name == own.fleet.name) == kept


@pytest.mark.parametrize(("tokens", "kept"), [(8192.0, True), (4096.0, False)])
def test_a_plan_is_kept_only_with_a_micro_batch_of_the_space(tokens: float, kept: bool) -> None:
    """Of predicted rates a plan that is 3 % slower stands, unless its micro-batch is none of those that may be."""
    fleets = fleets_of("qwen3-0.6b", "h100-sxm", (1, 2))
    degrees = TriedDegrees(tensor=(1,), pipeline=(1,), context=(1,), expert=(1,))
    trainers = trainers_of("qwen3-0.6b", "h100-sxm", 64.0, 2300.0, degrees)
    posed = predicted("qwen3-0.6b", fleets, trainers, loops=("synchronous",), gpus=8.0)
    best = planned(posed.outlook, posed.space, "time").chosen
    assert best is not None
    place = best.best.place
    question = place.trainer.question
    assert question is not None
    own = replace(place, trainer=replace(place.trainer, question=replace(question, micro_batch_tokens=tokens)))
    found = planned(posed.outlook, posed.space, "time", written=own).chosen
    assert found is not None
    assert (found.best.place is own) == kept
