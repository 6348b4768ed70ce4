"""A fleet that is resized during a run: instances come and go at a time, or after an optimizer step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.simulator.conductor import Conductor
    from rlsize.simulator.setting import Setting


class Resizing:
    """
    Brings instances and takes them away.

    Args:
        conductor: Whose instances they are.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._loop, self._fleet, self._recorder = conductor.loop, conductor.fleet, conductor.recorder
        self._resizes = conductor.setting.rules.resizes
        for resize in self._resizes:
            if resize.step is None:
                self._loop.at(resize.seconds, partial(self._resize, resize.change))

    def step_ended(self, step: int) -> None:
        """So many optimizer steps have been made."""
        for resize in self._resizes:
            if resize.step == step:
                self._resize(resize.change)

    def _resize(self, change: int) -> None:
        own = self._fleet.engines[: self._fleet.own_instances]
        there = [engine for engine in own if engine.there]
        if change > 0:
            moved = [engine for engine in own if not engine.there][:change]
        else:
            moved = there[max(1, len(there) + change) :]
        for engine in moved:
            engine.there = change > 0
            self._recorder.event(
                self._loop.now, f"instance {'added' if change > 0 else 'removed'}", instance=engine.index
            )
        if change > 0:
            self._fleet.bring_up(moved)
        else:
            self._fleet.take_down(moved, keeps_tokens=True)


def held_seconds(setting: Setting, ends: Sequence[float], start: float) -> float:
    """
    Seconds of instances that the fleet had, lost ones among them. [s]

    Args:
        setting: What was simulated.
        ends: When each optimizer step ended; the last of them is the end. [s]
        start: From when on. [s]
    """
    until = float(ends[-1])
    changes = [
        (resize.seconds if resize.step is None else float(ends[resize.step - 1]), resize.change)
        for resize in setting.rules.resizes
        if resize.step is None or resize.step <= len(ends)
    ]
    count, since, held = setting.instances, start, 0.0
    for time, change in sorted(changes, key=lambda each: each[0]):
        now = min(max(time, start), until)
        held, since = held + count * (now - since), now
        count = max(1, count + change)
    return held + count * (until - since)
