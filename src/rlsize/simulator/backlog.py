"""Finished groups that wait to be trained."""

from __future__ import annotations

from bisect import insort
from collections import deque
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.simulator.ledger import Group
    from rlsize.simulator.setting import Order


class Backlog:
    """
    Groups in the order in which they will be trained.

    Args:
        order: The rule.
    """

    __slots__ = ("_by_serial", "_order", "_stalest", "_waiting", "groups", "samples", "tokens")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._waiting: deque[Group] = deque()
        self._by_serial: list[tuple[int, Group]] = []  # sorted; serials are unique
        self._stalest: float = inf  # no sample that waits is older than this version
        self.groups = self.samples = self.tokens = 0

    def __len__(self) -> int:
        return self.groups

    def add(self, group: Group) -> None:
        """A group is accepted."""
        self.groups += 1
        self.samples += group.size
        self.tokens += group.tokens
        self._stalest = min(self._stalest, group.oldest)
        if self._order == "admission":
            insort(self._by_serial, (group.serial, group))
        else:
            self._waiting.append(group)

    def ready(self, count: int, first_under_way: int | None) -> bool:
        """
        Whether so many groups may be trained.

        Args:
            count: How many. [1]
            first_under_way: The lowest number still under way, which `admission` waits for; None for none.
        """
        if self.groups < count:
            return False
        if self._order != "admission" or first_under_way is None:
            return True
        return count == 0 or self._by_serial[count - 1][0] < first_under_way

    def take(self, count: int) -> list[Group]:
        """The next groups to train."""
        if self._order == "admission":
            groups = [group for _, group in self._by_serial[:count]]
            del self._by_serial[:count]
        elif self._order == "freshest":
            groups = [self._waiting.pop() for _ in range(count)]
        else:
            groups = [self._waiting.popleft() for _ in range(count)]
        self._gone(groups)
        return groups

    def remove(self, groups: list[Group]) -> None:
        """Take these groups out."""
        gone = set(groups)
        self._waiting = deque(group for group in self._waiting if group not in gone)
        self._by_serial = [entry for entry in self._by_serial if entry[1] not in gone]
        self._gone(groups)

    def drop_older(self, version: int) -> list[Group]:
        """Take out all groups whose stalest sample is older than a version."""
        if self._stalest >= version:
            return []
        old = [group for group in self._waiting if group.oldest < version]
        old += [group for _, group in self._by_serial if group.oldest < version]
        if old:
            self.remove(old)
        stalest = self.oldest()
        self._stalest = inf if stalest is None else stalest
        return old

    def oldest(self) -> int | None:
        """Version of the stalest sample that waits; None where none waits."""
        groups = [*self._waiting, *(group for _, group in self._by_serial)]
        return min((group.oldest for group in groups), default=None)

    def _gone(self, groups: list[Group]) -> None:
        self.groups -= len(groups)
        self.samples -= sum(group.size for group in groups)
        self.tokens -= sum(group.tokens for group in groups)
