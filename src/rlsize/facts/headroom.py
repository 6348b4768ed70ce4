"""Headroom: the derating of a rate for what it does not contain yet."""

from __future__ import annotations

from typing import Literal, TypeAlias

HeadroomPart: TypeAlias = Literal["sync_pauses", "stragglers", "drift", "ramp", "tail"]

HEADROOM_PARTS: tuple[HeadroomPart, ...] = ("sync_pauses", "stragglers", "drift", "ramp", "tail")
"""What headroom covers: pauses for weight syncs, slow instances, drift of lengths and settings, filling, draining."""

FULL_HEADROOM = 0.8
"""For a rate that contains nothing of what headroom covers; a starting default of the sizing runbook, not a law."""

PLAIN_HEADROOM = 1.0
"""For questions about rates as they are: the split of the lesson, the backlog at its fastest."""
