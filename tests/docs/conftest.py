"""Where the documentation is: in the checkout around these tests, or nowhere."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

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
        *root.glob("profiles/README.md"),
    ]
    return {page: page.read_text(encoding="utf-8") for page in sorted(found)}


@pytest.fixture(scope="session")
def generate(root: Path) -> Any:
    """Imports a module of `docs/generate`: `generate("pictures")`."""
    sys.path.insert(0, str(root / "docs"))
    return lambda name: importlib.import_module(f"generate.{name}")
