"""
One colour for one thing in every chart, and what becomes of it on a page, on light and on dark.

The palette is Okabe and Ito's, which the colour-blind can tell apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

COLOURS: Mapping[str, str] = {
    "rollout": "#0072B2", "trainer": "#D55E00", "main": "#0072B2", "expected": "#0072B2", "nameplate": "#8DB9D6",
    "limit": "#444444", "other": "#009E73",
    "update": "#D55E00", "logprob": "#E69F00", "waiting": "#D3D3D3", "sync": "#009E73", "swap": "#CC79A7",
    "failure": "#000000",
}  # fmt: skip
"""By role."""
PHASES = frozenset({"update", "logprob", "waiting", "sync", "swap", "failure"})
"""Roles that keep their colour among areas, which else take the next one of `STACK`."""
STACK = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#F0E442")
"""Of things side by side."""
_HALF = 0.5
_RAMP = ((0.82, 0.90, 0.96), (0.34, 0.62, 0.81), (0.0, 0.25, 0.47))  # one sample, half, full; idle is white
ON_DARK: Mapping[str, str] = {
    "#0072b2": "#5aa9dc", "#d55e00": "#f08a45", "#009e73": "#3cc49c", "#cc79a7": "#dc96bd", "#e69f00": "#f0b63c",
    "#56b4e9": "#8fd3f7", "#999999": "#8b9299", "#f0e442": "#f0e442", "#8db9d6": "#4c7d9c", "#444444": "#b9bfc6",
    "#d3d3d3": "#4b5157", "#000000": "#e6e8ea",
}  # fmt: skip
"""What each colour of a chart becomes on a dark page, so that it stands out as far as it does on a light one."""
DRAWN: Mapping[str, str] = {
    "#ffffff": "var(--paper)", "#e3e3e3": "var(--rule)", "#111111": "var(--ink)", "#333333": "var(--ink)",
    "#555555": "var(--muted)", "#aaaaaa": "var(--axis)",
}  # fmt: skip
"""Colours of a chart that stand for paper, rules and text."""
_TEXT: Mapping[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#14171a"), "raised": ("#f6f7f8", "#1c2024"), "ink": ("#1b1f23", "#e6e8ea"),
    "muted": ("#59616a", "#a3abb3"), "rule": ("#dde1e5", "#343a41"), "axis": ("#9aa1a9", "#6b737c"),
    "accent": (COLOURS["main"], "#6cb6e8"),
    "caution": ("#8a4b00", "#f0b63c"),
}  # fmt: skip


def shaded(shade: float) -> tuple[float, float, float]:
    """A blue that is the darker the fuller something is, white for nothing. [0 to 1]"""
    if shade <= 0.0:
        return (1.0, 1.0, 1.0)
    upper = shade > _HALF
    low, high = _RAMP[1:] if upper else _RAMP[:2]
    share = 2.0 * shade - 1.0 if upper else 2.0 * shade
    red, green, blue = ((1.0 - share) * a + share * b for a, b in zip(low, high, strict=True))
    return red, green, blue


def page_colour(colour: str) -> str:
    """
    How a page says a colour of a chart, so that it suits light and dark.

    Args:
        colour: As `#0072b2`; one that no chart has by itself, such as a shade, stays as it is.

    >>> page_colour("#0072B2"), page_colour("#E3E3E3"), page_colour("#123456")
    ('var(--c-0072b2)', 'var(--rule)', '#123456')
    """
    lowered = colour.lower()
    return DRAWN.get(lowered) or (f"var(--c-{lowered[1:]})" if lowered in ON_DARK else colour)


def colour_rules() -> str:
    """The custom properties of CSS for all of it: light, and dark on screens that ask for dark."""
    light = {name: pair[0] for name, pair in _TEXT.items()} | {f"c-{colour[1:]}": colour for colour in ON_DARK}
    dark = {name: pair[1] for name, pair in _TEXT.items()} | {f"c-{key[1:]}": value for key, value in ON_DARK.items()}
    return (
        f":root {{ {_properties(light)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_properties(dark)} }} }}\n"
    )


def _properties(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour.lower()};" for name, colour in colours.items())
