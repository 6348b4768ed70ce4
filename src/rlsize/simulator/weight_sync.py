"""What follows an update: instances pause, weights travel if it is their turn, instances go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.simulator.conductor import Conductor
    from rlsize.simulator.setting import Way


class WeightSync:
    """
    Syncs, one after the other.

    Args:
        conductor: Whose fleet gets the weights, and who is told when it has them.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._setting, self._loop, self._fleet = conductor.setting.sync, conductor.loop, conductor.fleet
        self._overhead = conductor.setting.trainer.overhead_seconds
        self._ledger, self._recorder, self._done = conductor.ledger, conductor.recorder, conductor.end_step
        self._version: int | None = None  # that is brought; None where only the overhead passes
        self._way: Way = "in-flight"
        self._since = 0.0
        self._halting = False
        self.under_way = False  # a sync, from its beginning to its arrival

    @property
    def drains(self) -> bool:
        """Whether the fleet is draining, or has, for a sync."""
        return self.under_way and self._way == "drain"

    def begin(self, version: int) -> bool:
        """Let the overhead pass, and sync the weights of this version if it is their turn; whether that takes time."""
        brings = version % self._setting.every == 0
        if brings and self._setting.way == "rolling":
            brings = False
            self._fleet.publish(version)
        if not brings and not self._overhead:
            return False
        self._version, self._way = (version, self._setting.way) if brings else (None, "in-flight")
        self._since, self._halting, self.under_way = self._loop.now, True, True
        self._fleet.halt(self._way)
        return True

    def proceed(self) -> None:
        """Let the weights travel, if every instance has paused."""
        if self._halting and self._fleet.halted:
            self._halting = False
            seconds = self._setting.seconds if self._version is not None else 0.0
            self._loop.at(self._loop.now + (seconds + self._overhead), self._arrived)

    def _arrived(self) -> None:
        self.under_way = False
        self._ledger.add("overhead_seconds", self._overhead)
        self._ledger.add("sync_seconds", max(0.0, self._loop.now - self._since - self._overhead))
        if self._version is None:
            self._recorder.phase("trainer", "overhead", self._since, self._loop.now)
        else:
            self._recorder.phase("sync", f"version {self._version}", self._since, self._loop.now)
            self._recorder.phase("trainer", "sync", self._since, self._loop.now)
        keeps = self._version is None or (self._setting.keeps_kv and self._way == "in-flight")
        self._fleet.go_on(self._version, keeps_kv=keeps)
        self._done()
