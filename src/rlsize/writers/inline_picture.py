"""A chart as SVG inside a page: real text in the page's font, colours that suit light and dark, no style attributes."""

from __future__ import annotations

import re
import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from xml.etree import ElementTree as ET

from rlsize.dataclass import replace
from rlsize.writers.colours import page_colour
from rlsize.writers.html_parts import Html, harmless
from rlsize.writers.plot import drawing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.reports.chart import Picture
    from rlsize.writers.spans import Mpl

Shape: TypeAlias = Literal["line", "dashes", "dot", "box"]
_WIDE, _NARROW = 7.6, 4.3  # width; inches, so that text of 11 points is 13 to 15 pixels on a laptop and on a phone
_FLATTER = {_WIDE: 0.86, _NARROW: 0.8}  # of the height of a picture that has title and legend inside
_CROWDED = {_WIDE: 90, _NARROW: 40}  # letters of names along x that stand side by side
_STYLE: dict[Any, Any] = {
    "axes.edgecolor": "#AAAAAA",
    "xtick.color": "#AAAAAA",
    "ytick.color": "#AAAAAA",
    "xtick.labelcolor": "#555555",
    "ytick.labelcolor": "#555555",
}
_COLOURED = frozenset({"fill", "stroke", "stop-color", "color"})
_KEPT = _COLOURED | {
    "fill-opacity", "stroke-opacity", "opacity", "stroke-width", "stroke-linecap", "stroke-linejoin",
    "stroke-dasharray", "stroke-dashoffset", "stroke-miterlimit", "font-size", "font-weight", "font-style",
    "text-anchor", "clip-rule", "fill-rule",
}  # fmt: skip
_SIZE = re.compile(r"(?P<size>[\d.]+)px")
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_NO_TURN = re.compile(r"rotate\(-?0(\.0+)? [^)]*\)")


class Key(NamedTuple):
    """An entry of a legend: what it says, the colour as CSS says it, and the shape of what is drawn."""

    name: str
    colour: str
    shape: Shape


class InlinePicture(NamedTuple):
    """
    A picture for a page, whose title, subtitle and legend are text of the page.

    Args:
        wide: SVG for a page of a laptop and for paper.
        narrow: SVG for a phone.
        legend: What its colours stand for.
    """

    wide: Html
    narrow: Html
    legend: tuple[Key, ...]


def inline_picture(picture: Picture, name: str, title: str, description: str) -> InlinePicture:
    """
    Draw a picture for a page.

    Args:
        picture: What to draw; its title and subtitle are left to the page.
        name: What its ids begin with, so that no other picture of the page has the same.
        title: What a screen reader calls it.
        description: What it reads out.
    """
    bare = replace(picture, title="", subtitle="")
    drawn: dict[str, Html] = {}
    legend: tuple[Key, ...] = ()
    for width, which in ((_WIDE, "wide"), (_NARROW, "narrow")):
        with warnings.catch_warnings(), drawing(bare, _STYLE) as figure:
            warnings.simplefilter("ignore")  # letters that the font for measuring lacks; the page's fonts have them
            legend = tuple(_legend(figure))
            _fit(figure, width)
            stream = BytesIO()
            figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
        drawn[which] = _inlined(stream.getvalue(), f"{name}-{which}", which, title, description)
    return InlinePicture(drawn["wide"], drawn["narrow"], legend)


def _legend(figure: Mpl) -> Iterator[Key]:
    """The entries of all legends, which are taken out of the figure."""
    seen = set()
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is None:
            continue
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            key = Key(text.get_text().replace(r"\$", "$"), *_look(handle))
            if key not in seen:
                seen.add(key)
                yield key
        legend.remove()


def _look(handle: Mpl) -> tuple[str, Shape]:
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if isinstance(handle, Line2D):
        return page_colour(to_hex(handle.get_color())), "dashes" if handle.get_linestyle() == "--" else "line"
    if isinstance(handle, Patch):
        return page_colour(to_hex(handle.get_facecolor())), "box"
    return page_colour(to_hex(handle.get_facecolor()[0])), "dot"


def _fit(figure: Mpl, width: float) -> None:
    """Give a figure its width; panels keep their height, and names along x turn where they would run together."""
    height = figure.get_figheight()
    figure.set_size_inches(width, height * _FLATTER[width] if len(figure.axes) == 1 else height)
    for axes in figure.axes:
        names = [label.get_text() for label in axes.get_xticklabels()]
        words = [name for name in names if any(map(str.isalpha, name))]
        if len(words) > 1 and max(map(len, words)) * len(words) > _CROWDED[width]:
            axes.tick_params(axis="x", labelrotation=30)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("right")


def _inlined(svg: bytes, prefix: str, which: str, title: str, description: str) -> Html:
    """An SVG file as a part of a page."""
    root = ET.fromstring(svg)  # noqa: S314 (matplotlib wrote it a moment ago)
    _without(root, {"metadata", "style"})
    names = _renamed(root, prefix)
    for node in root.iter():
        _converted(node, names)
    labels = (("title", title), ("desc", description))
    for place, (tag, text) in enumerate(labels):
        label = ET.Element(tag, {"id": f"{prefix}-{tag}"})
        label.text = harmless(text)
        root.insert(place, label)
    root.attrib = {
        "class": which, "viewBox": root.attrib["viewBox"], "role": "img", "fill": "currentColor",
        "stroke-linejoin": "round", "aria-labelledby": f"{prefix}-title", "aria-describedby": f"{prefix}-desc",
    }  # fmt: skip
    return Html(ET.tostring(root, encoding="unicode"))


def _without(node: ET.Element, tags: set[str]) -> None:
    for child in list(node):
        if _local(child.tag) in tags:
            node.remove(child)
        else:
            _without(child, tags)


def _renamed(root: ET.Element, prefix: str) -> dict[str, str]:
    """New ids for what others refer to; the other ids go."""
    used: dict[str, str] = {}
    for node in root.iter():
        for name, value in node.attrib.items():
            found = _REFERENCE.findall(value) + ([value[1:]] if _local(name) == "href" and value[0] == "#" else [])
            for reference in found:
                used.setdefault(reference, f"{prefix}-{len(used)}")
    return used


def _converted(node: ET.Element, names: dict[str, str]) -> None:
    """Take namespaces, ids and style attributes off an element, and give it what they say in other ways."""
    node.tag = _local(node.tag)
    node.tail = None
    if node.tag not in {"text", "tspan"}:
        node.text = None
    found = dict(_plain(node.attrib, names))
    for entry in node.attrib.get("style", "").split(";"):
        name, _, value = (part.strip() for part in entry.partition(":"))
        if name == "font" and (size := _SIZE.search(value)):
            name, value = "font-size", size[0]
        if name in _KEPT:
            found[name] = page_colour(value) if name in _COLOURED else value
    if node.tag == "text" and found.get("fill") == page_colour("#000000"):
        del found["fill"]
    node.attrib = found


def _plain(attributes: dict[str, str], names: dict[str, str]) -> Iterator[tuple[str, str]]:
    for full, value in attributes.items():
        name = _local(full)
        if name == "id":
            if value in names:
                yield name, names[value]
        elif name == "href" and value[0] == "#":
            yield name, f"#{names[value[1:]]}"
        elif name == "transform" and _NO_TURN.fullmatch(value):
            continue
        elif name not in {"style", "xmlns", "version"}:
            yield name, _REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", _rounded(" ".join(value.split())))


def _rounded(value: str) -> str:
    """Coordinates in hundredths of a point."""
    return _DECIMALS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)


def _local(name: str) -> str:
    return name.rpartition("}")[2]
