"""The site of the documentation: it asks for nothing from elsewhere, its links lead somewhere, its search finds."""

from __future__ import annotations

import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.browser.conftest import MOST_MILLISECONDS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SITE = ROOT / "site"
PAGES = ("index", "docs/index", "docs/how-to/runbook", "docs/reference/equations/weight_sync_time")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The built site behind a server on loopback."""
    if not (SITE / "index.html").is_file():
        pytest.skip("no site is built here: run `make docs-site`")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """An empty tab, closed afterwards."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(MOST_MILLISECONDS)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_from_elsewhere(tab: Any, address: str, name: str) -> None:
    """Fonts, scripts and the search come from the site itself, and nothing complains."""
    requests, complaints = [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(f"{address}{name}.html", wait_until="networkidle")
    assert [url for url in requests if not url.startswith(address)] == []
    assert complaints == []


@pytest.mark.parametrize(
    ("words", "page"),
    [("weight_sync_time", "reference/equations/weight_sync_time"), ("two pools do not match", "how-to/runbook")],
)
def test_search_finds(tab: Any, address: str, words: str, page: str) -> None:
    """A page's own words lead to it."""
    tab.goto(f"{address}index.html", wait_until="networkidle")
    tab.keyboard.press("/")
    tab.keyboard.type(words)
    found = tab.locator(f"a[href*='{page}.html']:visible").first
    found.wait_for()
    tab.goto(f"{address}{found.get_attribute('href').removeprefix(address).lstrip('/')}")
    assert tab.url.partition("#")[0].partition("?")[0] == f"{address}docs/{page.removeprefix('docs/')}.html"


def test_every_link_leads_to_a_file() -> None:
    """Each page, picture and file that a page of the site names is in the site."""
    if not SITE.is_dir():
        pytest.skip("no site is built here: run `make docs-site`")
    broken = []
    for page in SITE.rglob("*.html"):
        links = _Links()
        links.feed(page.read_text(encoding="utf-8"))
        for target in links.found:
            parts = urlsplit(target)
            file = page.parent / unquote(parts.path) if parts.path else page
            if not parts.scheme and page.name != "404.html" and not file.exists():
                broken.append(f"{page.relative_to(SITE)}: {target}")
    assert broken == []


class _Links(HTMLParser):
    """What a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in {"href", "src"} and value]
