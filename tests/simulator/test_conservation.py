"""What holds in every run, whatever its modes, policies and troubles."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import tries
from tests.simulator.any_settings import any_setting

from rlsize.simulator import run
from rlsize.simulator.conductor import Conductor
from rlsize.simulator.draws import SeededOutcomes
from rlsize.simulator.engine import BatchingEngine
from rlsize.simulator.fleet import STATES
from rlsize.simulator.ledger import Ledger
from rlsize.simulator.modes import Barrier
from rlsize.simulator.resizing import held_seconds
from rlsize.simulator.run import conductor_of, simulate
from rlsize.simulator.setting import (
    EngineSetting,
    LengthSetting,
    Mode,
    RuleSetting,
    Setting,
    TrainerSetting,
    WorkSetting,
)

SEEDS = st.integers(0, 10**6)
STEPS = st.integers(1, 8)
PARTS = ("train", "waiting", "sync", "overhead", "failure")


class Watched:
    """
    A loop that is looked at after every instant.

    Args:
        setting: What is simulated.
        seed: Of all randomness.
    """

    def __init__(self, setting: Setting, seed: int) -> None:
        self.loop: Conductor = conductor_of(setting, SeededOutcomes(setting.work, seed))
        self.fleet_version = self.trainer_version = 0

    def run(self, steps: int) -> Ledger:
        """Run the loop for so many optimizer steps."""
        self.loop.loop.run(self.loop.decide, self.begin, lambda: self.loop.steps >= steps)
        return self.loop.ledger

    def begin(self) -> None:
        """The loop begins its steps; then everything is looked at."""
        self.loop.begin()
        fleet, trainer = self.loop.fleet, self.loop.trainer
        assert self.fleet_version <= fleet.version <= trainer.version
        assert self.trainer_version <= trainer.version
        self.fleet_version, self.trainer_version = fleet.version, trainer.version
        assert fleet.version == min((one.version for one in fleet.engines if one.up), default=fleet.version)
        assert not fleet.carried or (isinstance(self.loop, Barrier) and not self.loop.open), "waits for no batch"
        for engine in fleet.engines:
            look_at(engine)


def rows(ledger: Ledger) -> list[tuple[tuple[float, ...], list[tuple[int, int]]]]:
    """The accounts of each step, comparable."""
    columns = zip(*ledger.columns.values(), strict=True)
    return [(row, sorted(counts.items())) for row, counts in zip(columns, ledger.staleness, strict=True)]


def look_at(engine: BatchingEngine) -> None:
    """Slots and cache of an instance, which has just begun its steps."""
    batch = [entry[2] for entry in engine.ends]
    assert len(batch) <= engine.slots
    left = list(engine.left)
    assert set(engine.parked) <= set(left)
    groups = {sample.group for sample in [*batch, *left]}
    running = sum(sample.held + engine.clock - sample.joined for sample in batch)
    kv = running + sum(sample.held for sample in left)
    assert engine.held == len(groups) * engine.prompt_tokens + kv
    assert engine.context == sum(engine.prompt_tokens + s.held + engine.clock - s.joined for s in batch)
    at_end = len({sample.group for sample in batch}) * engine.prompt_tokens + running
    at_end += engine.planned * len(batch) if engine.entry is not None else 0
    assert at_end <= engine.capacity or len(batch) == 1
    assert engine.held <= engine.capacity or not left


@pytest.mark.long
@given(any_setting(), SEEDS, STEPS)
def test_every_step_is_reached_and_every_token_is_somewhere(setting: Setting, seed: int, steps: int) -> None:
    """No loop gets stuck; after each step, generated = trained + dropped + under way + waiting, to the token."""
    watched = Watched(setting, seed)
    ledger = watched.run(steps)
    assert len(ledger) == steps
    columns, trained = ledger.columns, 0.0
    for step in range(steps):
        trained += columns["trained_tokens"][step]
        elsewhere = sum(columns[name][step] for name in ("dropped_tokens", "under_way_tokens", "backlog_tokens"))
        assert columns["generated_tokens"][step] == trained + elsewhere
        assert columns["trained_samples"][step] == setting.work.samples


@given(any_setting(), SEEDS, STEPS)
def test_seconds_of_trainer_and_instances_add_up(setting: Setting, seed: int, steps: int) -> None:
    """
    A step is training, waiting, sync, overhead, failures; an instance's time its states, a part of idleness its tail.

    A generating instance is in a step, and every second of a step is one of up to `slots` samples.
    """
    columns = simulate(setting, steps, seed).columns
    begun = 0.0
    for step, end in enumerate(columns["end_seconds"]):
        at = {name: column[step] for name, column in columns.items()}
        close = partial(pytest.approx, rel=1e-9, abs=1e-9 * max(1.0, end))
        assert sum(at[f"{part}_seconds"] for part in PARTS) == close(end - begun)
        assert min(at[f"{part}_seconds"] for part in PARTS) >= 0.0
        instances = setting.most_instances + setting.trouble.lent_instances
        assert sum(at[f"{state}_seconds"] for state in STATES) == close(instances * end)
        if not setting.trouble.lent_instances:
            held = held_seconds(setting, columns["end_seconds"][: step + 1], 0.0)
            assert held == close(instances * end - at["away_seconds"])
        assert 0.0 <= at["tail_seconds"] <= at["idle_seconds"] + 1e-9
        assert at["stepping_seconds"] <= at["generating_seconds"] + 1e-9 * max(1.0, end)
        assert at["stepping_seconds"] <= at["slot_seconds"] + 1e-9 * max(1.0, end)
        assert at["slot_seconds"] <= max(kind.slots for kind in setting.kinds) * at["stepping_seconds"] + 1e-9 * max(
            1.0, end
        )
        begun = end


@given(any_setting(), SEEDS, STEPS)
def test_counts_only_grow_and_rows_agree_with_each_other(setting: Setting, seed: int, steps: int) -> None:
    """Columns that count from the beginning never fall; staleness columns are those of the step's samples."""
    ledger = simulate(setting, steps, seed)
    columns = ledger.columns
    so_far = ("end_seconds", "generated_tokens", "dropped_tokens", "preemptions", "stepping_seconds", "slot_seconds")
    for name in (*so_far, *(f"{state}_seconds" for state in (*STATES, "tail"))):
        assert all(after >= before for before, after in pairwise(columns[name]))
    for step, counts in enumerate(ledger.staleness):
        assert min(counts) >= 0
        assert sum(counts.values()) == columns["trained_samples"][step]
        assert sum(lag * count for lag, count in counts.items()) == columns["staleness_sum"][step]
        assert max(counts) == columns["most_stale"][step]
        assert 0 <= columns["token_staleness_sum"][step] <= max(counts) * columns["trained_tokens"][step]


