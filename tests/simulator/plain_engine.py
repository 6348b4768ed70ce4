"""One rollout instance of the plain model: a SimPy process that runs engine steps token by token."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol

import simpy
from simpy.events import EventPriority

from rlsize.simulator.setting import EngineSetting, Setting

# What happens first within an instant. SimPy itself resumes processes with 0 and 1.
ENGINE_ENDS = 10  # plus the index of the instance
TRAINER_ENDS = 10_000
DECISIONS = 20_000
STARTS = 30_000


def after(env: simpy.Environment, seconds: float, rank: int) -> simpy.Event:
    """An event in so many seconds, behind everything of lower rank at that time."""
    event = simpy.Event(env)
    event._ok = True
    event._value = None
    env.schedule(event, EventPriority(rank), seconds)
    return event


@dataclass(slots=True, eq=False)
class Sample:
    """
    One response.

    Args:
        group: Its group.
        member: Its place in the group.
        length: Tokens that it will have. [token]
        tokens: Tokens that it has. [token]
        version: Of the weights under which its first token was begun.
        has_kv: Whether the KV of its tokens so far are in the cache of the instance where it runs.
        dealt: Whether it is in a queue or runs.
        scored: Whether it has finished, and the verifier has scored it, if there is one.
        redundant: Whether its group is complete without it.
    """

    group: Group
    member: int
    length: int
    tokens: int = 0
    version: int = 0
    has_kv: bool = False
    dealt: bool = False
    scored: bool = False
    redundant: bool = False

    @property
    def finished(self) -> bool:
        """Whether it has all its tokens."""
        return self.tokens == self.length


@dataclass(slots=True, eq=False)
class Group:
    """
    The samples of one prompt.

    Args:
        number: In the order of admission.
        needed: Samples with which it is complete. [1]
        samples: In order.
        dropped: Whether its tokens are thrown away.
        environments: Whether it waits for them, they start, or they have; `ready` too where it needs none.
    """

    number: int
    needed: int
    samples: list[Sample] = field(default_factory=list)
    dropped: bool = False
    environments: Literal["none", "starting", "ready"] = "none"

    @property
    def complete(self) -> bool:
        """Whether as many samples as it needs have finished, and have been scored."""
        return sum(sample.scored for sample in self.samples) == self.needed

    @property
    def tokens(self) -> int:
        """Response tokens that its samples have. [token]"""
        return sum(sample.tokens for sample in self.samples)

    @property
    def version(self) -> int:
        """Version of its stalest sample; only where each has begun."""
        return min(sample.version for sample in self.samples)


class Surroundings(Protocol):
    """What an instance knows of the fleet."""

    def wake(self) -> None:
        """Ask for decisions at this instant."""

    def joins(self) -> bool:
        """Whether samples may join."""

    def step_ended(self, instance: Instance, finished: list[Sample]) -> None:
        """Hears of a step that has ended, and of the samples that it finished."""


class Instance:
    """
    One engine.

    Args:
        env: The simulation.
        index: Its number.
        setting: What is simulated.
        kind: Its kind.
        fleet: What it belongs to.
    """

    def __init__(
        self, env: simpy.Environment, index: int, setting: Setting, kind: EngineSetting, fleet: Surroundings
    ) -> None:
        self.env = env
        self.index = index
        self.setting = kind
        self.slowdown = 1.0
        self.prompt = setting.work.prompt_tokens
        self.fleet = fleet
        self.queue: deque[Sample] = deque()
        self.running: list[Sample] = []  # in the order in which they joined
        self.prompts: set[Group] = set()  # the prefix cache
        self.in_step = False
        self.stops = False  # whether what runs is to stop when the step ends: a barrier has ended
        self.version = 0
        self.loading = False  # whether it is taking new weights
        self.sheds = 0  # of what runs, how many go elsewhere when the step ends
        self.busy_seconds = 0.0
        self.generated = 0
        self.preemptions = 0
        self.begin = env.event()
        env.process(self._live())

    @property
    def samples(self) -> int:
        """Samples that run or are queued here. [1]"""
        return len(self.running) + len(self.queue)

    @property
    def fullness(self) -> Fraction:
        """The same for each slot. [1]"""
        return Fraction(self.samples, self.setting.slots)

    def _live(self) -> Generator[simpy.Event, Any, None]:
        while True:
            yield self.begin
            self.begin = self.env.event()
            self.in_step = True
            before = self.preemptions
            self._preempt()
            if self.preemptions > before:
                self.fleet.wake()
            if self.fleet.joins():
                self._join()
            seconds = self._step_seconds()
            yield after(self.env, seconds, ENGINE_ENDS + self.index)
            self.in_step = False
            self.busy_seconds += seconds
            self.fleet.step_ended(self, self._one_more_token())

    def _fit(self, samples: list[Sample]) -> bool:
        """Whether the prompts and tokens of these samples, and the tokens of a step, fit in the cache."""
        prompts = self.prompt * len({sample.group for sample in samples})
        return prompts + sum(sample.tokens + 1 for sample in samples) <= self.setting.kv_tokens

    def _preempt(self) -> None:
        while len(self.running) > 1 and not self._fit(self.running):
            last = self.running.pop()
            last.has_kv = False
            self.queue.appendleft(last)
            self.preemptions += 1

    def _join(self) -> None:
        while self.queue and len(self.running) < self.setting.slots:
            if self.running and not self._fit([*self.running, self.queue[0]]):
                return
            self.running.append(self.queue.popleft())

    def _step_seconds(self) -> float:
        """Duration of the step that begins; samples without KV compute them. [s]"""
        computed = 0
        for sample in self.running:
            if sample.tokens == 0:
                sample.version = self.version
            if not sample.has_kv:
                computed += sample.tokens + (0 if sample.group in self.prompts else self.prompt)
                self.prompts.add(sample.group)
                sample.has_kv = True
        contexts = sum(self.prompt + sample.tokens for sample in self.running)
        return self.slowdown * (
            self._batch_seconds(len(self.running))
            + self.setting.kv_seconds * contexts
            + self.setting.prefill_seconds * computed
        )

    def _batch_seconds(self, batch: int) -> float:
        """Duration without contexts and prompts: of the table's line that is nearest, if there is a table. [s]"""
        points = self.setting.points
        if not points:
            return self.setting.fixed_seconds + self.setting.sample_seconds * batch
        inner = [samples for samples, _ in points[1:-1] if samples <= batch]
        (low, first), (high, second) = points[len(inner) : len(inner) + 2]
        return first + (batch - low) * ((second - first) / (high - low))

    def _one_more_token(self) -> list[Sample]:
        """Give every running sample its token; those that have finished leave."""
        for sample in self.running:
            sample.tokens += 1
        self.generated += len(self.running)
        finished = [sample for sample in self.running if sample.finished]
        self.running = [sample for sample in self.running if not sample.finished]
        return finished

    def give_up_running(self) -> list[Sample]:
        """Take what runs out of the slots and the cache, prompts included."""
        stopped, self.running = self.running, []
        for sample in stopped:
            sample.has_kv = False
        self.prompts.clear()
        return stopped

    def give_up(self, sample: Sample) -> None:
        """Take one of what runs out of the slots and the cache."""
        self.running.remove(sample)
        sample.has_kv = False

    def give_up_first(self, count: int) -> list[Sample]:
        """Take so many of what runs out of the slots and the cache, those that joined first."""
        first, self.running = self.running[:count], self.running[count:]
        for sample in first:
            sample.has_kv = False
        return first

    def forget_kv(self) -> None:
        """Keep the running samples, but none of their KV, nor any prompt."""
        for sample in self.running:
            sample.has_kv = False
        self.prompts.clear()
