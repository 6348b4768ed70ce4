"""What is chosen of a loop where nobody says: the size of its instances, its split, the GPUs of a node."""

from __future__ import annotations

import pytest

from rlsize.loop.answer import answer_of
from rlsize.loop.pools import node_gpus
from rlsize.loop.resolve import Loop, resolve
from rlsize.planner.choices import moved, splits
from rlsize.planner.evaluation import worked
from rlsize.readers.profiles import Catalogue
from rlsize.shell.inputs import Inputs

SAID = {
    "model": "qwen3-8b", "gpu": "h100-sxm", "gpus": "32", "prompts_per_step": "64", "group_size": "16",
    "prompt_tokens": "6000", "response_tokens": "4000", "max_response_tokens": "16000", "mode": "async",
}  # fmt: skip
CATALOGUE = Catalogue()


def loop(**said: str) -> Loop:
    """1024 samples of 6000 + 4000 tokens on 32 GPUs."""
    return resolve(Inputs(texts=SAID | said))


@pytest.mark.parametrize("mode", ["colocated", "async"])
def test_instances_are_counted_by_the_engine_that_runs(mode: str) -> None:
    """On shared GPUs, with less memory, another size is best than on GPUs of their own."""
    place = loop(mode=mode).place
    assert place is not None
    engine = place.fleet.ready(shared=place.shared)
    assert engine is not None
    assert place.fleet.gpus == engine.gpus
    assert place.rollout_gpus <= 32


@pytest.mark.parametrize(
    "said",
    [
        {"tokens_generated_per_trained_token": "2"},
        {"sync_every": "8"},
        {"routing": "round-robin"},
        {"concurrency": "16"},
    ],
)
def test_no_other_split_of_a_loop_is_quicker_than_the_one_it_has(said: dict[str, str]) -> None:
    """By the very step that is answered, which holds whatever was said."""
    found = loop(**said)
    place, central = found.place, found.outlook.central
    assert place is not None
    own = worked(central, place)["step_seconds"]
    for rollout, trainer in splits(place.fleet.gpus, place.trainer.replica, 32.0, 8.0):
        if trainer >= place.trainer_gpus:  # fewer may not hold the trainer
            other = moved(place, place.loop, rollout, trainer)
            assert worked(central, other)["step_seconds"] >= own


def test_the_trainers_own_model_generates_kernel_by_kernel_and_needs_no_weights_sent() -> None:
    """A warning says so; its small steps wait for the host, and an engine that reads its weights is sent none."""
    said = {"mode": "colocated", "gpus": "8", "model": "qwen2.5-1.5b"}
    own, engine = loop(**said, engine="transformers"), loop(**said)
    assert own.refused == engine.refused == ""
    times = [answer_of(one).results for one in (own, engine)]
    assert times[0]["generation_seconds"].number > 2 * times[1]["generation_seconds"].number
    assert [one["sync_seconds"].number > 0 for one in times] == [False, True]
    in_place = Inputs(texts=SAID | said, changes=["rollout.shares_weights=yes"])
    assert answer_of(resolve(in_place)).results["sync_seconds"].number == 0


def test_gpus_of_a_node_are_said_or_of_the_cluster_or_of_the_gpu() -> None:
    """A cluster with other GPUs does not say how many of these a node has."""
    cluster = CATALOGUE.get("cluster", "gb200-nvl72")
    own, other = CATALOGUE.get("gpu", cluster.gpu), CATALOGUE.get("gpu", "h100-sxm")
    named = Inputs(texts={"cluster": cluster.name})
    assert node_gpus(named, own).source.startswith(f"cluster profile {cluster.name}")
    assert node_gpus(named, other).source.startswith("profile h100-sxm")
    assert node_gpus(Inputs(texts={"cluster": cluster.name, "gpus_per_node": "3"}), own).value == 3
    assert not node_gpus(Inputs(), None).known
