"""Pages as HTML and Markdown: whole, self-contained, the same every time, and deaf to what foreign words ask for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.writers.page_example import HOSTILE, example_page, example_widget, hostile_page

from rlsize.equations.lengths import normal_share
from rlsize.reports.page import Formula, Page, Section
from rlsize.writers.colours import COLOURS, ON_DARK, STACK
from rlsize.writers.equation_script import UntranslatableError
from rlsize.writers.html_page import html_text
from rlsize.writers.html_parts import element, escaped
from rlsize.writers.markdown_page import page_markdown

EMPTY = {"meta", "link", "input", "img", "br"}


class Parsed(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), "no attribute twice"
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element of SVG without content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes what was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text that is shown."""
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def text() -> str:
    """The example as HTML."""
    return html_text(example_page())


@pytest.fixture(scope="module")
def parsed(text: str) -> Parsed:
    """The example's elements."""
    return Parsed(text)


@pytest.fixture(scope="module")
def hostile_html() -> str:
    """A page of hostile words as HTML."""
    return html_text(hostile_page())


def everything_said(page: Page) -> list[str]:
    """The words that a page has to show."""
    said = [page.title, page.question, page.recommendation, *page.warnings, page.made_with]
    for section in page.sections:
        said += [section.title, *section.text, *section.listed]
        said += [picture.title for picture in section.pictures]
        for table in section.tables:
            said += [table.title, *(column.title for column in table.columns)]
    return said


@pytest.mark.long
def test_everything_is_there(parsed: Parsed) -> None:
    """Question, recommendation, figures, sections, tables, pictures, warnings, command: all of it is text."""
    shown = " ".join(" ".join(parsed.texts).split())
    for said in everything_said(example_page()):
        assert said in shown
    assert " ".join(parsed.texts).count("predicted") > 5
    assert "needs --steps" in shown
    assert "80 %: 8.1 to 10.2" in shown
    command = "".join(parsed.texts).partition("Made by")[2]
    assert example_page().command in command


def test_the_page_is_a_document(text: str, parsed: Parsed) -> None:
    """Doctype, language, one h1, landmarks, a skip link, sections with headings, captions and scopes."""
    assert text.startswith("<!doctype html>\n<html lang=")
    tags = Counter(tag for tag, _ in parsed.elements)
    assert all(tags[tag] == 1 for tag in ("h1", "main", "header", "nav", "footer", "style", "script"))
    assert tags["h2"] == tags["section"] == len(example_page().sections) + 2
    assert tags["caption"] == tags["table"] > 5
    assert all(attributes.get("scope") in {"col", "row"} for attributes in parsed.all("th"))
    assert tags["figcaption"] == tags["figure"] == 4
    assert parsed.all("a")[0]["href"] == "#main"
    ids = {attributes["id"] for _, attributes in parsed.elements if "id" in attributes}
    assert {str(link["href"])[1:] for link in parsed.all("a")} <= ids


def test_ids_are_unique_and_references_find_theirs(text: str, parsed: Parsed) -> None:
    """Pictures that are drawn by the same program do not share names."""
    ids = Counter(attributes["id"] for _, attributes in parsed.elements if "id" in attributes)
    assert max(ids.values()) == 1
    used = set(re.findall(r"url\(#([^)]+)\)", text))
    for _, attributes in parsed.elements:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            used |= set((attributes.get(name) or "").split())
        if (attributes.get("href") or "").startswith("#"):
            used.add(str(attributes["href"])[1:])
    assert used <= set(ids)


def test_pictures_are_named_and_described(parsed: Parsed) -> None:
    """Every picture is an image with title and description; samples of a legend are hidden from screen readers."""
    for attributes in parsed.all("svg"):
        if attributes.get("role") == "img":
            assert attributes["aria-labelledby"]
            assert attributes["aria-describedby"]
        else:
            assert attributes["aria-hidden"] == "true"


def test_nothing_comes_from_elsewhere(text: str, parsed: Parsed) -> None:
    """No address of any kind; what loads is this file."""
    assert "http:" not in text
    assert "https:" not in text
    assert "//" not in re.sub(r"^// .*$", "", text.partition("<script>")[2], flags=re.MULTILINE)
    assert [attributes["href"] for attributes in parsed.all("link")] == ["data:,"]
    assert not [attributes for _, attributes in parsed.elements if "src" in attributes]
    assert not re.search(r"@import|@font-face|url\((?!#)", text)


def test_the_policy_lets_only_its_own_texts_run(text: str, parsed: Parsed) -> None:
    """The hashes are those of the style and the script; no element has a style or a handler of its own."""
    policy = next(
        str(attributes["content"])
        for attributes in parsed.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        content = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        assert f"{tag}-src 'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy
    for _, attributes in parsed.elements:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]


