"""Pictures inside a page: text, colours of the page, no style attributes, ids of their own."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree as ET

import pytest
from tests.effort import NIGHTLY
from tests.writers.page_example import HOSTILE

from rlsize.reports.chart import Bar, Chart, Gantt, Panels, Picture, Series
from rlsize.reports.page import picture_tables, picture_words
from rlsize.writers.inline_picture import InlinePicture, inline_picture
from rlsize.writers.plot import picture as picture_file

XS = (1.0, 2.0, 3.0)
LINES = Chart(
    title="Lines", x_label="GPUs", y_label="tok/s",
    series=(
        Series(name="supply", xs=XS, ys=XS, role="rollout"),
        Series(name="at nameplate", xs=XS, ys=XS[::-1], role="nameplate"),
    ),
)  # fmt: skip
DOTS = Chart(
    title="Dots", x_label="predicted", y_label="measured", log_x=True, log_y=True,
    series=tuple(Series(name=name, xs=XS, ys=XS, dots=True, bands=((0.5, 1.5), None, None)) for name in "ab"),
)  # fmt: skip
STACKED = Chart(
    title="Stacked", x_label="", y_label="bytes", kind="stacked",
    series=tuple(Series(name=name, xs=("grpo", "ppo"), ys=(1.0, 2.0)) for name in ("weights", "$2 & <more>")),
)  # fmt: skip
BARS = Chart(
    title="Bars", x_label="", y_label="s", kind="bars",
    series=(Series(name="", xs=tuple(f"a long name {n}" for n in range(8)), ys=tuple(map(float, range(8)))),),
)  # fmt: skip
AREAS = Chart(
    title="Areas", x_label="s", y_label="samples", kind="areas", right_label="tok/s",
    series=(Series(name="running", xs=XS, ys=XS), Series(name="rate", xs=XS, ys=XS, right=True)),
)  # fmt: skip
GANTT = Gantt(
    title="Lanes", x_label="s", lanes=("trainer", "one"), full=4, shade_label="samples",
    spans=(
        Bar(lane="trainer", start=0, end=2, name="update", role="update"),
        Bar(lane="one", start=0, end=2, shade=0.0), Bar(lane="one", start=2, end=3, shade=1.0),
    ),
)  # fmt: skip
PANELS = Panels(title="Panels", subtitle="two", charts=(LINES, AREAS, GANTT))
PICTURES: tuple[Picture, ...] = (LINES, DOTS, STACKED, BARS, AREAS, GANTT, PANELS)
every_picture = pytest.mark.parametrize("picture", PICTURES, ids=[picture.title for picture in PICTURES])


@cache
def drawn(picture: Picture) -> InlinePicture:
    """The picture for a page; drawn once."""
    return inline_picture(picture, "p", "What it says", "What it shows")


def elements(svg: str) -> list[ET.Element]:
    """Every element of a drawing, which is XML, too."""
    return list(ET.fromstring(svg).iter())  # noqa: S314 (drawn a moment ago)


@pytest.mark.long
@every_picture
def test_a_drawing_says_everything_by_attributes(picture: Picture) -> None:
    """The page's policy lets no style attribute through; nothing names a place elsewhere, text stays text."""
    for svg in (drawn(picture).wide, drawn(picture).narrow):
        found = elements(svg)
        assert not [node for node in found if "style" in node.attrib or node.tag in {"style", "metadata", "script"}]
        assert "http" not in svg
        assert "DejaVu" not in svg
        assert len([node for node in found if node.tag == "text"]) > 3
        assert not {"width", "height"} & set(found[0].attrib)


@every_picture
def test_a_drawing_takes_its_colours_from_the_page(picture: Picture) -> None:
    """Text is the page's, series and rules are custom properties; only shades stay as they are."""
    for node in elements(drawn(picture).wide):
        for name in ("fill", "stroke"):
            value = node.attrib.get(name, "none")
            assert (
                value in {"none", "currentColor"}
                or value.startswith(("var(--", "url(#"))
                or (isinstance(picture, (Gantt, Panels)) and re.fullmatch(r"#[0-9a-f]{6}", value))
            )


