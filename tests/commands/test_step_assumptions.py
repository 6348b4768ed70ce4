"""What a prediction of a step assumed, and what its step would be otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from rlsize.commands.predict.step_assumptions import Assumption, assumptions
from rlsize.loop.resolve import resolve
from rlsize.planner.evaluation import worked
from rlsize.shell.inputs import Inputs

SAID = {
    "model": "qwen3-8b", "gpu": "h100-sxm", "samples_per_step": "512", "group_size": "8", "prompt_tokens": "300",
    "response_tokens": "2000", "max_response_tokens": "16000", "rollout_tensor_parallel": "1",
}  # fmt: skip
SPLIT = {"mode": "async", "rollout_gpus": "8", "trainer_gpus": "8"}


def found(keys: Any, **said: str) -> tuple[Assumption, ...]:
    """What is assumed of 512 samples of 300 + 2000 tokens on 16 GPUs."""
    loop = resolve(Inputs(texts=SAID | said))
    assert loop.place is not None
    return assumptions(loop.outlook.central, loop.place, keys)


def test_assumptions_are_ranked_and_only_told_where_nobody_spoke() -> None:
    """What matters most comes first; a given input is no assumption."""
    keys = {"response_cv", "memory_fraction", "logprob_passes", "max_staleness", "mode", "compiled"}
    told = found(keys, **SPLIT)
    assert {entry.key for entry in told} == keys
    effects = [max(entry.times, 1 / entry.times) for entry in told]
    assert effects == sorted(effects, reverse=True)
    assert found((), **SPLIT) == ()


def test_staleness_is_no_assumption_of_a_loop_that_takes_turns() -> None:
    """Nor is refill."""
    told = found({"max_staleness", "mode", "response_cv"}, mode="colocated", gpus="16")
    assert [entry.key for entry in told] == ["response_cv"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("response_cv", {"response_cv": "1.0"}),
        ("max_staleness", {"max_staleness": "4"}),
        ("mode", {"mode": "one-step-off"}),
        ("memory_fraction", {"memory_fraction": "0.5"}),
        ("rollout_tensor_parallel", {"rollout_tensor_parallel": "2"}),
    ],
)
def test_an_assumption_tells_the_step_that_the_loop_would_have(key: str, said: dict[str, str]) -> None:
    """Whatever else of it is known: samples thrown away, and syncs after every fourth step."""
    known = SPLIT | {"tokens_generated_per_trained_token": "1.5", "sync_every": "4"}
    usual, other = (resolve(Inputs(texts=SAID | known | more)) for more in ({}, said))
    assert usual.place is not None
    assert other.place is not None
    (told,) = assumptions(usual.outlook.central, usual.place, {key})
    seconds = [float(worked(loop.outlook.central, loop.place)["step_seconds"]) for loop in (usual, other) if loop.place]
    assert told.times == pytest.approx(seconds[1] / seconds[0])
