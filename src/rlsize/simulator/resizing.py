"""Instances that come and go by plan, and those that are lost by accident."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.simulator.conductor import Conductor
    from rlsize.simulator.engine import BatchingEngine
    from rlsize.simulator.setting import Setting

_HOUR = 3600.0


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


class Losses:
    """
    Takes instances down and brings them back.

    Args:
        conductor: Whose instances they are.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._trouble, self._loop = conductor.setting.trouble, conductor.loop
        self._fleet, self._recorder = conductor.fleet, conductor.recorder
        if self._trouble.losses_per_hour > 0.0:
            own = self._fleet.engines[: self._fleet.own_instances]
            for number, first in enumerate(range(0, len(own), self._trouble.lost_together)):
                self._announce(own[first : first + self._trouble.lost_together], conductor.outcomes.losses(number))

    def _announce(self, node: list[BatchingEngine], times: Iterator[float]) -> None:
        seconds = next(times) * _HOUR / self._trouble.losses_per_hour
        self._loop.at(self._loop.now + seconds, partial(self._notice, node, times))

    def _notice(self, node: list[BatchingEngine], times: Iterator[float]) -> None:
        self._fleet.give_notice([engine for engine in node if engine.up])
        self._loop.at(self._loop.now + self._trouble.notice_seconds, partial(self._lose, node, times))

    def _lose(self, node: list[BatchingEngine], times: Iterator[float]) -> None:
        lost = [engine for engine in node if engine.up]
        self._fleet.take_down(lost, keeps_tokens=False)
        for engine in lost:
            self._recorder.event(self._loop.now, "instance lost", instance=engine.index)
        self._loop.at(self._loop.now + self._trouble.restart_seconds, partial(self._return, node, times))

    def _return(self, node: list[BatchingEngine], times: Iterator[float]) -> None:
        self._fleet.bring_up([engine for engine in node if engine.there and not engine.up])
        self._announce(node, times)
