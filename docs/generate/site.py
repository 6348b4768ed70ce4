"""
The pages as a site: laid out as they lie in the checkout, so that links hold, and each equation on a page of its own.

    PYTHONPATH=docs python -m generate.site FOLDER
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from generate.equation_reference import equation_pages
from generate.files import ROOT

_PAGES = ("*.md", "docs/**/*.md", "profiles/README.md", "examples/README.md")
_EQUATIONS = "docs/reference/equations.md"
_COG = re.compile(r"^<!-- \[\[\[(?:cog.*?\]\]\]|end\]\]\]) -->\n", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]*)(?P<anchor>#[^)\s]*)?(?=\))")
_CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def stage(folder: Path) -> None:
    """Write every page, and every file that a page links to, into a folder that did not exist or was made so."""
    shutil.rmtree(folder, ignore_errors=True)
    texts = {page: page.read_text(encoding="utf-8") for pattern in _PAGES for page in sorted(ROOT.glob(pattern))}
    own = equation_pages()
    texts[ROOT / _EQUATIONS] = texts[ROOT / _EQUATIONS].partition("\n## ")[0]
    texts |= {ROOT / "docs/reference/equations" / f"{name}.md": text for name, text in own.items()}
    for page, text in texts.items():
        written = folder / page.relative_to(ROOT)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(_linked(page, _plain(text), folder, set(own)), encoding="utf-8")


def _plain(text: str) -> str:
    """A page without what writes it; Markdown within HTML says that it is."""
    return _COG.sub("", text).replace("<details>", '<details markdown="1">')


def _linked(page: Path, text: str, folder: Path, equations: set[str]) -> str:
    """A page whose links lead within the site; the files that they name are copied."""

    def link(found: re.Match[str]) -> str:
        path, anchor = found["path"], (found["anchor"] or "").removeprefix("#")
        file = (page.parent / path).resolve() if path else page
        if file == ROOT / _EQUATIONS and anchor in equations:
            return f"{path.removesuffix('.md') or 'equations'}/{anchor}.md"
        target = folder / file.relative_to(ROOT)
        if file.is_dir():
            names = sorted(each.name for each in file.iterdir() if each.is_file())
            shutil.copytree(file, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            listed = "\n".join(f"- [{name}]({name})" for name in names)
            (target / "index.md").write_text(f"# {file.name}\n\n{listed}\n", encoding="utf-8")
            return f"{path.rstrip('/')}/index.md"
        if file.suffix != ".md":
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        return found[0]

    return "".join(part if part.startswith("`") else _LINK.sub(link, part) for part in _CODE.split(text))


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
