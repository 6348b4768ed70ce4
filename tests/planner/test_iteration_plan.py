"""Verifiers in whole workers, and what a sample count would be as a prompt count."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from rlsize.facts.figure import Figure
from rlsize.planner.iteration import IterationQuestion, plan_iteration

GROUPS = IterationQuestion(
    mode="sync",
    source="groups",
    samples=Figure(key="samples_per_step", value=256),
    instances=Figure(key="instances", value=8),
    group_size=Figure(key="group_size", value=8),
    group_seconds=Figure(key="group_seconds", value=3),
    train_seconds=Figure(key="train_seconds", value=15),
    sync_seconds=Figure(key="sync_seconds", value=1.0),
)


@pytest.mark.parametrize(
    ("mode", "verify", "workers"),
    [
        ("sync", 2.0, 43),  # 21.33 samples a second while they come, 42.7 workers
        ("overlapped", 2.0, 32),  # the trainer takes 256 samples every 16 s
        ("overlapped", 2.05, 33),
        ("sync", 0.001, 1),
    ],
)
def test_verifiers_keep_up_with_the_samples(mode: str, verify: float, workers: int) -> None:
    """In whole workers, rounded up; a worker at least."""
    asked = replace(GROUPS, mode=mode, verify_seconds=Figure(key="verify_seconds", value=verify))
    found = {figure.key: figure for figure in plan_iteration(asked).results}
    assert found["verifier_workers"].value == workers
    assert isinstance(found["verifier_workers"].value, int)


def test_without_a_verify_time_no_worker_is_counted() -> None:
    """Not even zero of them."""
    assert "verifier_workers" not in {figure.key for figure in plan_iteration(GROUPS).results}


def test_samples_meant_as_prompts_take_a_group_each() -> None:
    """256 prompts of 8 are 2048 samples and 96 s."""
    answer = plan_iteration(GROUPS)
    assert answer.as_prompts_samples.value == 2048
    assert answer.as_prompts_rollout_seconds.number == pytest.approx(96)


def test_uncertain_train_seconds_give_bands() -> None:
    """Of the iteration, not of the rollout."""
    asked = replace(GROUPS, train_seconds=Figure(key="train_seconds", value=15, deviation=2))
    found = {figure.key: figure for figure in plan_iteration(asked, Random(0)).results}
    band = found["iteration_seconds"].band
    assert band is not None
    assert band[0] < 28 < band[1]
    assert found["rollout_seconds"].band is None
