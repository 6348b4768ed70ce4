"""
Fixtures for tests in a real browser: a headless Chromium, the pages in it, and what Python works out for them.

`make test-browser` gets Playwright and names its folder in RLSIZE_BROWSER_PACKAGES; without it, or without a Chromium,
these tests are skipped. The browser opens files of a temporary folder and is told to stay off the network.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rlsize.reports.page import Page, Widget

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = os.environ.get("RLSIZE_BROWSER_PACKAGES", "")
CHROMIUM = os.environ.get("RLSIZE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
REASON = "needs Playwright and a Chromium: run `make test-browser`"
FLAGS = [
    "--no-sandbox",  # root has no sandbox, and CI is root
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--disable-quic",
    "--disable-sync",
]
MOST_MILLISECONDS = 20_000
LOOPS = ("overlapped", "in turn", "colocated")


def pytest_runtest_setup() -> None:
    """Skip what needs a browser where there is none, with the way to get one."""
    if not (PACKAGES and CHROMIUM):
        pytest.skip(REASON)


@dataclass
class Opened:
    """A page in the browser, and all that it asked for or complained of."""

    page: Any
    widget: Widget | None
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def dismiss(self, dialog: Any) -> None:
        """Note a dialog, and close it."""
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def slider(self, key: str) -> Any:
        """The slider of a quantity."""
        return self.page.locator(f"#w-{key}")

    def number(self, key: str) -> Any:
        """The field for its exact value."""
        return self.page.locator(f"#w-{key}-number")

    def shown(self) -> dict[str, str]:
        """Every result that the page shows, by key."""
        found: dict[str, str] = self.page.evaluate(
            "Object.fromEntries([...document.querySelectorAll('[id^=w-out-]')]"
            ".map((node) => [node.id.slice(6), node.textContent]))"
        )
        return found

    def check(self, **values: float) -> None:
        """What is shown is what Python works out for these sliders, the others at their start."""
        assert self.shown() == self._said(values)

    def check_summary(self, **values: float) -> None:
        """The sentence that is read out says so, too, once the slider rests."""
        assert self.widget is not None
        self.page.wait_for_function(
            "(text) => document.getElementById('w-summary').textContent === text",
            arg=self.widget.summary.format(**self._said(values)),
        )

    def _said(self, values: dict[str, float]) -> dict[str, str]:
        assert self.widget is not None
        return self.widget.said(self.widget.start | values)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    sys.path.append(PACKAGES)
    playwright = importlib.import_module("playwright.sync_api")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


def review() -> Page:
    """The page that `rlsize report` makes of an example."""
    from rlsize.commands.report import review_page
    from rlsize.shell.inputs import Inputs

    inputs = Inputs(str(ROOT / "examples" / "unmeasured-8b.yaml"), texts={"gpu_hour_usd": "2.5"})
    page = review_page(inputs, "review.html", "Review")[1]
    assert page is not None
    return page


@pytest.fixture(scope="session")
def page_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Page]]:
    """The example's page, that of hostile words, a review, and the example's with a widget for each kind of loop."""
    from tests.writers.page_example import example_page, example_widget, hostile_page

    from rlsize.writers.html_page import html_text

    pages = {"hostile": hostile_page(), "review": review()}
    for loop in LOOPS:
        pages[loop] = replace(example_page(), widget=example_widget(loop=loop))
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, page in pages.items():
        file = folder / f"{name.replace(' ', '-')}.html"
        file.write_text(html_text(page), encoding="utf-8")
        found[name] = (file, page)
    return found


@pytest.fixture
def show(browser: Any, page_files: dict[str, tuple[Path, Page]]) -> Iterator[Callable[..., Opened]]:
    """Opens a page: `show("overlapped", width=390, color_scheme="dark")`."""
    with ExitStack() as contexts:

        def opened(name: str = "overlapped", width: int = 1280, height: int = 900, **options: Any) -> Opened:
            file, page = page_files[name]
            context = browser.new_context(viewport={"width": width, "height": height}, **options)
            contexts.callback(context.close)
            context.set_default_timeout(MOST_MILLISECONDS)
            tab = context.new_page()
            found = Opened(tab, page.widget)
            tab.on("request", lambda request: found.requests.append(request.url))
            tab.on("console", lambda message: found.complaints.append(message.text))
            tab.on("pageerror", lambda error: found.complaints.append(str(error)))
            tab.on("dialog", found.dismiss)
            tab.goto(file.as_uri())
            return found

        yield opened


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, which looks for faults of accessibility."""
    return (Path(PACKAGES) / "axe_playwright_python" / "axe.min.js").read_text(encoding="utf-8")
