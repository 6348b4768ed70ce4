"""Instances as a whole: which of them begin a step when an instant ends, and what their time goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.simulator.engine import Engine
    from rlsize.simulator.event_loop import EventLoop

STATES = ("generating", "paused", "down", "away", "idle")
"""What an instance does; those that are lent are away while the trainer has its GPUs."""


class Instances:
    """
    All instances.

    Args:
        engines: The fleet's own, then those that the trainer lends.
        own: How many are the fleet's own. [1]
        loop: The event loop.
    """

    def __init__(self, engines: list[Engine], own: int, loop: EventLoop) -> None:
        self.engines, self.own_instances, self.loop = engines, own, loop
        for engine in engines[own:]:
            engine.up, engine.state = False, "away"
        self._halted = 0  # the first so many have paused for a sync, or are down
        self._touched: list[Engine] = []
        self._counts = dict.fromkeys(STATES, 0) | {"idle": own, "away": len(engines) - own}
        self._seconds = dict.fromkeys((*STATES, "tail"), 0.0)
        self._since = 0.0

    @property
    def halted(self) -> bool:
        """Whether every instance that is up has paused; one that has, or is down, runs no more before they go on."""
        engines, count = self.engines, self._halted
        while count < len(engines) and (engines[count].paused or not engines[count].up):
            count += 1
        self._halted = count
        return count == len(engines)

    def touch(self, engine: Engine) -> None:
        """Have an instance begin a step, if it can, when this instant ends."""
        if not engine.touched:
            engine.touched = True
            self._touched.append(engine)

    def begin(self) -> None:
        """Have every instance that can begin a step begin it."""
        touched = self._touched
        for engine in touched:
            engine.touched = False
            if engine.entry is not None:
                continue
            if engine.up and not engine.paused:
                state = "generating" if engine.begin() else "idle"
            elif engine.up:
                state = "paused"
            else:
                state = "down" if engine.index < self.own_instances else "away"
            if state != engine.state:
                self._change(engine, state)
        touched.clear()

    def seconds(self) -> dict[str, float]:
        """Seconds of instances in each state, idle ones while others generate as `tail`. [s]"""
        self._pass()
        return dict(self._seconds)

    def so_far(self) -> tuple[float, ...]:
        """Response tokens, seconds, and seconds of samples of all steps that have ended, over all instances."""
        return tuple(map(sum, zip(*(engine.so_far() for engine in self.engines), strict=True)))

    @property
    def preemptions(self) -> int:
        """Samples thrown out of a batch for want of cache, so far. [1]"""
        return sum(engine.preemptions for engine in self.engines)

    def _pass(self) -> None:
        elapsed = self.loop.now - self._since
        if elapsed:
            counts, seconds = self._counts, self._seconds
            for state, count in counts.items():
                seconds[state] += count * elapsed
            if counts["generating"]:
                seconds["tail"] += counts["idle"] * elapsed
            self._since = self.loop.now

    def _change(self, engine: Engine, state: str) -> None:
        self._pass()
        self._counts[engine.state] -= 1
        self._counts[state] += 1
        engine.state = state
