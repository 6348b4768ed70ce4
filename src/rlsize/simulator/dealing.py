"""Routing: which instance a sample goes to; and what happens to it outside the GPUs: environment, tools, verifier."""

from __future__ import annotations

from collections import deque
from functools import partial
from math import ceil, inf
from operator import lt, mul
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.engine import BatchingEngine
    from rlsize.simulator.event_loop import EventLoop
    from rlsize.simulator.ledger import Group, Sample
    from rlsize.simulator.setting import Routing, WorkSetting

_BLOCK = 64  # instances among which the one with the fewest samples is looked for at once


class Dealer:
    """
    Deals samples to instances.

    Args:
        engines: All instances.
        routing: The rule.
        outcomes: For random places.
        touch: Called with each instance that was dealt to.
    """

    def __init__(
        self,
        engines: list[BatchingEngine],
        routing: Routing,
        outcomes: Outcomes,
        touch: Callable[[BatchingEngine], None],
    ) -> None:
        self.engines, self.routing, self.outcomes, self.touch = engines, routing, outcomes, touch
        self.queue: deque[Sample] = deque()  # of the fleet
        self.present = 0  # samples that run or are queued on instances
        self.with_room = 0  # open instances with a free slot
        self._slots = [engine.slots for engine in engines]
        self._weights = [max(self._slots) / slots for slots in self._slots]  # one where all have as many slots
        self._counts: list[float] = []  # samples on each instance; infinite on one that takes none
        self.open: list[BatchingEngine] = []
        self._loads: list[float] = []  # the same by the instance's weight
        self._fewest: list[float] = []  # the least of these in each block of instances
        self._turn = 0
        self.recount()

    def recount(self) -> None:
        """Look at all instances anew, as after one has come or gone, or was emptied."""
        self.open = [engine for engine in self.engines if engine.up and not engine.leaving]
        self.present = sum(engine.load for engine in self.engines)
        counts = self._counts = [inf] * len(self.engines)
        for engine in self.open:
            counts[engine.index] = engine.load
        loads = self._loads = list(map(mul, counts, self._weights))
        self._fewest = [min(loads[first : first + _BLOCK]) for first in range(0, len(loads), _BLOCK)]
        self.with_room = sum(map(lt, counts, self._slots))

    def left(self, engine: BatchingEngine) -> None:
        """A sample has left the batch of an instance."""
        self.present -= 1
        index, counts = engine.index, self._counts
        count = counts[index] = counts[index] - 1
        load = self._loads[index] = count * self._weights[index]
        if count == self._slots[index] - 1:
            self.with_room += 1
        if load < self._fewest[index // _BLOCK]:  # noqa: PLR1730 (a call less for each sample)
            self._fewest[index // _BLOCK] = load

    def came(self, engine: BatchingEngine, samples: int = 1) -> None:
        """So many samples have been queued on an instance; less than none if they have been taken away."""
        self.present += samples
        index, loads, slots = engine.index, self._loads, engine.slots
        count, before = self._counts[index], loads[index]
        self.with_room += (count + samples < slots) - (count < slots)
        count = self._counts[index] = count + samples
        load = loads[index] = count * self._weights[index]
        block = index // _BLOCK
        if min(before, load) <= self._fewest[block]:
            self._fewest[block] = min(loads[block * _BLOCK : (block + 1) * _BLOCK])

    def least(self) -> BatchingEngine | None:
        """The open instance with the fewest samples for its slots, the first of equals; None where none is open."""
        fewest = min(self._fewest)
        if fewest == inf:
            return None
        return self.engines[self._loads.index(fewest, self._fewest.index(fewest) * _BLOCK)]

    def free_slots(self) -> int:
        """Slots of open instances, less samples that run or are queued anywhere. [1]"""
        return sum([engine.slots for engine in self.open]) - self.present - len(self.queue)

    def slot_free(self) -> bool:
        """Whether what waits for a slot may find one; only under `affine` can it be told from the instances alone."""
        return self.routing != "affine" or self.with_room > 0

    def room(self) -> bool:
        """Whether there is a free slot: under `affine` on the instance with the fewest samples, else anywhere."""
        return self.with_room > 0 if self.routing == "affine" else self.free_slots() > 0

    def deal(self, samples: Sequence[Sample]) -> None:
        """Deal samples in order; under `affine` all to one instance."""
        if self.routing == "affine":
            engine = self.least()
            if engine is None:
                self.queue.extend(samples)
            else:
                self._hand(samples, engine)
        elif self.routing == "queue":
            self.queue.extend(samples)
            self.deal_queue()
        else:
            for sample in samples:
                self._place(sample)

    def deal_one_by_one(self, samples: Iterable[Sample]) -> None:
        """Deal samples that have been dealt before, each by itself."""
        for sample in samples:
            self.deal((sample,))

    def any_empty(self) -> bool:
        """Whether an open instance has no samples."""
        return min(self._fewest) == 0

    def level(self) -> bool:
        """Deal queued samples without KV anew, the last of the longest queues first; whether there were any to deal."""
        found = False
        while True:
            queued = [(engine, self._last_queued(engine)) for engine in self.open]
            givers = [(engine, sample) for engine, sample in queued if sample is not None]
            most, sample = max(givers, key=lambda giver: giver[0].load, default=(None, None))
            least = self.least()
            if most is None or sample is None or least is None or most.load < least.load + 2:
                return found
            most.queue.remove(sample)
            self.came(most, -1)
            self._hand((sample,), least)
            found = True

    def spread(self, samples: Iterable[Sample]) -> None:
        """Deal samples that have been dealt before, each to the instance with the fewest."""
        for sample in samples:
            engine = self.least()
            if engine is None:
                self.queue.append(sample)
            else:
                self._hand((sample,), engine)

    @staticmethod
    def _last_queued(engine: BatchingEngine) -> Sample | None:
        return next((sample for sample in reversed(engine.queue) if sample not in engine.parked), None)

    def deal_queue(self) -> None:
        """Deal what waits in the fleet's queue, as far as there are free slots, or instances again."""
        queue = self.queue
        if self.routing != "queue":
            if queue and self.open:
                waiting = list(queue)
                queue.clear()
                self.deal_one_by_one(waiting)
            return
        while queue:
            engine = self.least() if self.with_room else None
            if engine is None:
                return
            self._hand((queue.popleft(),), engine)

    def _place(self, sample: Sample) -> None:
        places = self.open
        if not places:
            self.queue.append(sample)
            return
        if self.routing == "random":
            share = self.outcomes.place(sample.group.serial, sample.member)
            engine = places[int(share * len(places))]
        else:
            engine = places[self._turn % len(places)]
            self._turn += 1
        self._hand((sample,), engine)

    def _hand(self, samples: Sequence[Sample], engine: BatchingEngine) -> None:
        engine.queue.extend(samples)
        self.came(engine, len(samples))
        if engine.entry is not None and len(engine.ends) < engine.slots:
            engine.interrupt()
        self.touch(engine)


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

    def forget_score(self, sample: Sample) -> None:
        """Nobody asks for the score of a sample any more, which no verifier has begun with."""
        if sample in self._waiting:
            self._waiting.remove(sample)

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
