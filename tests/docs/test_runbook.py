"""The runbook's steps run as they are printed, one after the other, by somebody who has the run's logs and no plan."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

RUNBOOK = "docs/how-to/runbook.md"
_LIVE = ("http://", "${")  # engines that a test has not


def steps(page: str) -> list[list[str]]:
    """The commands of a page, in its order."""
    blocks = re.findall(r"^```(?:bash|console)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("rlsize ") and not any(map(line.count, _LIVE))]


@pytest.mark.long
def test_the_runbook_runs_as_printed(
    rlsize: Callable[..., Any], checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Record, diagnose, resize, verify, roll back, watch: what a step writes, a later one takes."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(checkout / "examples" / "operate", tmp_path / "examples" / "operate")
    for log in (tmp_path / "examples" / "operate").glob("*.jsonl"):
        shutil.copy(log, tmp_path)
    found = steps((checkout / RUNBOOK).read_text(encoding="utf-8"))
    assert [words[0] for words in found] == [
        *("observe", "diagnose", "manifest", "diagnose", "manifest", "observe", "alerts"),
    ]
    for words in found:
        ran = rlsize(*words)
        assert ran.code == 0, (words, ran.stderr)
    replicas = [
        yaml.safe_load(Path(name).read_text("utf-8"))["spec"]["replicas"] for name in ("resize.yaml", "rollback.yaml")
    ]
    assert replicas == [13, 8]
    (group,) = yaml.safe_load(Path("alerts/rules.yml").read_text(encoding="utf-8"))["groups"]
    assert {"RlsizeTrainerIdle", "RlsizeGoodputLow"} <= {rule.get("alert") for rule in group["rules"]}
