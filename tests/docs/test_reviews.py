"""The committed capacity review is the page that its command writes now."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from difflib import unified_diff
from shutil import copy
from typing import TYPE_CHECKING

import pytest
from tests.effort import CI

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "docs/reviews"
_DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_MADE_BY = re.compile(r"^rlsize report .*$", re.MULTILINE)
_MADE_WITH = re.compile(r"rlsize [\w.+]+, facts [0-9a-f]+")


def _comparable(page: str) -> str:
    """
    A page without its drawings, and without what changes with every release: the version, the digest of all facts.

    Lines of other releases of matplotlib differ; what a drawing shows stands in words beside it.
    """
    return _MADE_WITH.sub("rlsize ..., facts ...", _DRAWING.sub("<svg/>", page))


def _differences(committed: str, made: str) -> list[str]:
    before, after = (_comparable(page).splitlines() for page in (committed, made))
    return [line[:300] for line in unified_diff(before, after, "committed", "made", n=0, lineterm="")]


@pytest.mark.skipif(not CI, reason="takes long, and CI checks it: RLSIZE_CI=1")
@pytest.mark.parametrize("form", ["md", "html"])
def test_the_committed_review_is_what_its_command_writes(form: str, root: Path, tmp_path: Path) -> None:
    """The command at the end of the page writes the page; `make docs-write` writes it anew."""
    path = f"{FOLDER}/review-32b.{form}"
    committed = (root / path).read_text(encoding="utf-8")
    markdown = (root / FOLDER / "review-32b.md").read_text(encoding="utf-8")
    written = _MADE_BY.search(markdown)
    assert written is not None
    command = shlex.split(written[0].replace("review-32b.md", f"review-32b.{form}"))
    (tmp_path / "examples").mkdir()
    copy(root / "examples" / "review-32b.yaml", tmp_path / "examples")
    (tmp_path / FOLDER).mkdir(parents=True)
    plain = {key: value for key, value in os.environ.items() if key != "RLSIZE_PROFILES"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        env=plain,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _differences(committed, (tmp_path / path).read_text(encoding="utf-8")) == []


def test_a_drawing_is_left_out_and_words_are_not() -> None:
    """The comparison sees a changed figure, and no changed line of a drawing."""
    page = '<p>118.7 s</p><svg class="wide"><path d="M 0 1"/></svg><p>rlsize 0.1.0, facts 0123abcd</p>'
    drawn = page.replace("M 0 1", "M 0 2").replace("0123abcd", "4567abcd")
    assert _differences(page, drawn) == []
    assert _differences(page, page.replace("118.7", "119.7")) != []
