"""The fleet of the plain model: which groups are admitted, dealt, accepted and stopped, and what pauses for a sync."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from math import ceil, floor, inf
from typing import Any, Literal, Protocol

import simpy
from tests.simulator.plain_engine import TRAINER_ENDS, Group, Instance, Sample, after

from rlsize.simulator.setting import BARRIER_MODES, Setting


class Table(Protocol):
    """What the run draws, by the number of the group."""

    def lengths(self, group: int) -> list[int]:
        """Response tokens of the group's samples, at least 1. [token]"""

    def accepted(self, group: int) -> bool:
        """Whether dynamic sampling keeps the group."""

    def place(self, group: int, member: int) -> float:
        """In [0, 1): where random routing puts the sample, as a share of the instances. [1]"""

    def verify_seconds(self, group: int, member: int) -> float:
        """How long the verifier takes for the sample. [s]"""

    def stragglers(self, instances: int, share: float) -> list[int]:
        """Instances that are slow."""


class Fleet:
    """
    All instances and what they work on.

    Args:
        env: The simulation.
        setting: What is simulated.
        table: What is drawn.
    """

    def __init__(self, env: simpy.Environment, setting: Setting, table: Table) -> None:
        self.env, self.setting, self.table = env, setting, table
        self.rules, self.wanted = setting.rules, setting.work.groups
        self.barrier = self.rules.mode in BARRIER_MODES
        self.version = self.newest = 0
        self.changed = env.event()  # something has happened that may let somebody decide
        self.sync: Literal["no", "asked", "under way"] = "no"
        self.way = "in-flight"  # of that
        self.quiet = env.event()  # no instance hinders the transport
        kinds = [kind for kind in setting.kinds for _ in range(kind.instances)]
        self.instances = [Instance(env, index, setting, kind, self) for index, kind in enumerate(kinds)]
        for index in table.stragglers(len(kinds), setting.trouble.straggler_fraction):
            self.instances[index].slowdown = setting.trouble.straggler_slowdown
        self.shared: deque[Sample] = deque()  # of routing `queue`
        self.next_instance = 0  # of routing `round-robin`
        self.workers = inf if setting.work.verify_workers is None else setting.work.verify_workers  # that are free
        self.unscored: deque[Sample] = deque()  # finished ones for which no worker was free yet
        self.free = inf if setting.work.environments is None else setting.work.environments

        self.admitted = 0
        self.lost = 0  # groups rejected or dropped
        self.dropped_tokens = 0
        self.under_way: list[Group] = []  # admitted and not complete, in order
        self.redundant: list[Sample] = []  # that are to stop
        self.complete: list[Group] = []  # neither accepted nor rejected yet
        self.waiting: list[Group] = []  # accepted, for the trainer to take

        self.open = False  # barrier modes: a batch is being generated
        self.batch: list[Group] = []  # its accepted groups
        self.ahead: list[Group] = []  # accepted when the batch had been completed by others
        self.batch_done = env.event()

    def wake(self) -> None:
        """Ask for decisions at this instant."""
        if not self.changed.triggered:
            self.changed.succeed()

    # Groups that have finished

    def step_ended(self, instance: Instance, finished: list[Sample]) -> None:
        """Note what has finished; what was to interrupt the instance takes effect."""
        for sample in [each for each in instance.running if each.redundant and each not in self.redundant]:
            instance.give_up(sample)
            self._throw_away(sample)
        for sample in finished:
            if sample.redundant:
                self.redundant = [each for each in self.redundant if each is not sample]
                self._throw_away(sample)
                continue
            group = sample.group
            sample.dealt = sample.has_kv = False
            self.free += 1
            if group.dropped:
                self.dropped_tokens += sample.tokens
            elif self.setting.work.verify.seconds:
                self.unscored.append(sample)
                self._score()
            else:
                self._scored(sample)
        if instance.stops:
            self._stop(instance)
        self._shed(instance)
        self._load(instance)
        if self.sync != "no":
            self._pause(instance)
        self.wake()

    def _score(self) -> None:
        """Have the verifier's free workers begin with what has waited longest."""
        while self.unscored and self.workers:
            self.workers -= 1
            sample = self.unscored.popleft()
            seconds = self.table.verify_seconds(sample.group.number, sample.member)
            self._later(seconds, partial(self._verified, sample))

    def _verified(self, sample: Sample) -> None:
        self.workers += 1
        self._score()
        self._scored(sample)
        self.wake()

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        event = after(self.env, seconds, TRAINER_ENDS)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: action())

    def _throw_away(self, sample: Sample) -> None:
        sample.dealt = False
        self.free += 1
        self.dropped_tokens += sample.tokens

    def _stop_redundant(self) -> None:
        """Stop what complete groups do without, unless it is within a step."""
        for sample in self.redundant:
            if sample.finished:
                self.dropped_tokens += sample.tokens
                self.unscored = deque(each for each in self.unscored if each is not sample)
                continue
            places = [self.shared, *(each.queue for each in self.instances)]
            for place in [place for place in places if sample in place]:
                place.remove(sample)
            instance = next((each for each in self.instances if sample in each.running), None)
            if instance is not None and instance.in_step:
                continue
            if instance is not None:
                instance.give_up(sample)
            self._throw_away(sample)
        self.redundant = []

    def _scored(self, sample: Sample) -> None:
        if sample.redundant:
            return
        sample.scored = True
        group = sample.group
        if group.complete and not group.dropped:
            others = [one for one in group.samples if not one.scored]
            for one in others:
                one.redundant = True
            self.redundant += others
            group.samples = [one for one in group.samples if one.scored]
            self.under_way.remove(group)
            self.complete.append(group)
            for each in self.instances:
                each.prompts.discard(group)

    def judge(self) -> bool:
        """Accept or reject what is complete; end the batch with its last group."""
        judged = bool(self.complete or self.redundant)
        self._stop_redundant()
        self._judge_batch()
        while self.complete:
            group = self.complete.pop(0)
            if not self.table.accepted(group.number):
                self.drop(group)
            elif self.barrier:
                self.ahead.append(group)
                self._judge_batch()
            else:
                self.waiting.append(group)
        return judged

    def _judge_batch(self) -> None:
        """Count what was accepted for the batch; with the last that it needs, the others stop."""
        while self.open and self.ahead:
            self.batch.append(self.ahead.pop(0))
            if self.rules.mode == "sync":
                self.waiting.append(self.batch[-1])
            if len(self.batch) == self.wanted:
                self.open = False
                self._stop_others()
                self.batch_done.succeed()

    def not_taken(self) -> list[Group]:
        """Accepted groups that the trainer has not taken."""
        held = [] if self.rules.mode == "sync" else self.batch
        return [*self.waiting, *held, *self.ahead]

    def drop(self, group: Group) -> None:
        """Throw a finished group away."""
        self.dropped_tokens += group.tokens
        self.lost += 1

    # Batches of barrier modes

    def begin_batch(self) -> None:
        """Admit the groups of the next batch, beside those left over from the last."""
        self.open = True
        self.batch = []
        self.batch_done = self.env.event()
        self.admit()

    def release_batch(self) -> None:
        """Let the trainer take from the batch that is done."""
        self.waiting, self.batch = self.batch, []

    def _stop_others(self) -> None:
        """Stop all samples, now or when the step under way ends."""
        if self.rules.unfinished == "drop":
            for group in [*self.under_way, *self.complete, *self.ahead]:
                group.dropped = True
                if group.environments != "none":
                    self.free += sum(not (sample.dealt or sample.finished) for sample in group.samples)
                self.dropped_tokens += sum(sample.tokens for sample in group.samples if not sample.dealt)
            self.under_way, self.complete, self.ahead = [], [], []
        self._set_aside(list(self.shared))
        self.shared.clear()
        for instance in self.instances:
            self._set_aside(list(instance.queue))
            instance.queue.clear()
            instance.stops = True
            if not instance.in_step:
                self._stop(instance)

    def _stop(self, instance: Instance) -> None:
        instance.stops = False
        self._set_aside(instance.give_up_running())

    def _set_aside(self, samples: list[Sample]) -> None:
        for sample in samples:
            sample.dealt = False
            if sample.group.dropped:
                self.free += 1
                self.dropped_tokens += sample.tokens

    # Environments

    def equip(self) -> None:
        """Let groups take their environments in order, each as a whole."""
        seconds = self.setting.work.environment_seconds
        for group in self.under_way:
            if group.environments == "none":
                if len(group.samples) > self.free:
                    return
                self.free -= len(group.samples)
                group.environments = "starting" if seconds else "ready"
                if seconds:
                    self._later(seconds, partial(self._equipped, group))

    def _equipped(self, group: Group) -> None:
        if not group.dropped:
            group.environments = "ready"
            self.wake()

    # Admission and routing

    def admit(self) -> bool:
        """Deal what was set aside and what may be admitted; whether there was anything."""
        self.equip()
        if self.drains() or (self.barrier and not self.open):
            return False
        moved = self._deal()
        while self._may_admit():
            group = Group(self.admitted, self.setting.work.group_size)
            lengths = self.table.lengths(group.number)
            group.samples = [Sample(group, member, length) for member, length in enumerate(lengths)]
            self.admitted += 1
            self.under_way.append(group)
            self.equip()
            moved = self._deal() or moved
        return moved

    def _may_admit(self) -> bool:
        if self.barrier:
            there = len(self.under_way) + len(self.complete) + len(self.batch) + len(self.ahead)
            return there < ceil(self.wanted * self.rules.oversampling)
        k, most_waiting = self.rules.max_staleness, self.rules.queue_steps
        if k is not None and self.admitted - self.lost >= (self.version + 1) * self.wanted + floor(k * self.wanted):
            return False
        if most_waiting is not None and len(self.waiting) >= most_waiting * self.wanted:
            return False
        free = sum(each.setting.slots - each.samples for each in self.instances) - len(self.shared)
        if self.setting.work.equipped:
            starting = sum(len(group.samples) for group in self.under_way if group.environments == "starting")
            if self.free < self.setting.work.started or free <= starting:
                return False
        if self.setting.engine.routing == "affine":
            return min(instance.fullness for instance in self.instances) < 1
        return free > 0

    def _deal(self) -> bool:
        """Deal, group by group, the samples that are neither finished nor dealt."""
        moved = False
        for group in self.under_way:
            if group.environments != "ready":
                continue
            undealt = [sample for sample in group.samples if not sample.finished and not sample.dealt]
            fewest = min(self.instances, key=lambda instance: instance.fullness)
            for sample in undealt:
                sample.dealt = moved = True
                self._queue_for(sample, fewest).append(sample)
        while self.shared:
            free = [each for each in self.instances if each.fullness < 1]
            if not free:
                break
            min(free, key=lambda instance: instance.fullness).queue.append(self.shared.popleft())
            moved = True
        return moved

    def redeal(self) -> bool:
        """Give samples to instances that have none, as far as the rules say; whether there was anything."""
        if self.rules.redealing == "arrivals" or self.drains() or all(each.samples for each in self.instances):
            return False
        moved = False
        while givers := [each for each in self.instances if each.queue]:
            most = max(givers, key=lambda instance: instance.samples)
            fewest = min(self.instances, key=lambda instance: instance.fullness)
            if most.samples < fewest.samples + 2:
                break
            fewest.queue.append(most.queue.pop())
            moved = True
        if moved:
            return True
        if self.rules.redealing == "waiting" or any(each.sheds for each in self.instances):
            return False
        most = max(self.instances, key=lambda instance: len(instance.running))
        most.sheds = len(most.running) // 2
        if most.sheds and not most.in_step:
            self._shed(most)
            return True
        return False

    def _shed(self, instance: Instance) -> None:
        """What an instance gives up goes on where there are the fewest samples."""
        count, instance.sheds = instance.sheds, 0
        for sample in [] if self.drains() else instance.give_up_first(count):
            min(self.instances, key=lambda each: each.fullness).queue.append(sample)

    def _queue_for(self, sample: Sample, fewest: Instance) -> deque[Sample]:
        match self.setting.engine.routing:
            case "affine":
                return fewest.queue
            case "random":
                place = self.table.place(sample.group.number, sample.member)
                return self.instances[int(place * len(self.instances))].queue
            case "round-robin":
                chosen = self.instances[self.next_instance]
                self.next_instance = (self.next_instance + 1) % len(self.instances)
                return chosen.queue
            case "queue":
                return self.shared

    # Weight sync

    def ask_for_sync(self, way: str) -> None:
        """Instances pause, now or when their step ends."""
        self.sync, self.way = "asked", way
        self.quiet = self.env.event()
        for instance in self.instances:
            if not instance.in_step:
                self._pause(instance)

    def _pause(self, instance: Instance) -> None:
        if self.way == "abort":
            aborted = instance.give_up_running()
            for sample in aborted:
                self.dropped_tokens += sample.tokens
                sample.tokens = 0
            instance.queue.extendleft(reversed(aborted))

    def check_quiet(self) -> bool:
        """Let the transport begin if nothing hinders it any more."""
        if self.sync != "asked" or any(each.in_step for each in self.instances):
            return False
        if self.drains() and any(each.running for each in self.instances):
            return False
        self.sync = "under way"
        self.quiet.succeed()
        return True

    def end_sync(self, version: int | None) -> None:
        """Go on, with new weights unless only the overhead has passed."""
        self.sync = "no"
        if version is None:
            return
        self.version = version
        for instance in self.instances:
            instance.version = version
        if self.setting.sync.way != "in-flight" or not self.setting.sync.keeps_kv:
            for instance in self.instances:
                instance.forget_kv()

    def publish(self, version: int) -> None:
        """Let each instance take new weights by itself, now or when its step ends."""
        self.newest = version
        for instance in self.instances:
            self._load(instance)

    def _load(self, instance: Instance) -> None:
        if instance.in_step or instance.loading or instance.version >= self.newest:
            return
        instance.loading = True
        self.env.process(self._loading(instance, self.newest))

    def _loading(self, instance: Instance, version: int) -> Generator[simpy.Event, Any, None]:
        yield after(self.env, self.setting.sync.seconds, TRAINER_ENDS)
        instance.loading, instance.version = False, version
        if not self.setting.sync.keeps_kv:
            instance.forget_kv()
        self.version = min(each.version for each in self.instances)
        self._load(instance)
        self.wake()

    def drains(self) -> bool:
        """Whether nothing new may begin because of a sync."""
        return self.sync != "no" and self.way == "drain"

    def joins(self) -> bool:
        """Whether samples may join."""
        return self.sync == "no"

    # Starts

    def start(self) -> None:
        """Begin a step wherever one can begin."""
        for each in self.instances:
            can = self.sync == "no" or (self.sync == "asked" and self.drains())
            if can and not each.in_step and not each.loading and (each.running or (self.joins() and each.queue)):
                each.begin.succeed()
