"""What to expect of a rollout: bands, sweeps, the knee, what would fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.estimates.belief import Belief, prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.rollout_outlook import STAGES, RolloutOutlook, rollout_outlook
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.rollout_question import A_FEW, RolloutQuestion, first_fit, fits_narrower, usual_degree, why_not
from rlsize.facts.figure import Figure, absent
from rlsize.facts.layout import Layout
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
BELIEF = prior(*STAGES)
DEGREES = (1, 2, 4, 8, 16)


def question(model: str = "qwen3-32b", gpu: str = "h200-sxm", tensor: int = 2, **said: Any) -> RolloutQuestion:
    """Samples of 1000 + 3000 tokens on one instance; figures that are not said have no value."""
    usual = {
        "prompt_tokens": 1000.0, "response_tokens": 3000.0, "response_cv": 0.5, "max_response_tokens": 12000.0,
        "hit_fraction": 0.0, "concurrency": None, "instances": None, "samples_per_step": None,
    } | {key: value for key, value in said.items() if key != "ending"}  # fmt: skip
    asked = EngineQuestion(
        model=CATALOGUE.get("model", model), gpu=CATALOGUE.get("gpu", gpu), layout=Layout(tensor=tensor)
    )
    figures = {
        key: absent(key, f"--{key}") if value is None else Figure(key=key, value=value) for key, value in usual.items()
    }
    return RolloutQuestion(engine=asked, ending=said.get("ending", "barrier"), **figures)


def outlook(asked: RolloutQuestion, belief: Belief = BELIEF, seed: int = 0) -> RolloutOutlook:
    """What to expect of it."""
    return rollout_outlook(asked, engine(asked.engine), belief, seed)


@given(
    model=st.sampled_from(["qwen3-8b", "qwen3-30b-a3b"]),
    concurrency=st.one_of(st.none(), st.floats(1.0, 4000.0)),
    samples=st.one_of(st.none(), st.integers(1, 4000)),
    cv=st.floats(0.0, 3.0),
    ending=st.sampled_from(["barrier", "refill"]),
)
@settings(max_examples=tries(30))
def test_each_figure_lies_inside_its_band(
    model: str, concurrency: float | None, samples: int | None, cv: float, ending: str
) -> None:
    """Positive, finite, and between the ends of its band."""
    said: dict[str, Any] = {"concurrency": concurrency, "samples_per_step": samples, "response_cv": cv}
    for figure in outlook(question(model, **said, instances=2, ending=ending)).results:
        if isinstance(figure.value, float):
            assert 0 <= figure.number < float("inf"), figure.key
        if figure.band is not None:
            assert figure.band[0] <= figure.number * 1.001, figure.key
            assert figure.number <= figure.band[1] * 1.001, figure.key


def test_the_sweep_doubles_up_to_the_limit() -> None:
    """1, 2, 4, ..., the most, and the load that was asked about, whose row is marked."""
    found = outlook(question(concurrency=48.0))
    concurrencies = [level.concurrency for level in found.sweep.levels]
    assert concurrencies[:6] == [1, 2, 4, 8, 16, 32]
    assert found.sweep.asked.concurrency == 48
    assert concurrencies[-1] == int(found.figure("cache_concurrency").number)
    rate = found.figure("instance_tokens_per_second").number
    assert found.sweep.asked.tokens_per_second.number == pytest.approx(rate)


def test_the_knee_is_where_the_rate_comes_near_its_best() -> None:
    """Within 5 %, as in a measured curve, and no smaller one of the levels is."""
    found = outlook(question())
    best = max(level.tokens_per_second.number for level in found.sweep.levels)
    near = [level.concurrency for level in found.sweep.levels if level.tokens_per_second.number >= 0.95 * best]
    assert max(level.concurrency for level in found.sweep.levels if level.concurrency < near[0]) < (
        found.sweep.knee.number
    )
    assert found.sweep.knee.number <= near[0]


def test_what_is_known_leaves_no_band() -> None:
    """With constants that are certain, only the scatter of a measurement is left."""
    certain = Belief(BELIEF.names, BELIEF.mean, 0.0 * BELIEF.covariance)
    wide, narrow = (outlook(question(), belief).figure("instance_tokens_per_second") for belief in (BELIEF, certain))
    assert wide.band is not None
    assert narrow.band is not None
    assert narrow.band[1] / narrow.band[0] < wide.band[1] / wide.band[0]
    assert outlook(question(), certain).doubts == ()


def test_uncertain_lengths_widen_the_band() -> None:
    """A mean that is known to a third."""
    sure = question(concurrency=128.0)  # of a smaller batch the KV cache hardly counts
    unsure = replace(sure, response_tokens=replace(sure.response_tokens, deviation=1000.0))
    bands = [outlook(asked).figure("engine_step_seconds").band or (1.0, 1.0) for asked in (sure, unsure)]
    assert bands[1][1] / bands[1][0] > 1.03 * bands[0][1] / bands[0][0]


def test_a_step_on_two_instances_is_shared_out() -> None:
    """A barrier offers each its part of the samples."""
    found = outlook(question(samples_per_step=64, instances=2))
    assert found.figure("samples_in_flight").number == 32
    assert found.figure("limited_by").value == "offered"
    assert found.figure("generation_seconds").number > found.figure("tail_seconds").number > 0


def test_fewer_samples_in_flight_take_longer() -> None:
    """The loop may let in fewer than fit, with a barrier and without."""
    for ending in ("barrier", "refill"):
        said: dict[str, Any] = {"samples_per_step": 256, "instances": 2, "ending": ending}
        few, many = (outlook(question(**said, concurrency=count)) for count in (8.0, 64.0))
        assert few.figure("generation_seconds").number > 2 * many.figure("generation_seconds").number


def test_the_smallest_layout_that_fits_is_found() -> None:
    """70B in bf16 needs more than one H100; a small model fits on one; 671B in fp8 on no single node's half."""
    values = BELIEF.central()
    asked = question("llama3.1-70b", "h100-sxm", 1)
    found = first_fit(asked, DEGREES, values)
    assert found is not None
    assert why_not(asked, values).startswith("llama3.1-70b does not fit on 1 x h100-sxm")
    assert not why_not(question("llama3.1-70b", "h100-sxm", found), values)
    assert first_fit(question("qwen3-8b", "h100-sxm"), DEGREES, values) == 1
    assert first_fit(question("deepseek-v3", "h100-sxm"), (1, 2, 4), values) is None
    assert fits_narrower(question("llama3.1-70b", "h200-sxm", 1), values)
    assert not fits_narrower(question("llama3.1-70b", "a100-80-sxm", 1), values)


@pytest.mark.parametrize("model", ["qwen3-8b", "qwen3-32b", "llama3.1-70b"])
def test_the_usual_layout_holds_a_few_samples(model: str) -> None:
    """Not just one, which would leave the GPUs waiting for weights."""
    values = BELIEF.central()
    degree = usual_degree(question(model, "h100-sxm"), DEGREES, values)
    assert degree is not None
    found = outlook(question(model, "h100-sxm", degree))
    assert found.figure("cache_concurrency").number >= A_FEW
