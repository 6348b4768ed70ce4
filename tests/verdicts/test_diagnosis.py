"""Made-up loops whose trouble is known: the verdict, and what is to be done first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.verdicts.made_loops import INSTANCE_RATE, engines, evidence, log

from rlsize.facts.evidence import Diagnosis, Evidence
from rlsize.reports.diagnose import diagnose_report
from rlsize.reports.diagnose_words import action
from rlsize.verdicts.diagnosis import diagnosis

CONSUME = 39_321.6  # 512 samples of 1536 tokens in 20 s


def found(of: Evidence) -> Diagnosis:
    """The diagnosis, which also can be told in words."""
    answer = diagnosis(of, np.random.default_rng(0))
    assert diagnose_report(of, answer, ()).headline
    return answer


def first(answer: Diagnosis) -> tuple[str, str]:
    """What is to be done first."""
    return (answer.steps[0].check, answer.steps[0].kind) if answer.steps else ("", "")


CASES: dict[str, tuple[Callable[[], Evidence], str, tuple[str, str]]] = {
    "all well": (
        lambda: evidence(log(), engines([3070.0] * 13, waiting=1.0)), "matched", ("", ""),
    ),
    "starving trainer": (
        lambda: evidence(log(wait=4.6), engines([INSTANCE_RATE] * 8)), "starving trainer", ("fleet_size", "grow"),
    ),
    "starving trainer, with two flags alone": (
        lambda: evidence(None, engines([INSTANCE_RATE] * 8), consumption=CONSUME),
        "starving trainer", ("fleet_size", "grow"),
    ),
    "growing backlog": (
        lambda: evidence(log(queued_samples=lambda x: 100 + 4000 * x), engines([INSTANCE_RATE] * 15)),
        "growing backlog", ("fleet_size", "backlog"),
    ),
    "growing backlog, with two flags alone": (
        lambda: evidence(None, engines([INSTANCE_RATE] * 15), consumption=CONSUME),
        "growing backlog", ("fleet_size", "backlog"),
    ),
    "samples too stale": (
        lambda: evidence(log(dropped_samples=lambda _: 40.0)), "growing backlog", ("fleet_size", "backlog"),
    ),
    "oversized and backpressured": (
        lambda: evidence(log(), engines([CONSUME / 24] * 24, running=20.0, waiting=0.0)),
        "oversized and held back", ("fleet_size", "held_back"),
    ),
    "sync stall": (
        lambda: evidence(log(sync=6.0, wait=1.0), engines([3000.0] * 13)), "sync stall", ("weight_sync", ""),
    ),
    "sync stall, as engines count it": (
        lambda: evidence(None, engines([3070.0] * 13, sync_share=0.3), consumption=CONSUME),
        "sync stall", ("weight_sync", ""),
    ),
    "cold prefix cache": (
        lambda: evidence(log(wait=4.6), engines([INSTANCE_RATE] * 8, hits=0.004)),
        "starving trainer", ("prefix_cache", "cold"),
    ),
    "random routing": (  # 8 samples over 8 instances reach 5.25 of them: 0.84 x 2.75 / 7
        lambda: evidence(log(wait=4.6), engines([INSTANCE_RATE] * 8, hits=0.33)),
        "starving trainer", ("routing", "random"),
    ),
    "one straggler out of 16": (
        lambda: evidence(log(wait=2.0), engines([2500.0] * 15 + [1200.0])), "starving trainer", ("stragglers", ""),
    ),
    "regressed trainer": (
        lambda: evidence(log(drift=lambda x: 1.0 if x < 0.5 else 1.3), engines([3070.0] * 13)),
        "trainer regressed", ("trainer_health", "drift"),
    ),
    "trainer slower than it should be": (
        lambda: evidence(log(26.0), engines([3070.0] * 13), expected_train_seconds=20.0),
        "trainer regressed", ("trainer_health", "expected"),
    ),
    "preemptions": (
        lambda: evidence(log(), engines([3070.0] * 13, preempted=0.4)), "matched", ("preemptions", ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_known_trouble_is_found(name: str) -> None:
    """The verdict and the first thing to do are those of the trouble that was made."""
    make, verdict, todo = CASES[name]
    answer = found(make())
    assert (answer.verdict, first(answer)) == (verdict, todo)


def test_a_starving_trainer_gets_the_matched_count() -> None:
    """8 saturated instances of 4000 tok/s are brought to 13, as in the runbook."""
    answer = found(evidence(None, engines([INSTANCE_RATE] * 8), consumption=CONSUME, headroom=0.8))
    assert answer.matched.value == 13
    assert action(answer.steps[0]) == "Add 5 rollout instances, to 13"
    assert answer.trainer_idle.number == pytest.approx(1 - 32_000 / CONSUME)


def test_a_fleet_that_is_held_back_does_not_ratchet() -> None:
    """Its rate is what it was asked for: taken for what it can do, every round would add instances."""
    for count in (14, 18, 24, 40):
        answer = found(evidence(log(), engines([CONSUME / count] * count, running=20.0, waiting=0.0)))
        assert not answer.matched.known
        assert action(answer.steps[0]).startswith("Add nothing")
    known = evidence(
        log(), engines([CONSUME / 24] * 24, running=20.0, waiting=0.0), nameplate=INSTANCE_RATE, headroom=0.8
    )
    assert "down to 13" in action(found(known).steps[0])


def test_idle_ratios_that_lie_are_called_out() -> None:
    """Waits read zero, yet a third of the step is no work: the rest of the step is taken for waiting, and said so."""
    answer = found(evidence(log(wait=0.05, other=10.0), engines([INSTANCE_RATE] * 8)))
    lies = next(one for one in answer.findings if one.check == "idle_ratio")
    assert lies.status == "note"
    assert answer.trainer_idle.number == pytest.approx(10.0 / 30.65, rel=0.02)
    assert (answer.verdict, first(answer)) == ("starving trainer", ("fleet_size", "grow"))


def test_trainer_and_fleet_that_both_wait_are_not_resized() -> None:
    """The trainer waits for a fleet that has room: more instances would not help."""
    answer = found(evidence(log(wait=9.0), engines([1500.0] * 13, running=10.0, waiting=0.0)))
    assert answer.verdict == "neither side at its limit"
    assert answer.steps == ()


def test_more_instances_are_not_asked_for_where_the_count_matches() -> None:
    """If the trainer waits at the matched count, something in the model is wrong: measure before buying."""
    answer = found(evidence(log(wait=6.0), engines([2000.0] * 13), nameplate=INSTANCE_RATE, headroom=0.8))
    assert action(answer.steps[0]).startswith("Do not add instances")


def test_fixes_come_before_the_size() -> None:
    """Trainer, sync, what is free, and only then instances."""
    every = evidence(log(wait=8.0, sync=5.0), engines([3900.0] * 7 + [1000.0], hits=0.0, preempted=0.5))
    order = [one.check for one in found(every).steps]
    assert order == ["weight_sync", "stragglers", "prefix_cache", "preemptions", "fleet_size"]


def test_nothing_known_is_said_so() -> None:
    """No verdict without evidence."""
    answer = found(evidence())
    assert answer.verdict == "unclear"
    assert answer.steps == ()


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 30.0), st.integers(2, 40), st.floats(200.0, 9000.0), st.floats(0.0, 40.0), st.floats(0.0, 1.0))
def test_any_loop_has_a_verdict_and_shares_within_bounds(
    wait: float, count: int, rate: float, waiting: float, hits: float
) -> None:
    """A step that asks for more instances names more than there are; shares lie between 0 and 1."""
    answer = found(evidence(log(wait=wait, steps=24), engines([rate] * count, waiting=round(waiting), hits=hits)))
    assert 0 <= answer.trainer_idle.number <= 1
    for step in answer.steps:
        if action(step).startswith("Add ") and step.kind == "grow":
            assert answer.matched.number > count
        if step.gain.known:
            assert step.gain.number >= 0
