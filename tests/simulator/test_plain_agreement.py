"""The simulator against an independent model of the same rules, token by token."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from tests.effort import tries
from tests.simulator.plain_model import plain_run
from tests.simulator.small_scenarios import small_scenarios

from rlsize.simulator.draws import SeededOutcomes
from rlsize.simulator.run import conductor_of

if TYPE_CHECKING:
    from tests.simulator.plain_model import Table
    from tests.simulator.small_scenarios import Scenario

    from rlsize.simulator.setting import Setting


class Tabled(SeededOutcomes):
    """Outcomes of which lengths, verdicts, places and scores' times are looked up."""

    def __init__(self, setting: Setting, table: Table) -> None:
        super().__init__(setting.work, 0)
        self._table = table

    def lengths(self, group: int) -> list[int]:
        """Response tokens of a group's samples. [token]"""
        return self._table.lengths(group)

    def accepted(self, group: int) -> bool:
        """Whether the group is kept."""
        return self._table.accepted(group)

    def place(self, group: int, member: int) -> float:
        """Where a sample goes, 0 to 1. [1]"""
        return self._table.place(group, member)

    def verify_seconds(self, group: int, member: int) -> float:
        """How long the verifier takes for the sample. [s]"""
        return self._table.verify_seconds(group, member)

    def stragglers(self, instances: int, share: float) -> list[int]:
        """Instances that are slow."""
        return self._table.stragglers(instances, share)


@pytest.mark.long
@settings(max_examples=tries(200), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(small_scenarios())
def test_step_times_idle_fractions_and_staleness_are_those_of_a_plain_model(scenario: Scenario) -> None:
    """A model written plainly with SimPy, token by token, gives the same steps, waits, syncs, staleness and tokens."""
    setting, table, steps = scenario
    conductor = conductor_of(setting, Tabled(setting, table))
    conductor.run(steps)
    columns, staleness = conductor.ledger.columns, conductor.ledger.staleness
    expected = plain_run(setting, table, steps)
    assert len(conductor.ledger) == len(expected) == steps
    for index, step in enumerate(expected):
        found = {name: column[index] for name, column in columns.items()}
        assert found["end_seconds"] == step.end_seconds
        assert found["train_seconds"] == step.train_seconds
        assert found["waiting_seconds"] == step.waiting_seconds
        assert found["sync_seconds"] == step.sync_seconds
        assert found["overhead_seconds"] == step.overhead_seconds
        assert staleness[index] == dict(Counter(step.staleness))
        assert found["trained_tokens"] == step.trained_tokens
        assert found["generated_tokens"] == step.generated_tokens
        assert found["stepping_seconds"] == step.engine_busy_seconds
        assert found["preemptions"] == step.preemptions
        assert found["dropped_tokens"] == step.dropped_tokens
        assert found["backlog_samples"] == step.backlog_samples
