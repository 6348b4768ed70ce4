"""`rlsize simulate`: what a flag says goes before the scenario, and no flag is passed over in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
LOOP = ("simulate", str(EXAMPLES / "matched-loop.yaml"), "--steps", "3", "--seeds", "1", "--json")


def test_a_rate_goes_before_the_step_time_of_the_scenario(rlsize: Any) -> None:
    """64 slots at 3,200 tok/s are steps of 20 ms, whatever the scenario's step time is."""
    inputs = rlsize(*LOOP, "--per-instance", "3200").document["inputs"]
    assert inputs["step_fixed"] == pytest.approx(0.02)
    assert inputs["step_sample"] == 0.0


def test_a_step_time_goes_before_a_rate_of_the_scenario(rlsize: Any) -> None:
    """The flag's step time is the engine's, where the scenario has a rate."""
    said = ("simulate", str(EXAMPLES / "grpo-32b.yaml"), "--step-fixed", "7 ms", *LOOP[2:])
    assert rlsize(*said).document["inputs"]["step_fixed"] == pytest.approx(0.007)


def test_a_rate_and_a_step_time_by_flag_are_one_too_many(rlsize: Any) -> None:
    """Both say how fast an instance is."""
    ran = rlsize(*LOOP, "--per-instance", "3200", "--step-fixed", "7 ms")
    assert ran.code == 2
    assert "--step-fixed --per-instance" in ran.stderr


@pytest.mark.parametrize(("gpus", "instances"), [("16", 8), ("30", 15), ("31", 15)])
def test_rollout_gpus_make_instances_of_the_scenario_s_size(rlsize: Any, gpus: str, instances: int) -> None:
    """The scenario has 10 instances on 20 GPUs, so an instance has 2."""
    assert rlsize(*LOOP, "--rollout-gpus", gpus).document["inputs"]["instances"] == instances


def test_rollout_gpus_without_the_size_of_an_instance_are_refused(rlsize: Any) -> None:
    """They would change nothing."""
    said = ("--prompts", "8", "--response-tokens", "500", "--per-instance", "4000", "--train-seconds", "5")
    ran = rlsize("simulate", *said, "--instances", "4", "--rollout-gpus", "16", "--steps", "3", "--seeds", "1")
    assert ran.code == 0  # instances by flag go before GPUs, which only cost
    ran = rlsize("simulate", *said, "--rollout-gpus", "16", "--steps", "3", "--seeds", "1")
    assert ran.code == 2
    assert "--gpus-per-instance" in ran.stderr


def test_a_colocated_fleet_has_all_gpus(rlsize: Any) -> None:
    """On the 20 + 32 GPUs of both pools there are 26 instances of 2, whatever a split would have."""
    assert rlsize(*LOOP, "--mode", "colocated").document["inputs"]["instances"] == 26
