"""The actors of a loop together: who is told of what, and the accounts of each optimizer step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rlsize.simulator.event_loop import EventLoop
from rlsize.simulator.fleet import Fleet
from rlsize.simulator.ledger import Ledger, Recorder
from rlsize.simulator.resizing import Losses, Resizing
from rlsize.simulator.trainer import Backlog, Lending, Trainer, WeightSync

if TYPE_CHECKING:
    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.ledger import Group
    from rlsize.simulator.setting import Setting


class Conductor(ABC):
    """
    What all modes have in common.

    Args:
        setting: What is simulated.
        outcomes: What chance brings.
        recorder: What notes spans and events, if anything does.
    """

    def __init__(self, setting: Setting, outcomes: Outcomes, recorder: Recorder | None = None) -> None:
        self.setting, self.outcomes, self.recorder = setting, outcomes, recorder or Recorder()
        self.loop = EventLoop()
        self.ledger = Ledger(setting.rules.max_staleness)
        self.backlog = Backlog(setting.rules.order)
        self.fleet = Fleet(self)
        self.trainer = Trainer(self)
        self.sync = WeightSync(self)
        self.losses = Losses(self)
        self.lending = Lending(self)
        self.resizing = Resizing(self)
        self.rejected = 0  # groups that dynamic sampling threw out, or that were too stale
        self.steps = 0
        self._eldest: Group | None = None  # of the groups under way

    def run(self, steps: int) -> None:
        """
        Run on until so many optimizer steps have been made in all.

        It stops with fewer where nothing that the loop waits for can come, or where as good as nothing does.
        """
        patience, rounds, reached = self.setting.patience, 0, self.steps

        def done() -> bool:
            nonlocal rounds, reached
            if self.steps > reached:
                rounds, reached = 0, self.steps
            rounds += 1
            return self.steps >= steps or rounds > patience

        self.loop.run(self.decide, self.begin, done)

    def begin(self) -> None:
        """The end of an instant: instances begin their steps; what is thrown out by that may go elsewhere at once."""
        self.fleet.begin()
        while not self.sync.drains and self.fleet.redeal():
            self.fleet.begin()

    def decide(self) -> None:
        """React to what has happened at this time."""
        self.fleet.stop_redundant()
        self.react()
        if not self.sync.drains:
            self.fleet.redeal()
        self.fleet.wants_slots = self.wants_slots()

    @abstractmethod
    def react(self) -> None:
        """What the mode does about it."""

    def wants_slots(self) -> bool:
        """Whether a slot that becomes free would be used at once."""
        return bool(self.fleet.dealer.queue)

    @abstractmethod
    def updated(self) -> None:
        """The trainer has made an optimizer step."""

    @abstractmethod
    def step_ended(self) -> None:
        """The trainer may go on."""

    @property
    def first_under_way(self) -> int | None:
        """The lowest number of a group that is under way; None where none is."""
        under_way = self.fleet.under_way
        if self._eldest not in under_way:  # looking for it anew passes over all that are gone
            self._eldest = next(iter(under_way), None)
        return None if self._eldest is None else self._eldest.serial

    def completed(self, group: Group) -> None:
        """A group is complete: it is accepted, or rejected."""
        accepted = self.outcomes.accepted(group.serial)
        if accepted:
            self.backlog.add(group)
        else:
            self.fleet.drop(group)
            self.rejected += 1
        if self.recorder.on:  # a call less for each group
            name = "group accepted" if accepted else "group rejected"
            self.recorder.event(self.loop.now, name, group=group.serial, tokens=group.tokens)

    def take(self, groups: list[Group]) -> None:
        """Have the trainer train groups, once it has its GPUs."""
        delay = self.lending.reclaim()
        if delay > 0.0:
            self.ledger.add("waiting_seconds", delay)
            self.trainer.reserve(delay, lambda: self.trainer.take(groups))
        else:
            self.trainer.take(groups)

    def end_step(self) -> None:
        """The optimizer step is over, its sync too."""
        self.steps += 1
        self.ledger.close(self._so_far())
        self.resizing.step_ended(self.steps)
        self.trainer.wait()
        self.recorder.event(self.loop.now, "step", version=self.trainer.version, backlog=self.backlog.samples)
        self.step_ended()

    def _so_far(self) -> dict[str, float]:
        tokens, stepping, slots = self.fleet.so_far()
        seconds = self.fleet.seconds()
        oldest = self.backlog.oldest()
        return {
            "end_seconds": self.loop.now,
            "generated_tokens": tokens,
            "dropped_tokens": self.fleet.dropped_tokens,
            "under_way_tokens": self.fleet.tokens_under_way(),
            **{f"{state}_seconds": amount for state, amount in seconds.items()},
            "stepping_seconds": stepping,
            "slot_seconds": slots,
            "backlog_samples": self.backlog.samples,
            "backlog_tokens": self.backlog.tokens,
            "oldest_age_steps": 0 if oldest is None else self.trainer.version - oldest,
            "preemptions": self.fleet.preemptions,
        }
