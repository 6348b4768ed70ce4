"""What is written by the program is what the program says now."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rlsize.reports.equation_page import equation_names, page

if TYPE_CHECKING:
    from pathlib import Path


def test_outputs_and_reference_pages_are_up_to_date(root: Path) -> None:
    """Every cog block prints what stands below it; `make docs-write` writes the pages anew."""
    pytest.importorskip("cogapp", reason="the pages are checked with cog, of the docs extra")
    pages = [
        str(file.relative_to(root))
        for file in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]
        if "[[[cog" in file.read_text(encoding="utf-8")
    ]
    command = [sys.executable, "-m", "cogapp", "--check", "-n", "utf-8", "-I", "docs", *pages]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_committed_schema_is_the_programs(root: Path) -> None:
    """The schema that editors check scenarios by is what `rlsize schema scenario` prints."""
    from rlsize.readers.schemas import schema_of

    committed = json.loads((root / "docs" / "reference" / "scenario.schema.json").read_text(encoding="utf-8"))
    assert committed == schema_of("scenario")


@pytest.mark.parametrize("name", equation_names())
def test_every_argument_is_in_the_nomenclature(name: str, root: Path) -> None:
    """An argument of an equation has a row in the nomenclature, so that one quantity keeps one name."""
    text = (root / "docs" / "reference" / "nomenclature.md").read_text(encoding="utf-8")
    missing = [argument.name for argument in page(name).arguments if f"| `{argument.name}` |" not in text]
    assert not missing


def test_every_result_of_the_examples_is_in_the_nomenclature(root: Path) -> None:
    """A key that the examples print as JSON has a row in the nomenclature."""
    text = (root / "docs" / "reference" / "nomenclature.md").read_text(encoding="utf-8")
    documents = [json.loads(file.read_text("utf-8")) for file in root.glob("examples/*-json.out")]
    keys = {key for document in documents for part in ("results", "inputs") for key in document[part]}
    assert keys
    assert not sorted(key for key in keys if f"| `{key}` |" not in text)
