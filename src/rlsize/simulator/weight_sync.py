"""The weight sync: instances pause, weights travel, instances go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.simulator.conductor import Conductor


class WeightSync:
    """
    Syncs, one after the other.

    Args:
        conductor: Whose fleet gets the weights, and who is told when it has them.
    """

    def __init__(self, conductor: Conductor) -> None:
        self._setting, self._loop, self._fleet = conductor.setting.sync, conductor.loop, conductor.fleet
        self._ledger, self._recorder, self._done = conductor.ledger, conductor.recorder, conductor.end_step
        self._version = 0
        self._since = 0.0
        self._halting = False
        self.under_way = False  # a sync, from its beginning to its arrival

    @property
    def drains(self) -> bool:
        """Whether the fleet is draining, or has, for a sync."""
        return self.under_way and self._setting.way == "drain"

    def due(self, version: int) -> bool:
        """Whether weights of this version are synced."""
        return version > 0 and version % self._setting.every == 0

    def begin(self, version: int) -> None:
        """Sync weights of this version."""
        self._version, self._since = version, self._loop.now
        self._halting = self.under_way = True
        self._fleet.halt(self._setting.way)

    def proceed(self) -> None:
        """Let the weights travel, if every instance has paused."""
        if self._halting and self._fleet.halted:
            self._halting = False
            self._loop.at(self._loop.now + self._setting.seconds, self._arrived)

    def _arrived(self) -> None:
        self.under_way = False
        self._ledger.add("sync_seconds", self._loop.now - self._since)
        self._recorder.phase("sync", f"version {self._version}", self._since, self._loop.now)
        self._recorder.phase("trainer", "sync", self._since, self._loop.now)
        keeps = self._setting.keeps_kv and self._setting.way == "in-flight"
        self._fleet.go_on(self._version, keeps_kv=keeps)
        self._done()
