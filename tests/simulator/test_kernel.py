"""The compiled kernel against the specification: the same accounts, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import NIGHTLY, tries
from tests.simulator.any_settings import any_setting

from rlsize.errors import UnfinishedError
from rlsize.planner import simulation
from rlsize.shell import planning
from rlsize.simulator import draws, run
from rlsize.simulator import played as kernel_runs
from rlsize.simulator.ledger import Recorder
from rlsize.simulator.played import ROUTINGS, WAYS, _with_room, covers, installed, played
from rlsize.simulator.run import simulate
from rlsize.simulator.setting import (
    EngineSetting,
    Latency,
    LengthSetting,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    Way,
    WorkSetting,
)

if TYPE_CHECKING:
    from rlsize.simulator.ledger import Ledger

STEPS = 9


@st.composite
def covered(draw: st.DrawFn) -> Setting:
    """A setting that the kernel knows, as small as that of other tests or up to some hundred samples a step."""
    found = draw(any_setting())
    engine, work, trainer = found.engine, found.work, found.trainer
    work = replace(work, turns=1, tool_tokens=0, tool=Latency(), verify=Latency())
    work = replace(work, environments=None, environment_seconds=0.0)
    if draw(st.booleans()):
        groups = draw(st.integers(1, 24))
        lengths = replace(
            work.lengths, mean=draw(st.sampled_from((6.0, 60.0))), cap=draw(st.sampled_from((60.0, 400.0)))
        )
        redundant = draw(st.sampled_from((0, 0, 1, 4)))
        work = replace(
            work, groups=groups, group_size=draw(st.integers(1, 9)), redundant_samples=redundant, lengths=lengths
        )
        engine = replace(
            engine,
            instances=draw(st.integers(1, 9)),
            slots=draw(st.integers(1, 12)),
            kv_tokens=engine.kv_tokens * draw(st.sampled_from((2.0, 10.0))),
        )
        trainer = replace(trainer, micro_batches=draw(st.integers(1, groups)))
    way = draw(st.sampled_from(WAYS))
    slow = found.trouble.straggler_fraction, found.trouble.straggler_slowdown
    return replace(
        found,
        engine=replace(engine, routing=draw(st.sampled_from(ROUTINGS))),
        others=(),
        work=work,
        trainer=trainer,
        rules=replace(found.rules, redealing="arrivals", resizes=()),
        sync=replace(found.sync, way=way),
        trouble=TroubleSetting(straggler_fraction=slow[0], straggler_slowdown=slow[1]),
    )


def specified(setting: Setting, steps: int, seed: int) -> Ledger:
    """What the specification says, which hands what happens to a recorder that takes nothing."""
    return simulate(setting, steps, seed, Recorder(), partly=True)


def agree(setting: Setting, steps: int, seed: int) -> bool:
    """Whether the kernel has an answer; it has to be that of the specification."""
    found, expected = played(setting, steps, seed), specified(setting, steps, seed)
    if found is None:
        return False
    assert found.compiled
    assert not expected.compiled
    assert found.columns == expected.columns
    assert found.staleness == expected.staleness
    return True


@pytest.mark.long
@settings(max_examples=tries(200), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(covered(), st.integers(0, 9))
def test_the_kernel_gives_the_accounts_of_the_specification(setting: Setting, seed: int) -> None:
    """All columns of all steps and all histograms are equal, wherever the kernel does not leave the run to it."""
    assert covers(setting)
    if not agree(setting, STEPS, seed):
        assert len(specified(setting, STEPS, seed)) < STEPS


def a_loop(**rules: object) -> Setting:
    """A loop whose trainer is as quick as its fleet."""
    return Setting(
        engine=EngineSetting(instances=5, slots=16, fixed_seconds=0.01, sample_seconds=1e-4, kv_seconds=1e-7),
        work=WorkSetting(
            groups=16, group_size=4, lengths=LengthSetting(mean=100.0, cv=1.0, cap=1000.0), prompt_tokens=50
        ),
        trainer=TrainerSetting(seconds=1.0),
        sync=SyncSetting(seconds=0.2),
        rules=replace(RuleSetting(mode="async", max_staleness=2), **rules),  # type: ignore[arg-type]  # of any kind
    )


def with_redundant(loop: Setting, samples: int) -> Setting:
    """The loop with so many samples of each group that it does not need."""
    return replace(loop, work=replace(loop.work, redundant_samples=samples))


@pytest.mark.parametrize("redundant", [0, 2])
def test_a_run_of_more_groups_than_are_drawn_at_once_agrees(monkeypatch: pytest.MonkeyPatch, redundant: int) -> None:
    """Groups are drawn while the run goes on, and the rows of those that were trained are used again."""
    grown = Mock(wraps=_with_room)
    monkeypatch.setattr(kernel_runs, "_with_room", grown)
    assert agree(with_redundant(a_loop(), redundant), 300 if NIGHTLY else 80, 1)
    assert grown.call_count == 1


@pytest.mark.parametrize("way", WAYS)
def test_redundant_samples_that_stop_between_two_steps_agree(way: Way) -> None:
    """Where all steps take the same time a group is often complete as others' steps end, while the fleet pauses too."""
    ties = replace(a_loop().engine, instances=2, slots=4, kv_seconds=0.0, sample_seconds=0.0)
    work = replace(a_loop().work, groups=4, group_size=1, redundant_samples=1)
    assert agree(replace(a_loop(), engine=ties, work=work, sync=SyncSetting(seconds=0.2, way=way)), 20, 1)


