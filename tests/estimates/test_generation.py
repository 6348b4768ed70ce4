"""How long a fleet generates the samples of a step: work conserved, tails, limits, refill, and the affine step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import StepBatch, generation, lengths_of
from rlsize.estimates.rollout_prediction import Replica, affine, at_batch, engine
from rlsize.facts.algorithm import Agents
from rlsize.facts.layout import Layout
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
VALUES = prior(ROLLOUT, MEMORY).central()
BATCH = StepBatch(samples=512.0, instances=8.0, prompt_tokens=300.0, response_tokens=2000.0, response_cv=0.6)

counts, lengths, cvs = st.floats(8.0, 20000.0), st.floats(10.0, 8000.0), st.floats(0.05, 1.5)
endings = st.sampled_from(("barrier", "refill"))


def asked(model: str = "qwen3-8b", tensor: int = 1) -> Replica:
    """An instance on H100."""
    profile, gpu = CATALOGUE.get("model", model), CATALOGUE.get("gpu", "h100-sxm")
    return engine(EngineQuestion(model=profile, gpu=gpu, layout=Layout(tensor=tensor), memory_fraction=0.85))


ENGINE = asked()


def generated(**said: Any) -> Any:
    """The fleet's time for a batch."""
    return generation(numbers, ENGINE, replace(BATCH, **said), VALUES)


@given(counts, lengths, cvs, endings)
def test_tokens_are_conserved(samples: float, response: float, cv: float, ending: str) -> None:
    """The rate of an instance over the whole time makes the samples' tokens."""
    found = generated(samples=samples, response_tokens=response, response_cv=cv, ending=ending)
    assert found.rate * found.seconds * BATCH.instances == pytest.approx(samples * response)


@given(counts, lengths, cvs)
def test_waiting_for_the_last_sample_takes_longer_than_the_work(samples: float, response: float, cv: float) -> None:
    """The tail is what is left beside the batch's own rate."""
    found = generated(samples=samples, response_tokens=response, response_cv=cv)
    assert found.tail_seconds >= 0
    assert found.seconds <= found.full_seconds + found.tail_seconds + 1e-9
    assert found.longest_tokens >= response * 0.98


@given(counts, lengths, cvs)
def test_the_batch_keeps_within_its_limits(samples: float, response: float, cv: float) -> None:
    """No more samples at once than there are, than the cache holds, and than the engine takes."""
    found = generated(samples=samples, response_tokens=response, response_cv=cv)
    assert 1.0 <= found.batch <= max(1.0, min(samples / BATCH.instances, float(found.capacity), 1024.0)) + 1e-9


@given(lengths, cvs, endings)
def test_twice_the_work_on_twice_the_fleet_takes_no_longer_but_for_the_tail(
    response: float, cv: float, ending: str
) -> None:
    """Refill scales exactly; a barrier waits for the longest of twice the samples, which is a little longer."""
    one = generated(response_tokens=response, response_cv=cv, ending=ending)
    two = generated(samples=1024.0, instances=16.0, response_tokens=response, response_cv=cv, ending=ending)
    if ending == "refill":
        assert two.seconds == pytest.approx(one.seconds)
    else:
        assert one.seconds * (1 - 1e-9) <= two.seconds <= 1.3 * one.seconds


