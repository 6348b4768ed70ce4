"""A chart as SVG inside a page: real text in the page's font, colours that suit light and dark, no style attributes."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from xml.etree import ElementTree as ET

from rlsize.writers.colours import page_colour
from rlsize.writers.html_parts import Html, harmless
from rlsize.writers.plot import drawing, small_svg

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
        svg = small_svg(stream.getvalue().decode("utf-8"), f"{name}-{which}-")
        drawn[which] = _inlined(svg, f"{name}-{which}", which, title, description)
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


def _inlined(svg: str, prefix: str, which: str, title: str, description: str) -> Html:
    """An SVG file as a part of a page."""
    root = ET.fromstring(svg)  # noqa: S314 (matplotlib wrote it a moment ago)
    for definitions in root.findall(".//{*}style/.."):
        definitions[:] = [part for part in definitions if _local(part.tag) != "style"]
    for node in root.iter():
        _converted(node)
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


def _converted(node: ET.Element) -> None:
    """Take namespaces and style attributes off an element, and give it what they say in other ways."""
    node.tag = _local(node.tag)
    node.tail = None
    if node.tag not in {"text", "tspan"}:
        node.text = None
    found = {_local(name): value for name, value in node.attrib.items() if name not in {"style", "version"}}
    for entry in node.attrib.get("style", "").split(";"):
        name, _, value = (part.strip() for part in entry.partition(":"))
        if name == "font" and (size := _SIZE.search(value)):
            name, value = "font-size", size[0]
        if name in _KEPT:
            found[name] = page_colour(value) if name in _COLOURED else value
    if node.tag == "text" and found.get("fill") == page_colour("#000000"):
        del found["fill"]
    node.attrib = found


def _local(name: str) -> str:
    return name.rpartition("}")[2]
