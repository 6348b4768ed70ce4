"""A review's page as people meet it: on screens large and small, in light and dark, on paper, by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.browser.conftest import LOOPS, Opened
from tests.effort import NIGHTLY

Show = Callable[..., Opened]
PHONE, LAPTOP = 390, 1440
LOOKS = ((PHONE, "dark"), (LAPTOP, "light"), *(((PHONE, "light"), (LAPTOP, "dark")) if NIGHTLY else ()))
CONTRAST = """() => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('figure svg text')].map((node) => {
    const ink = light(getComputedStyle(node).fill);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  });
}"""
WIDER = """() => [...document.querySelectorAll('body *')]
  .filter((node) => node.getBoundingClientRect().right > innerWidth + 0.5)
  .filter((node) => !node.closest('.scroll, figure svg, .skip'))
  .map((node) => node.outerHTML.slice(0, 100))"""
FOCUS = """() => {
  const node = document.activeElement;
  const seen = document.elementFromPoint(...["left", "top"].map((side) => node.getBoundingClientRect()[side] + 4));
  return [node.tagName, node.id, getComputedStyle(node).outlineStyle, node.contains(seen)];
}"""


def visible(opened: Opened, selector: str) -> int:
    """How many elements of a kind are to be seen."""
    return sum(node.is_visible() for node in opened.page.locator(selector).all())


@pytest.mark.parametrize("name", [*LOOPS, "hostile", "review"])
def test_a_page_asks_for_nothing_and_complains_of_nothing(show: Show, name: str) -> None:
    """Its own file is all that is loaded, even when a slider moves; no error, no warning, no dialog."""
    opened = show(name)
    opened.slider("gpus").press("ArrowRight")
    assert opened.requests == [opened.page.url]
    assert opened.complaints == []


def test_foreign_words_put_nothing_into_the_page(show: Show) -> None:
    """Hostile names make no element, no style and no script of their own."""
    opened = show("hostile")
    assert opened.page.locator("script").count() == 1
    assert opened.page.locator("style").count() == 1
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("h1").is_visible()
    assert "<script>alert(1)</script>" in opened.page.locator("h1").inner_text()


@pytest.mark.parametrize("name", ["overlapped", "hostile", "review"])
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_axe_finds_no_fault(show: Show, axe: str, name: str, scheme: str, width: int) -> None:
    """No serious or critical fault of accessibility, the numbers of pictures and changed results included."""
    opened = show(name, width=width, color_scheme=scheme)
    for details in opened.page.locator("details summary").all():
        details.click()
    opened.slider("gpus").press("End")
    opened.page.evaluate(axe)
    faults = opened.page.evaluate("axe.run()")["violations"]
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in faults if fault["impact"] != "minor"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_in_pictures_can_be_read(show: Show, scheme: str) -> None:
    """Text of every picture stands out from the page by 4.5 to 1, in light and in dark."""
    opened = show(color_scheme=scheme)
    found = opened.page.evaluate(CONTRAST)
    assert len(found) > 50
    assert min(found) >= 4.5


def test_dark_is_dark(show: Show) -> None:
    """The page takes on what the system asks for."""
    ground = "getComputedStyle(document.body).backgroundColor"
    assert show(color_scheme="light").page.evaluate(ground) == "rgb(255, 255, 255)"
    assert show(color_scheme="dark").page.evaluate(ground) == "rgb(20, 23, 26)"


@pytest.mark.parametrize("name", [*LOOPS, "hostile", "review"])
@pytest.mark.parametrize("width", [320, PHONE, 768, LAPTOP])
def test_nothing_is_wider_than_the_screen(show: Show, name: str, width: int) -> None:
    """The page does not scroll sideways; tables that do are regions that the keyboard reaches."""
    opened = show(name, width=width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.page.evaluate(WIDER) == []
    scrolling = opened.page.evaluate(
        "[...document.querySelectorAll('.scroll')].map((node) => [node.scrollWidth > node.clientWidth, node.tabIndex])"
    )
    assert all((tab == 0) == scrolls for scrolls, tab in scrolling)


def test_a_picture_has_a_drawing_for_each_screen(show: Show) -> None:
    """One of the two is shown, with the same name for a screen reader."""
    for width, shown, hidden in ((LAPTOP, "wide", "narrow"), (PHONE, "narrow", "wide")):
        opened = show(width=width)
        assert visible(opened, f"figure > svg.{shown}") == opened.page.locator("figure").count() == 4
        assert visible(opened, f"figure > svg.{hidden}") == 0
        name = "Two steps of staleness buy nearly all there is"
        assert opened.page.get_by_role("img", name=name).count() == 1


def test_text_on_a_phone_is_large_enough(show: Show) -> None:
    """No text of a picture is smaller than ten pixels on a phone."""
    opened = show(width=PHONE)
    heights = opened.page.evaluate(
        "[...document.querySelectorAll('figure > svg.narrow text')].map((node) => "
        "parseFloat(getComputedStyle(node).fontSize) * node.getScreenCTM().a || 99)"
    )
    assert len(heights) > 50
    assert min(heights) >= 10


def test_paper_has_values_where_the_screen_has_controls(show: Show) -> None:
    """Printed, sliders and navigation are gone, and what was chosen stands in their place; black on white."""
    opened = show(color_scheme="dark")
    opened.number("gpus").fill("96")
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert visible(opened, "input") == visible(opened, "button") == visible(opened, "nav") == 0
    assert visible(opened, ".printed") == len(opened.widget.sliders) if opened.widget else False
    assert opened.page.locator(".slider", has=opened.slider("gpus")).locator(".printed").inner_text() == "96 GPUs"
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.pdf(format="A4").startswith(b"%PDF")


def test_what_is_decided_by_fits_on_four_pages_and_the_appendix_begins_on_its_own(show: Show) -> None:
    """Recommendation, decision, sliders, what it depends on and how to verify it, of a real review on A4."""
    opened = show("review")
    opened.page.emulate_media(media="print")
    assert opened.page.evaluate("getComputedStyle(document.querySelector('.appendix')).breakBefore") == "page"
    titles = opened.page.locator("section:not(.appendix) > h2").all_inner_texts()
    assert {"The decision", "Try other numbers", "How to verify it after the change"} <= set(titles)
    opened.page.evaluate("document.querySelectorAll('.appendix, .made').forEach((node) => node.remove())")
    assert len(re.findall(rb"/Type */Page\b", opened.page.pdf(format="A4"))) <= 4


def test_without_scripts_the_plan_is_there(show: Show) -> None:
    """No control that does nothing; values, results and a word on why."""
    opened = show(java_script_enabled=False)
    assert visible(opened, "input") == visible(opened, "button") == 0
    assert opened.page.get_by_text("Without JavaScript").is_visible()
    assert opened.page.get_by_text("1,966 tok/s").is_visible()
    assert opened.page.locator("#w-out-step").inner_text() == "9.08 s"


def test_the_first_tab_skips_to_the_recommendation(show: Show) -> None:
    """A keyboard need not walk through the contents."""
    opened = show()
    opened.page.keyboard.press("Tab")
    skip = opened.page.locator(".skip")
    assert opened.page.evaluate("document.activeElement.className") == "skip"
    assert skip.bounding_box()["y"] >= 0
    opened.page.keyboard.press("Enter")
    assert opened.page.evaluate("document.activeElement.id") == "main"


def test_the_keyboard_reaches_every_control_and_sees_where_it_is(show: Show) -> None:
    """Tab walks through all links, fields and sliders in order, each with an outline, none covered."""
    opened = show(width=PHONE, reduced_motion="reduce")
    seen: list[Any] = []
    while not seen or seen[-1][0] != "BODY":
        opened.page.keyboard.press("Tab")
        seen.append(opened.page.evaluate(FOCUS))
    tags, named, outlines, inside = zip(*seen[:-1], strict=True)
    assert {"A", "INPUT", "BUTTON", "SUMMARY", "DIV"} == set(tags)
    names = [name for name in named if name.startswith("w-")]
    assert opened.widget is not None
    assert names == [
        name for slider in opened.widget.sliders for name in (f"w-{slider.key}-number", f"w-{slider.key}")
    ] + ["w-reset"]
    assert set(outlines) == {"solid"}
    assert [name or tag for tag, name, shown in zip(tags, named, inside, strict=True) if not shown] == []


def test_motion_is_only_for_those_who_like_it(show: Show) -> None:
    """Jumps within the page glide, unless the system asks for less motion."""
    glide = "getComputedStyle(document.documentElement).scrollBehavior"
    assert show(reduced_motion="no-preference").page.evaluate(glide) == "smooth"
    assert show(reduced_motion="reduce").page.evaluate(glide) == "auto"
