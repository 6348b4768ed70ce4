"""The size of an instance, the split and the other ways to run a loop where nobody says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.rollout_question import RolloutQuestion
from rlsize.estimates.step_loops import LoopPlan, Way, bare, step_question
from rlsize.estimates.step_outlook import STAGES
from rlsize.estimates.step_prediction import predicted_step
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.figure import Figure, absent
from rlsize.facts.records.record import Layout
from rlsize.planner.placing import best_split, colocated_way, fitting_trainer, other_ways, quickest_degree, splits
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
VALUES = prior(*STAGES).central()
COLOCATED = Way(loop="colocated", rollout_gpus=16.0, trainer_gpus=16.0)
ASYNC = Way(loop="async", rollout_gpus=8.0, trainer_gpus=8.0)


def plan(way: Way = ASYNC, model: str = "qwen3-8b") -> LoopPlan:
    """A loop of 512 samples of 300 + 2000 tokens, instances of one GPU."""
    profile, gpu = CATALOGUE.get("model", model), CATALOGUE.get("gpu", "h100-sxm")
    one = engine(EngineQuestion(model=profile, gpu=gpu, layout=Layout(), memory_fraction=0.9))
    said = {"samples": 512, "group_size": 8, "prompt_tokens": 300, "response_tokens": 2000, "max_staleness": 1}
    figures: dict[str, Any] = {key: Figure(key=key, value=float(value)) for key, value in said.items()}
    train = TrainQuestion(
        model=profile, gpu=gpu, gpus=way.trainer_gpus, sequences=512.0, tokens=2300.0, micro_batch_tokens=16384.0
    )
    return LoopPlan(
        way=way,
        engines={True: one, False: one},
        train=train,
        response_cv=absent("response_cv", ""),
        max_tokens=absent("max_response_tokens", ""),
        **figures,
    )


@pytest.mark.parametrize(("gpus", "tensor"), [(16.0, 1), (17.0, 4), (64.0, 8), (512.0, 2)])
def test_splits_are_whole_on_both_sides(gpus: float, tensor: int) -> None:
    """Each side has an instance or a replica at least, and no more GPUs are taken than there are."""
    asked = plan()
    asked = replace(asked, train=replace(asked.train, tensor=tensor))
    found = splits(asked, gpus)
    assert 0 < len(found) <= 40
    for rollout, trainer in found:
        assert rollout >= 1
        assert trainer >= tensor
        assert trainer % tensor == 0
        assert rollout + trainer <= gpus


def test_the_best_split_is_the_shortest_step() -> None:
    """Of all splits, by central values."""
    asked = plan()
    best = best_split(asked, "async", 16.0, VALUES)
    assert best is not None
    seconds = {
        way: float(predicted_step(step_question(asked, way, bare(asked)), VALUES).seconds)
        for way in (Way(loop="async", rollout_gpus=r, trainer_gpus=t) for r, t in splits(asked, 16.0) if t > 1)
    }
    assert seconds[best] == min(seconds.values())


def test_no_split_is_chosen_whose_trainer_does_not_fit() -> None:
    """A model of 32 B needs more than a few GPUs; on two there is no way."""
    best = best_split(plan(model="qwen3-32b"), "async", 32.0, VALUES)
    assert best is not None
    assert best.trainer_gpus >= 7
    assert best_split(plan(model="qwen3-32b"), "async", 2.0, VALUES) is None


def test_the_other_ways_keep_a_split_that_was_given() -> None:
    """Without one, each mode has the split that suits it."""
    given = other_ways(plan(ASYNC), 16.0, VALUES, split=True)
    assert [way.loop for way in given] == ["colocated", "synchronous", "one-step-off"]
    assert {(way.rollout_gpus, way.trainer_gpus) for way in given[1:]} == {(8.0, 8.0)}
    assert given[0] == colocated_way(plan(), 16.0)
    free = other_ways(plan(COLOCATED), 16.0, VALUES, split=False)
    assert [way.loop for way in free] == ["synchronous", "one-step-off", "async"]
    assert all(way.gpus <= 16.0 for way in free)


def test_a_trainer_that_does_not_fit_is_told_how_many_gpus_it_needs() -> None:
    """32 B parameters at 18 bytes and their activations take four nodes; sharding nothing helps nobody."""
    asked = plan(model="qwen3-32b")
    assert fitting_trainer(asked, VALUES) == 32
    assert fitting_trainer(replace(asked, train=replace(asked.train, sharding="none")), VALUES) is None


DEGREES = (1, 2, 4, 8, 16)


def question(model: str, gpu: str = "h100-sxm", samples: float = 2048.0) -> RolloutQuestion:
    """An instance with the samples of a step."""
    said = {"prompt_tokens": 300, "response_tokens": 3000, "response_cv": 0.6, "max_response_tokens": 16000}
    figures: dict[str, Any] = {key: Figure(key=key, value=float(value)) for key, value in said.items()}
    return RolloutQuestion(
        engine=EngineQuestion(model=CATALOGUE.get("model", model), gpu=CATALOGUE.get("gpu", gpu), layout=Layout()),
        hit_fraction=Figure(key="hit_fraction", value=0.0),
        concurrency=absent("concurrency", ""),
        instances=absent("instances", ""),
        samples_per_step=Figure(key="samples_per_step", value=samples),
        **figures,
    )


@pytest.mark.parametrize(("model", "least"), [("qwen3-8b", 1), ("qwen3-32b", 2), ("llama3.1-70b", 4)])
def test_an_instance_has_room_for_a_batch(model: str, least: int) -> None:
    """The fewest GPUs that hold the weights leave hardly any cache, and a large model gets more."""
    found = quickest_degree(question(model), DEGREES, 32.0, VALUES)
    assert found is not None
    assert least <= found <= 8


def test_an_instance_stays_within_the_gpus_and_a_node() -> None:
    """Two GPUs, and eight of a node."""
    assert quickest_degree(question("qwen3-8b"), DEGREES, 2.0, VALUES) in {1, 2}
    assert (quickest_degree(question("qwen3-32b", samples=16.0), DEGREES, 64.0, VALUES) or 99) <= 8


def test_a_model_that_fits_nowhere_has_no_size() -> None:
    """70 B parameters on two GPUs of 24 GB."""
    assert quickest_degree(question("llama3.1-70b", "l4"), DEGREES, 2.0, VALUES) is None
