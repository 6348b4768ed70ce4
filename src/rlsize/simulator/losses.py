"""Instances that are lost and come back, as on a preemptible tier."""

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
            for engine in self._fleet.engines[: self._fleet.own_instances]:
                self._announce(engine, conductor.outcomes.losses(engine.index))

    def _announce(self, engine: BatchingEngine, times: Iterator[float]) -> None:
        seconds = next(times) * _HOUR / self._trouble.losses_per_hour
        self._loop.at(self._loop.now + seconds, partial(self._notice, engine, times))

    def _notice(self, engine: BatchingEngine, times: Iterator[float]) -> None:
        self._fleet.give_notice(engine)
        self._loop.at(self._loop.now + self._trouble.notice_seconds, partial(self._lose, engine, times))

    def _lose(self, engine: BatchingEngine, times: Iterator[float]) -> None:
        self._fleet.take_down(engine, keeps_tokens=False)
        self._recorder.event(self._loop.now, "instance lost", instance=engine.index)
        self._loop.at(self._loop.now + self._trouble.restart_seconds, partial(self._return, engine, times))

    def _return(self, engine: BatchingEngine, times: Iterator[float]) -> None:
        self._fleet.bring_up(engine)
        self._announce(engine, times)
