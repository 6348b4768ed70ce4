"""A loop's step beside the other modes on the same draws, its parts, and what its band comes from."""

from __future__ import annotations

import math
from functools import cache

import pytest

from rlsize.estimates.step_assembly import NOTHING, step_parts
from rlsize.facts.figure import Figure
from rlsize.loop.modes import StepOutlook, step_outlook
from rlsize.loop.resolve import resolve
from rlsize.shell.inputs import Inputs

SAID = {
    "model": "qwen3-8b", "gpu": "h100-sxm", "samples_per_step": "512", "group_size": "8", "prompt_tokens": "300",
    "response_tokens": "2000", "max_response_tokens": "16000", "rollout_tensor_parallel": "1",
}  # fmt: skip
SPLIT = {"rollout_gpus": "8", "trainer_gpus": "8"}
NODES = {"rollout_gpus": "32", "trainer_gpus": "32"}
MODES = ("colocated", "sync", "one-step-off", "async")


@cache
def outlook(mode: str = "async", **said: str) -> StepOutlook:
    """What to expect of 512 samples of 300 + 2000 tokens on 16 GPUs."""
    gpus = {"gpus": "16"} if mode == "colocated" else SPLIT
    return step_outlook(resolve(Inputs(texts=SAID | {"mode": mode} | gpus | said)))


def log_width(found: Figure | None) -> float:
    """Width of a band on a logarithmic scale."""
    assert found is not None
    assert found.band is not None
    return math.log(found.band[1] / found.band[0])


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("mode", MODES)
def test_the_step_lies_within_its_band(mode: str) -> None:
    """Centre and draws go through the same equations; the first mode is the loop itself."""
    found = outlook(mode)
    step, own = found.results["step_seconds"], found.modes[0].seconds
    assert step.band is not None
    assert step.band[0] < step.number < step.band[1]
    assert own is not None
    assert (own.value, own.band) == (step.value, step.band)


@pytest.mark.parametrize("mode", MODES)
def test_the_parts_add_up_to_the_step(mode: str) -> None:
    """Whatever is hidden is no part of it."""
    found = outlook(mode)
    own = found.modes[0]
    assert own.step is not None
    parts = step_parts(own.step, own.place.loop)
    assert sum(part.seconds.number for part in parts) == pytest.approx(found.results["step_seconds"].number)
    assert sum(part.share.number for part in parts) == pytest.approx(1.0)
    assert {part.name for part in parts if part.scales == NOTHING} >= {"fixed", "samples"}


def test_a_mode_that_is_far_behind_is_slower() -> None:
    """Taking turns on two pools wastes both."""
    found = outlook("async")
    modes = {mode.place.loop: mode for mode in found.modes}
    assert found.quickest.times is None
    assert modes["synchronous"].times is not None
    assert not modes["synchronous"].close


def test_common_draws_tell_more_than_bands() -> None:
    """The ratio of two modes is surer than two steps that know nothing of each other."""
    found = outlook("async")
    best = found.quickest.seconds
    shares = {
        mode.place.loop: log_width(mode.times) / math.hypot(log_width(mode.seconds), log_width(best))
        for mode in found.modes
        if mode.times is not None
    }
    assert shares.keys() == {"colocated", "synchronous", "one-step-off"}
    assert max(shares.values()) < 0.95
    assert shares["synchronous"] < 0.8  # it has the same pools; shared GPUs have engines and swaps of their own


@pytest.mark.long
def test_a_way_that_cannot_run_says_why() -> None:
    """Engines that take all the memory leave a trainer no room beside them; the others are compared without it."""
    found = outlook("async", model="qwen3-32b", max_response_tokens="4000", **NODES)
    refused = {mode.place.loop: mode.refused for mode in found.modes if mode.refused}
    assert refused.keys() == {"colocated"}
    assert "does not fit" in refused["colocated"]
    assert all(mode.seconds is not None for mode in found.modes if not mode.refused)


def test_a_loop_that_cannot_run_has_no_modes() -> None:
    """Its weights are larger than a GPU."""
    asked = {"model": "llama3.1-70b", "mode": "async"}
    with pytest.raises(TypeError, match="only a loop that runs"):
        step_outlook(resolve(Inputs(texts=SAID | SPLIT | asked)))


@pytest.mark.long
def test_the_batch_says_what_limits_it() -> None:
    """Samples of a barrier, staleness of a refill, the cache, or the engine."""
    many = {"samples_per_step": "20000"}
    brief = {"response_tokens": "20", "prompt_tokens": "20"}
    told = [outlook("colocated"), outlook(), outlook(**many), outlook(**many, **brief)]
    assert [one.results["limited_by"].value for one in told] == ["samples", "staleness", "cache", "engine"]


@pytest.mark.long
def test_an_uncertain_length_widens_the_band() -> None:
    """An input with a spread is drawn together with the constants, for both sides at once."""
    sure, unsure = (outlook("colocated", response_tokens=text) for text in ("2000", "2000 ± 600"))
    assert log_width(unsure.results["generation_seconds"]) > log_width(sure.results["generation_seconds"])


@pytest.mark.long
def test_the_seed_decides_the_bands() -> None:
    """The same seed gives the same bands, another one others."""
    bands = [outlook(seed=seed).results["step_seconds"].band for seed in ("0", "0", "1")]
    assert bands[0] == bands[1] != bands[2]


def test_what_makes_the_band_wide_is_ranked() -> None:
    """Shares of the variance, the largest first; a stage whose time is known has none."""
    found, known = outlook(), outlook(train_seconds="60")
    shares = [doubt.share for doubt in found.doubts]
    assert shares == sorted(shares, reverse=True)
    assert sum(doubt.share for doubt in found.stages) <= 1.0
    assert {doubt.name for doubt in found.stages} <= {"step", "rollout", "train", "sync", "memory"}
    assert "train" in {doubt.name for doubt in found.stages}
    assert "train" not in {doubt.name for doubt in known.stages}
