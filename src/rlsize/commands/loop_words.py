"""The words for the modes of a loop."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.step_assembly import Loop

LOOPS: Mapping[str, Loop] = MappingProxyType(
    {
        "colocated": "colocated",
        "disaggregated": "synchronous",
        "sync": "synchronous",
        "partial": "synchronous",
        "overlapped": "one-step-off",
        "one-step-off": "one-step-off",
        "async": "async",
    }
)
"""The loop of each mode of a scenario."""
