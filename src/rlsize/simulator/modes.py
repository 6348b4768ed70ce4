"""The modes of a loop: with a barrier, where a batch is generated as a whole and waited for, or fully asynchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.simulator.conductor import Conductor

if TYPE_CHECKING:
    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.ledger import Group, Recorder
    from rlsize.simulator.setting import Setting


class Barrier(Conductor):
    """What loops with a barrier have in common: batches that open, fill and close."""

    def __init__(self, setting: Setting, outcomes: Outcomes, recorder: Recorder | None = None) -> None:
        super().__init__(setting, outcomes, recorder)
        self.open = False
        self.collected = 0  # accepted groups of the batch
        self.spare: list[Group] = []  # accepted groups beyond a batch, kept for the next
        self._accepted: list[Group] = []  # of the batch, in that order
        self._replaced = 0
        self._keeps = setting.rules.unfinished == "keep"
        self._launched = setting.launched_groups

    def open_batch(self) -> None:
        """Begin to generate a batch."""
        self.open, self._replaced = True, self.rejected
        self._accepted, self.spare = self.spare, []
        self.collected = len(self._accepted)
        for group in self._accepted:
            self.backlog.add(group)
        left_over = len(self.fleet.under_way) + self.collected
        self.fleet.deal_carried()
        for _ in range(self._launched - left_over):
            self.fleet.admit()

    def fill(self) -> None:
        """Replace what was rejected, or close the batch if it is complete."""
        if not self.open:
            return
        if self.collected >= self.setting.work.groups:
            self._close()
            return
        if self.sync.drains:
            return
        self.fleet.deal_carried()
        self.fleet.deal_equipped()
        self.fleet.dealer.deal_queue()
        while self._replaced < self.rejected:
            self._replaced += 1
            self.fleet.admit()

    def completed(self, group: Group) -> None:
        """A group is complete; accepted ones beyond a batch are kept for the next, or dropped."""
        if not self.open and self.outcomes.accepted(group.serial):
            self._too_many([group])
            return
        before = len(self.backlog)
        super().completed(group)
        if len(self.backlog) > before:
            self._accepted.append(group)
            self.collected += 1

    def take(self, groups: list[Group]) -> None:
        """Lent instances that go by this give up what still ran there of the last batch: it goes on at once."""
        super().take(groups)
        if self.open:
            self.fleet.deal_carried()

    def _so_far(self) -> dict[str, float]:
        row = super()._so_far()
        for group in self.spare:
            row["backlog_samples"] += group.size
            row["backlog_tokens"] += group.tokens
            row["oldest_age_steps"] = max(row["oldest_age_steps"], self.trainer.version - group.oldest)
        return row

    def _close(self) -> None:
        self.open = False
        extra = self.collected - self.setting.work.groups
        if extra:
            last = self._accepted[-extra:]
            self.backlog.remove(last)
            self._too_many(last)
        if self.fleet.under_way:
            self.fleet.stop(keeps=self._keeps)

    def _too_many(self, groups: list[Group]) -> None:
        if self._keeps:
            self.spare += groups
        else:
            for group in groups:
                self.fleet.drop(group)


class Synchronous(Barrier):
    """Generate, train, sync; colocated on the same GPUs, with change-overs in place of the sync."""

    def __init__(self, setting: Setting, outcomes: Outcomes, recorder: Recorder | None = None) -> None:
        super().__init__(setting, outcomes, recorder)
        self._colocated = setting.rules.mode == "colocated"
        self._swaps = self._ready = False
        self._due = True  # a batch is to be opened

    def react(self) -> None:
        """Open, fill and close batches, and have the trainer take what is there."""
        self.sync.proceed()
        if self._due:
            self._due = False
            self.open_batch()
        self.fill()
        if not self.trainer.idle:
            return
        count = self.trainer.next_groups
        first = self.first_under_way if self.open else None
        if not self.backlog.ready(count, first) or (self._colocated and self.open):
            self.lending.offer()
        elif self._colocated and not self._ready:
            self._swap()
        else:
            self.take(self.backlog.take(count))

    def updated(self) -> None:
        """The weights are synced, or handed over with the change-over."""
        if self._colocated:
            self._note_swap()
            seconds, overhead = self.setting.sync.swap_seconds, self.setting.trainer.overhead_seconds
            self.ledger.add("overhead_seconds", overhead)
            self.loop.at(self.loop.now + (seconds + overhead), self._swapped_back)
        elif not self.sync.begin(self.trainer.version):
            self.end_step()

    def step_ended(self) -> None:
        """The next batch may begin."""
        self._due = True

    def _swap(self) -> None:
        self._note_swap()
        self.trainer.reserve(self.setting.sync.swap_seconds, self._swapped)

    def _swapped(self) -> None:
        self._ready = True
        self.trainer.wait()

    def _swapped_back(self) -> None:
        self._ready = False
        self.fleet.go_on(self.trainer.version, keeps_kv=False)
        self.end_step()

    def _note_swap(self) -> None:
        seconds = self.setting.sync.swap_seconds
        self.ledger.add("sync_seconds", seconds)
        if seconds:
            self.recorder.phase("trainer", "swap", self.loop.now, self.loop.now + seconds)


class OneStepOff(Barrier):
    """Cycles: train the last batch while the next one is generated; then sync."""

    def __init__(self, setting: Setting, outcomes: Outcomes, recorder: Recorder | None = None) -> None:
        super().__init__(setting, outcomes, recorder)
        self._due, self._trains, self._first = True, False, True
        self._batch: list[Group] = []

    def react(self) -> None:
        """Begin a cycle, fill its batch, train the last one, and end the cycle when both are done."""
        self.sync.proceed()
        if self._due:
            self._due = False
            self._batch = self.backlog.take(len(self.backlog))
            self._trains = bool(self._batch)
            self.open_batch()
        self.fill()
        if self.trainer.idle and self._batch:
            count = self.trainer.next_groups
            now, self._batch = self._batch[:count], self._batch[count:]
            self.take(now)
        elif self.trainer.idle and self.open:
            self.lending.offer()
        if not self.open and self.trainer.idle and not self._trains and not self._due:
            self._end_cycle()

    def updated(self) -> None:
        """The trainer waits for the batch under way."""
        self._trains = False
        self.trainer.wait()

    def step_ended(self) -> None:
        """The next cycle begins."""
        self._due = True

    def _end_cycle(self) -> None:
        if self._first:
            self._first = False
            self._due = True
            self.react()
        else:
            self.trainer.stop_waiting()
            if self.sync.begin(self.trainer.version):
                self.sync.proceed()
            else:
                self.end_step()
                self.react()


class Asynchronous(Conductor):
    """Generate and train at once: groups are admitted as long as they cannot get too stale, nor too many wait."""

    def __init__(self, setting: Setting, outcomes: Outcomes, recorder: Recorder | None = None) -> None:
        super().__init__(setting, outcomes, recorder)
        self._ahead, self._most_waiting, self._groups = setting.groups_ahead, setting.most_waiting, setting.work.groups
        self._drops = setting.rules.drops_over_stale and setting.rules.max_staleness is not None

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
        fleet.deal_equipped()
        while dealer.room() and self._may_admit():
            fleet.admit()
        if dealer.queue:
            dealer.deal_queue()

    def wants_slots(self) -> bool:
        """Whether a slot that becomes free would be used at once."""
        return bool(self.fleet.dealer.queue) or self._may_admit()

    def _may_admit(self) -> bool:
        allowed = (self.fleet.version + 1) * self._groups + self._ahead + self.rejected
        return self.fleet.admitted < allowed and self.backlog.groups < self._most_waiting and self.fleet.may_admit()

    def updated(self) -> None:
        """The weights are synced if it is their turn."""
        if self.sync.begin(self.trainer.version):
            self.sync.proceed()
        else:
            self.end_step()

    def step_ended(self) -> None:
        """The trainer looks for samples, in this same instant."""

    def _train(self) -> None:
        if self._drops and self.backlog.groups:
            old = self.backlog.drop_older(self.trainer.version - int(self.setting.most_lag))
            self.rejected += len(old)
            for group in old:
                self.fleet.drop(group)
        count = self.trainer.next_groups
        if self.backlog.groups >= count and self.backlog.ready(count, self.first_under_way):
            self.take(self.backlog.take(count))
        else:
            self.lending.offer()
