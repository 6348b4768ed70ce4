"""Groups that wait, and the trainer that takes them: it trains, counts versions, fails; then the fleet is updated."""

from __future__ import annotations

from bisect import insort
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.simulator.conductor import Conductor
    from rlsize.simulator.ledger import Group
    from rlsize.simulator.setting import Order, Way

_HOUR = 3600.0


class Trainer:
    """
    The trainer.

    Args:
        conductor: Who is told when an optimizer step has been made.
    """

    def __init__(self, conductor: Conductor) -> None:
        setting, outcomes, self.updated = conductor.setting, conductor.outcomes, conductor.updated
        self.loop, self.ledger, self.recorder = conductor.loop, conductor.ledger, conductor.recorder
        self.version = 0
        self.idle = True  # waits for samples
        self._work, self._own, trouble = setting.work, setting.trainer, setting.trouble
        parts, groups = setting.trainer.micro_batches, setting.work.groups
        self._sizes = [groups // parts + (part < groups % parts) for part in range(parts)]
        self._part = 0
        self._since = 0.0  # when it began to wait
        self._batch_seconds = 0.0  # busy so far in this batch
        self._replayed: list[float] = []  # busy seconds of the steps since the last checkpoint
        self._checkpoint_every, self._restart = trouble.checkpoint_every, trouble.trainer_restart_seconds
        self._failures = outcomes.failures() if trouble.failures_per_hour > 0.0 else None
        self._between = _HOUR / trouble.failures_per_hour if trouble.failures_per_hour > 0.0 else inf
        self._left = next(self._failures) * self._between if self._failures is not None else inf

    @property
    def next_groups(self) -> int:
        """Groups that its next micro-batch needs. [1]"""
        return self._sizes[self._part]

    def wait(self) -> None:
        """It may go on, and waits for samples."""
        self.idle, self._since = True, self.loop.now

    def reserve(self, seconds: float, ready: Callable[[], None]) -> None:
        """It stops waiting, and begins only when something else is out of the way."""
        self.stop_waiting()
        self.loop.at(self.loop.now + seconds, ready)

    def take(self, groups: list[Group]) -> None:
        """Train a micro-batch."""
        if self.idle:
            self.stop_waiting()
        self.ledger.trained(groups, self.version)
        tokens = sum(group.tokens for group in groups)
        seconds = self._own.seconds * (tokens / self._work.tokens)
        lost = self._lost_to_failures(seconds)
        self.ledger.add("train_seconds", seconds)
        self.ledger.add("failure_seconds", lost)
        self._note(seconds, lost)
        self._batch_seconds += seconds
        self.loop.at(self.loop.now + (seconds + lost), self._trained)

    def stop_waiting(self) -> None:
        """What it waited for is there."""
        self.ledger.add("waiting_seconds", self.loop.now - self._since)
        if self.loop.now > self._since:
            self.recorder.phase("trainer", "waiting", self._since, self.loop.now)
        self.idle = False

    def _trained(self) -> None:
        self._part += 1
        if self._part < len(self._sizes):
            self.wait()
            return
        self._part = 0
        self.version += 1
        self._replayed.append(self._batch_seconds)
        self._batch_seconds = 0.0
        if self.version % self._checkpoint_every == 0:
            self._replayed.clear()
        self.updated()

    def _lost_to_failures(self, seconds: float) -> float:
        """Seconds of restarts, of replaying steps since the checkpoint, and of beginning this batch again."""
        lost, begun = 0.0, 0.0
        while self._failures is not None and self._left < seconds - begun:
            begun += self._left
            lost += self._restart + sum(self._replayed) + self._batch_seconds + begun
            self._left = next(self._failures) * self._between
        self._left -= seconds - begun
        return lost

    def _note(self, seconds: float, lost: float) -> None:
        start = self.loop.now
        end = start + seconds + lost
        split = start + seconds * self._own.logprob_fraction
        if split > start:
            self.recorder.phase("trainer", "logprob", start, split)
        self.recorder.phase("trainer", "update", split, start + seconds)
        if lost:
            self.recorder.phase("trainer", "failure", start + seconds, end)


class Lending:
    """
    The trainer's GPUs as rollout instances while it waits.

    Args:
        conductor: Whose fleet has them at its end; when they go, their samples go on elsewhere.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._seconds = conductor.setting.trouble.lend_seconds
        self._loop, self._fleet = conductor.loop, conductor.fleet
        self._instances = self._fleet.engines[self._fleet.own_instances :]
        self._entry: list[Any] | None = None
        self._lent, self._since = False, 0.0

    def offer(self) -> None:
        """The trainer waits: its GPUs change over."""
        if self._instances and not self._lent and self._entry is None:
            self._since = self._loop.now
            self._entry = self._loop.at(self._loop.now + self._seconds, self._arrive)

    def reclaim(self) -> float:
        """The trainer has work: seconds until it has its GPUs back."""
        if self._lent:
            self._lent = False
            self._fleet.take_down(self._instances, keeps_tokens=True)
            return self._seconds
        if self._entry is not None:
            self._loop.cancel(self._entry)
            self._entry = None
            return min(self._seconds, self._loop.now - self._since)
        return 0.0

    def _arrive(self) -> None:
        self._entry, self._lent = None, True
        self._fleet.bring_up(self._instances)


class WeightSync:
    """
    Syncs, one after the other.

    Args:
        conductor: Whose fleet gets the weights, and who is told when it has them.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._setting, self._loop, self._fleet = conductor.setting.sync, conductor.loop, conductor.fleet
        self._overhead = conductor.setting.trainer.overhead_seconds
        self._ledger, self._recorder, self._done = conductor.ledger, conductor.recorder, conductor.end_step
        self._version: int | None = None  # that is brought; None where only the overhead passes
        self._way: Way = "in-flight"
        self._since = 0.0
        self._halting = False
        self.under_way = False  # a sync, from its beginning to its arrival

    @property
    def drains(self) -> bool:
        """Whether the fleet is draining, or has, for a sync."""
        return self.under_way and self._way == "drain"

    def begin(self, version: int) -> bool:
        """Let the overhead pass, and sync the weights of this version if it is their turn; whether that takes time."""
        brings = version % self._setting.every == 0
        if brings and self._setting.way == "rolling":
            brings = False
            self._fleet.publish(version)
        if not brings and not self._overhead:
            return False
        self._version, self._way = (version, self._setting.way) if brings else (None, "in-flight")
        self._since, self._halting, self.under_way = self._loop.now, True, True
        self._fleet.halt(self._way)
        return True

    def proceed(self) -> None:
        """Let the weights travel, if every instance has paused."""
        if self._halting and self._fleet.halted:
            self._halting = False
            seconds = self._setting.seconds if self._version is not None else 0.0
            self._loop.at(self._loop.now + (seconds + self._overhead), self._arrived)

    def _arrived(self) -> None:
        self.under_way = False
        self._ledger.add("overhead_seconds", self._overhead)
        self._ledger.add("sync_seconds", max(0.0, self._loop.now - self._since - self._overhead))
        if self._version is None:
            self._recorder.phase("trainer", "overhead", self._since, self._loop.now)
        else:
            self._recorder.phase("sync", f"version {self._version}", self._since, self._loop.now)
            self._recorder.phase("trainer", "sync", self._since, self._loop.now)
        keeps = self._version is None or (self._setting.keeps_kv and self._way == "in-flight")
        self._fleet.go_on(self._version, keeps_kv=keeps)
        self._done()


class Backlog:
    """
    Groups in the order in which they will be trained.

    Args:
        order: The rule.
    """

    __slots__ = ("_by_serial", "_order", "_stalest", "_waiting", "groups", "samples", "tokens")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._waiting: deque[Group] = deque()
        self._by_serial: list[tuple[int, Group]] = []  # sorted; serials are unique
        self._stalest: float = inf  # no sample that waits is older than this version
        self.groups = self.samples = self.tokens = 0

    def __len__(self) -> int:
        return self.groups

    def add(self, group: Group) -> None:
        """A group is accepted."""
        self.groups += 1
        self.samples += group.size
        self.tokens += group.tokens
        self._stalest = min(self._stalest, group.oldest)
        if self._order == "admission":
            insort(self._by_serial, (group.serial, group))
        else:
            self._waiting.append(group)

    def ready(self, count: int, first_under_way: int | None) -> bool:
        """
        Whether so many groups may be trained.

        Args:
            count: How many. [1]
            first_under_way: The lowest number still under way, which `admission` waits for; None for none.
        """
        if self.groups < count:
            return False
        if self._order != "admission" or first_under_way is None:
            return True
        return count == 0 or self._by_serial[count - 1][0] < first_under_way

    def take(self, count: int) -> list[Group]:
        """The next groups to train."""
        if self._order == "admission":
            groups = [group for _, group in self._by_serial[:count]]
            del self._by_serial[:count]
        elif self._order == "freshest":
            groups = [self._waiting.pop() for _ in range(count)]
        else:
            groups = [self._waiting.popleft() for _ in range(count)]
        self._gone(groups)
        return groups

    def remove(self, groups: list[Group]) -> None:
        """Take these groups out."""
        gone = set(groups)
        self._waiting = deque(group for group in self._waiting if group not in gone)
        self._by_serial = [entry for entry in self._by_serial if entry[1] not in gone]
        self._gone(groups)

    def drop_older(self, version: int) -> list[Group]:
        """Take out all groups whose stalest sample is older than a version."""
        if self._stalest >= version:
            return []
        old = [group for group in self._waiting if group.oldest < version]
        old += [group for _, group in self._by_serial if group.oldest < version]
        if old:
            self.remove(old)
        stalest = self.oldest()
        self._stalest = inf if stalest is None else stalest
        return old

    def oldest(self) -> int | None:
        """Version of the stalest sample that waits; None where none waits."""
        groups = [*self._waiting, *(group for _, group in self._by_serial)]
        return min((group.oldest for group in groups), default=None)

    def _gone(self, groups: list[Group]) -> None:
        self.groups -= len(groups)
        self.samples -= sum(group.size for group in groups)
        self.tokens -= sum(group.tokens for group in groups)
