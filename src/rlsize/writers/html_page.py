"""A page as one HTML file that needs nothing but itself: no network, no fonts, no script from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from rlsize.writers.html_parts import Html, element, joined
from rlsize.writers.html_table import facts_html, picture_html, table_html
from rlsize.writers.html_widget import widget_html, widget_script
from rlsize.writers.page_colours import colour_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.reports.page import Page, Section
    from rlsize.reports.sliders import Widget

_ASSETS = files("rlsize.writers") / "page_assets"


def html_text(page: Page) -> str:
    """
    The page as HTML; the same page gives the same text.

    Args:
        page: What to write.

    Raises:
        UntranslatableError: An equation of the widget uses what is not translated to JavaScript.
    """
    style, script = colour_rules() + _asset("page.css"), _script(page.widget)
    parts = list(_parts(page))
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
    body = element(
        "body",
        element("a", "Skip to the recommendation", class_="skip", href="#main"),
        element("div", _top(page), _contents(parts), _main(page, parts), _made(page), class_="page"),
        element("script", Html(script)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en-GB')}\n"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _script(widget: Widget | None) -> str:
    """All that the page runs, in a scope for each part."""
    parts = [_asset("page.js"), *([widget_script(widget, _asset("widget.js"))] if widget else [])]
    return "\n".join(['"use strict";', *("{\n" + part + "}" for part in parts)])


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and nothing runs, but these two texts; pictures inside the page may be data."""
    allowed = {"style-src": _digest(style), "script-src": _digest(script), "img-src": "data:"}
    denied = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    return "; ".join(f"{name} {value}" for name, value in (denied | allowed).items())


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _top(page: Page) -> Html:
    return element(
        "header",
        element("p", "Capacity review", class_="kind"),
        element("h1", page.title),
        element("p", page.question, class_="question"),
        class_="top",
    )


def _parts(page: Page) -> Iterator[tuple[str, str, Html]]:
    """Id, title and content of everything below the recommendation."""
    before = len(page.sections) if page.widget is None else page.widget_after
    sections = [(f"section-{place}", section) for place, section in enumerate(page.sections, 1)]
    for name, section in sections[:before]:
        yield name, section.title, _section(section, name)
    if page.widget is not None:
        yield "try", page.widget.title, joined(element("p", page.widget.text), widget_html(page.widget))
    for name, section in sections[before:]:
        yield name, section.title, _section(section, name)


def _section(section: Section, name: str) -> Html:
    points = element("ol" if section.numbered else "ul", *(element("li", point) for point in section.listed))
    return joined(
        *(element("p", paragraph) for paragraph in section.text),
        points if section.listed else "",
        *(picture_html(picture, f"{name}-picture-{place}") for place, picture in enumerate(section.pictures, 1)),
        *(table_html(table, f"{name}-table-{place}") for place, table in enumerate(section.tables, 1)),
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
        facts_html(page.facts) if page.facts else "",
        warned if page.warnings else "",
        id="recommendation", class_="answer-first", aria_labelledby="recommendation-title",
    )  # fmt: skip
    others = (
        element("section", element("h2", title, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title")
        for name, title, content in parts
    )
    return element("main", answer, *others, id="main", tabindex=-1)


def _made(page: Page) -> Html:
    return element(
        "footer",
        joined(element("p", "Made by"), element("pre", _command(page.command))) if page.command else "",
        element("p", page.made_with) if page.made_with else "",
        class_="made",
    )


def _command(command: str) -> Html:
    """A command that breaks between its words."""
    words = (element("span", word) for word in command.split(" "))
    return element("code", Html(" ".join(words)))
