"""The straight line that stands for a predicted engine in the simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.constants_step import STAGE as STEP
from rlsize.estimates.engine_memory import check_room
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import StepBatch, lengths_of
from rlsize.estimates.rollout_outlook import STAGES
from rlsize.estimates.rollout_prediction import at_batch, engine, engine_limit, steady
from rlsize.estimates.simulated_engine import ALL_THAT_FIT, StepLine, constant_line, predicted_line, scaled_line
from rlsize.facts.algorithm import Agents
from rlsize.loop.instance import instance
from rlsize.planner.simulation import engine_setting
from rlsize.shell.inputs import Inputs

VALUES = prior(*STAGES, STEP).central()


def question(model: str = "qwen3-8b", gpu: str = "h100-sxm", gpus: str = "1") -> EngineQuestion:
    """An instance of that model."""
    said = Inputs(texts={"model": model, "gpu": gpu, "rollout_tensor_parallel": gpus})
    found = said.settled(instance(said, said.model(), said.gpu(), shared=False))
    return found.question


def batch(prompt: float = 300.0) -> StepBatch:
    """2,000 response tokens a sample."""
    return StepBatch(
        samples=1.0, instances=1.0, prompt_tokens=prompt, response_tokens=2000.0, response_cv=0.8, max_tokens=8000.0
    )


def line(concurrency: float | None = 64, prompt: float = 300.0, **said: Any) -> StepLine:
    """Its engine within a loop."""
    return predicted_line(question(**said), batch(prompt), VALUES, concurrency)


def step(found: StepLine, batch: float, live: float) -> float:
    """Seconds of a step with so many samples and so many tokens in the cache of each."""
    return found.fixed + found.sample * batch + found.kv_token * batch * live


def test_contexts_that_a_full_cache_throws_out_are_no_short_prompts() -> None:
    """What a prompt takes however short it is weighs less on each token of what is computed anew beside tools."""
    agents = replace(batch(), agents=Agents(turns=4, tool_seconds=10.0))
    few, many = (predicted_line(question(), agents, VALUES, concurrency) for concurrency in (64, 1000))
    assert many.prompt_token < 0.9 * few.prompt_token


def test_a_prompt_carries_the_requests_of_its_group() -> None:
    """What the samples of a group take as requests is there, though all but one find it in the cache."""
    alone, group = (
        predicted_line(question(), replace(batch(), group_size=size, hit_ratio=1.0 - 1.0 / size), VALUES, 64)
        for size in (1.0, 8.0)
    )
    _, _, request = at_batch(
        numbers, engine(question()), 64.0, lengths_of(numbers, replace(batch(), hit_ratio=7 / 8)), VALUES
    )
    assert group.prompt_token * 300.0 == pytest.approx(8.0 * request * VALUES["step_rollout_slowdown"])
    assert group.prompt_token > alone.prompt_token


def test_every_part_costs_time_and_the_cache_has_an_end() -> None:
    """Nothing is below 0, a step with nothing in it takes time, and there are as many slots as are asked for."""
    found = line()
    assert found.fixed > 0
    assert min(found.sample, found.kv_token, found.prompt_token) >= 0
    assert (found.slots, found.batch) == (64, 64)
    assert found.kv_tokens is not None
    assert found.kv_tokens > 64 * 2300


@pytest.mark.parametrize("concurrency", [1.0, 16.0, 64.0, 256.0])
def test_the_line_goes_through_the_predicted_rate(concurrency: float) -> None:
    """At the batch where it was taken, its rate is `predict rollout`'s, but for the loop's slowdown and prompts."""
    found = line(concurrency)
    live = 300 + 2000 * (1 + 0.8**2) / 2  # uncapped; the cap at four means takes a little off
    rate = found.batch / step(found, found.batch, live)
    asked, lengths = engine(question()), lengths_of(numbers, batch())
    check_room(asked.question, lengths.live, VALUES)
    predicted = float(steady(numbers, asked, concurrency, lengths, VALUES).rate)
    assert rate == pytest.approx(predicted / VALUES["step_rollout_slowdown"], rel=0.01)


def test_a_larger_model_takes_longer() -> None:
    """At each batch, and its cache holds less."""
    small, large = line(), line(model="qwen3-32b", gpus="1", gpu="h200-sxm")
    assert step(large, 64, 1000) > step(small, 64, 1000)


def test_more_gpus_in_an_instance_take_less_time() -> None:
    """And hold more."""
    one, two = line(), line(gpus="2")
    assert step(two, 64, 1000) < step(one, 64, 1000)
    assert (two.kv_tokens or 0) > (one.kv_tokens or 0)


def test_prompts_cost_by_the_token() -> None:
    """A prompt token takes about the same time in short and in long prompts, and far less than a response token."""
    short, long = line(), line(prompt=3000.0)
    assert long.prompt_token == pytest.approx(short.prompt_token, rel=0.5)
    assert short.prompt_token < step(short, 64, 1000) / 64


def test_without_a_concurrency_the_engine_takes_what_it_can() -> None:
    """The engine's own limit of slots, and the line is taken at what fits into the cache."""
    found = line(None)
    assert found.slots == int(engine_limit(question()))
    assert 1 < found.batch <= min(found.slots, ALL_THAT_FIT)


