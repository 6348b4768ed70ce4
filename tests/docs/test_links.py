"""Links between pages lead somewhere, and every page can be reached."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CODE = re.compile(r"^```.*?^```|<!--.*?-->|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
_ABSOLUTE = re.compile(r"(?<![\w.~)])/(?:home|root|tmp|mnt|opt|Users)/")


def _links(text: str) -> Iterator[str]:
    for found in _LINK.finditer(_CODE.sub("", text)):
        if "://" not in found["target"]:
            yield found["target"]


@cache
def _anchors(text: str) -> set[str]:
    """The anchors of a page, made of its headings as GitHub makes them."""
    headings = [found["text"].lower() for found in _HEADING.finditer(_FENCED.sub("", text))]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def _broken(pages: dict[Path, str], root: Path, *, into_code: bool) -> list[str]:
    """Links whose target is missing; those into `src/` and `profiles/`, or all others."""
    broken = []
    for page, text in pages.items():
        for target in _links(text):
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            inside = file.is_relative_to(root / "src") or (
                file.is_relative_to(root / "profiles") and file.name != "README.md"
            )
            if inside == into_code and not (
                file.exists() and (not anchor or anchor in _anchors(file.read_text(encoding="utf-8")))
            ):
                broken.append(f"{page.name}: {target}")
    return broken


def test_links_resolve(pages: dict[Path, str], root: Path) -> None:
    """Each relative link names a file that is there, and each anchor a heading of it."""
    assert not _broken(pages, root, into_code=False)


def test_links_into_code_and_profiles_resolve(pages: dict[Path, str], root: Path) -> None:
    """A link to a source file or a profile names one that is there."""
    if not (root / "src").is_dir():
        pytest.skip("the pages are beside these tests, and src/ and profiles/ are not")
    assert not _broken(pages, root, into_code=True)


def test_every_page_can_be_reached(root: Path, pages: dict[Path, str]) -> None:
    """From README.md links lead to every page of the documentation."""
    seen: set[Path] = set()
    waiting = [root / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page not in pages:
            continue
        seen.add(page)
        waiting += [(page.parent / target.partition("#")[0]).resolve() for target in _links(pages[page])]
    pointer = root / "docs" / "nomenclature.md"  # for those who look there first
    assert sorted(page for page in pages if page not in seen and page != pointer) == []


def test_no_page_names_a_place_on_somebodys_machine(pages: dict[Path, str]) -> None:
    """No output that was pasted or generated holds an absolute path."""
    assert not [page.name for page, text in pages.items() if _ABSOLUTE.search(text)]


@pytest.mark.parametrize(
    "part", ["> **Takeaway.**", "<details><summary>Answer</summary>", "```text", "reference/equations.md#"]
)
def test_a_concept_page_has_its_parts(part: str, root: Path) -> None:
    """Each concept has an equation with a number, a takeaway, a question with a hidden answer, and its equations."""
    assert not [
        page.name for page in (root / "docs" / "concepts").glob("*.md") if part not in page.read_text(encoding="utf-8")
    ]
