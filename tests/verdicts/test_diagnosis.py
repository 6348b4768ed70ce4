"""Made-up loops whose trouble is known: the verdict, and what is to be done first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.verdicts.made_loops import INSTANCE_RATE, MEAN_LENGTH, SAMPLES, engines, evidence, log

from rlsize.commands.diagnose.report import diagnose_report
from rlsize.commands.diagnose.words import action, because
from rlsize.facts.evidence import Diagnosis, Evidence
from rlsize.facts.run_log import RunLog, RunMode
from rlsize.shell.inputs import Inputs
from rlsize.verdicts.diagnosis import diagnosis

CONSUME = 39_321.6  # 512 samples of 1536 tokens in 20 s


def found(of: Evidence) -> Diagnosis:
    """The diagnosis, which also can be told in words."""
    answer = diagnosis(of, np.random.default_rng(0))
    assert diagnose_report(of, answer, Inputs()).headline
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


def growing(factor: float, attention: float, steps: int = 600) -> RunLog:
    """Responses that grow steadily; a share of the time per token grows with them."""
    made = log(steps=steps)
    rows = []
    for row in made.steps:
        longer = 1.0 + (factor - 1.0) * row.step / steps
        work = longer * (1.0 - attention + attention * longer)
        times = {name: getattr(row, name) * work for name in ("logprob_seconds", "update_seconds")}
        whole = sum(times.values()) + 1.1
        rows.append(replace(row, **times, step_seconds=whole, response_tokens=SAMPLES * MEAN_LENGTH * longer))
    return replace(made, steps=tuple(rows))


def in_turn(mode: RunMode, **more: Any) -> RunLog:
    """Twenty seconds of training after forty of generation."""
    made = log(wait=0.0, mode=mode, **more)
    rows = [
        replace(row, wait_seconds=None, generation_seconds=40.0, step_seconds=(row.step_seconds or 0.0) + 40.0)
        for row in made.steps
    ]
    return replace(made, steps=tuple(rows), keys={})


@pytest.mark.parametrize(("tokens_known", "factor"), [(True, 2.0), (False, 1.4)])
def test_growing_responses_are_no_regressed_trainer(tokens_known: bool, factor: float) -> None:
    """A rise that longer samples may explain, or that cannot be put down to tokens, is noted and no more."""
    made = growing(factor, attention=0.3)
    if not tokens_known:
        unknown = {"response_tokens": None, "prompt_tokens": None, "samples": None}
        made = replace(made, steps=tuple(replace(row, **unknown) for row in made.steps))  # type: ignore[arg-type]  # fields by name
    answer = found(evidence(made))
    assert answer.findings[0].status == "note"
    assert (answer.verdict, answer.steps) == ("matched", ())


def test_a_trainer_is_expected_to_take_longer_for_longer_responses() -> None:
    """The tokens of the plan in 20 s: three times as many may take three times as long."""
    told = found(evidence(growing(3.0, attention=0.0), expected_train_seconds=20.0, consumption=CONSUME))
    assert told.verdict == "matched"
    slow = found(evidence(log(40.0), expected_train_seconds=20.0))
    assert slow.verdict == "trainer regressed"
    assert slow.steps[0].gain.number == pytest.approx(20.0 / 41.1, rel=0.05)


@pytest.mark.parametrize("fleet", [None, [2600.0] * 8])
def test_sides_that_work_in_turn_are_not_resized(fleet: list[float] | None) -> None:
    """The trainer waits for each batch by design: no count of instances changes that."""
    seen = None if fleet is None else engines(fleet)
    for mode in ("synchronous", "colocated"):
        answer = found(evidence(in_turn(mode), seen, instances=8, nameplate=INSTANCE_RATE, headroom=0.8))
        assert (answer.verdict, answer.steps) == ("in turn", ())
        assert not answer.matched.known
    assert not answer.trainer_idle.known
    assert found(evidence(in_turn("synchronous", sync=12.0))).verdict == "sync stall"


def test_instances_with_work_that_make_nothing_are_restarted_first() -> None:
    """Hung engines are no small fleet, and nothing is divided by their rate."""
    all_ = found(evidence(None, engines([0.0] * 4), consumption=CONSUME))
    one = found(evidence(log(wait=4.0), engines([INSTANCE_RATE] * 7 + [0.0])))
    assert first(all_) == first(one) == ("missing_instances", "stuck")
    assert [step.check for step in one.steps] == ["missing_instances", "fleet_size"]


def test_one_address_for_many_instances_may_be_a_router() -> None:
    """What it makes is neither the rate of an instance nor known to be that of all; several addresses are a sample."""
    router = found(evidence(None, engines([32_000.0]), instances=8, consumption=CONSUME))
    assert (router.verdict, first(router)) == ("unclear", ("missing_instances", "unnamed"))
    assert not router.matched.known
    sample = found(evidence(None, engines([INSTANCE_RATE] * 4), instances=8, consumption=CONSUME, headroom=0.8))
    assert sample.fleet_rate.number == 8 * INSTANCE_RATE
    assert action(sample.steps[0]) == "Add 5 rollout instances, to 13"


def test_engines_that_make_less_than_the_log_trains_are_not_all() -> None:
    """Two of eight were named, and nobody said how many there are: the count is told, and nothing to add to it."""
    answer = found(evidence(log(wait=4.6), engines([INSTANCE_RATE] * 2), headroom=0.8))
    missing = next(one for one in answer.findings if one.check == "missing_instances")
    assert (missing.status, missing.kind) == ("note", "out of step")
    assert action(answer.steps[0]) == "Resize the fleet to 13 instances"


def test_engines_that_outdo_what_was_said_of_them_are_believed() -> None:
    """2500 tok/s were said, 4000 are made: sized from the former, a fleet would be bought twice."""
    answer = found(evidence(log(wait=4.6), engines([INSTANCE_RATE] * 8), nameplate=2500.0, headroom=0.8))
    assert action(answer.steps[0]) == "Add 5 rollout instances, to 13"
    assert "more than the 2,500 tok/s" in because(answer.steps[0])


def test_a_log_and_a_given_rate_that_disagree_are_told() -> None:
    """And a trainer that waits is not said to have samples piling up."""
    of = evidence(log(wait=4.6), engines([INSTANCE_RATE] * 8), consumption=20_000.0)
    answer = found(of)
    assert "pile up" not in because(answer.steps[0])
    assert any("20,000 tok/s as given" in line for line in diagnose_report(of, answer, Inputs()).warnings)


def test_a_prefix_cache_that_is_off_is_turned_on_first() -> None:
    """Engines whose cache is off count no hits at all; their pages say so. What hits say of routing is not known."""
    fleet, load = engines([INSTANCE_RATE] * 8)
    off = replace(fleet, prefix_caching=False, prefix_cache_hit_fraction=None)
    answer = found(evidence(log(wait=4.6), (off, load)))
    assert first(answer) == ("prefix_cache", "off")
    assert next(one for one in answer.findings if one.check == "routing").status == "unknown"
    single = found(evidence(log(wait=4.6), (replace(off, group_size=1.0), load)))
    assert first(single) == ("fleet_size", "grow")


def test_syncs_of_engines_and_log_are_both_told() -> None:
    """The longer one counts: a sync may stop the engines and not the trainer."""
    answer = found(evidence(log(sync=0.6), engines([3070.0] * 13, sync_share=0.3)))
    assert because(answer.steps[0]) == "30.0 % of the time goes into weight syncs by the engines, 2.8 % by the log"


def test_one_idle_instance_gives_a_saturated_fleet_no_room() -> None:
    """15 of 16 are full and the trainer waits: it starves."""
    fleet, load = engines([2500.0] * 15 + [300.0])
    shares = [*[1.0] * 15, 0.0]
    each = tuple(replace(one, saturated_fraction=share) for one, share in zip(fleet.instances, shares, strict=True))
    answer = found(evidence(log(wait=4.0), (replace(fleet, instances=each, saturated_fraction=0.0), load)))
    assert (answer.verdict, first(answer)) == ("starving trainer", ("stragglers", ""))


@pytest.mark.long
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