@pytest.mark.long
def test_the_same_page_gives_the_same_bytes(text: str) -> None:
    """In this process and in another one, with other hashes of strings."""
    program = (
        "import sys; from hashlib import sha256; from tests.writers.page_example import example_page;"
        "from rlsize.writers.html_page import html_text; from rlsize.writers.markdown_page import page_markdown;"
        "print(sha256((html_text(example_page()) + page_markdown(example_page())).encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert printed.strip() == sha256((text + page_markdown(example_page())).encode()).hexdigest()


def test_sliders_are_labelled_and_say_their_value(parsed: Parsed) -> None:
    """Every slider has a label, a text for its value and a field for an exact one; results are live regions."""
    labelled = {attributes["for"] for attributes in parsed.all("label")}
    ranges = [attributes for attributes in parsed.all("input") if attributes["type"] == "range"]
    numbers = [attributes for attributes in parsed.all("input") if attributes["type"] == "number"]
    assert labelled == {attributes["id"] for attributes in ranges}
    assert len(ranges) == len(numbers) == len(example_widget().sliders)
    assert next(attributes for attributes in ranges if attributes["id"] == "w-gpus")["aria-valuetext"] == "64 GPUs"
    assert all(attributes["aria-label"] for attributes in numbers)
    live = {attributes["id"]: attributes["aria-live"] for attributes in parsed.all("output")}
    assert [name for name, said in live.items() if said == "polite"] == ["w-summary"]


def test_the_widget_opens_with_what_python_works_out(parsed: Parsed) -> None:
    """Without a script the figures are there, too."""
    widget = example_widget()
    said = widget.said(widget.start)
    shown = " ".join(parsed.texts)
    assert all(words in shown for words in said.values())
    assert widget.summary.format(**said) in shown


def test_an_equation_that_is_not_translated_stops_the_page() -> None:
    """Nothing is guessed: the error names equation, line and construct."""
    widget = example_widget()
    formula = Formula(key="x", equation=normal_share, inputs={"deviate": "gpus"})
    page = replace(example_page(), widget=widget._replace(formulas=(*widget.formulas, formula)))
    with pytest.raises(UntranslatableError, match=r"lengths\.normal_share, line \d+: a call of what is no equation"):
        html_text(page)


@pytest.mark.long
def test_hostile_words_stay_words(hostile_html: str) -> None:
    """Tags, scripts, escapes, format strings and formulas of foreign names are shown, and nothing else happens."""
    parsed = Parsed(hostile_html)
    tags = Counter(tag for tag, _ in parsed.elements)
    assert tags["script"] == tags["style"] == tags["main"] == 1
    assert not tags["img"]
    shown = " ".join(parsed.texts)
    for word in ("</script><script>alert(1)</script>", "]]><!-- --><style>", "\"'><img src=x onerror=alert(1)>"):
        assert shown.count(word) > 10
    assert "$\\frac{1}{$ & {0} {key} %s" in shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", hostile_html)
    hostile_html.encode()


@pytest.mark.long
def test_hostile_words_cannot_end_the_script() -> None:
    """A unit or a key that holds a tag stays inside the script's text."""
    widget = example_widget()
    slider = replace(widget.sliders[0], unit=HOSTILE[0])
    page = replace(example_page(), widget=widget._replace(sliders=(slider, *widget.sliders[1:])))
    script = html_text(page).partition("<script>")[2].partition("</script>")[0]
    described = json.loads(script.partition("const WIDGET = ")[2].partition(";\n")[0])
    assert described["sliders"][0]["unit"] == HOSTILE[0]


def test_a_page_without_extras_is_whole(hostile_html: str) -> None:
    """No widget, no figures, no warnings: no empty shell of them either."""
    bare = Page(title="T", question="Q", recommendation="R", sections=(Section(title="S", text=("P",)),))
    text = html_text(bare)
    tags = Counter(tag for tag, _ in Parsed(text).elements)
    assert not {"dl", "ul", "output", "pre", "table", "figure"} & set(tags)
    assert "WIDGET" not in text
    assert len(text) < len(hostile_html)
    assert page_markdown(bare) == "# T\n\nQ\n\n## Recommendation\n\n**R**\n\n## S\n\nP\n"


def test_markdown_has_every_section() -> None:
    """Words, tables, the numbers behind pictures, sliders and results where they start, the command."""
    text = page_markdown(example_page())
    for section in example_page().sections:
        assert f"\n## {section.title}\n" in text
    for said in everything_said(example_page()):
        assert said.replace("_", "\\_") in text
    assert f"\n```\n{example_page().command}\n```\n" in text
    assert "| step time | 8.9 s | 8.1 to 10.2 | predicted |" in text
    assert "| 44 + 20 | 6.3 | 2.6 | 0.7 |" in text
    assert "| Cluster size | 64 GPUs |" in text
    assert "8.1 s (measured, 7.4 to 9.3)" in text
    assert "\n1. The trainer's idle fraction" in text


def test_markdown_keeps_hostile_words_from_meaning_anything() -> None:
    """No tag, no table, no heading, no emphasis, no fence and no escape code that a foreign word asked for."""
    text = page_markdown(replace(hostile_page(), question="# not a heading", made_with="1. not a list"))
    outside = re.sub(r"```\n.*?\n```", "", text, flags=re.DOTALL)
    assert "<" not in outside
    assert "\n\\# not a heading\n" in text
    assert "\n1\\. not a list" in text
    assert not re.search(r"(?<!\\)\|b", outside)
    assert "\x1b" not in text
    text.encode()


def test_every_colour_of_a_chart_has_its_own_on_dark() -> None:
    """No series of a picture fades into a dark page."""
    assert {colour.lower() for colour in (*COLOURS.values(), *STACK)} <= set(ON_DARK)


def test_elements_escape_what_is_not_html() -> None:
    """Text is escaped once, HTML never; True is an attribute without value, None is none."""
    assert element("p", "<b>", escaped("<i>"), title='"', hidden=True, id=None) == (
        '<p title="&quot;" hidden>&lt;b&gt;&lt;i&gt;</p>'
    )
