"""
The asynchronous loop in SimPy, as one would write it for this one case: what `benchmarks.simulator_speed` runs against.

A process for each instance sleeps until its next samples finish, or until it is interrupted, as the simulator does; or
it wakes for every engine step. A process for the trainer takes finished groups out of a store. Both know affine
routing, in-flight syncs and the order of completion, and nothing of caches, prefill, tools, verifiers, losses or
accounts. Only the lengths that are drawn are those of the simulator.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from math import sqrt
from typing import TYPE_CHECKING, Any

import simpy

from rlsize.simulator.draws import SeededOutcomes

if TYPE_CHECKING:
    from collections.abc import Generator

    from rlsize.simulator.setting import Setting

    Process = Generator[simpy.Event, Any, None]


@dataclass(slots=True, eq=False)
class Group:
    """
    The samples of one prompt.

    Args:
        lengths: Of its samples. [token]
        tokens: Their sum. [token]
        unfinished: Samples that have not finished. [1]
        version_sum: Of the versions under which its samples began.
    """

    lengths: list[int]
    tokens: int
    unfinished: int
    version_sum: int = 0


class Instance:
    """
    A rollout instance.

    Args:
        loop: What it is part of.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop, self.env = loop, loop.env
        self.slots = loop.setting.engine.slots
        self.queue: deque[tuple[Group, int]] = deque()  # with the length of the sample
        self.running: list[tuple[int, int, int, Group]] = []  # (step at its end, number, length, group), a heap
        self.load = 0
        self.context = 0  # tokens of all that runs
        self.clock = 0  # steps made
        self.joined = 0
        self.started = 0.0
        self.planned = 0
        self.stops = False  # at the end of the step under way, already
        self.pauses = False
        self.woken = self.paused = self.resumed = self.env.event()
        self.process = self.env.process(self.work())

    def put(self, group: Group) -> None:
        """All samples of a group come to this instance."""
        self.queue.extend((group, length) for length in group.lengths)
        self.load += len(group.lengths)
        if len(self.running) < self.slots:
            self.look_up()

    def look_up(self) -> None:
        """End the step under way, or wake up, to see what has changed."""
        if not self.planned:
            if not self.woken.triggered:
                self.woken.succeed()
        elif not self.stops and self.process is not self.env.active_process:
            self.stops = True
            self.process.interrupt()

    def pause(self) -> simpy.Event:
        """Pause when the step under way ends; the event of having paused."""
        self.pauses, self.paused, self.resumed = True, self.env.event(), self.env.event()
        self.look_up()
        return self.paused

    def work(self) -> Process:
        """Run steps, as long as there is something to run."""
        while True:
            if self.pauses:
                self.pauses = False
                self.paused.succeed()
                yield self.resumed
            self.join()
            if self.running:
                yield from self.sleep()
                self.finish()
            else:
                self.woken = self.env.event()
                yield self.woken

    def join(self) -> None:
        """Let samples join while there are slots."""
        while self.queue and len(self.running) < self.slots:
            group, length = self.queue.popleft()
            group.version_sum += self.loop.version
            self.joined += 1
            self.context += self.loop.prompt_tokens
            heappush(self.running, (self.clock + length, self.joined, length, group))

    def sleep(self) -> Process:
        """Run steps up to the next completion, or to the end of the step in which it is interrupted."""
        self.started = self.env.now
        self.planned = self.running[0][0] - self.clock
        try:
            yield self.env.timeout(self.time_of(self.planned))
        except simpy.Interrupt:
            self.planned = min(self.planned, self.steps_by(self.env.now) + 1)
            yield self.env.timeout(self.started + self.time_of(self.planned) - self.env.now)
        self.advance(self.planned)

    def advance(self, steps: int) -> None:
        """So many steps have ended."""
        self.clock += steps
        self.context += steps * len(self.running)
        self.planned, self.stops = 0, False

    def finish(self) -> None:
        """Let samples with all their tokens go."""
        while self.running and self.running[0][0] == self.clock:
            _, _, length, group = heappop(self.running)
            self.context -= self.loop.prompt_tokens + length
            self.load -= 1
            group.unfinished -= 1
            if not group.unfinished:
                self.loop.finished.put(group)
        self.loop.admit()

    def time_of(self, steps: int) -> float:
        """Seconds of so many steps: the live KV grows by the batch with each of them."""
        engine, batch = self.loop.setting.engine, len(self.running)
        each = engine.fixed_seconds + engine.sample_seconds * batch + engine.kv_seconds * self.context
        return steps * each + engine.kv_seconds * batch * (steps * (steps - 1) / 2)

    def steps_by(self, now: float) -> int:
        """Steps that have ended by then."""
        engine, batch = self.loop.setting.engine, len(self.running)
        half = engine.kv_seconds * batch / 2
        each = engine.fixed_seconds + engine.sample_seconds * batch + engine.kv_seconds * self.context - half
        passed = now - self.started
        return int((sqrt(each * each + 4.0 * half * passed) - each) / (2.0 * half)) if half else int(passed / each)


class Stepwise(Instance):
    """An instance that wakes for every engine step."""

    def look_up(self) -> None:
        """Wake up; while it runs, it sees what has changed when the step under way ends."""
        if not self.planned:
            super().look_up()

    def sleep(self) -> Process:
        """Run a step."""
        self.planned = 1
        yield self.env.timeout(self.time_of(1))
        self.advance(1)


class Loop:
    """
    The instances and the trainer.

    Args:
        setting: What is simulated.
        seed: Of the lengths.
        kind: Of instance.
    """

    def __init__(self, setting: Setting, seed: int, kind: type[Instance] = Instance) -> None:
        self.env, self.setting = simpy.Environment(), setting
        self.outcomes = SeededOutcomes(setting.work, seed)
        self.prompt_tokens = setting.work.prompt_tokens
        self.groups = setting.work.groups
        self.cap = setting.rules.max_staleness or 0
        self.version = self.admitted = 0
        self.finished = simpy.Store(self.env)  # groups
        self.ends: list[float] = []  # of the optimizer steps
        self.staleness: list[int] = []  # sums over the samples of each step
        self.instances = [kind(self) for _ in range(setting.engine.instances)]
        self.admit()

    def admit(self) -> None:
        """Admit groups while they cannot get too stale and there is a slot for them."""
        while self.admitted < (self.version + 1 + self.cap) * self.groups:
            instance = min(self.instances, key=lambda instance: instance.load)
            if instance.load >= instance.slots:
                return
            lengths = self.outcomes.lengths(self.admitted)
            self.admitted += 1
            instance.put(Group(lengths, sum(lengths), len(lengths)))

    def train(self, steps: int) -> Process:
        """Train batch after batch, each followed by a sync."""
        env, setting = self.env, self.setting
        for step in range(steps):
            batch: list[Group] = []
            while len(batch) < self.groups:
                batch += [(yield self.finished.get())]
            self.staleness.append(setting.work.samples * step - sum(group.version_sum for group in batch))
            tokens = sum(group.tokens for group in batch)
            yield env.timeout(setting.trainer.seconds * tokens / setting.work.tokens)
            yield env.all_of([instance.pause() for instance in self.instances])
            yield env.timeout(setting.sync.seconds)
            self.version += 1
            self.ends.append(env.now)
            self.admit()
            for instance in self.instances:
                instance.resumed.succeed()

    def run(self, steps: int) -> None:
        """Run for so many optimizer steps."""
        self.env.run(until=self.env.process(self.train(steps)))
