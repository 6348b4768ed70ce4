"""Headroom: the derating of a rate for what it does not contain yet; and the memory that a plan leaves free."""

from __future__ import annotations

from typing import Literal, TypeAlias

HeadroomPart: TypeAlias = Literal["sync_pauses", "stragglers", "drift", "ramp", "tail"]

HEADROOM_PARTS: tuple[HeadroomPart, ...] = ("sync_pauses", "stragglers", "drift", "ramp", "tail")
"""What headroom covers: pauses for weight syncs, slow instances, drift of lengths and settings, filling, draining."""

FULL_HEADROOM = 0.8
"""For a rate that contains nothing of what headroom covers; a starting default of the sizing runbook, not a law."""

PLAIN_HEADROOM = 1.0
"""For questions about rates as they are: the split of the lesson, the backlog at its fastest."""

MEMORY_MARGIN = 0.05
"""
Share of a GPU's memory, as it is sold, that the peak of a trainer leaves free whose layout nobody said. [1]

Of 45 published RL loops 43 are predicted to peak at 0.91 of it or less, and the fullest published training peak took
0.95 (torchtitan, 84.9 GiB of 96 GB). Processes see some per cent more than what is sold, which is what the CUDA context
and NCCL take.
"""
