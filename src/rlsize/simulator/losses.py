"""Instances that are lost and come back, as on a preemptible tier."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.simulator.draws import Outcomes
    from rlsize.simulator.engine import BatchingEngine
    from rlsize.simulator.event_loop import EventLoop
    from rlsize.simulator.fleet import Fleet
    from rlsize.simulator.history import Recorder
    from rlsize.simulator.setting import Setting

_HOUR = 3600.0


class Losses:
    """
    Takes instances down and brings them back.

    Args:
        setting: How often, and for how long.
        outcomes: What chance brings.
        loop: The event loop.
        fleet: The instances.
        recorder: What notes losses, if anything does.
    """

    def __init__(
        self, setting: Setting, outcomes: Outcomes, loop: EventLoop, fleet: Fleet, recorder: Recorder | None = None
    ) -> None:
        self._trouble, self._loop, self._fleet, self._recorder = setting.trouble, loop, fleet, recorder
        self.count = 0
        if self._trouble.losses_per_hour > 0.0:
            for engine in fleet.engines[: fleet.own_instances]:
                self._announce(engine, outcomes.losses(engine.index))

    def _announce(self, engine: BatchingEngine, times: Iterator[float]) -> None:
        seconds = next(times) * _HOUR / self._trouble.losses_per_hour
        self._loop.at(self._loop.now + seconds, partial(self._notice, engine, times))

    def _notice(self, engine: BatchingEngine, times: Iterator[float]) -> None:
        self._fleet.give_notice(engine)
        self._loop.at(self._loop.now + self._trouble.notice_seconds, partial(self._lose, engine, times))

    def _lose(self, engine: BatchingEngine, times: Iterator[float]) -> None:
        self.count += 1
        self._fleet.take_down(engine, keeps_tokens=False)
        if self._recorder is not None:
            self._recorder.event(self._loop.now, "instance lost", instance=engine.index)
        self._loop.at(self._loop.now + self._trouble.restart_seconds, partial(self._return, engine, times))

    def _return(self, engine: BatchingEngine, times: Iterator[float]) -> None:
        self._fleet.bring_up(engine)
        self._announce(engine, times)
