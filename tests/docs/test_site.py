"""The site's navigation holds every page, and its pages are those of the checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def test_navigation_names_every_page(root: Path) -> None:
    """A page of the documentation stands in `nav` of mkdocs.yml; pages of frameworks are found through their index."""
    said = (root / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(root).as_posix() for page in sorted(root.glob("docs/**/*.md"))]
    left = {"docs/nomenclature.md", *(page for page in pages if page.startswith("docs/frameworks/"))}
    assert [page for page in pages if f"- {page}\n" not in said and page not in left] == []
    assert "- docs/frameworks/README.md\n" in said


def test_staged_pages_have_what_they_link_to(generate: Any, tmp_path: Path) -> None:
    """Files outside the pages are copied, equations have pages of their own, and what cog reads is gone."""
    generate("site").stage(tmp_path)
    assert (tmp_path / "profiles/frameworks/verl.yaml").is_file()
    equation = (tmp_path / "docs/reference/equations/weight_sync_time.md").read_text(encoding="utf-8")
    assert equation.startswith("# weight_sync_time\n")
    concept = (tmp_path / "docs/concepts/weight-sync.md").read_text(encoding="utf-8")
    assert "../reference/equations/sync_pause.md" in concept
    assert "[[[" not in concept
