"""What a prediction of a step assumed, and the states that its trainer shards."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.loop_memory import bare_trainer_memory
from rlsize.estimates.model_size import model_size
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.step_assumptions import assumptions
from rlsize.estimates.step_prediction import STAGES, StepQuestion, Way
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.figure import Figure, absent
from rlsize.facts.records.record import Layout
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
BELIEF = prior(*STAGES)
COLOCATED = Way(loop="colocated", rollout_gpus=16.0, trainer_gpus=16.0)
ASYNC = Way(loop="async", rollout_gpus=8.0, trainer_gpus=8.0)
OFF = replace(ASYNC, loop="one-step-off")
SYNC = replace(ASYNC, loop="synchronous")


def figure(key: str, value: float, **more: Any) -> Figure:
    """A given number."""
    return Figure(key=key, value=value, **more)


def plan(way: Way = ASYNC, model: str = "qwen3-8b", **said: Any) -> StepQuestion:
    """A loop of 512 samples of 300 + 2000 tokens."""
    profile, gpu = CATALOGUE.get("model", model), CATALOGUE.get("gpu", "h100-sxm")
    engines = {
        shared: engine(EngineQuestion(model=profile, gpu=gpu, layout=Layout(), memory_fraction=0.6 if shared else 0.9))
        for shared in (True, False)
    }
    train = TrainQuestion(
        model=profile,
        gpu=gpu,
        gpus=figure("trainer_gpus", way.trainer_gpus),
        sequences=figure("samples_per_step", 512),
        tokens=figure("sequence_tokens", 2300),
        micro_batch_tokens=figure("micro_batch_tokens", 16384),
        passes=("old_logprob",),
    )
    found: dict[str, Any] = {
        "samples": figure("samples_per_step", 512),
        "group_size": figure("group_size", 8),
        "prompt_tokens": figure("prompt_tokens", 300),
        "response_tokens": figure("response_tokens", 2000),
        "response_cv": absent("response_cv", "--response-cv"),
        "max_tokens": figure("max_response_tokens", 16000),
        "max_staleness": figure("max_staleness", 1),
    }
    return StepQuestion(way=way, engines=MappingProxyType(engines), train=train, **(found | said))


def test_assumptions_are_ranked_and_only_told_where_nobody_spoke() -> None:
    """What matters most comes first; a given input is no assumption."""
    keys = {"response_cv", "memory_fraction", "logprob_passes", "max_staleness", "mode", "compiled"}
    found = assumptions(plan(ASYNC), BELIEF.central(), keys)
    assert {entry.key for entry in found} == keys
    effects = [max(entry.times, 1 / entry.times) for entry in found]
    assert effects == sorted(effects, reverse=True)
    assert assumptions(plan(ASYNC), BELIEF.central(), ()) == ()


def test_staleness_is_no_assumption_of_a_loop_that_takes_turns() -> None:
    """Nor is refill."""
    found = assumptions(plan(COLOCATED), BELIEF.central(), {"max_staleness", "mode", "response_cv"})
    assert [entry.key for entry in found] == ["response_cv"]


@pytest.mark.parametrize("gpus", [8, 16])
def test_sharded_states_shrink_with_gpus(gpus: int) -> None:
    """18 bytes a parameter with gradients in fp32, over all GPUs."""
    question = replace(plan().train.bare(), gpus=float(gpus))
    params = model_size(question.model).params.number

    def state_bytes(asked: TrainQuestion) -> float:
        return float(bare_trainer_memory(asked, 1.0, BELIEF.central()).states)

    assert state_bytes(question) == pytest.approx(18 * params / gpus)
    assert state_bytes(replace(question, sharding="none")) == pytest.approx(18 * params)
    assert state_bytes(replace(question, sharding="optimizer")) == pytest.approx((6 + 12 / gpus) * params)
    assert state_bytes(replace(question, offload=True)) == pytest.approx(6 * params / gpus)
