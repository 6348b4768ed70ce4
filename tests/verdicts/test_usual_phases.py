"""Whether phases are normal, what may make them slow, and what the trainer waits for: made-up evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.verdicts.made_loops import INSTANCE_RATE, engines, evidence, log

from rlsize.commands.diagnose.report import diagnose_report
from rlsize.commands.diagnose.words import action, verification
from rlsize.facts.evidence import Diagnosis, EngineLoad, Evidence
from rlsize.facts.figure import Figure
from rlsize.facts.run_log import RunSummary
from rlsize.shell.inputs import Inputs
from rlsize.verdicts.diagnosis import diagnosis, step_costs
from rlsize.verdicts.usual_phases import SPREADS, band95, judged_phases

POOLS = {"rollout_gpus": 0.0, "trainer_gpus": 8.0, "rollout_gpu_hour": 0.0, "trainer_gpu_hour": 2.0}


def figures(values: dict[str, float]) -> dict[str, Figure]:
    """Measured figures by key."""
    return {key: Figure(key=key, value=value, provenance="measured") for key, value in values.items()}


def run(mode: str = "colocated", **seconds: float) -> RunSummary:
    """A log that times phases."""
    took = figures({f"{name}_seconds": value for name, value in seconds.items()})
    return RunSummary(source="made up", mode=mode, figures=took)  # type: ignore[arg-type]  # one of its words


def told(found: Evidence) -> Diagnosis:
    """The diagnosis, which can be told in words."""
    answer = diagnosis(found, np.random.default_rng(0))
    assert diagnose_report(found, answer, Inputs()).headline
    return answer


def headline(found: Evidence) -> str:
    """What is said first."""
    return diagnose_report(found, told(found), Inputs()).headline


def test_an_update_that_takes_nine_tenths_of_a_step_is_said_first() -> None:
    """Even where no scenario tells what it should take."""
    found = Evidence(run=run(step=100.0, update=90.0, generation=9.0))
    answer = told(found)
    assert answer.verdict == "one phase takes most"
    assert [one.names for one in answer.findings if one.check == "phases"] == [("update",)]
    assert [one.check for one in answer.steps] == ["phases"]
    assert headline(found).startswith("The update takes 90 s, 90.0 % of the step.")


def test_log_probs_longer_than_the_update_are_another_models() -> None:
    """Two passes forward take two thirds of an update, whatever the model and the GPU are."""
    answer = told(Evidence(run=run(step=206.0, generation=82.0, logprob=89.0, update=35.0)))
    assert answer.verdict == "slow phase"
    assert (answer.phases[0].phase, answer.phases[0].normal) == ("logprob", False)
    assert answer.phases[0].usual.number == pytest.approx(2 / 3 * 35.0)
    assert answer.causes[0].kind == "reference"


def test_log_probs_shorter_than_the_update_are_not_called_usual() -> None:
    """The update may be slow too: only a launch tells."""
    answer = told(Evidence(run=run(step=100.0, generation=60.0, logprob=10.0, update=29.0)))
    assert [one.normal for one in answer.phases] == [None] * 4
    assert answer.verdict == "in turn"
    assert headline(Evidence(run=run(step=100.0, generation=60.0, logprob=10.0, update=29.0))).startswith(
        "Both sides work in turn, as this mode has it: 60.0 % of the step goes into generation."
    )


def test_an_update_that_takes_most_of_a_step_is_noted() -> None:
    """Six tenths are no fault by themselves."""
    answer = told(Evidence(run=run(step=100.0, update=60.0, generation=39.0)))
    assert (answer.verdict, answer.steps) == ("one phase takes most", ())


@pytest.mark.parametrize(("update", "normal"), [(14.0, True), (20.5, True), (25.0, False)])
def test_a_phase_is_normal_within_the_band_of_runs_elsewhere(update: float, normal: bool) -> None:
    """10 s are predicted; 95 % of runs elsewhere take under 20.3 s, and the prediction's own band ends at 1.2 times."""
    usual = {"update_seconds": replace(figures({"update_seconds": 10.0})["update_seconds"], band=(8.3, 12.0))}
    (judged,) = [
        one for one in judged_phases(Evidence(run=run(update=update), usual=usual), {"update": 0.37}) if one.usual.known
    ]
    assert judged.normal is normal