def test_a_backlog_without_end_agrees() -> None:
    """Rows are added for a backlog that grows for as long as the run lasts."""
    quick = replace(a_loop(max_staleness=None), trainer=TrainerSetting(seconds=30.0))
    assert agree(quick, 20, 1)


@pytest.mark.parametrize(
    "asked",
    [
        replace(a_loop(), work=replace(a_loop().work, turns=2)),
        replace(a_loop(), work=replace(a_loop().work, verify=Latency(seconds=1.0))),
        replace(a_loop(), trouble=TroubleSetting(losses_per_hour=1.0)),
        replace(a_loop(), trouble=TroubleSetting(failures_per_hour=1.0)),
        replace(a_loop(), trouble=TroubleSetting(lent_instances=1)),
        replace(a_loop(), engine=replace(a_loop().engine, routing="random")),
        a_loop(redealing="running"),
        replace(a_loop(), sync=SyncSetting(seconds=0.2, way="rolling")),
    ],
    ids=["tools", "verifier", "losses", "failures", "lending", "random", "re-dealing", "rolling sync"],
)
def test_what_the_kernel_does_not_know_is_left_to_the_specification(asked: Setting) -> None:
    """However much the kernel would pay."""
    assert not covers(asked)
    assert not simulate(asked, 2, compiled=True).compiled


def test_a_loop_that_stands_still_is_left_to_the_specification() -> None:
    """A queue that is full with fewer groups than the trainer needs: no step comes."""
    engine = replace(a_loop().engine, instances=1, slots=4)
    stuck = replace(a_loop(queue_steps=0.01), engine=engine)
    assert played(stuck, 5, 0) is None
    assert not len(simulate(stuck, 5, compiled=True, partly=True))
    with pytest.raises(UnfinishedError, match="stands still after 0 optimizer steps"):
        simulate(stuck, 5, compiled=True)


@pytest.mark.skipif(not installed(), reason="numba is not installed")
def test_only_a_run_that_pays_is_given_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run alone pays from so many samples on, one with a recorder never; without numba there is no kernel."""
    steps = 3
    assert not simulate(a_loop(), steps).compiled
    assert simulate(a_loop(), steps, compiled=True).compiled
    assert not simulate(a_loop(), steps, 0, Recorder(), compiled=True).compiled
    monkeypatch.setattr(run, "WORTH", steps * a_loop().work.samples)
    assert simulate(a_loop(), steps).compiled
    monkeypatch.setattr(run, "installed", lambda: False)
    assert not simulate(a_loop(), steps).compiled


SIZE = ("--prompts", "16", "--group", "4", "--response-tokens", "200", "--response-cv", "0.8")
GRID = (
    "simulate", *SIZE, "--mode", "async", "--instances", "3", "--per-instance", "4000", "--concurrency", "16",
    "--train-seconds", "2", "--sweep", "max_staleness=0:2", "--seeds", "2", "--steps", "8", "--jobs", "1",
)  # fmt: skip
PLAN = ("plan", *SIZE, "--model", "qwen3-1.7b", "--gpu", "h100-sxm", "--gpus", "8", "--simulate", "3")


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a plan are played here, one after the other."""
    monkeypatch.setattr(planning, "side_by_side", lambda work, things: [work(thing) for thing in things])


@pytest.mark.long(by_day=1)
@pytest.mark.skipif(not installed(), reason="numba is not installed")
@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("asked", [GRID, PLAN], ids=["simulate", "plan"])
def test_headline_order_and_exit_code_are_those_without_the_kernel(
    rlsize: Any, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]
) -> None:
    """So are all rows, to the last digit."""
    by_kernel: list[int] = []
    answers = []
    monkeypatch.setattr(run, "WORTH", 0.0)
    monkeypatch.setattr(simulation, "WORTH", 0.0)

    def counted(setting: Setting, steps: int, seed: int) -> Ledger | None:
        by_kernel.append(seed)
        return played(setting, steps, seed)

    monkeypatch.setattr(kernel_runs, "played", counted)
    for there in (True, False):
        monkeypatch.setattr(run, "installed", lambda there=there: there)
        ran = rlsize(*asked, "--json")
        answers.append((ran.code, ran.document["headline"], ran.document["rows"]))
    assert by_kernel
    assert answers[0] == answers[1]


@pytest.mark.long(by_day=1)
@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(("asked", "seeds", "chunks"), [(GRID, 2, 1), (PLAN, 4, 2)], ids=["simulate", "plan"])
def test_lengths_are_drawn_once_for_a_seed(
    rlsize: Any, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], seeds: int, chunks: int
) -> None:
    """Points of a grid and plans meet the same samples, and go seed by seed: room for those of one seed is enough."""
    drawn = lru_cache(maxsize=chunks)(draws.shared_lengths.__wrapped__)
    monkeypatch.setattr(draws, "shared_lengths", drawn)
    assert rlsize(*asked).code == 0
    assert drawn.cache_info().misses == seeds * chunks
