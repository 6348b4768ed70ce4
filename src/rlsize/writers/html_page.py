"""A page as one HTML file that needs nothing but itself: no network, no fonts, no script from elsewhere."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from inspect import signature
from typing import TYPE_CHECKING, Any

from rlsize.facts.figure import Figure
from rlsize.reports.page import DIGITS, Output, basis, picture_tables, picture_words, table_notes
from rlsize.reports.wording import band, origin_word, shown, words
from rlsize.writers.colours import COLOURS, colour_rules, page_colour
from rlsize.writers.equation_script import script_name, script_of
from rlsize.writers.html_parts import Html, element, joined
from rlsize.writers.inline_picture import inline_picture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.reports.chart import Picture
    from rlsize.reports.page import Comparison, Formula, Page, Section, Slider, Strip, Widget
    from rlsize.reports.report import Cell, Column, Table
    from rlsize.writers.inline_picture import Key

_ASSETS = files("rlsize.writers") / "page_assets"
_NUMBER = re.compile(r"\$?-?[\d.,]+")

_STILL = "Without JavaScript the figures are those of the plan, and nothing can be moved."


def html_text(page: Page) -> str:
    """
    The page as HTML; the same page gives the same text.

    Args:
        page: What to write.

    Raises:
        UntranslatableError: An equation of the widget uses what is not translated to JavaScript.
    """
    style = colour_rules() + _asset("page.css")
    scripts = [_asset("page.js"), *([widget_script(page.widget, _asset("widget.js"))] if page.widget else [])]
    script = "\n".join(['"use strict";', *("{\n" + part + "}" for part in scripts)])  # a scope for each part
    # Id, title and content of everything below the recommendation
    named = ((f"section-{place}", section) for place, section in enumerate(page.sections, 1))
    parts = [(name, section.title, _section(section, name)) for name, section in named]
    if page.widget is not None:
        content = joined(element("p", page.widget.text), widget_html(page.widget))
        parts.insert(1, ("try", page.widget.title, content))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", page.title),
        element("link", rel="icon", href="data:,"),
        element("style", Html(style)),
    )
    top = element(
        "header",
        element("p", "Capacity review", class_="kind"),
        element("h1", page.title),
        element("p", page.question, class_="question"),
        class_="top",
    )
    # the command breaks between its words
    command = element("code", Html(" ".join(element("span", word) for word in page.command.split(" "))))
    made = element(
        "footer",
        joined(element("p", "Made by"), element("pre", command)) if page.command else "",
        element("p", page.made_with) if page.made_with else "",
        class_="made",
    )
    body = element(
        "body",
        element("a", "Skip to the recommendation", class_="skip", href="#main"),
        element("div", top, _contents(parts), _main(page, parts), made, class_="page"),
        element("script", Html(script)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en-GB')}\n"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and nothing runs, but these two texts; pictures inside the page may be data."""
    allowed = {"style-src": _digest(style), "script-src": _digest(script), "img-src": "data:"}
    denied = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    return "; ".join(f"{name} {value}" for name, value in (denied | allowed).items())


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _section(section: Section, name: str) -> Html:
    points = element("ol" if section.numbered else "ul", *(element("li", point) for point in section.listed))
    return joined(
        *(element("p", paragraph) for paragraph in section.text),
        points if section.listed else "",
        *(_picture(picture, f"{name}-picture-{place}") for place, picture in enumerate(section.pictures, 1)),
        *(_table(table, f"{name}-table-{place}") for place, table in enumerate(section.tables, 1)),
    )


def _contents(parts: list[tuple[str, str, Html]]) -> Html:
    entries = [("recommendation", "Recommendation"), *((name, title) for name, title, _ in parts)]
    links = (element("li", element("a", title, href=f"#{name}")) for name, title in entries)
    return element("nav", element("ol", *links), aria_label="Contents")


def _main(page: Page, parts: list[tuple[str, str, Html]]) -> Html:
    warned = element(
        "div",
        element("strong", "Before you trust this"),
        element("ul", *(element("li", warning) for warning in page.warnings)),
        class_="warnings", role="note",
    )  # fmt: skip
    answer = element(
        "section",
        element("h2", "Recommendation", id="recommendation-title"),
        element("p", page.recommendation, class_="lead"),
        element("dl", *map(_fact, page.facts), class_="facts") if page.facts else "",
        warned if page.warnings else "",
        id="recommendation", class_="answer-first", aria_labelledby="recommendation-title",
    )  # fmt: skip
    apart = {f"section-{place}": "appendix" for place, section in enumerate(page.sections, 1) if section.apart}
    others = (
        element(
            "section",
            element("h2", title, id=f"{name}-title"),
            content,
            id=name,
            class_=apart.get(name),
            aria_labelledby=f"{name}-title",
        )
        for name, title, content in parts
    )
    return element("main", answer, *others, id="main", tabindex=-1)