def test_a_mixture_of_experts_is_slowed_once_more() -> None:
    """By its own constant."""
    told = {**VALUES, "step_rollout_moe_slowdown": 1.5 * VALUES["step_rollout_moe_slowdown"]}
    found, slower = (predicted_line(question(model="qwen3-30b-a3b"), batch(), values, 64) for values in (VALUES, told))
    for part in ("fixed", "sample", "kv_token", "prompt_token"):
        assert getattr(slower, part) == pytest.approx(1.5 * getattr(found, part))
    for (_, after), (_, before) in zip(slower.points, found.points, strict=True):
        assert after == pytest.approx(1.5 * before)
    dense = predicted_line(question(), batch(), told, 64)
    assert dense == line()


def test_a_model_that_does_not_fit_is_refused() -> None:
    """70 B parameters on one GPU."""
    with pytest.raises(Refused):
        line(model="llama3.1-70b")


@pytest.mark.parametrize("rate", [500.0, 20000.0])
def test_a_line_that_is_scaled_reaches_the_rate_with_its_full_batch(rate: float) -> None:
    """Its shape stays, and the batch at which it was taken is as fast as is said, prompts included."""
    found = line()
    scaled = scaled_line(found, rate)
    assert scaled.sample / scaled.fixed == pytest.approx(found.sample / found.fixed)
    live = 300 + 2000 * (1 + 0.8**2) / 2
    prompts = scaled.prompt_token * 300 * scaled.batch
    steps = 2000 * step(scaled, scaled.batch, live)
    assert scaled.batch * 2000 / (prompts + steps) == pytest.approx(rate, rel=0.03)  # live tokens are uncapped here


def test_a_mixture_of_experts_reads_fewer_experts_for_fewer_samples() -> None:
    """The step with one sample and with half of them is the predicted one, not that of the line at a full batch."""
    asked, found = question(model="qwen3-30b-a3b"), line(64, model="qwen3-30b-a3b")
    slow = VALUES["step_rollout_slowdown"] * VALUES["step_rollout_moe_slowdown"]
    lengths = lengths_of(numbers, batch())
    settings = engine_setting(found, 1)
    for samples in (1, 32, 64):
        _, predicted, _ = at_batch(numbers, engine(asked), float(samples), lengths, VALUES)
        seconds = settings.batch_seconds(samples) + found.kv_token * samples * lengths.live
        assert seconds == pytest.approx(slow * predicted)
    assert step(found, 1, float(lengths.live)) > 1.5 * (settings.batch_seconds(1) + found.kv_token * lengths.live)


def test_a_bare_rate_makes_a_step_that_is_the_same_at_every_batch() -> None:
    """Slots over rate."""
    found = constant_line(64, 4000.0)
    assert (step(found, 1, 0), step(found, 64, 1000), found.slots) == (0.016, 0.016, 64)
