"""The fully asynchronous loop: groups are admitted as long as their samples cannot get too stale."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from rlsize.simulator.conductor import Conductor

if TYPE_CHECKING:
    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.history import Recorder
    from rlsize.simulator.setting import Setting


class Asynchronous(Conductor):
    """Generate and train at once, with a cap on staleness and on what waits."""

    def __init__(self, setting: Setting, outcomes: Outcomes, recorder: Recorder | None = None) -> None:
        super().__init__(setting, outcomes, recorder)
        rules, groups = setting.rules, setting.work.groups
        self._cap = inf if rules.max_staleness is None else max(rules.max_staleness, setting.sync.every - 1)
        self._drops = rules.drops_over_stale and rules.max_staleness is not None
        self._groups = groups
        self._most_waiting = inf if rules.queue_steps is None else rules.queue_steps * groups

    def react(self) -> None:
        """Have the trainer take what is there, then admit what may begin."""
        if self.sync.under_way:
            self.sync.proceed()
            if self.sync.drains:
                return
        if self.trainer.idle:
            self._train()
        fleet = self.fleet
        dealer = fleet.dealer
        while dealer.room() and self._may_admit():
            fleet.admit()
        if dealer.queue:
            dealer.deal_queue()

    def wants_slots(self) -> bool:
        """Whether a slot that becomes free would be used at once."""
        return bool(self.fleet.dealer.queue) or self._may_admit()

    def _may_admit(self) -> bool:
        allowed = (self.fleet.version + 1 + self._cap) * self._groups + self.rejected
        return self.fleet.admitted < allowed and self.backlog.groups < self._most_waiting

    def updated(self) -> None:
        """The weights are synced if it is their turn."""
        if self.sync.due(self.trainer.version):
            self.sync.begin(self.trainer.version)
            self.sync.proceed()
        else:
            self.end_step()

    def step_ended(self) -> None:
        """The trainer looks for samples, in this same instant."""

    def _train(self) -> None:
        if self._drops and self.backlog.groups:
            old = self.backlog.drop_older(self.trainer.version - int(self._cap))
            self.rejected += len(old)
            for group in old:
                self.fleet.drop(group)
        count = self.trainer.next_groups
        if self.backlog.groups >= count and self.backlog.ready(count, self.first_under_way):
            self.take(self.backlog.take(count))
        else:
            self.lending.offer()
