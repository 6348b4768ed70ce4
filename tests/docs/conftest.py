"""Where the documentation is: in the checkout around these tests, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout; the test is skipped where the tests stand alone."""
    found = next(
        (folder for folder in Path(__file__).resolve().parents if (folder / "docs" / "tutorial.md").is_file()), None
    )
    if found is None:
        pytest.skip("the documentation is not beside these tests")
    return found


@pytest.fixture(scope="session")
def pages(root: Path) -> dict[Path, str]:
    """Every Markdown page of the project with its text."""
    found = [
        *root.glob("*.md"),
        *root.glob("docs/**/*.md"),
        *root.glob("examples/*.md"),
        root / "profiles" / "README.md",
    ]
    return {page: page.read_text(encoding="utf-8") for page in sorted(found)}