@given(any_setting(), SEEDS, STEPS)
def test_nothing_above_the_cap_is_trained_where_it_is_dropped(setting: Setting, seed: int, steps: int) -> None:
    """With `drops_over_stale` no sample lags by more than k, or by more than syncs every m steps leave no choice."""
    rules = replace(setting.rules, mode="async", max_staleness=setting.rules.max_staleness or 0, drops_over_stale=True)
    ledger = simulate(replace(setting, rules=rules), steps, seed)
    cap = max(ceil(rules.max_staleness or 0), setting.sync.every - 1)
    assert max(lag for counts in ledger.staleness for lag in counts) <= cap


@pytest.mark.long
@given(any_setting(), SEEDS, STEPS, STEPS)
def test_a_longer_run_continues_a_shorter_one(setting: Setting, seed: int, steps: int, more: int) -> None:
    """The first rows of a longer run are the rows of a shorter one, and a run that is gone on with is one of them."""
    short, long = simulate(setting, steps, seed), simulate(setting, steps + more, seed)
    assert rows(short) == rows(long)[:steps]
    resumed = conductor_of(setting, SeededOutcomes(setting.work, seed))
    resumed.run(steps)
    resumed.run(steps + more)
    assert rows(resumed.ledger) == rows(long)


class Heard(SeededOutcomes):
    """Outcomes that note the lengths that were asked for."""

    def __init__(self, setting: Setting, seed: int) -> None:
        super().__init__(setting.work, seed)
        self.heard: dict[int, list[int]] = {}

    def lengths(self, group: int) -> list[int]:
        """As drawn, and noted."""
        self.heard[group] = super().lengths(group)
        return self.heard[group]


