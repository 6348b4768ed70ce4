"""Routing: which instance a sample goes to."""

from __future__ import annotations

from collections import deque
from math import inf
from operator import lt, mul
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.engine import BatchingEngine
    from rlsize.simulator.samples import Sample
    from rlsize.simulator.setting import Routing

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
