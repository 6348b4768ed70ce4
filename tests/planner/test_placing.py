"""The size of an instance, the split and the other ways to run a loop where nobody says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.rollout_question import RolloutQuestion
from rlsize.estimates.step_prediction import STAGES
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import MEMORY_MARGIN
from rlsize.facts.layout import Layout
from rlsize.planner.choices import (
    best_split,
    fleet_of,
    moved,
    other_ways,
    quickest_degree,
    splits,
    trainer_of,
)
from rlsize.planner.evaluation import memory_of, worked
from rlsize.planner.options import LoopProblem, Offer, Placement
from rlsize.planner.outlook import Terms, outlook_of
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from rlsize.estimates.step_assembly import Loop

CATALOGUE = Catalogue()
BELIEF = prior(*STAGES)
VALUES = BELIEF.central()


def terms(model: str = "qwen3-8b", **more: Any) -> Terms:
    """A loop of 512 samples of 300 + 2000 tokens, in central numbers."""
    counts = {"samples": 512, "group_size": 8, "prompt_tokens": 300, "response_tokens": 2000}
    figures: dict[str, Any] = {key: Figure(key=key, value=float(value)) for key, value in counts.items()}
    said = {**figures, "model": CATALOGUE.get("model", model), "gpus_per_node": 8.0, **more}
    return outlook_of(LoopProblem(**said), BELIEF).central


def place(
    loop: Loop = "async", model: str = "qwen3-8b", gpus: tuple[float, float] = (8.0, 8.0), **more: Any
) -> Placement:
    """It on instances of one GPU."""
    profile, gpu = CATALOGUE.get("model", model), CATALOGUE.get("gpu", "h100-sxm")
    one = engine(EngineQuestion(model=profile, gpu=gpu, layout=Layout(), memory_fraction=0.9))
    train = TrainQuestion(
        model=profile, gpu=gpu, gpus=gpus[1], sequences=512.0, tokens=2300.0, micro_batch_tokens=16384.0, **more
    )
    offer = Offer(gpu=gpu)
    return Placement(
        loop=loop,
        fleet=fleet_of({True: one, False: one}, 1.0, offer),
        instances=gpus[0],
        trainer=trainer_of(train, offer),
        trainer_gpus=gpus[1],
    )


def quickest(asked: Terms, start: Placement, gpus: float) -> tuple[float, float]:
    """The split with the shortest step of those of a plan whose trainer keeps its margin of memory."""
    seconds = {}
    for rollout, trainer in splits(start.fleet.gpus, start.trainer.replica, gpus, 8.0):
        one = moved(start, start.loop, rollout, trainer)
        if asked.problem.samples.number % trainer:  # the samples of an update are dealt out evenly
            continue
        if memory_of(asked, one)["trainer_memory_headroom_fraction"] >= MEMORY_MARGIN:
            seconds[rollout, trainer] = worked(asked, one)["step_seconds"]
    return min(seconds, key=lambda split: float(seconds[split]))


@pytest.mark.parametrize(("gpus", "tensor"), [(16.0, 1), (17.0, 4), (64.0, 8), (512.0, 2), (1e7, 1)])
def test_splits_are_whole_on_both_sides(gpus: float, tensor: int) -> None:
    """Each side has an instance or a replica at least, and no more GPUs are taken than there are."""
    found = splits(1.0, tensor, gpus, 8.0)
    assert 0 < len(found) <= 40 + 4  # whole nodes, and parts of one
    for rollout, trainer in found:
        assert rollout >= 1
        assert trainer >= tensor
        assert trainer % tensor == 0
        assert rollout + trainer <= gpus


def split_of(found: Placement | None) -> tuple[float, float]:
    """GPUs of both sides."""
    assert found is not None
    return found.rollout_gpus, found.trainer_gpus


def test_the_best_split_is_the_shortest_step() -> None:
    """Of all splits, by central values."""
    assert split_of(best_split(terms(), place(), 16.0)) == quickest(terms(), place(), 16.0)


def test_what_lengthens_a_step_moves_its_best_split() -> None:
    """Samples that are thrown away, and few samples at once on an instance, ask for more rollout GPUs."""
    usual = split_of(best_split(terms(), place(), 64.0))
    waste, few = Figure(key="tokens_generated_per_trained_token", value=2.0), Figure(key="concurrency", value=8.0)
    both: tuple[dict[str, Any], ...] = ({"waste": waste}, {"concurrency": few})
    found = [split_of(best_split(terms(**more), place(), 64.0)) for more in both]
    assert found == [quickest(terms(**more), place(), 64.0) for more in both]
    assert found[0][0] >= usual[0]
    assert found[1][0] > usual[0]


def test_a_trainer_that_deals_its_samples_out_unevenly_is_the_last_resort() -> None:
    """Five of eight GPUs hold an 8B model, and four do not; with 320 samples five get as many each."""
    asked = terms(samples=Figure(key="samples", value=320.0))
    assert split_of(best_split(asked, place(), 8.0)) == split_of(best_split(terms(), place(), 8.0)) == (3.0, 5.0)
    assert split_of(best_split(terms(), place(), 16.0)) == (8.0, 8.0)


def test_no_split_is_chosen_whose_trainer_does_not_fit() -> None:
    """A model of 32 B needs more than a few GPUs; on two there is no way."""
    asked, start = terms("qwen3-32b"), place(model="qwen3-32b")
    assert split_of(best_split(asked, start, 32.0))[1] >= 7
    assert best_split(asked, start, 2.0) is None


def test_the_other_ways_keep_a_split_that_was_given() -> None:
    """Without one, each mode has the split that suits it."""
    given = other_ways(terms(), place(), 16.0, split=True)
    assert [way.loop for way in given] == ["colocated", "synchronous", "one-step-off"]
    assert {(way.rollout_gpus, way.trainer_gpus) for way in given[1:]} == {(8.0, 8.0)}
    assert (given[0].rollout_gpus, given[0].trainer_gpus) == (16.0, 16.0)
    free = other_ways(terms(), place("colocated", gpus=(16.0, 16.0)), 16.0, split=False)
    assert [way.loop for way in free] == ["synchronous", "one-step-off", "async"]
    assert all(way.gpus <= 16.0 for way in free)


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
