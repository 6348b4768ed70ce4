"""SVG in fewer bytes is the same picture."""

from __future__ import annotations

import re
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest

from rlsize.reports.chart import Chart, Series
from rlsize.writers.plot import drawing, picture, small_svg

_NUMBER = re.compile(r"-?\d+\.?\d*")
_REFERENCE = re.compile(r"#(\w+)")
COUNTS = tuple(float(x) for x in range(200))
STEPS = Chart(
    title="Waiting & done < all",
    x_label="step",
    y_label="seconds",
    kind="areas",
    series=tuple(
        Series(name=name, xs=COUNTS, ys=tuple(size + x % 7 for x in COUNTS), steps=True)
        for name, size in (("busy", 20.0), ("idle", 4.0))
    ),
)


def drawn(chart: Chart) -> str:
    """What matplotlib itself writes."""
    with drawing(chart) as figure:
        stream = BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue().decode("utf-8")


def outlines(svg: str) -> list[list[tuple[float, ...]]]:
    """The corners of every path, without those that repeat the one before."""
    found = []
    for path in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}path"):  # noqa: S314 (we wrote it)
        steps = re.findall(r"[A-Za-z][^A-Za-z]*", path.attrib["d"])
        corners = [tuple(round(float(number), 2) for number in _NUMBER.findall(step)) for step in steps]
        found.append([corner for place, corner in enumerate(corners) if place == 0 or corner != corners[place - 1]])
    return found


def words(svg: str) -> list[str]:
    """The texts of a picture."""
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 (we wrote it)


def test_every_shape_stays_where_it_was(chart: Chart, bars: Chart) -> None:
    """All paths have the same corners, to a hundredth of a point."""
    for one in (chart, bars, STEPS):
        before = drawn(one)
        assert outlines(small_svg(before)) == outlines(before)


@pytest.mark.long
def test_words_stay_words(chart: Chart) -> None:
    """Every text of the picture is there, and a system without the font draws it in one that is as wide."""
    for one in (chart, STEPS):
        assert words(small_svg(drawn(one))) == words(drawn(one)) != []
    assert "'DejaVu Sans', Verdana, sans-serif" in picture(chart, "svg").decode("utf-8")


def test_whatever_is_referred_to_has_its_name(chart: Chart, bars: Chart) -> None:
    """Clip paths and markers are found under their new names, and no two have the same."""
    for one in (chart, bars, STEPS):
        svg = small_svg(drawn(one))
        names = re.findall(r' id="([^"]*)"', svg)
        assert len(names) == len(set(names))
        referred = re.findall(r'(?:url\(|href=")#([^")]+)', svg)
        assert referred
        assert set(referred) == set(names)


def test_areas_of_many_steps_take_few_bytes() -> None:
    """What matplotlib writes says most corners twice, to a millionth of a point."""
    assert len(small_svg(drawn(STEPS))) < 0.6 * len(drawn(STEPS))


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("M 0 1.50000 \nL 2.004 3 \nz\n", "M0 1.5L2 3z"),
        ("M 0 0 \nL 1.001 2 \nL 1.0 2.0 \nL 1 23 \n", "M0 0L1 2L1 23"),
        ("M -0.001 5 \nL 1.23456 2 ", "M0 5L1.23 2"),
    ],
)
def test_a_path_by_hand(path: str, short: str) -> None:
    """Hundredths, no white space, no point twice in a row."""
    assert small_svg(f'<path d="{path}"/>') == f'<path d="{short}"/>'
