"""What becomes of late samples: by which rule, what it costs, beside the simulator, and the same in a search."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.effort import NIGHTLY

from rlsize.estimates import step_assembly
from rlsize.estimates.step_assembly import REFILLING
from rlsize.facts.figure import Figure
from rlsize.loop.answer import answer_of
from rlsize.loop.resolve import Loop, resolve
from rlsize.loop.search import searched
from rlsize.planner.simulation import simulation_of
from rlsize.shell.inputs import Inputs
from rlsize.simulator.outcome import outcome_of
from rlsize.simulator.run import simulate

SAID = {
    "model": "qwen3-8b", "gpu": "h100-sxm", "rollout_gpus": "8", "trainer_gpus": "8", "prompts_per_step": "64",
    "group_size": "4", "prompt_tokens": "300", "response_tokens": "2000", "max_response_tokens": "16000",
    "rollout_tensor_parallel": "1",
}  # fmt: skip
BARRIERS = ("colocated", "sync", "one-step-off")
LATE = ("continue", "wait", "drop")
SPREADS = ("0.5", "1.0") if NIGHTLY else ("1.0",)


def inputs(**said: str) -> Inputs:
    """256 samples of 300 + 2000 tokens on 8 + 8 GPUs."""
    return Inputs(texts=SAID | said)


def loop(**said: str) -> Loop:
    """The loop."""
    return resolve(inputs(**said))


def result(key: str, **said: str) -> Figure:
    """One of its results."""
    return answer_of(loop(**said)).results[key]


def step(**said: str) -> float:
    """Its step. [s]"""
    return result("step_seconds", **said).number


def chosen(**said: str) -> tuple[object, str]:
    """The rule that is among the inputs, and why."""
    asked = inputs(**said)
    resolve(asked)
    figure = asked.used["late_samples"]
    return figure.value, figure.source


def test_the_rule_goes_by_the_mode_the_framework_and_what_is_said() -> None:
    """What is said goes before the framework, the framework before what is usual."""
    assert chosen(mode="async") == ("continue", "samples go on over a sync")
    assert chosen(mode="async", framework="trl") == ("drop", "as TRL does it")
    assert chosen(mode="async", framework="nemo-rl") == ("wait", "as NeMo-RL does it")
    assert chosen(mode="async", framework="trl", late_samples="continue")[0] == "continue"
    assert chosen(mode="sync", oversampling="1.5")[0] == "drop"
    assert chosen(mode="partial")[0] == "continue"


@pytest.mark.parametrize(("mode", "late"), list(zip(BARRIERS, LATE, strict=True)))
def test_nothing_is_late_where_a_batch_starts_no_more_than_it_needs(mode: str, late: str) -> None:
    """The rule changes nothing, and a note says so where it is said."""
    assert step(mode=mode, late_samples=late) == step(mode=mode)
    asked = inputs(mode=mode, late_samples=late)
    resolve(asked)
    assert any("nothing is late" in note for note in asked.notes) == (late != "wait")


@pytest.mark.long
def test_waiting_counts_as_far_as_staleness_does_not_hide_the_longest() -> None:
    """Never quicker than going on; with staleness enough the same."""
    going = [step(mode="async", max_staleness=str(cap)) for cap in (1, 2, 32)]
    waiting = [step(mode="async", max_staleness=str(cap), late_samples="wait") for cap in (1, 2, 32)]
    assert all(one >= other for one, other in zip(waiting, going, strict=True))
    assert waiting == sorted(waiting, reverse=True)
    assert waiting[0] > 1.2 * going[0]
    assert waiting[-1] == pytest.approx(going[-1])


@pytest.mark.long
def test_what_is_dropped_is_generated_again() -> None:
    """
    Generation is longer by the samples that are dropped, which are the longest: more tokens are lost than samples.

    A fleet that is quicker than its trainer runs ahead up to the cap, so that more staleness does not end it: simulated
    over 60 steps, 0.10, 0.18 and 0.19 of all tokens are dropped.
    """
    dropped = [
        result("late_dropped_fraction", mode="async", late_samples="drop", max_staleness=str(cap)) for cap in (1, 2, 16)
    ]
    assert [one.number for one in dropped] == pytest.approx([0.10, 0.18, 0.19], abs=0.04)
    made, alone = (
        result("generation_seconds", mode="async", max_staleness="2", late_samples=late).number
        for late in ("drop", "continue")
    )
    assert alone < made < alone / (1 - dropped[1].number)
    assert dropped[1].band is not None


KNOWN = {"instance_tokens_per_second": "4000", "train_seconds": "20"}
"""Rates that were measured, beside a model that says how samples of such engines end."""


@pytest.mark.parametrize("mode", ["async", "sync", "colocated", "one-step-off"])
def test_a_step_at_known_rates_is_that_of_the_simulator(mode: str) -> None:
    """Within 5 %: a rate that was measured makes the engine as fast, and leaves it its long tail."""
    found = loop(**KNOWN, mode=mode)
    assert answer_of(found).results["step_seconds"].number == pytest.approx(played(found)[0], rel=0.05)


def test_what_is_dropped_at_known_rates_is_in_the_step() -> None:
    """As the simulator has it."""
    found = loop(**KNOWN, mode="async", late_samples="drop", max_staleness="1")
    assert answer_of(found).results["step_seconds"].number == pytest.approx(played(found)[0], rel=0.15)


def test_rates_alone_leave_out_what_they_cannot_tell() -> None:
    """Without a model nobody says how long a sample takes, so they go on, and a note says that dropping is left out."""
    alone = KNOWN | {"batch_tokens": "786432", "mode": "async", "rollout_gpus": "8", "trainer_gpus": "8"}
    plain, dropping = (Inputs(texts=alone | {"gpus_per_instance": "1", "late_samples": late}) for late in LATE[::2])
    steps = [answer_of(resolve(asked)).results["step_seconds"].number for asked in (plain, dropping)]
    assert steps[0] == steps[1]
    assert any("not in the step" in note for note in dropping.notes)


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("cv", SPREADS)
@pytest.mark.parametrize(
    "said",
    [
        {"mode": "async", "max_staleness": "1", "late_samples": "wait"},
        {"mode": "async", "max_staleness": "2", "late_samples": "wait"},
        {"mode": "async", "max_staleness": "1"},
        {"mode": "async", "max_staleness": "4"},
        {"mode": "sync", "oversampling": "1.25"},
        {"mode": "sync", "oversampling": "2"},
        {"mode": "colocated", "oversampling": "1.5"},
        {"mode": "one-step-off", "oversampling": "1.5"},
        {"mode": "partial"},
    ],
    ids=str,
)
def test_the_closed_form_is_that_of_the_simulator(said: dict[str, str], cv: str) -> None:
    """Seconds for as many trained tokens within 12 %, and what is generated for each within 5 %."""
    found = loop(**said, response_cv=cv)
    simulated, generated = played(found)
    told = answer_of(found).results
    assert told["step_seconds"].number == pytest.approx(simulated, rel=0.12)
    dropped = told["late_dropped_fraction"].number if "late_dropped_fraction" in told else 0.0
    assert 1 / (1 - dropped) == pytest.approx(generated, rel=0.05)


@pytest.mark.parametrize("cv", SPREADS)
@pytest.mark.parametrize("cap", ["1", "2"])
def test_dropping_is_near_the_simulator(cap: str, cv: str) -> None:
    """Steps within 5 %, with the shorter samples that are kept, and the share of tokens that is lost within 0.03."""
    found = loop(mode="async", max_staleness=cap, late_samples="drop", response_cv=cv)
    assert found.place is not None
    setting, pools = simulation_of(found.outlook.central, found.place)
    measures = outcome_of(simulate(setting, 40, 0), setting, pools, 0).measures
    told = answer_of(found).results
    assert told["step_seconds"].number == pytest.approx(measures["step_seconds"], rel=0.05)
    assert told["late_dropped_fraction"].number == pytest.approx(measures["dropped_fraction"], abs=0.03)


def played(found: Loop) -> tuple[float, float]:
    """Seconds in which the simulator trains a step's tokens, and the tokens that it generates for each. [s]"""
    assert found.place is not None
    setting, pools = simulation_of(found.outlook.central, found.place)
    told = outcome_of(simulate(setting, 40, 0), setting, pools, 0).measures
    seconds, generated = told["trained_tokens_per_second"], told["tokens_generated_per_trained_token"]
    assert seconds is not None
    assert generated is not None
    return setting.work.tokens / seconds, generated


@pytest.mark.long
@pytest.mark.parametrize("late", LATE if NIGHTLY else LATE[1:])
def test_a_search_prices_late_samples_as_the_loop_that_it_finds(late: str) -> None:
    """The step by which candidates are ranked is the one that the best of them has by itself."""
    planned = searched(inputs(late_samples=late, oversampling="1.25", searched_modes="async,synchronous"), (None, ""))
    best = planned.planned.chosen
    assert best is not None
    families = [best.best, *best.others]
    assert {one.place.loop in REFILLING for one in families} == {True, False}
    for one in families:
        assert one.results["step_seconds"] == pytest.approx(one.family.step_seconds)


def test_waste_that_makes_more_of_it_necessary_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for it began between ends that did not hold it, and came to none at all."""
    monkeypatch.setattr(step_assembly, "_needed", lambda _parts, _rule, _cycle, waste: 1.1194 + 0.03 * (waste - 1.0))
    nothing: Any = SimpleNamespace(cycle=None)
    found: Any = step_assembly._waste(nothing, nothing)
    assert found == pytest.approx(1.1231, rel=2e-3)
