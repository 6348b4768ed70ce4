"""Routing: which instance a sample goes to."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.engine import Engine
    from rlsize.simulator.samples import Sample
    from rlsize.simulator.setting import Routing


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
        self, engines: list[Engine], routing: Routing, outcomes: Outcomes, touch: Callable[[Engine], None]
    ) -> None:
        self.engines, self.routing, self.outcomes, self.touch = engines, routing, outcomes, touch
        self.queue: deque[Sample] = deque()  # of the fleet
        self._ranks: list[tuple[int, int]] = []  # loads and instances, a heap; entries that no longer hold are skipped
        self._turn = 0
        self._slots = 0
        self.present = 0  # samples that run or are queued on instances
        self._most_ranks = 64 + 4 * len(engines)
        self._ranked = routing in {"affine", "queue"}
        self.rank_all()

    def rank_all(self) -> None:
        """Rank all instances anew, as after one has come or gone."""
        self._slots = sum(engine.slots for engine in self.engines if _open(engine))
        if self._ranked:
            self._ranks = [(engine.load, engine.index) for engine in self.engines if _open(engine)]
            heapify(self._ranks)

    def changed(self, engine: Engine) -> None:
        """Note that an instance has more samples, or fewer."""
        load = len(engine.ends) + len(engine.queue)
        self.present += load - engine.noted
        engine.noted = load
        if self._ranked:
            ranks = self._ranks
            if len(ranks) > self._most_ranks:
                self.rank_all()
            else:
                heappush(ranks, (load, engine.index))

    def least(self) -> Engine | None:
        """The open instance with the fewest samples, the first of equals; None where none is open."""
        ranks, engines = self._ranks, self.engines
        while ranks:
            load, index = ranks[0]
            engine = engines[index]
            if len(engine.ends) + len(engine.queue) == load and engine.up and not engine.leaving:
                return engine
            heappop(ranks)
        return None

    def free_slots(self) -> int:
        """Slots of open instances, less samples that run or are queued anywhere. [1]"""
        return self._slots - self.present - len(self.queue)

    def room(self) -> bool:
        """Whether there is a free slot: under `affine` on the instance with the fewest samples, else anywhere."""
        if self.routing != "affine":
            return self.free_slots() > 0
        engine = self.least()
        return engine is not None and len(engine.ends) + len(engine.queue) < engine.slots

    def deal(self, samples: Iterable[Sample]) -> None:
        """Deal samples in order; under `affine` all to one instance."""
        if self.routing == "affine":
            engine = self.least()
            if engine is None:
                self.queue.extend(samples)
                return
            for sample in samples:
                self._hand(sample, engine)
        elif self.routing == "queue":
            self.queue.extend(samples)
            self.deal_queue()
        else:
            for sample in samples:
                self._place(sample)

    def deal_queue(self) -> None:
        """Deal what waits in the fleet's queue, as far as there are free slots, or instances again."""
        queue = self.queue
        if self.routing != "queue":
            if queue and any(_open(engine) for engine in self.engines):
                waiting = list(queue)
                queue.clear()
                for sample in waiting:
                    self.deal([sample])
            return
        while queue:
            engine = self.least()
            if engine is None or engine.load >= engine.slots:
                return
            self._hand(queue.popleft(), engine)

    def _place(self, sample: Sample) -> None:
        places = [engine for engine in self.engines if _open(engine)]
        if not places:
            self.queue.append(sample)
            return
        if self.routing == "random":
            share = self.outcomes.place(sample.group.serial, sample.member)
            self._hand(sample, places[int(share * len(places))])
        else:
            self._hand(sample, places[self._turn % len(places)])
            self._turn += 1

    def _hand(self, sample: Sample, engine: Engine) -> None:
        engine.queue.append(sample)
        self.changed(engine)
        if engine.entry is not None and len(engine.ends) < engine.slots:
            engine.interrupt()
        self.touch(engine)


def _open(engine: Engine) -> bool:
    return engine.up and not engine.leaving