def _table(table: Table, name: str) -> Html:
    """
    A table that scrolls by itself where it is too wide.

    Args:
        table: Its rows; the first cell of a row names it.
        name: Its id, which no other part of the page has.
    """
    head = element("tr", *(element("th", one.title, scope="col", class_=_class(one)) for one in table.columns))
    rows = [_row(table, row, marked=place == table.marked) for place, row in enumerate(table.seen)]
    caption = element("caption", table.title, id=f"{name}-caption")
    whole = element("table", caption, element("thead", head), element("tbody", *rows))
    region = element("div", whole, class_="scroll", role="group", aria_labelledby=f"{name}-caption", tabindex=0)
    return joined(region, *(element("p", note, class_="note") for note in table_notes(table)))


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
    text, below = shown(cell, column.key, like=table.like(column)), basis(cell, table)
    return joined(element("span" if known else "em", text), element("small", below) if below else "")


def _fact(figure: Figure) -> Html:
    """A key figure with its band and who says so."""
    name, text = element("dt", words(figure.key)), shown(figure, figure.key)
    if not figure.known:
        return element("div", name, element("dd", text, class_="value missing"))
    number = _NUMBER.match(text)
    split = number.end() if number else len(text)
    value = element("dd", text[:split], element("span", text[split:]) if text[split:] else "", class_="value")
    chip = element("span", origin_word(figure), class_="chip")
    width = element("span", f"80 %: {band(figure)}") if figure.band else ""
    return element("div", name, value, element("dd", chip, width, class_="basis"))


def _picture(picture: Picture, name: str) -> Html:
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
    tables = [_table(table, f"{name}-table-{place}") for place, table in enumerate(picture_tables(picture), 1)]
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


def widget_html(widget: Widget) -> Html:
    """
    The sliders at their start, and what follows from it; without a script, or on paper, they are plain text.

    Args:
        widget: What may be changed, and what follows.
    """
    said = widget.said(widget.start)
    names = " ".join(f"w-{slider.key}" for slider in widget.sliders)
    summary = element(
        "output", widget.summary.format(**said), id="w-summary", for_=names, aria_live="polite", aria_atomic="true"
    )
    controls = element(
        "fieldset",
        element("legend", "What you may change"),
        *(_slider(slider) for slider in widget.sliders),
        element("button", "Back to the plan", type="button", id="w-reset"),
        class_="sliders",
    )
    results = element("dl", *(_output(output, said[output.key], names) for output in widget.outputs), class_="outputs")
    shown = element("div", element("p", summary), _strip(widget), class_="answer")
    still = element("p", _STILL, class_="note still")
    return element("div", shown, controls, results, still, class_="widget", id="widget")


def _slider(slider: Slider) -> Html:
    said, stops = slider.said(slider.start), slider.stops
    typed = f"{slider.start * slider.factor:.{slider.decimals}f}"
    label = element("label", slider.label, for_=f"w-{slider.key}")
    number = element(
        "input", type="number", id=f"w-{slider.key}-number", value=typed, min=_plain(slider.least * slider.factor),
        max=_plain(slider.most * slider.factor), step="any", inputmode="decimal", autocomplete="off",
        aria_label=f"{slider.label}, exact value, {slider.unit}",
    )  # fmt: skip
    entry = element("span", number, element("span", slider.unit, aria_hidden="true"), class_="entry")
    movable = element(
        "input", type="range", id=f"w-{slider.key}", min=0, max=len(stops) - 1, step=1,
        value=stops.index(slider.start), aria_valuetext=said, autocomplete="off",
    )  # fmt: skip
    return element("div", label, entry, element("span", said, class_="printed"), movable, class_="slider")


def _plain(value: float) -> str:
    return f"{value:.9g}"


def _output(output: Output | Comparison, said: str, names: str) -> Html:
    result = element("output", said, id=f"w-out-{output.key}", for_=names, aria_live="off")
    before = element("span", id=f"w-was-{output.key}", class_="was", hidden=True)
    return element("div", element("dt", output.label), element("dd", result, before))


