"""What an answer assumed, and how much longer it would be otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from rlsize.errors import Refused
from rlsize.loop.assumed import MATTERS, Assumption, assumptions, step_of
from rlsize.loop.resolve import resolve
from rlsize.shell.inputs import Inputs

SAID = {
    "model": "qwen3-8b", "gpu": "h100-sxm", "samples_per_step": "512", "group_size": "8", "prompt_tokens": "300",
    "response_tokens": "2000", "max_response_tokens": "16000", "rollout_tensor_parallel": "1",
}  # fmt: skip
SPLIT = {"mode": "async", "rollout_gpus": "8", "trainer_gpus": "8"}


def found(least: float, /, **said: str) -> dict[str, Assumption]:
    """What is assumed of 512 samples of 300 + 2000 tokens on 16 GPUs."""
    inputs = Inputs(texts=SAID | said)
    told = assumptions(inputs, resolve(inputs), least=least)
    assert told is not None
    return {one.key: one for one in told}


def test_assumptions_are_ranked_and_only_told_where_they_matter() -> None:
    """What moves the step most comes first; what moves it by less than 5 % is left out."""
    told = [one.effect for one in found(MATTERS, **SPLIT).values()]
    assert told == sorted(told, reverse=True)
    assert min(told) >= MATTERS
    assert len(found(1.0, **SPLIT)) > len(told)


def test_what_somebody_said_is_no_assumption() -> None:
    """Nor is what has no bearing on the loop: colocated GPUs have no staleness."""
    assert {"response_cv", "max_staleness"} <= found(1.0, **SPLIT).keys()
    assert not {"response_cv", "max_staleness"} & found(1.0, **SPLIT, response_cv="0.5", max_staleness="2").keys()
    assert not {"max_staleness", "mode", "rollout_gpus"} & found(1.0, mode="colocated", gpus="16").keys()


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("response_cv", {"response_cv": "1.0"}),
        ("max_staleness", {"max_staleness": "4"}),
        ("memory_fraction", {"memory_fraction": "0.5"}),
        ("kv_dtype", {"kv_dtype": "fp8"}),
        ("routing", {"routing": "round-robin"}),
    ],
)
def test_an_assumption_tells_the_step_that_the_loop_would_have(key: str, said: dict[str, str]) -> None:
    """Whatever else of it is known: samples thrown away, and syncs after every fourth step."""
    known = SPLIT | {"tokens_generated_per_trained_token": "1.5", "sync_every": "4"}
    usual, other = (step_of(Inputs(texts=SAID | known | more)) for more in ({}, said))
    assert found(1.0, **known)[key].times == pytest.approx(other / usual)


def test_what_a_rule_chose_stays_while_something_else_moves() -> None:
    """The size of an instance is not chosen anew for another share of the memory."""
    free = {key: text for key, text in SAID.items() if key != "rollout_tensor_parallel"}
    inputs = Inputs(texts=free | SPLIT)
    told = assumptions(inputs, resolve(inputs), least=1.0)
    assert told is not None
    size = str(inputs.used["rollout_tensor_parallel"].value)
    fixed = found(1.0, **SPLIT | {"rollout_tensor_parallel": size})
    one = next(one for one in told if one.key == "memory_fraction")
    assert one.times == pytest.approx(fixed["memory_fraction"].times)


def test_there_are_none_where_there_is_no_answer() -> None:
    """A loop that cannot run has no step that something could move."""

    def never(_: Any) -> float:
        raise Refused("no")

    assert assumptions(Inputs(texts=SAID), answer=never) is None
