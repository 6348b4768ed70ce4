"""Sliders in a real browser: every result is what the Python equations say."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from tests.browser.conftest import LOOPS, Opened
from tests.writers.page_example import example_widget

from rlsize.reports.page import Slider

Show = Callable[..., Opened]
CASES = [(loop, slider) for loop in LOOPS for slider in example_widget(loop=loop).sliders]
every_slider = pytest.mark.parametrize(("loop", "slider"), CASES, ids=[f"{loop}-{each.key}" for loop, each in CASES])


@every_slider
def test_the_keyboard_moves_a_slider(show: Show, loop: str, slider: Slider) -> None:
    """Arrows go a stop at a time, Page keys further, Home and End to the ends; the value is said with its unit."""
    opened = show(loop)
    opened.check()
    stops, movable = slider.stops, opened.slider(slider.key)
    place = stops.index(slider.start)
    for key, to in (
        ("ArrowRight", place + 1), ("ArrowUp", place + 2), ("ArrowLeft", place + 1), ("ArrowDown", place),
        ("Home", 0), ("End", len(stops) - 1),
    ):  # fmt: skip
        movable.press(key)
        assert int(movable.input_value()) == to
        assert movable.get_attribute("aria-valuetext") == slider.said(stops[to])
        opened.check(**{slider.key: stops[to]})
    movable.press("PageDown")
    assert int(movable.input_value()) < len(stops) - 1
    opened.check(**{slider.key: stops[int(movable.input_value())]})
    opened.check_summary(**{slider.key: stops[int(movable.input_value())]})


@every_slider
def test_a_slider_can_be_set(show: Show, loop: str, slider: Slider) -> None:
    """Dragged to a quarter or three quarters of its way."""
    opened = show(loop)
    for share in (0.25, 0.75):
        to = round(share * (len(slider.stops) - 1))
        opened.slider(slider.key).fill(str(to))
        opened.check(**{slider.key: slider.stops[to]})
        shown = f"{slider.stops[to] * slider.factor:.{slider.decimals}f}"
        assert opened.number(slider.key).input_value() == shown


@every_slider
def test_an_exact_value_can_be_typed(show: Show, loop: str, slider: Slider) -> None:
    """Between stops, too; what is too small or too large goes to the end, and nonsense changes nothing."""
    opened = show(loop)
    field = opened.number(slider.key)
    typed = f"{(0.7 * slider.least + 0.3 * slider.most) * slider.factor:.{slider.decimals}f}"
    field.fill(typed)
    opened.check(**{slider.key: float(typed) / slider.factor})
    field.press("Tab")
    opened.check(**{slider.key: float(typed) / slider.factor})
    assert field.input_value() == typed
    for text, value in (("1e12", slider.most), ("-5", slider.least)):
        field.fill(text)
        field.press("Tab")
        opened.check(**{slider.key: value})
    field.fill("")
    field.press("Tab")
    opened.check(**{slider.key: slider.least})
    assert field.input_value() == f"{slider.least * slider.factor:.{slider.decimals}f}"


@pytest.mark.parametrize("loop", LOOPS)
def test_all_sliders_together(show: Show, loop: str) -> None:
    """Anywhere that they can be moved to, results are those of the equations, and the way back leads to the plan."""
    opened, random = show(loop), Random(1)
    moved: dict[str, float] = {}
    assert opened.widget is not None
    for _ in range(8):
        places = {slider.key: random.randrange(len(slider.stops)) for slider in opened.widget.sliders}
        for key, place in places.items():
            opened.slider(key).fill(str(place))
        moved = {slider.key: slider.stops[places[slider.key]] for slider in opened.widget.sliders}
        opened.check(**moved)
    opened.check_summary(**moved)
    opened.page.locator("#w-reset").click()
    opened.check()
    opened.check_summary()
    assert not [node for node in opened.page.locator(".was").all() if node.is_visible()]


def test_what_changed_shows_what_the_plan_has(show: Show) -> None:
    """Beside a changed result stands the plan's; beside an unchanged one nothing."""
    opened = show()
    assert opened.widget is not None
    before = opened.widget.said(opened.widget.start)
    opened.slider("gpu_hour").press("End")
    assert opened.page.locator("#w-was-cost").inner_text() == f"plan: {before['cost']}"
    assert opened.page.locator("#w-was-step").is_hidden()


def test_the_bar_shows_the_split_and_the_idle_gpus(show: Show) -> None:
    """Parts are as wide as the pools are large, the hatched ends as wide as what idles, the line where they balance."""
    opened = show()
    assert opened.widget is not None
    opened.number("rollout_fraction").fill("50")
    found = opened.widget.worked(opened.widget.start | {"rollout_fraction": 0.5})

    def percent(name: str, attribute: str) -> float:
        return float(opened.page.locator(name).get_attribute(attribute).rstrip("%"))

    assert percent("#w-part-0", "width") == percent("#w-part-1", "x") == pytest.approx(50.0)
    for place, side in enumerate(("rollout", "trainer")):
        share = 100.0 * found[f"{side}_idle_gpus"] / 64
        assert percent(f"#w-idle-{place}", "width") == pytest.approx(share, abs=2e-3)
        end = percent(f"#w-idle-{place}", "x") + percent(f"#w-idle-{place}", "width")
        assert end == pytest.approx(50.0 * (place + 1), abs=2e-3)
    assert percent("#w-mark", "x1") == pytest.approx(100.0 * found["balanced_rollout_gpus"] / 64, abs=2e-3)
