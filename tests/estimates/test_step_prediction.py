"""The RL step: which way it moves, what it is made of, what async and one-step-off save, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.step_assembly import OVERLAPPING
from rlsize.estimates.step_prediction import STAGES, StepQuestion, fleet_generation, predicted_step
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.layout import Layout
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
BELIEF = prior(*STAGES)
VALUES = BELIEF.central()
LOOPS = ("colocated", "synchronous", "one-step-off", "async")
MODELS = {"qwen3-8b": 1, "qwen3-32b": 4, "qwen3-30b-a3b": 2}
GPUS = ("h100-sxm", "h200-sxm", "a100-80-sxm", "b200-sxm")
TINY = 1e-9  # of a time: float noise

models, gpus, loops = st.sampled_from(sorted(MODELS)), st.sampled_from(GPUS), st.sampled_from(LOOPS)
samples, responses, cvs = st.sampled_from((64.0, 512.0, 2048.0)), st.floats(50.0, 8000.0), st.floats(0.05, 1.5)


def question(model: str = "qwen3-8b", gpu: str = "h100-sxm", **said: Any) -> StepQuestion:
    """A loop on 16 GPUs: 8 + 8 where it has two pools."""
    profile, hardware = CATALOGUE.get("model", model), CATALOGUE.get("gpu", gpu)
    one = EngineQuestion(model=profile, gpu=hardware, layout=Layout(tensor=MODELS[model]), memory_fraction=0.85)
    loop = said.pop("loop", "colocated")
    pool = 16.0 if loop == "colocated" else 8.0
    trainer, rollout = float(said.pop("trainer_gpus", pool)), float(said.pop("rollout_gpus", pool))
    found: dict[str, Any] = {
        "samples": 512.0, "group_size": 8.0, "prompt_tokens": 300.0, "response_tokens": 2000.0, "response_cv": 0.6,
        "max_tokens": None, **said,
    }  # fmt: skip
    train = TrainQuestion(
        model=profile,
        gpu=hardware,
        gpus=trainer,
        sequences=found["samples"],
        tokens=found["prompt_tokens"] + found["response_tokens"],
        micro_batch_tokens=16384.0,
        passes=("old_logprob",),
    )
    return StepQuestion(loop=loop, engine=engine(one), rollout_gpus=rollout, train=train, **found)


@given(models, gpus, loops, samples, responses, cvs)
def test_a_step_is_no_shorter_than_any_of_its_phases(
    model: str, gpu: str, loop: str, count: float, response: float, cv: float
) -> None:
    """Whatever overlaps, each phase takes place within the step."""
    step = predicted_step(
        question(model, gpu, loop=loop, samples=count, response_tokens=response, response_cv=cv), VALUES
    )
    for phase in (step.generation_seconds, step.train_seconds, step.sync_exposed_seconds, step.overhead_seconds):
        assert step.seconds >= phase * (1 - TINY)
    assert step.tail_seconds <= step.generation_seconds


@given(models, st.sampled_from(("colocated", "synchronous")), responses)
def test_phases_that_take_turns_add_up(model: str, loop: str, response: float) -> None:
    """Generation, log-probs, update, sync and overhead are the whole step, and nothing is hidden."""
    step = predicted_step(question(model, loop=loop, response_tokens=response), VALUES)
    parts = (
        step.generation_seconds + step.logprob_seconds + step.update_seconds + step.sync_seconds + step.overhead_seconds
    )
    assert step.seconds == pytest.approx(parts)
    assert step.generation_exposed_seconds == pytest.approx(step.generation_seconds)
    assert step.sync_exposed_seconds == step.sync_seconds


@given(models, st.sampled_from(sorted(OVERLAPPING)), responses)
def test_phases_that_overlap_take_less_than_their_sum(model: str, loop: str, response: float) -> None:
    """
    The longer phase counts, and a little more where both are alike.

    Where a cap on staleness holds a loop back, it may take longer than one after the other: few samples at once.
    """
    step = predicted_step(question(model, loop=loop, response_tokens=response), VALUES)
    beside = step.sync_exposed_seconds + step.overhead_seconds
    phases = step.generation_seconds, step.train_seconds
    assert max(phases) * (1 - TINY) <= step.seconds - beside
    assert loop == "async" or step.seconds - beside < sum(phases)
    assert step.sync_exposed_seconds < step.sync_seconds


@given(models, gpus, st.sampled_from(LOOPS[1:]), samples, responses, cvs)
def test_more_rollout_gpus_never_lengthen_a_step(
    model: str, gpu: str, loop: str, count: float, response: float, cv: float
) -> None:
    """In whole instances, each with its share of the samples; only the sync has more of them to reach."""
    said = {"loop": loop, "samples": count, "response_tokens": response, "response_cv": cv}
    steps = [
        predicted_step(question(model, gpu, rollout_gpus=rollout, **said), VALUES)
        for rollout in (4.0, 8.0, 12.0, 32.0, 128.0)
    ]
    for fewer, more in pairwise(steps):
        assert more.generation_seconds <= fewer.generation_seconds * (1 + TINY)
        assert more.seconds - more.sync_exposed_seconds <= (fewer.seconds - fewer.sync_exposed_seconds) * (1 + TINY)
        assert more.sync_seconds <= 1.05 * fewer.sync_seconds


@given(models, st.sampled_from(LOOPS[1:]), responses)
def test_more_trainer_gpus_never_lengthen_a_step(model: str, loop: str, response: float) -> None:
    """At a fixed batch, as long as each GPU has samples to work on."""
    steps = [
        predicted_step(
            question(model, loop=loop, response_tokens=response, samples=2048.0, trainer_gpus=trainer), VALUES
        ).seconds
        for trainer in (8, 16, 32, 64)
    ]
    assert all(more <= fewer * (1 + TINY) for fewer, more in pairwise(steps))


@given(models, gpus, samples, responses, cvs, st.floats(1.0, 8.0))
def test_refill_saves_the_tail(
    model: str, gpu: str, count: float, response: float, cv: float, staleness: float
) -> None:
    """Async is no slower than one-step-off on the same GPUs: nothing waits for the longest response."""
    said = {"samples": count, "response_tokens": response, "response_cv": cv, "max_staleness": staleness}
    refilled = predicted_step(question(model, gpu, loop="async", **said), VALUES)
    drained = predicted_step(question(model, gpu, loop="one-step-off", **said), VALUES)
    assert refilled.seconds <= drained.seconds * (1 + 0.01)
    assert refilled.tail_seconds == 0.0


@given(models, responses)
def test_equal_lengths_have_no_tail(model: str, response: float) -> None:
    """Without a spread of lengths all samples end together, and waiting for the last one costs nothing."""
    step = predicted_step(question(model, response_tokens=response, response_cv=0.0), VALUES)
    assert step.tail_seconds <= 0.03 * step.generation_seconds


@given(models, responses)
def test_the_tail_grows_with_the_spread(model: str, response: float) -> None:
    """The more uneven the lengths, the longer the last response, and the step that waits for it."""
    asked = question(model, response_tokens=response)
    steps = [predicted_step(replace(asked, response_cv=cv), VALUES).seconds for cv in (0.1, 0.3, 0.6, 1.0, 1.5)]
    assert steps == sorted(steps)


@given(models, loops)
def test_longer_responses_and_more_samples_take_longer(model: str, loop: str) -> None:
    """Both grow every phase but the sync."""
    by_length = [
        predicted_step(question(model, loop=loop, response_tokens=length), VALUES).seconds
        for length in (1.0, 10.0, 100.0, 1000.0, 8000.0)
    ]
    by_count = [
        predicted_step(question(model, loop=loop, samples=count), VALUES).seconds
        for count in (8.0, 64.0, 512.0, 4096.0)
    ]
    assert by_length == sorted(by_length)
    assert by_count == sorted(by_count)


@pytest.mark.parametrize("loop", LOOPS)
def test_the_shortest_response_and_the_longest_context_have_a_step(loop: str) -> None:
    """One token; and responses that fill the context, all of one length."""
    longest = float(CATALOGUE.get("model", "qwen3-8b").architecture.max_context) - 300.0
    for response in (1.0, longest):
        step = predicted_step(question(loop=loop, response_tokens=response, max_tokens=longest), VALUES)
        assert 0 < step.seconds < float("inf")


@pytest.mark.parametrize("loop", LOOPS)
def test_arrays_give_what_numbers_give(loop: str) -> None:
    """A draw in an array is worked out as if it stood alone."""
    asked, drawn = question(loop=loop), BELIEF.drawn(seed=3, draws=7)
    together = predicted_step(asked, drawn).seconds
    alone = [
        float(predicted_step(asked, {name: float(values[draw]) for name, values in drawn.items()}).seconds)
        for draw in range(7)
    ]
    assert np.asarray(together) == pytest.approx(alone)


def test_a_cap_shortens_the_wait_and_never_lengthens_it() -> None:
    """At the same mean that is seen, a cap cuts the longest responses."""
    steps = [predicted_step(question(max_tokens=cap), VALUES).seconds for cap in (2500.0, 4000.0, 8000.0, None)]
    assert steps == sorted(steps)


def test_a_looser_staleness_cap_lets_more_be_in_flight() -> None:
    """Until the cache is full."""
    batches = [
        float(fleet_generation(question(loop="async", max_staleness=cap), VALUES).batch)
        for cap in (0.0, 1.0, 2.0, 50.0)
    ]
    assert batches == sorted(batches)
    assert batches[:2] == [64.0, 128.0]
    assert batches[-1] < 51 * 64.0


@pytest.mark.parametrize(("loop", "transport"), [("colocated", "store"), ("async", "colocated")])
def test_a_transport_of_the_other_placement_gives_way(loop: str, transport: str) -> None:
    """Shared GPUs hand weights over; two pools send them."""
    usual = "colocated" if loop == "colocated" else "nccl-broadcast"
    seconds = [predicted_step(question(loop=loop, transport=name), VALUES).sync_seconds for name in (transport, usual)]
    assert seconds[0] == seconds[1]
    other = "colocated-per-tensor" if loop == "colocated" else "store"
    assert predicted_step(question(loop=loop, transport=other), VALUES).sync_seconds != seconds[1]


def test_gpus_that_hold_no_instance_are_refused() -> None:
    """Two GPUs, where an instance takes four."""
    with pytest.raises(Refused, match="do not hold an instance of 4"):
        predicted_step(question("qwen3-32b", loop="async", rollout_gpus=2.0), VALUES)
