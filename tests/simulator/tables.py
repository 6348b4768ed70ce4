"""Outcomes that are written down instead of drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat

NEVER = 1e9


@dataclass(frozen=True)
class Table:
    """
    Outcomes that are written down.

    Args:
        rows: Lengths of the samples of each group, over and over. [token]
        rejected: Groups that dynamic sampling throws out.
        tool: Time of every tool call. [s]
        turns_drawn: Turns of samples, by member; two where none are listed. [1]
        verify: Time of every verification. [s]
        lost: Times that an instance is up before it is lost, in units of their mean; then never again. [1]
        failing: Times that the trainer works before it fails, in units of their mean; then never again. [1]
    """

    rows: tuple[tuple[int, ...], ...]
    rejected: frozenset[int] = frozenset()
    tool: float = 0.0
    turns_drawn: tuple[int, ...] = ()
    verify: float = 0.0
    lost: dict[int, tuple[float, ...]] = field(default_factory=dict)
    failing: tuple[float, ...] = ()

    def lengths(self, group: int) -> list[int]:
        """The row of the group."""
        return list(self.rows[group % len(self.rows)])

    def accepted(self, group: int) -> bool:
        """Unless it is listed."""
        return group not in self.rejected

    def place(self, group: int, member: int) -> float:
        """By turns on the lower and the upper half."""
        return (group + member) % 2 / 2

    def turns(self, group: int, member: int) -> int:  # noqa: ARG002 (the protocol's arguments)
        """As listed, else two."""
        return self.turns_drawn[member] if self.turns_drawn else 2

    def tool_seconds(self, group: int, member: int, turn: int) -> float:  # noqa: ARG002 (the protocol's arguments, and all are alike)
        """The same for all."""
        return self.tool

    def verify_seconds(self, group: int, member: int) -> float:  # noqa: ARG002 (the protocol's arguments, and all are alike)
        """The same for all."""
        return self.verify

    def losses(self, instance: int) -> Iterator[float]:
        """As listed."""
        return chain(self.lost.get(instance, ()), repeat(NEVER))

    def failures(self) -> Iterator[float]:
        """As listed."""
        return chain(self.failing, repeat(NEVER))

    def stragglers(self, instances: int, share: float) -> list[int]:
        """The first ones."""
        return list(range(round(instances * share)))