def test_a_band_is_never_narrower_than_the_prediction() -> None:
    """An 80 % interval of twice is a 95 % interval of 2 ** (1.96 / 1.2816)."""
    predicted = Figure(key="update_seconds", value=10.0, band=(5.0, 20.0))
    low, high = band95(predicted, 0.1)
    assert (low, high) == pytest.approx((10 / 2**1.5293, 10 * 2**1.5293), rel=1e-3)


def test_a_phase_close_to_its_prediction_is_usual_however_narrow_its_band() -> None:
    """1.4 times is within what nobody would mend."""
    usual = figures({"update_seconds": 10.0})
    assert judged_phases(Evidence(run=run(update=14.0), usual=usual), {"update": 0.01})[0].normal


def test_small_models_scatter_more() -> None:
    """Four times what is predicted is usual of 0.5 B parameters, and not of 7 B."""
    for params, normal in ((0.5e9, True), (7e9, False)):
        found = Evidence(
            run=run(update=40.0), usual=figures({"update_seconds": 10.0}), said=figures({"params": params})
        )
        assert judged_phases(found)[0].normal is normal
    assert SPREADS[True]["update"] > SPREADS[False]["update"]


def kinds(found: Evidence) -> list[str]:
    """The kinds of likely causes, in order."""
    return [cause.kind for cause in told(found).causes]


def test_what_was_said_goes_before_usual_suspects() -> None:
    """Micro-batches of one sample; recomputation that is off is ruled out."""
    said = figures({"micro_batch_samples": 1.0}) | {"recompute": Figure(key="recompute", value="none")}
    found = Evidence(run=run(step=100.0, update=90.0), said=said)
    assert kinds(found)[0] == "micro_batch"
    assert "recompute" not in kinds(found)
    assert told(found).causes[0].change == {"micro_batch_tokens": 16384.0, "micro_batch_samples": None}


@pytest.mark.parametrize(("tokens", "small"), [(3000, True), (16384, False)])
def test_micro_batches_of_few_tokens_are_a_cause(tokens: float, small: bool) -> None:
    """A GPU waits for the host where there is little to do in each; packed ones are ruled out."""
    said = figures({"micro_batch_tokens": tokens})
    assert ("micro_batch" in kinds(Evidence(run=run(step=100.0, update=90.0), said=said))) is small


def test_a_reference_of_another_size_shows_in_passes_that_the_update_does_not_explain() -> None:
    """The update is usual, the log-probs of the same tokens take five times as long."""
    usual = figures({"update_seconds": 30.0, "logprob_seconds": 13.0})
    answer = told(Evidence(run=run(step=200.0, update=33.0, logprob=68.0), usual=usual))
    assert (answer.verdict, answer.phases[0].phase) == ("slow phase", "logprob")
    assert (answer.causes[0].kind, answer.causes[0].sign) == ("reference", "seen")


def test_every_phase_has_a_likely_cause() -> None:
    """Whichever takes most of the step."""
    for phase in SPREADS[False].keys() | {"reward", "tools", "validation", "checkpoint"}:
        if phase != "step":
            assert kinds(Evidence(run=run("colocated", **{"step": 100.0, phase: 90.0})))


def test_a_cold_prefix_cache_is_a_cause_of_slow_generation() -> None:
    """As its hits are seen, it goes before what settings say."""
    summary = run(step=100.0, generation=90.0)
    hits = figures({"prefix_cache_hit_fraction": 0.01})
    found = Evidence(run=replace(summary, figures={**summary.figures, **hits}), said=figures({"group_size": 8.0}))
    assert kinds(found)[0] == "cold"


