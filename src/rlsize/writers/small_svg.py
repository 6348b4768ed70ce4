"""What matplotlib writes as SVG in fewer bytes: the same shapes, in hundredths of a point."""

from __future__ import annotations

import re

_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_FONT = re.compile(r"'DejaVu Sans'")
_FONTS = "'DejaVu Sans', Verdana, sans-serif"  # Verdana is as wide
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(?:url\(|href=")#([^")]+)')
_OUTLINE = re.compile(r' d="([^"]*)"')
_PLACE = re.compile(r' (x|y|width|height|transform)="([^"]*)"')
_NO_TURN = re.compile(r' transform="rotate\(-?0(\.0+)? [^)]*\)"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_AROUND_COMMAND = re.compile(r"\s*([A-Za-z])\s*")
_AGAIN = re.compile(r"(L[^A-Za-z]+)(?:\1)+(?=[A-Za-z]|$)")
_INDENT = re.compile(r"\n\s+")


def small_svg(svg: str) -> str:
    """
    The same picture with fewer bytes.

    Coordinates are rounded to a hundredth of a point; metadata, names that nothing refers to, turns by nothing, points
    that repeat the one before and white space go.

    Args:
        svg: SVG as matplotlib writes it.
    """
    names = {name: f"n{place}" for place, name in enumerate(dict.fromkeys(_REFERENCE.findall(svg)))}
    svg = _METADATA.sub("", svg)
    svg = _FONT.sub(_FONTS, svg)
    svg = _ID.sub(lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", svg)
    svg = _REFERENCE.sub(lambda found: found[0].replace(found[1], names[found[1]]), svg)
    svg = _NO_TURN.sub("", svg)
    svg = _OUTLINE.sub(lambda found: f' d="{_outline(found[1])}"', svg)
    svg = _PLACE.sub(lambda found: f' {found[1]}="{_NUMBER.sub(_rounded, found[2])}"', svg)
    return _INDENT.sub("\n", svg)


def _outline(path: str) -> str:
    """The commands of a path, without the white space around them."""
    tight = _AROUND_COMMAND.sub(r"\1", _NUMBER.sub(_rounded, path)).strip()
    return _AGAIN.sub(r"\1", tight)


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