def _strip(widget: Widget) -> Html:
    """The bar at its start; the script moves its parts."""
    values, strip = widget.worked(widget.start), widget.strip
    whole = sum(values[part.key] for part in strip.parts)
    left, bars = 0.0, []
    for place, part in enumerate(strip.parts):
        share = 100.0 * values[part.key] / whole
        idle = 100.0 * values[part.idle] / whole if part.idle else 0.0
        bars.append(_bar(f"w-part-{place}", left, share, page_colour(COLOURS[part.role])))
        bars.append(_bar(f"w-idle-{place}", left + share - idle, idle, "url(#w-hatch)"))
        left += share
    if strip.mark:
        at = f"{100.0 * values[strip.mark] / whole:.3f}%"
        bars.append(element("line", id="w-mark", x1=at, x2=at, y1=0, y2="100%", stroke="var(--ink)", stroke_width=2))
    drawn = element("svg", _HATCH, *bars, class_="strip", aria_hidden="true")
    return joined(drawn, _strip_legend(strip))


_HATCH = element(
    "defs",
    element(
        "pattern",
        element("rect", width=6, height=6, fill="var(--paper)", fill_opacity=0.55),
        element("rect", width=2, height=6, fill="var(--paper)"),
        id="w-hatch",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    ),
)


def _bar(name: str, left: float, share: float, fill: str) -> Html:
    return element("rect", id=name, x=f"{left:.3f}%", width=f"{share:.3f}%", y=4, height=24, fill=fill)


def _strip_legend(strip: Strip) -> Html:
    box = {"x": 0, "y": 1, "width": 14, "height": 10}
    found = [(part.label, [element("rect", **box, fill=page_colour(COLOURS[part.role]))]) for part in strip.parts]
    if any(part.idle for part in strip.parts):
        dark = element("rect", **box, fill="var(--muted)")
        found.append(("idle", [dark, element("rect", **box, fill="url(#w-hatch)")]))
    if strip.mark:
        line = element("line", x1=7, x2=7, y1=0, y2=12, stroke="var(--ink)", stroke_width=2)
        found.append((strip.mark_label, [line]))
    entries = (
        element("li", element("svg", *sample, width=14, height=12, aria_hidden="true"), label)
        for label, sample in found
    )
    return element("ul", *entries, class_="legend", aria_label=f"{strip.label}: what the bar shows")


def widget_script(widget: Widget, runtime: str) -> str:
    """
    The script of a widget: its description, its equations, and what moves the page.

    Args:
        widget: What may be changed, and what follows.
        runtime: The script that reads both.

    Raises:
        UntranslatableError: An equation uses what is not translated.
    """
    described = json.dumps(_shortened(_described(widget)), ensure_ascii=True, sort_keys=True).replace("<", "\\u003c")
    return "\n".join(
        [
            f"const WIDGET = {described};",
            script_of(formula.equation for formula in widget.formulas),
            "function worked(v) {",
            *map(_call, widget.formulas),
            "  return v;",
            "}",
            runtime,
        ]
    )


def _call(formula: Formula) -> str:
    """A formula in JavaScript, in which `v` has every value by its key."""
    passed = (f"v.{formula.inputs[name]}" for name in signature(formula.equation).parameters)
    return f"  v.{formula.key} = {script_name(formula.equation)}({', '.join(passed)});"


def _shortened(value: Any) -> Any:  # noqa: ANN401 (whatever JSON holds)
    """The same with numbers of twelve digits: the last ones of a float are the processor's, and a page is not."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: _shortened(entry) for key, entry in value.items()}
    return [_shortened(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _described(widget: Widget) -> dict[str, Any]:
    """What the script needs to know."""
    return {
        "constants": dict(widget.constants),
        "sliders": [
            _of(slider, "key", "unit", "least", "most", "start", "stops", "factor", "decimals")
            for slider in widget.sliders
        ],
        "outputs": [_described_output(output) for output in widget.outputs],
        "summary": widget.summary,
        "digits": DIGITS,
        "strip": {"parts": [_of(part, "key", "idle") for part in widget.strip.parts], "mark": widget.strip.mark},
    }


def _described_output(output: Output | Comparison) -> dict[str, Any]:
    if isinstance(output, Output):
        return _of(output, "key", "text", "keys", "decimals", "factor")
    return _of(output, "key", "first", "second", "words", "even")


def _of(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}
