"""One colour for one thing in every chart; the palette is Okabe and Ito's, which the colour-blind can tell apart."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "rollout": "#0072B2", "trainer": "#D55E00", "main": "#0072B2", "expected": "#0072B2", "nameplate": "#8DB9D6",
        "limit": "#444444", "other": "#009E73",
        "update": "#D55E00", "logprob": "#E69F00", "waiting": "#D3D3D3", "sync": "#009E73", "swap": "#CC79A7",
        "failure": "#000000",
    }
)  # fmt: skip
"""By role."""
PHASES = frozenset({"update", "logprob", "waiting", "sync", "swap", "failure"})
"""Roles that keep their colour among areas, which else take the next one of `STACK`."""
STACK = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#F0E442")
"""Of things side by side."""
_HALF = 0.5
_RAMP = ((0.82, 0.90, 0.96), (0.34, 0.62, 0.81), (0.0, 0.25, 0.47))  # one sample, half, full; idle is white


def shaded(shade: float) -> tuple[float, float, float]:
    """A blue that is the darker the fuller something is, white for nothing. [0 to 1]"""
    if shade <= 0.0:
        return (1.0, 1.0, 1.0)
    upper = shade > _HALF
    low, high = _RAMP[1:] if upper else _RAMP[:2]
    share = 2.0 * shade - 1.0 if upper else 2.0 * shade
    red, green, blue = ((1.0 - share) * a + share * b for a, b in zip(low, high, strict=True))
    return red, green, blue
