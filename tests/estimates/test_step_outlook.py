"""The outlook on an RL step: bands, parts, the other modes on the same draws, and what was assumed."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from rlsize.estimates.belief import conditioned, prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.model_size import model_size
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.step_assumptions import assumptions
from rlsize.estimates.step_figures import worked
from rlsize.estimates.step_loops import LoopPlan, Way, bare, step_question
from rlsize.estimates.step_outlook import STAGES, StepOutlook, step_outlook
from rlsize.estimates.step_parts import NOTHING, step_parts
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.estimates.train_prediction_question import bare_question
from rlsize.estimates.trainer_fit import bare_trainer_memory
from rlsize.facts.figure import Figure, absent
from rlsize.facts.records.record import Layout, Refused
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


def plan(way: Way = ASYNC, model: str = "qwen3-8b", **said: Any) -> LoopPlan:
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
    return LoopPlan(way=way, engines=MappingProxyType(engines), train=train, **(found | said))


def outlook(asked: LoopPlan, *others: Way, seed: int = 0) -> StepOutlook:
    """What to expect of it."""
    return step_outlook(asked, others, BELIEF, seed)


@pytest.mark.parametrize("way", [COLOCATED, ASYNC, OFF, SYNC])
def test_every_result_lies_within_its_band(way: Way) -> None:
    """Centre and draws go through the same equations."""
    found = outlook(plan(way))
    for result in found.results:
        if result.band is not None and result.key not in {"tail_seconds", "generation_exposed_seconds"}:
            assert result.band[0] <= result.number * 1.05, result.key
            assert result.band[1] >= result.number * 0.95, result.key


@pytest.mark.parametrize("way", [COLOCATED, ASYNC, OFF, SYNC])
def test_the_figures_are_the_numbers(way: Way) -> None:
    """What is explained is what is drawn, at the central values."""
    asked = plan(way)
    bare_one = worked(step_question(asked, way, bare(asked)), way.gpus, BELIEF.central())
    for result in outlook(asked).results:
        assert result.number == pytest.approx(float(bare_one.results[result.key]), rel=1e-9, abs=1e-9), result.key


@pytest.mark.parametrize("way", [COLOCATED, ASYNC, OFF, SYNC])
def test_the_parts_add_up_to_the_step(way: Way) -> None:
    """Whatever is hidden is no part of it."""
    asked = plan(way)
    found = outlook(asked)
    parts = step_parts(asked, way, found.worked)
    assert sum(part.seconds.number for part in parts) == pytest.approx(found.figure("step_seconds").number)
    assert sum(part.share.number for part in parts) == pytest.approx(1.0)
    assert {part.name for part in parts if part.scales == NOTHING} >= {"fixed", "samples", "params"}


def test_the_same_way_twice_is_too_close_to_call() -> None:
    """On common draws only the scatter of one measurement is left between two equal loops."""
    found = outlook(plan(ASYNC), replace(ASYNC, rollout_gpus=9.0))
    second = next(mode for mode in found.modes if mode.times is not None)
    assert second.close
    assert second.times is not None
    assert second.times.band is not None
    assert second.times.band[1] / second.times.band[0] < 1.8


def test_a_mode_that_is_far_behind_is_slower() -> None:
    """Taking turns on two pools wastes both."""
    found = outlook(plan(ASYNC), SYNC, COLOCATED)
    modes = {mode.way.loop: mode for mode in found.modes}
    assert found.quickest.way == ASYNC
    assert not modes["synchronous"].close
    assert modes["async"].times is None


def test_common_draws_tell_more_than_bands() -> None:
    """The ratio of two modes is surer than two steps that know nothing of each other."""
    found = outlook(plan(COLOCATED), SYNC)
    widths = [log_width(mode.seconds) for mode in found.modes]
    second = next(mode for mode in found.modes if mode.times is not None)
    assert log_width(second.times) < 0.8 * math.hypot(*widths)


def log_width(found: Figure | None) -> float:
    """Width of a band on a logarithmic scale."""
    assert found is not None
    assert found.band is not None
    return math.log(found.band[1] / found.band[0])


def test_a_way_that_cannot_run_says_why() -> None:
    """The others are compared without it."""
    found = outlook(plan(ASYNC), replace(SYNC, trainer_gpus=1.0))
    refused = next(mode for mode in found.modes if mode.refused)
    assert "does not fit on 1 x h100-sxm" in refused.refused
    assert refused.seconds is None
    assert found.quickest.way == ASYNC


def test_the_batch_says_what_limits_it() -> None:
    """Samples of a barrier, staleness of a refill, the cache, or the engine."""
    assert outlook(plan(COLOCATED)).limited_by == "samples"
    assert outlook(plan(ASYNC)).limited_by == "staleness"
    many = figure("samples_per_step", 20000)
    assert outlook(plan(ASYNC, samples=many)).limited_by == "cache"
    short = figure("response_tokens", 20)
    brief = plan(ASYNC, samples=many, response_tokens=short, prompt_tokens=replace(short, key="prompt_tokens"))
    assert outlook(brief).limited_by == "engine"


def test_an_uncertain_length_widens_the_band() -> None:
    """An input with a spread is drawn together with the constants, for both sides at once."""
    said = figure("response_tokens", 2000, deviation=600.0, source="--response-tokens")
    sure, unsure = outlook(plan(COLOCATED)), outlook(plan(COLOCATED, response_tokens=said))
    widths = [found.figure("generation_seconds").band or (1.0, 1.0) for found in (sure, unsure)]
    assert widths[1][1] / widths[1][0] > widths[0][1] / widths[0][0]


def test_the_seed_decides_the_bands() -> None:
    """The same seed gives the same bands, another one others."""
    bands = [outlook(plan(), seed=seed).figure("step_seconds").band for seed in (0, 0, 1)]
    assert bands[0] == bands[1] != bands[2]


def test_a_measured_step_narrows_the_band() -> None:
    """A belief that has seen this very step is surer of it, and agrees with it."""
    asked = plan(COLOCATED)
    question = step_question(asked, COLOCATED, bare(asked))

    def predict(values: Any) -> list[Any]:
        return [worked(question, 16.0, values).step.seconds]

    measured = 1.3 * outlook(asked).figure("step_seconds").number
    belief = conditioned(BELIEF, predict, [measured], [0.05])
    before, after = outlook(asked).figure("step_seconds"), step_outlook(asked, (), belief, 0).figure("step_seconds")
    assert after.number == pytest.approx(measured, rel=0.05)
    low, high = after.band or (1.0, 1.0)
    assert high / low < (before.band or (1.0, 1.0))[1] / (before.band or (1.0, 1.0))[0]


def test_what_makes_the_band_wide_is_ranked() -> None:
    """Shares of the variance, the largest first; the stages hold all constants' shares."""
    found = outlook(plan(COLOCATED))
    shares = [doubt.share for doubt in found.doubts]
    assert shares == sorted(shares, reverse=True)
    assert sum(doubt.share for doubt in found.stages) <= 1.0
    assert {doubt.name for doubt in found.stages} <= {"step", "rollout", "train", "sync", "memory"}


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
    question = replace(bare_question(plan().train), gpus=float(gpus))
    params = model_size(question.model).params.number

    def state_bytes(asked: TrainQuestion) -> float:
        return float(bare_trainer_memory(asked, 1.0, BELIEF.central()).states)

    assert state_bytes(question) == pytest.approx(18 * params / gpus)
    assert state_bytes(replace(question, sharding="none")) == pytest.approx(18 * params)
    assert state_bytes(replace(question, sharding="optimizer")) == pytest.approx((6 + 12 / gpus) * params)
    assert state_bytes(replace(question, offload=True)) == pytest.approx(6 * params / gpus)


def test_a_trainer_whose_states_do_not_fit_is_refused() -> None:
    """32 B parameters on one GPU."""
    asked = plan(replace(ASYNC, trainer_gpus=1.0), "qwen3-32b")
    with pytest.raises(Refused, match="the trainer of qwen3-32b does not fit on 1 x h100-sxm"):
        outlook(asked)
