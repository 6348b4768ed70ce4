"""What is written by the program is what the program says now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from tests.effort import CI

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", ROOT / "profiles" / "README.md", *sorted(ROOT.glob("docs/**/*.md")))
    if page.is_file() and "[[[cog" in page.read_text(encoding="utf-8")
]

LONG = ("README.md", "docs/reference/nomenclature.md", "docs/concepts/", "docs/how-to/", "docs/tutorial")
"""Pages that take long: one asks every command for every flag, the others run what they tell of."""


@pytest.mark.parametrize("page", PAGES)
def test_outputs_and_reference_pages_are_up_to_date(
    page: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every cog block prints what stands below it; `make docs-write` writes the pages anew."""
    if page.startswith(LONG) and not CI:
        pytest.skip("takes long, and CI checks it: RLSIZE_CI=1")
    cogapp = pytest.importorskip("cogapp", reason="the pages are checked with cog, of the docs extra")
    monkeypatch.chdir(root)
    code = cogapp.Cog().main(["cog", "--check", "-n", "utf-8", "-I", "docs", page])
    assert code == 0, f"run `make docs-write`, which writes it anew:\n{''.join(capsys.readouterr())}"


def test_the_committed_schema_is_the_programs(root: Path) -> None:
    """The schema that editors check scenarios by is what `rlsize schema scenario` prints."""
    from rlsize.readers.file_kinds import schema_of

    committed = json.loads((root / "docs" / "reference" / "scenario.schema.json").read_text(encoding="utf-8"))
    assert committed == schema_of("scenario")


@pytest.mark.parametrize("name", ["memory.svg", "predict-rollout.svg", "predict-train.svg", "split.svg"])
def test_a_picture_shows_what_the_program_draws_now(name: str, root: Path, generate: Any) -> None:
    """A picture carries the words of its command's chart and the digest of its data, whatever drew the lines."""
    pictures = generate("pictures")
    drawn = pictures.chart(pictures.PICTURES[name])
    text = (root / "docs" / "images" / name).read_text(encoding="utf-8")
    assert [words for words in pictures.texts(drawn) if f">{escape(words)}</text>" not in text] == []
    assert text.endswith(pictures.signature(pictures.PICTURES[name], drawn)), "make docs-write draws it anew"


def test_a_picture_is_small(root: Path) -> None:
    """Under 60 kB each: a checkout is for code and words, and nobody reads points of curves."""
    sizes = {file.relative_to(root).as_posix(): file.stat().st_size for file in root.glob("docs/**/*.svg")}
    assert sizes
    assert {name: size for name, size in sizes.items() if size > 60_000} == {}


def test_every_picture_is_drawn_and_shown(root: Path, pages: dict[Path, str], generate: Any) -> None:
    """No picture is left over from a command that is gone, and each stands on a page."""
    names = {file.name for file in (root / "docs" / "images").iterdir()}
    assert names == set(generate("pictures").PICTURES)
    assert not [name for name in names if not any(f"images/{name}" in text for text in pages.values())]
