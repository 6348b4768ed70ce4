"""Tables, key figures and pictures in HTML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.page import basis, picture_tables, picture_words, table_notes
from rlsize.reports.wording import band, origin_word, shown, words
from rlsize.writers.html_parts import Html, element, joined
from rlsize.writers.inline_picture import inline_picture

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.reports.chart import Picture
    from rlsize.reports.report import Cell, Column, Table
    from rlsize.writers.inline_picture import Key

_NUMBER = re.compile(r"\$?-?[\d.,]+")


def table_html(table: Table, name: str) -> Html:
    """
    A table that scrolls by itself where it is too wide.

    Args:
        table: Its rows; the first cell of a row names it.
        name: Its id, which no other part of the page has.
    """
    head = element("tr", *(_head(column) for column in table.columns))
    rows = [_row(table, row, marked=place == table.marked) for place, row in enumerate(table.seen)]
    caption = element("caption", table.title, id=f"{name}-caption")
    whole = element("table", caption, element("thead", head), element("tbody", *rows))
    region = element("div", whole, class_="scroll", role="group", aria_labelledby=f"{name}-caption", tabindex=0)
    return joined(region, *(element("p", note, class_="note") for note in table_notes(table)))


def _head(column: Column) -> Html:
    return element("th", column.title, scope="col", class_=_class(column))


def _class(column: Column) -> str | None:
    return " ".join(filter(None, ["num" if column.side == "right" else "", "wide" if column.wide else ""])) or None


def _row(table: Table, row: Mapping[str, Cell], *, marked: bool) -> Html:
    first, *others = table.columns
    chosen = element("span", "chosen", class_="chip") if marked else ""
    name = element("th", _cell(table, row, first), chosen, scope="row", class_=_class(first))
    cells = (element("td", _cell(table, row, column), class_=_class(column)) for column in others)
    return element("tr", name, *cells, class_="chosen" if marked else None)


def _cell(table: Table, row: Mapping[str, Cell], column: Column) -> Html:
    """A value, with its band and who says so."""
    cell = row.get(column.key)
    known = not isinstance(cell, Figure) or cell.known
    below = basis(cell, table)
    return joined(element("span" if known else "em", shown(cell, column.key)), element("small", below) if below else "")


def facts_html(figures: Iterable[Figure]) -> Html:
    """The key figures: each with its band and who says so."""
    return element("dl", *map(_fact, figures), class_="facts")


def _fact(figure: Figure) -> Html:
    name, text = element("dt", words(figure.key)), shown(figure, figure.key)
    if not figure.known:
        return element("div", name, element("dd", text, class_="value missing"))
    number = _NUMBER.match(text)
    split = number.end() if number else len(text)
    value = element("dd", text[:split], element("span", text[split:]) if text[split:] else "", class_="value")
    chip = element("span", origin_word(figure), class_="chip")
    width = element("span", f"80 %: {band(figure)}") if figure.band else ""
    return element("div", name, value, element("dd", chip, width, class_="basis"))


def picture_html(picture: Picture, name: str) -> Html:
    """
    A picture with title, legend and the numbers behind it.

    Args:
        picture: What is drawn.
        name: What its ids begin with, which no other part of the page has.
    """
    drawn = inline_picture(picture, name, picture.title, picture_words(picture))
    caption = element(
        "figcaption",
        element("strong", picture.title),
        element("span", picture.subtitle) if picture.subtitle else "",
        element("ul", *map(_key, drawn.legend), class_="legend") if drawn.legend else "",
    )
    tables = [table_html(table, f"{name}-table-{place}") for place, table in enumerate(picture_tables(picture), 1)]
    numbers = element("details", element("summary", "The numbers"), *tables) if tables else ""
    return element("figure", caption, drawn.wide, drawn.narrow, numbers)


def _key(key: Key) -> Html:
    """An entry of the legend, with a sample of what is drawn."""
    if key.shape == "box":
        sample = element("rect", x=0, y=2, width=18, height=8, fill=key.colour)
    elif key.shape == "dot":
        sample = element("rect", x=6, y=3, width=6, height=6, rx=3, fill=key.colour)
    else:
        dashes = "5 3" if key.shape == "dashes" else None
        sample = element("line", x1=0, y1=6, x2=18, y2=6, stroke=key.colour, stroke_width=2.5, stroke_dasharray=dashes)
    return element("li", element("svg", sample, width=18, height=12, aria_hidden="true"), key.name)