def test_many_waves_bring_a_barrier_close_to_refill() -> None:
    """The longer the queue, the less the last samples weigh."""
    shares = [
        generated(samples=samples).seconds / generated(samples=samples, ending="refill").seconds
        for samples in (8192.0, 65536.0, 524288.0)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(1.0, abs=0.05)


def test_samples_in_flight_are_those_that_are_allowed() -> None:
    """With refill, the loop's own limit counts over all instances."""
    assert generated(ending="refill", in_flight=80.0).batch == 10.0
    assert generated(ending="refill", in_flight=None).batch > 100.0


def test_a_shared_prompt_is_prefilled_once() -> None:
    """What the prefix cache holds takes no engine time."""
    whole = generated(prompt_tokens=4000.0, response_tokens=100.0)
    cached = generated(prompt_tokens=4000.0, response_tokens=100.0, hit_ratio=0.9)
    assert cached.prefill_seconds < 0.3 * whole.prefill_seconds
    assert cached.seconds < whole.seconds


def test_arrays_of_lengths_are_worked_out_one_by_one() -> None:
    """Draws of an uncertain length give what each length gives alone."""
    lengths_drawn = np.array([500.0, 1000.0, 4000.0])
    together = generated(response_tokens=lengths_drawn).seconds
    alone = [generated(response_tokens=float(length)).seconds for length in lengths_drawn]
    assert together == pytest.approx(alone)


@given(st.floats(8.0, 200.0), lengths)
def test_the_affine_step_goes_through_the_step(batch: float, response: float) -> None:
    """t0 + t1 b + t2 K is the step at its own batch and contexts."""
    load = lengths_of(numbers, replace(BATCH, response_tokens=response))
    line = affine(numbers, ENGINE, batch, load, VALUES)
    _, step, _ = at_batch(numbers, ENGINE, batch, load, VALUES)
    live = batch * load.live
    assert line.fixed + line.per_sample * batch + line.per_kv_token * live == pytest.approx(float(step))
    assert line.per_sample >= 0
    assert line.per_kv_token > 0


def cycle_seconds(train: float, **said: Any) -> float:
    """The time between two syncs of an asynchronous loop, for each of its optimizer steps."""
    return float(generated(ending="refill", group_size=8.0, **said).cycle.seconds(train))


@given(st.floats(0.1, 200.0), st.sampled_from((2, 4, 16)), st.sampled_from((0.0, 0.1, 0.5, 1.0)))
def test_parts_that_are_trained_as_they_come_never_lengthen_a_step(train: float, parts: int, cap: float) -> None:
    """The trainer has begun when the last part comes; neither generation nor training gets longer by it."""
    whole, apart = (cycle_seconds(train, max_staleness=cap, parts=one) for one in (1, parts))
    assert train * (1 - 1e-9) <= apart <= whole * (1 + 1e-9)
    assert cycle_seconds(train, max_staleness=cap + 0.5, parts=parts) <= apart * 1.01


@given(st.floats(0.1, 200.0), st.sampled_from((2, 3, 4)), st.integers(0, 4))
def test_steps_between_two_syncs_are_one_batch_in_parts(train: float, every: int, more: int) -> None:
    """K + 1 batches at a sync every m steps are (k + 1) / m of those that a sync brings."""
    rare = cycle_seconds(train, max_staleness=every - 1.0 + more, sync_every=float(every))
    as_one = cycle_seconds(every * train, max_staleness=more / every, parts=every, samples=BATCH.samples * every)
    assert rare == pytest.approx(as_one / every)


def test_the_mean_sample_takes_what_it_waits_for_tools_beside_its_own_time() -> None:
    """Two answers of 10 s between three turns; while some wait fewer run, so that the others are no slower."""
    plain = generated(ending="refill", in_flight=512.0)
    waiting = generated(ending="refill", in_flight=512.0, agents=Agents(turns=3, tool_seconds=10.0))
    assert 20.0 + 0.5 * plain.sample_seconds < waiting.sample_seconds < 20.0 + 1.1 * plain.sample_seconds


@pytest.mark.parametrize("ending", ["barrier", "refill"])
@pytest.mark.parametrize("redundant", [0, 2])
@pytest.mark.parametrize("environments", [None, 150])
def test_fleets_in_arrays_take_what_each_does_by_itself(ending: str, redundant: int, environments: int | None) -> None:
    """A plan asks for many numbers of instances at once, pools of agents and samples beyond a group's among it."""
    agents = Agents(
        turns=4,
        tool_seconds=10.0,
        tool_cv=1.0,
        environments=environments,
        environment_seconds=20.0,
        verify_seconds=5.0,
        verify_workers=16,
        redundant_samples=redundant,
    )
    said = {"ending": ending, "agents": agents, "group_size": 8.0}
    many = np.array([2.0, 16.0])
    together = generated(instances=many, **said)
    assert together.seconds == pytest.approx([generated(instances=one, **said).seconds for one in many], rel=0.002)