@every_picture
def test_ids_begin_with_the_name_and_are_all_needed(picture: Picture) -> None:
    """Two drawings on one page share none, and every reference finds its own."""
    inline = drawn(picture)
    ids: list[str] = []
    for which, svg in (("wide", inline.wide), ("narrow", inline.narrow)):
        own = [node.attrib["id"] for node in elements(svg) if "id" in node.attrib]
        assert all(name.startswith(f"p-{which}-") for name in own)
        used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", svg)) | {f"p-{which}-title", f"p-{which}-desc"}
        assert used == set(own)
        ids += own
    assert len(ids) == len(set(ids))


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("picture", PICTURES if NIGHTLY else [DOTS, PANELS], ids=lambda picture: picture.title)
def test_a_drawing_is_the_same_every_time(picture: Picture) -> None:
    """The same picture gives the same text."""
    assert drawn.__wrapped__(picture) == drawn(picture)


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        (LINES, [("supply", "line"), ("at nameplate", "dashes")]),
        (DOTS, [("a", "dot"), ("b", "dot")]),
        (STACKED, [("weights", "box"), ("$2 & <more>", "box")]),
        (AREAS, [("running", "box"), ("rate", "line")]),
        (GANTT, [("update", "box")]),
        (PANELS, [("supply", "line"), ("at nameplate", "dashes"), ("running", "box"), ("rate", "line"),
                  ("update", "box")]),
    ],
    ids=lambda value: getattr(value, "title", ""),
)  # fmt: skip
def test_the_legend_is_text_of_the_page(picture: Picture, expected: list[tuple[str, str]]) -> None:
    """Names with the shape and the colour of what is drawn; they are not drawn as well."""
    inline = drawn(picture)
    assert [(key.name, key.shape) for key in inline.legend] == expected
    assert all(key.colour in inline.wide for key in inline.legend)
    texts = {"".join(node.itertext()) for node in elements(inline.wide) if node.tag == "text"}
    assert not texts & {key.name for key in inline.legend}


def test_names_that_would_run_together_turn() -> None:
    """Many long names along x stand at a slant; a few short ones do not."""
    assert "rotate(-30" in drawn(BARS).wide
    assert "rotate(-30" not in drawn(STACKED).wide


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("word", HOSTILE)
def test_foreign_words_are_drawn_as_they_are(word: str) -> None:
    """In a page and in files: no formula, no tag, no control character, no error."""
    chart = Chart(title=word, x_label=word, y_label="", series=(Series(name=word, xs=XS, ys=XS),))
    inline = inline_picture(chart, "p", word, word)
    assert "<script" not in inline.wide
    assert "\x1b" not in inline.wide
    elements(inline.wide)
    elements(picture_file(chart, "svg").decode())


def test_the_numbers_behind_a_picture() -> None:
    """A row for each place along x, a column for each series, shares in percent; nothing for lanes or long series."""
    (table,) = picture_tables(LINES)
    assert [column.title for column in table.columns] == ["GPUs", "supply", "at nameplate"]
    assert [list(row.values()) for row in table.rows] == [[1.0, 1.0, 3.0], [2.0, 2.0, 2.0], [3.0, 3.0, 1.0]]
    assert len(picture_tables(PANELS)) == 2
    assert picture_tables(GANTT) == ()
    many = tuple(map(float, range(100)))
    assert picture_tables(Chart(title="", x_label="", y_label="", series=(Series(name="", xs=many, ys=many),))) == ()


def test_what_a_picture_shows_in_words() -> None:
    """What a screen reader says of it."""
    assert picture_words(LINES) == "tok/s over GPUs: supply 1 to 3; at nameplate 1 to 3."
    assert picture_words(PANELS).startswith("two. Lines, tok/s over GPUs:")
    assert picture_words(GANTT) == "Lanes over s: trainer, one."
