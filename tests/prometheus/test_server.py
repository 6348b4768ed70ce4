"""The fixtures themselves: a server with a history and a rule, and promtool."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.prometheus.conftest import Starter


def test_a_server_knows_its_history_and_evaluates_rules(prometheus_server: Starter, tmp_path: Path) -> None:
    """Samples of the past need no scrape, and a rule makes series of them."""
    now = time.time()
    history = f'# TYPE x gauge\nx{{pod="a"}} 3 {now - 60:.3f}\nx{{pod="b"}} 4 {now - 60:.3f}\n# EOF\n'
    rules = tmp_path / "rules.yml"
    rules.write_text('groups: [{name: own, rules: [{record: "x:sum", expr: "sum(x)"}]}]')
    server = prometheus_server({}, rules=[rules], history=history)
    assert {entry["metric"]["pod"] for entry in server.query("x")} == {"a", "b"}
    assert server.wait(lambda: server.query("x:sum"))[0]["value"][1] == "7"


def test_promtool_checks_rules(promtool: str, tmp_path: Path) -> None:
    """It passes a rule that can be read, and fails another."""
    for expression, code in (("up", 0), ("up up", 1)):
        rules = tmp_path / "rules.yml"
        rules.write_text(f'groups: [{{name: own, rules: [{{record: x, expr: "{expression}"}}]}}]')
        ran = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, check=False)
        assert ran.returncode == code
