"""
An independent model of docs/reference/simulator.md in SimPy: token by token, and as plain as can be.

Tools, resizing, and troubles but stragglers are left out. The trainer is one process that reads like the rules of its
mode; instances are processes (`plain_engine`); what is decided stands in `plain_fleet`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import simpy
from tests.simulator.plain_engine import DECISIONS, STARTS, TRAINER_ENDS, Group, after
from tests.simulator.plain_fleet import Fleet, Table

from rlsize.simulator.setting import Setting

__all__ = ["PlainStep", "Table", "plain_run"]

Process: TypeAlias = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainStep:
    """
    One optimizer step.

    Args:
        end_seconds: When it ended. [s]
        train_seconds: Its training. [s]
        waiting_seconds: Its waiting for samples. [s]
        sync_seconds: From the end of its update to the end of the transport; where colocated, change-overs. [s]
        overhead_seconds: Of that, or after it, what belongs to no phase, in which neither side works. [s]
        staleness: Of every sample that it trained on, sorted.
        trained_tokens: Response tokens that it trained on. [token]
        generated_tokens: Response tokens of all engine steps that ended until then. [token]
        dropped_tokens: Of these, the ones thrown away until then. [token]
        engine_busy_seconds: Engine steps that ended until then, over all instances. [s]
        backlog_samples: Samples of accepted groups that the trainer has not taken by then. [1]
        preemptions: Until then. [1]
    """

    end_seconds: float
    train_seconds: float
    waiting_seconds: float
    sync_seconds: float
    overhead_seconds: float
    staleness: tuple[int, ...]
    trained_tokens: int
    generated_tokens: int
    dropped_tokens: int
    engine_busy_seconds: float
    backlog_samples: int
    preemptions: int


def plain_run(setting: Setting, table: Table, steps: int) -> list[PlainStep]:
    """Simulate so many optimizer steps."""
    env = simpy.Environment()
    loop = Loop(env, setting, Fleet(env, setting, table), steps)
    env.run(until=loop.all_done)
    return loop.steps


class Loop:
    """
    The trainer, and who decides.

    Args:
        env: The simulation.
        setting: What is simulated.
        fleet: What generates.
        most: Optimizer steps to make. [1]
    """

    def __init__(self, env: simpy.Environment, setting: Setting, fleet: Fleet, most: int) -> None:
        self.env, self.setting, self.fleet, self.most = env, setting, fleet, most
        self.rules = setting.rules
        self.version = 0
        self.part = setting.work.groups // setting.trainer.micro_batches  # groups of a micro-batch
        self.looks = False  # the trainer is free and wants a micro-batch
        self.taken = env.event()  # with its groups
        self.steps: list[PlainStep] = []
        self.all_done = env.event()
        self.train_seconds = self.sync_seconds = self.overhead_seconds = 0.0  # of the step so far
        self.trained_tokens = 0
        self.staleness: list[int] = []
        self.updated = 0.0  # when the last update ended
        env.process(self._decide())
        modes: dict[str, Callable[[], Process]] = {
            "sync": self._sync_mode,
            "colocated": self._colocated,
            "one-step-off": self._one_step_off,
            "async": self._async,
        }
        env.process(modes[self.rules.mode]())

    # Who decides

    def _decide(self) -> Process:
        """After all ends of an instant: decide until nothing is left to, then let engines start."""
        while True:
            yield self.fleet.changed
            yield after(self.env, 0, DECISIONS)
            self.fleet.changed = self.env.event()
            more = True
            while more:
                judged = self.fleet.judge()
                taken = self._look()
                quiet = self.fleet.check_quiet()
                admitted = self.fleet.admit()
                more = judged or taken or quiet or admitted or self.fleet.redeal()
            starts = after(self.env, 0, STARTS)
            assert starts.callbacks is not None
            starts.callbacks.append(lambda _: self.fleet.start())

    def _look(self) -> bool:
        """Drop what is over-stale and take a micro-batch, if the trainer looks for one."""
        if not self.looks:
            return False
        waiting, k = self.fleet.waiting, self.rules.max_staleness
        if self.rules.mode == "async" and self.rules.drops_over_stale and k is not None:
            for group in [group for group in waiting if self.version - group.version >= k + 1]:
                waiting.remove(group)
                self.fleet.drop(group)
        chosen = self._first(waiting)
        if len(chosen) < self.part:
            return False
        for group in chosen:
            waiting.remove(group)
        self.looks = False
        self.taken.succeed(chosen)
        return True

    def _first(self, waiting: list[Group]) -> list[Group]:
        """Those that come first, as many as a micro-batch has or as there are."""
        match self.rules.order:
            case "completion":
                return waiting[: self.part]
            case "freshest":
                return waiting[::-1][: self.part]
            case "admission":
                generating = self.rules.mode == "async" or (self.rules.mode == "sync" and self.fleet.open)
                before = min((each.number for each in self.fleet.under_way if generating), default=None)
                ready = [group for group in waiting if before is None or group.number < before]
                return sorted(ready, key=lambda group: group.number)[: self.part]

    # What the trainer does

    def _train(self) -> Process:
        """Take micro-batches as they come and train on them; then update."""
        for _ in range(self.setting.trainer.micro_batches):
            self.looks, self.taken = True, self.env.event()
            self.fleet.wake()
            groups: list[Group] = yield self.taken
            samples = [sample for group in groups for sample in group.samples]
            self.staleness += [self.version - sample.version for sample in samples]
            tokens = sum(group.tokens for group in groups)
            seconds = self.setting.trainer.seconds * tokens / self.setting.work.tokens
            yield after(self.env, seconds, TRAINER_ENDS)
            self.train_seconds += seconds
            self.trained_tokens += tokens
        self.version += 1
        self.updated = self.env.now

    @property
    def _due(self) -> bool:
        return self.version % self.setting.sync.every == 0

    def _after_update(self) -> Process:
        """Pause the fleet for the overhead, and to bring it the weights of the last update if it is their turn."""
        overhead, sync = self.setting.trainer.overhead_seconds, self.setting.sync
        brings = self._due
        if brings and sync.way == "rolling":
            brings = False
            self.fleet.publish(self.version)
            self.fleet.wake()
        if not (brings or overhead):
            return
        self.fleet.ask_for_sync(sync.way if brings else "in-flight")
        self.fleet.wake()
        yield self.fleet.quiet
        yield after(self.env, overhead + (sync.seconds if brings else 0.0), TRAINER_ENDS)
        self.fleet.end_sync(self.version if brings else None)
        self.fleet.wake()
        self.sync_seconds += self.env.now - self.updated - overhead
        self.overhead_seconds += overhead

    def _swap(self) -> Process:
        yield after(self.env, self.setting.sync.swap_seconds, TRAINER_ENDS)
        self.sync_seconds += self.setting.sync.swap_seconds

    # Modes

    def _begin_batch(self) -> None:
        self.fleet.begin_batch()
        self.fleet.wake()

    def _sync_mode(self) -> Process:
        while True:
            self._begin_batch()
            yield from self._train()
            yield from self._after_update()
            self._end_step()

    def _colocated(self) -> Process:
        while True:
            self._begin_batch()
            yield self.fleet.batch_done
            self.fleet.release_batch()
            yield from self._swap()
            yield from self._train()
            yield from self._swap()
            yield after(self.env, self.setting.trainer.overhead_seconds, TRAINER_ENDS)
            self.overhead_seconds += self.setting.trainer.overhead_seconds
            if self._due:
                self.fleet.end_sync(self.version)
            self._end_step()

    def _one_step_off(self) -> Process:
        self._begin_batch()
        yield self.fleet.batch_done
        while True:
            self.fleet.release_batch()
            self._begin_batch()
            yield from self._train()
            yield self.fleet.batch_done
            self.updated = self.env.now  # until here the trainer waited for samples
            yield from self._after_update()
            self._end_step()

    def _async(self) -> Process:
        self.fleet.wake()
        while True:
            yield from self._train()
            yield from self._after_update()
            self._end_step()

    # Accounts

    def _end_step(self) -> None:
        fleet = self.fleet
        now = self.env.now
        last = self.steps[-1].end_seconds if self.steps else 0.0
        judged = [(group, fleet.table.accepted(group.number)) for group in fleet.complete]  # at this very instant
        self.steps.append(
            PlainStep(
                end_seconds=now,
                train_seconds=self.train_seconds,
                waiting_seconds=now - last - self.train_seconds - self.sync_seconds - self.overhead_seconds,
                sync_seconds=self.sync_seconds,
                overhead_seconds=self.overhead_seconds,
                staleness=tuple(sorted(self.staleness)),
                trained_tokens=self.trained_tokens,
                generated_tokens=sum(each.generated for each in fleet.instances),
                dropped_tokens=fleet.dropped_tokens + sum(group.tokens for group, kept in judged if not kept),
                engine_busy_seconds=reduce(add, (each.busy_seconds for each in fleet.instances)),
                backlog_samples=sum(
                    len(group.samples) for group in [*fleet.not_taken(), *(group for group, kept in judged if kept)]
                ),
                preemptions=sum(each.preemptions for each in fleet.instances),
            )
        )
        self.train_seconds = self.sync_seconds = self.overhead_seconds = 0.0
        self.trained_tokens, self.staleness = 0, []
        if len(self.steps) == self.most:
            self.all_done.succeed()