@pytest.mark.parametrize(("seconds", "seen"), [(40.0, True), (5.0, False)])
def test_tools_that_hold_a_generation_up_are_seen_where_they_are_timed(seconds: float, seen: bool) -> None:
    """A log that times them rules them out too, whatever settings say."""
    summary = run(step=100.0, generation=90.0, generation_tools=seconds)
    causes = told(Evidence(run=summary, said=figures({"turns": 4.0}))).causes
    assert any((one.kind, one.sign) == ("tools", "seen") for one in causes) is seen
    assert any(one.kind == "tools" for one in causes) is seen


def test_a_timer_that_covers_the_step_is_not_believed() -> None:
    """In a loop whose sides work in turn, generation cannot take all of it."""
    answer = told(Evidence(run=run(step=50.0, generation=50.0)))
    assert [one.phase for one in answer.phases] == ["step"]
    assert (answer.causes[0].phase, answer.causes[0].kind) == ("update", "timer")


def tail(**load: float) -> Evidence:
    """A trainer that waits for a fleet of which few samples run."""
    fleet = engines([1500.0] * 8, running=4.0, waiting=0.0)
    found = evidence(log(wait=10.0), fleet, nameplate=INSTANCE_RATE, instances=8)
    return replace(found, load=EngineLoad(running=4.0, waiting=0.0, **load))


def test_a_long_tail_asks_for_partial_rollouts_and_never_for_gpus() -> None:
    """Few run, none wait, at under half the rate."""
    answer = told(tail())
    first = answer.steps[0]
    assert (answer.verdict, first.check, first.kind) == ("starving trainer", "fleet_size", "tail")
    assert "partial rollouts" in action(first)
    assert not action(first).startswith("Add")
    assert verification(first) == "trainer idle is under its target over several hundred steps"


def by_hits(hits: float, group: float | None) -> Evidence:
    """A trainer that waits, and a log that tells of its prefix cache."""
    found = evidence(log(wait=10.0, prefix_cache_hit_fraction=lambda _: hits), nameplate=INSTANCE_RATE, instances=8)
    return replace(found, said=figures({"group_size": group}) if group else {})


def test_a_cache_is_cold_by_hits_and_group_alone() -> None:
    """1 % with groups of 8, before instances are added; nothing is said of 40 %, or without a group."""
    answer = told(by_hits(0.01, 8.0))
    assert [one.check for one in answer.steps] == ["prefix_cache", "fleet_size"]
    assert answer.steps[0].kind == "cold"
    for other in (by_hits(0.4, 8.0), by_hits(0.01, None)):
        assert [one.check for one in told(other).steps] == ["fleet_size"]


def test_a_reported_idle_share_is_checked_against_times() -> None:
    """A trainer that works for 95 of 100 s does not stand still for half of them."""
    summary = run("async", step=100.0, train=95.0, update=95.0)
    reported = figures({"reported_trainer_idle_fraction": 0.5, "trainer_idle_fraction": 0.5})
    answer = told(Evidence(run=replace(summary, figures={**summary.figures, **reported})))
    (ratio,) = [one for one in answer.findings if one.check == "idle_ratio"]
    assert (ratio.status, ratio.kind) == ("note", "trainer")
    assert answer.trainer_idle.number == pytest.approx(0.05)


def test_what_a_step_costs_is_told_before_and_after() -> None:
    """8 GPUs of $2 for 200 s, and for as long as it would take were the log-probs usual."""
    usual = figures({"update_seconds": 30.0, "logprob_seconds": 13.0})
    found = Evidence(run=run(step=200.0, update=33.0, logprob=68.0), usual=usual)
    pools: dict[str, Any] = figures(POOLS)
    now, then = step_costs(told(found), found, pools)
    assert now.number == pytest.approx(8 * 2 * 200 / 3600)
    assert then.number == pytest.approx(8 * 2 * (200 - 55) / 3600)


def test_a_count_of_instances_has_bounds() -> None:
    """Rates that were measured scatter, and the count with them."""
    matched = told(evidence(log(wait=4.6), engines([3600.0, 4000.0, 4400.0, 4000.0]))).matched
    assert matched.band is not None
    low, high = matched.band
    assert low <= matched.number <= high
    assert low < high
