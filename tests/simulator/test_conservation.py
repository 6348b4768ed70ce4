"""What holds in every run, whatever its modes, policies and troubles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.any_settings import any_setting

from rlsize.simulator.conductor import Conductor
from rlsize.simulator.draws import SeededOutcomes
from rlsize.simulator.engine import Engine
from rlsize.simulator.ledger import Ledger
from rlsize.simulator.run import conductor_of, simulate
from rlsize.simulator.setting import Setting

SEEDS = st.integers(0, 10**6)
STEPS = st.integers(1, 8)


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
        self.loop.loop.run(self, lambda: self.loop.steps >= steps)
        return self.loop.ledger

    def decide(self) -> None:
        """What the loop decides."""
        self.loop.decide()

    def begin(self) -> None:
        """The loop begins its steps; then everything is looked at."""
        self.loop.begin()
        fleet, trainer = self.loop.fleet, self.loop.trainer
        assert self.fleet_version <= fleet.version <= trainer.version
        assert self.trainer_version <= trainer.version
        self.fleet_version, self.trainer_version = fleet.version, trainer.version
        for engine in fleet.engines:
            look_at(engine)


def look_at(engine: Engine) -> None:
    """Slots and cache of an instance, which has just begun its steps."""
    batch = [entry[2] for entry in engine.ends]
    assert len(batch) <= engine.slots
    parked = [sample for sample in engine.parked]
    groups = {sample.group for sample in [*batch, *parked]}
    kv = sum(sample.held + engine.clock - sample.joined for sample in batch) + sum(sample.held for sample in parked)
    assert engine.held == len(groups) * engine.prompt_tokens + kv
    assert engine.context == sum(engine.prompt_tokens + s.held + engine.clock - s.joined for s in batch)
    at_end = engine.held + (engine.planned * len(batch) if engine.entry is not None else 0)
    assert at_end <= engine.capacity or (len(batch) == 1 and not parked)


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
