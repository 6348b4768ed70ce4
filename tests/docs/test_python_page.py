"""The code of the page about Python runs, and prints what stands there."""

from __future__ import annotations

import doctest
import re
from typing import TYPE_CHECKING

import rlsize

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_runs_from_top_to_bottom(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block prints what stands below it; later blocks use names of earlier ones."""
    monkeypatch.chdir(root)
    monkeypatch.delenv("RLSIZE_PROFILES", raising=False)
    page = root / "docs" / "how-to" / "python.md"
    code = "\n".join(found["code"] for found in _BLOCK.finditer(page.read_text(encoding="utf-8")))
    assert ">>> " in code
    case = doctest.DocTestParser().get_doctest(code, {}, "python.md", str(page), 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(case, out=said.append)
    assert not said, "".join(said)


def test_the_page_names_the_public_functions(root: Path) -> None:
    """Each function and class of the public API that one calls is on the page."""
    text = (root / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
    answers = {"FleetAnswer", "SplitAnswer", "BacklogAnswer", "Planned"}  # what the functions return
    others = {"DoesNotFitError", "RlsizeError", "UnfinishedError", "__version__", "units"}
    assert not [name for name in set(rlsize.__all__) - answers - others if name not in text]