@pytest.mark.long
@given(any_setting(), any_setting(), SEEDS)
def test_a_group_has_the_same_lengths_whatever_is_done_with_it(one: Setting, other: Setting, seed: int) -> None:
    """Common random numbers: fleet, trainer, sync, mode, order and trouble change no group's lengths, nor its fate."""
    outcomes = []
    for setting in (one, replace(other, work=one.work, trainer=replace(other.trainer, micro_batches=1))):
        heard = Heard(setting, seed)
        conductor_of(setting, heard).run(3)
        outcomes.append({group: (lengths, heard.accepted(group)) for group, lengths in heard.heard.items()})
    both = outcomes[0].keys() & outcomes[1].keys()
    assert len(both) >= 3 * one.work.groups
    assert all(outcomes[0][group] == outcomes[1][group] for group in both)


IN_ANOTHER_PROCESS = """
import sys
from hypothesis import given, seed, settings
from tests.effort import tries
from tests.simulator.any_settings import any_setting
from tests.simulator.test_conservation import rows
from rlsize.simulator.run import simulate

@seed(1)
@settings(database=None, derandomize=False, max_examples=tries(60), deadline=None)
@given(any_setting())
def histories(setting):
    print(rows(simulate(setting, 5, 3)))

histories()
"""


@pytest.mark.long
def test_another_process_gives_the_same_history() -> None:
    """Many runs have the same rows to the last bit in processes that hash differently."""
    root = Path(__file__).resolve().parents[2]
    printed = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{root}:{root / 'src'}"}
        command = [sys.executable, "-c", IN_ANOTHER_PROCESS]
        printed.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(printed) == 1
    assert printed.pop().count("\n") >= tries(60)


class SameAgain(SeededOutcomes):
    """Outcomes that repeat after the first chunk, so that no chunks come to be kept."""

    def lengths(self, group: int) -> list[int]:
        """Those of a group of the first chunk."""
        return super().lengths(group % 100)

    def accepted(self, group: int) -> bool:
        """Likewise."""
        return super().accepted(group % 100)


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("mode", ["async", "sync", "one-step-off"])
def test_memory_does_not_grow_with_steps(mode: Mode) -> None:
    """
    A run of 450 steps more takes 450 rows more: 8 bytes for each column, and a small dict.

    A step has four groups and sixteen samples, each of more than a hundred bytes, and would take three times as much
    if they stayed, as they would if they needed the collector of cycles, which is off while a run lasts.
    """
    setting = Setting(
        engine=EngineSetting(instances=2, slots=8, fixed_seconds=0.01),
        work=WorkSetting(groups=4, group_size=4, lengths=LengthSetting(mean=20.0, cv=1.0, cap=200.0), acceptance=0.8),
        trainer=TrainerSetting(seconds=0.5),
        rules=RuleSetting(mode=mode, max_staleness=2, oversampling=1.0 if mode == "async" else 1.5),
    )
    peaks = []
    with patch.object(run, "SeededOutcomes", SameAgain):
        for steps in (50, 50, 500):
            tracemalloc.start()
            simulate(setting, steps)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[2] - peaks[1] < 700 * 450
