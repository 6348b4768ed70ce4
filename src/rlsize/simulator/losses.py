"""Instances that are lost and come back, each by itself or with its node, as on a preemptible tier."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.simulator.conductor import Conductor
    from rlsize.simulator.engine import BatchingEngine

_HOUR = 3600.0


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
