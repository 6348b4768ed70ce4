"""The heart: things that happen at times, in order. It knows nothing of what they are."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

LATE = 1 << 40
"""Rank of what comes after everything with a rank of its own at the same time."""

_ACTION = 3


class EventLoop:
    """
    Calls actions in the order of their times.

    An instant is all that happens at one time: actions by rank, then `decide`, then what that made happen at the same
    time, and so on; when nothing is left, `begin`.
    """

    __slots__ = ("_begun", "_heap", "_number", "alone", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.alone = False  # whether nothing else is known to happen at this time
        self._begun = False
        self._heap: list[list[Any]] = []
        self._number = 0

    def at(self, time: float, action: Callable[[], bool | None], rank: int = LATE) -> list[Any]:
        """
        Have something happen.

        Args:
            time: When; not before now. [s]
            action: What.
            rank: Its place among what happens at the same time; equals follow each other as they were announced.

        Returns:
            What `cancel` takes.
        """
        number = self._number = self._number + 1
        entry = [time, rank, number, action]
        heappush(self._heap, entry)
        return entry

    @staticmethod
    def cancel(entry: list[Any]) -> None:
        """Have it not happen."""
        entry[_ACTION] = None

    def run(self, decide: Callable[[], None], begin: Callable[[], None], done: Callable[[], bool]) -> None:
        """
        Let time pass until `done`, asked after each `decide`, or until nothing is left to happen.

        An action that says True has seen to everything itself: if it is alone in its instant, nobody is asked to decide
        or to begin. A loop that is run on goes on where it was done: `decide` has seen that instant.

        Args:
            decide: Reacts to what happened; whatever this makes happen at the same time is still part of it.
            begin: Begins what takes time; called once when nothing more happens at this time.
            done: Whether to stop.
        """
        heap, now = self._heap, self.now
        if not self._begun:
            self._begun = True
            decide()
        while not done():
            if not heap or heap[0][0] > now:
                begin()
                quiet: bool | None = True
                while quiet:
                    if not heap:
                        return
                    entry = heappop(heap)
                    now = self.now = entry[0]
                    alone = self.alone = not heap or heap[0][0] > now
                    action = entry[_ACTION]
                    quiet = (action is None or action()) and alone
                self.alone = False
            while heap and heap[0][0] <= now:
                action = heappop(heap)[_ACTION]
                if action is not None:
                    action()
            decide()
