"""What happens to a sample outside the GPUs: its environment, tools between its turns, a verifier at its end."""

from __future__ import annotations

from collections import deque
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.engine import BatchingEngine
    from rlsize.simulator.event_loop import EventLoop
    from rlsize.simulator.samples import Group, Sample
    from rlsize.simulator.setting import WorkSetting


class Scoring:
    """
    Environments, tools and verifier.

    Args:
        work: How long they take.
        outcomes: What chance brings.
        loop: The event loop.
        called_back: Called with a sample whose tool has answered, and the instance that it ran on.
        scored: Called with a sample that is finished and scored.
    """

    def __init__(
        self,
        work: WorkSetting,
        outcomes: Outcomes,
        loop: EventLoop,
        called_back: Callable[[Sample, BatchingEngine], None],
        scored: Callable[[Sample], None],
    ) -> None:
        self.loop, self.outcomes = loop, outcomes
        self.called_back, self.scored = called_back, scored
        self.tool_tokens = work.tool_tokens
        self.equips, self._work = work.equipped, work
        self.free = inf if work.environments is None else work.environments
        self.unequipped: deque[Group] = deque()  # that wait for environments
        self.starting: dict[Group, list[Any]] = {}  # whose environments start
        self.ready: deque[Group] = deque()  # that wait to be dealt
        self._workers = work.verify_workers
        self._at_work = 0
        self._waiting: deque[Sample] = deque()
        self._calls: dict[Sample, list[Any]] = {}

    def first_turn(self, sample: Sample) -> None:
        """Where the first turn of a sample ends."""
        sample.turn, sample.turns = 1, self.outcomes.turns(sample.group.serial, sample.member)
        sample.stop = ceil(sample.length / sample.turns)

    def may_enter(self, slots: float) -> bool:
        """Whether a group would have its environments at once, and so many free slots when these have started."""
        size = self._work.started
        return not self.equips or (self.free >= size and slots > size * (len(self.starting) + len(self.ready)))

    def enter(self, group: Group) -> None:
        """A group waits for its environments."""
        self.unequipped.append(group)
        self._equip()

    def leave(self, samples: int = 1) -> None:
        """So many samples need their environments no more."""
        self.free += samples
        if self.unequipped:
            self._equip()

    def forget_entering(self) -> None:
        """No group waits for its environments any more."""
        self.unequipped.clear()
        for entry in self.starting.values():
            self.loop.cancel(entry)
        self.free += self._work.started * (len(self.starting) + len(self.ready))
        self.starting.clear()
        self.ready.clear()

    def _equip(self) -> None:
        size, seconds = self._work.started, self._work.environment_seconds
        while self.unequipped and self.free >= size:
            self.free -= size
            group = self.unequipped.popleft()
            if seconds:
                self.starting[group] = self.loop.at(self.loop.now + seconds, partial(self._started, group))
            else:
                self.ready.append(group)

    def _started(self, group: Group) -> None:
        del self.starting[group]
        self.ready.append(group)

    def call_tool(self, sample: Sample, engine: BatchingEngine) -> None:
        """The turn is over: a tool works on it."""
        seconds = self.outcomes.tool_seconds(sample.group.serial, sample.member, sample.turn)
        self._calls[sample] = self.loop.at(self.loop.now + seconds, partial(self._answer, sample, engine))

    def forget_call(self, sample: Sample) -> bool:
        """What a tool answers is of no use any more; whether one was at work."""
        entry = self._calls.pop(sample, None)
        if entry is None:
            return False
        self.loop.cancel(entry)
        return True

    def skip_calls(self, samples: Iterable[Sample] | None = None) -> list[Sample]:
        """Samples without KV, or all, that tools work on stop: what the tools say is there when they go on."""
        called = [sample for sample in (list(self._calls) if samples is None else samples) if self.forget_call(sample)]
        for sample in called:
            self._next_turn(sample)
            sample.held += self.tool_tokens
        return called

    def called_elsewhere(self) -> int:
        """Tokens of samples that wait for a tool without KV on an instance. [token]"""
        return sum(sample.done for sample in self._calls if sample.engine is None or sample not in sample.engine.parked)

    def score(self, sample: Sample) -> None:
        """The sample is finished: a verifier scores it, when one is free."""
        if self._workers is None or self._at_work < self._workers:
            self._verify(sample)
        else:
            self._waiting.append(sample)

    def _answer(self, sample: Sample, engine: BatchingEngine) -> None:
        del self._calls[sample]
        self._next_turn(sample)
        self.called_back(sample, engine)

    def _next_turn(self, sample: Sample) -> None:
        sample.turn += 1
        sample.stop = max(sample.done + 1, ceil(sample.length * sample.turn / sample.turns))

    def _verify(self, sample: Sample) -> None:
        self._at_work += 1
        seconds = self.outcomes.verify_seconds(sample.group.serial, sample.member)
        self.loop.at(self.loop.now + seconds, partial(self._verified, sample))

    def _verified(self, sample: Sample) -> None:
        self._at_work -= 1
        if self._waiting:
            self._verify(self._waiting.popleft())
        self.scored(sample)
