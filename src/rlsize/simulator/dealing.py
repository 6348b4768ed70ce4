"""Routing: which instance a sample goes to."""

from __future__ import annotations

from collections import deque
from math import inf
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
        self.present = 0  # samples that run or are queued on instances
        self.with_room = 0  # open instances with a free slot
        self._slots_each = engines[0].slots
        self._slots = 0
        self._loads: list[float] = []  # samples on each instance; infinite on one that takes none
        self._turn = 0
        self.recount()

    def recount(self) -> None:
        """Look at all instances anew, as after one has come or gone, or was emptied."""
        opened = [_open(engine) for engine in self.engines]
        self._slots = self._slots_each * sum(opened)
        self.present = sum(engine.load for engine in self.engines)
        self._loads = [engine.load if is_open else inf for engine, is_open in zip(self.engines, opened, strict=True)]
        self.with_room = sum(load < self._slots_each for load in self._loads)

    def left(self, engine: Engine) -> None:
        """A sample has left the batch of an instance."""
        self.present -= 1
        load = self._loads[engine.index] = self._loads[engine.index] - 1
        if load == self._slots_each - 1:
            self.with_room += 1

    def came(self, engine: Engine) -> None:
        """A sample has been queued on an instance."""
        self.present += 1
        load = self._loads[engine.index] = self._loads[engine.index] + 1
        if load == self._slots_each:
            self.with_room -= 1

    def least(self) -> Engine | None:
        """The open instance with the fewest samples, the first of equals; None where none is open."""
        loads = self._loads
        fewest = min(loads)
        return self.engines[loads.index(fewest)] if fewest < inf else None

    def free_slots(self) -> int:
        """Slots of open instances, less samples that run or are queued anywhere. [1]"""
        return self._slots - self.present - len(self.queue)

    def room(self) -> bool:
        """Whether there is a free slot: under `affine` on the instance with the fewest samples, else anywhere."""
        return self.with_room > 0 if self.routing == "affine" else self.free_slots() > 0

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
            engine = self.least() if self.with_room else None
            if engine is None:
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
        self.came(engine)
        if engine.entry is not None and len(engine.ends) < engine.slots:
            engine.interrupt()
        self.touch(engine)


def _open(engine: Engine) -> bool:
    return engine.up and not engine.leaving
