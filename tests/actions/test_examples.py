"""The example workflows and the pre-commit hook run as they stand."""

from __future__ import annotations

import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from rlsize.facts.budget import set_limits
from rlsize.readers.saved_files import read_budget, read_plan
from rlsize.shell.app import COMMANDS
from rlsize.version import VERSION


def steps(root: Path, name: str) -> list[dict[str, Any]]:
    """The steps of the only job of an example workflow."""
    workflow = yaml.safe_load((root / "examples" / "workflows" / name).read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


@pytest.mark.long
@pytest.mark.parametrize(("price", "code", "verdict"), [("2.50", 0, "within-budget"), ("2.75", 1, "over-budget")])
def test_the_workflow_with_the_action_runs(runner: Any, root: Path, price: str, code: int, verdict: str) -> None:
    """The action with the workflow's inputs, then the step that says what became of it."""
    action, said = (step for step in steps(root, "budget.yml") if "run" in step or "rlsize" in step.get("uses", ""))
    inputs = {name: text.replace("2.50", price) for name, text in action["with"].items()}
    assert runner.action(root / "action.yml", inputs) == code
    known = {f"steps.{action['id']}.outputs.{name}": value for name, value in runner.outputs.items()}
    assert runner.step(said, known) == 0
    assert runner.output.endswith(f"budget: {verdict}\n")


@pytest.mark.long
@pytest.mark.parametrize(
    ("price", "code", "failures"), [("2.40", 0, "0"), ("2.75", 1, "1"), ("x", 2, "0")], ids=["kept", "over", "broken"]
)
def test_the_workflow_without_the_action_runs(runner: Any, root: Path, price: str, code: int, failures: str) -> None:
    """Install, check: annotations, summary and report are those of the action."""
    install, check = (step for step in steps(root, "budget-without-action.yml") if "run" in step)
    assert runner.step(install, {}) == 0
    assert runner.asked[-1] == "-m pip install --quiet rlsize"
    assert runner.step({**check, "run": check["run"].replace("2.50", price)}, {}) == code
    errors = [one for one in runner.annotations if one.level == "error"]
    assert len(errors) == bool(code)
    assert runner.summary
    root_element = ET.parse(runner.workspace / "rlsize-junit.xml").getroot()  # noqa: S314 (made here)
    assert root_element.get("failures") == failures


@pytest.mark.long
def test_the_pre_commit_hook_runs(runner: Any, root: Path) -> None:
    """Its entry with the arguments that its comment shows; pre-commit appends them just so."""
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["id"], hook["language"], hook["pass_filenames"]) == ("rlsize-check", "python", False)
    program, command = shlex.split(hook["entry"])
    assert command in COMMANDS
    line = f"{program} {command} rl/scenario.yaml --budget rl/budget.yaml --baseline rl/baseline.yaml --gpu-hour"
    assert runner.step({"run": f"{line} 2.40"}, {}) == 0
    assert runner.step({"run": f"{line} 2.75"}, {}) == 1


def test_the_example_baseline_is_one(root: Path) -> None:
    """The saved plan beside the example budget can be read, and has what the budget compares."""
    plan, budget = (
        read_plan(str(root / "examples" / "baseline.yaml")),
        read_budget(str(root / "examples" / "budget.yaml")),
    )
    compared = {quantity for quantity, bound in set_limits(budget.budget) if bound not in {"max", "min"}}
    assert compared
    assert compared <= set(plan.results)


def test_the_scripts_are_sound_bash(root: Path, tmp_path: Path) -> None:
    """Bash parses each of them."""
    action = yaml.safe_load((root / "action.yml").read_text(encoding="utf-8"))
    scripts = [*action["runs"]["steps"], *steps(root, "budget.yml"), *steps(root, "budget-without-action.yml")]
    for number, step in enumerate(step for step in scripts if "run" in step):
        file = tmp_path / f"{number}.sh"
        file.write_text(step["run"], encoding="utf-8")
        assert subprocess.run(["bash", "-n", str(file)], check=False, timeout=60).returncode == 0


def test_a_release_is_of_its_tag_and_says_whose_it_is(root: Path, tmp_path: Path) -> None:
    """The wheel is built without a right to anything, and published without a token, from where it was built."""
    workflow = yaml.safe_load((root / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert (workflow["permissions"], build["permissions"]) == ({}, {"contents": "read"})
    assert publish["permissions"] == {"id-token": "write", "contents": "write"}
    for name in ("src/rlsize/version.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((root / name).read_bytes())
    tag, owner, made = (step["run"] for step in build["steps"] if "run" in step)
    for version, code in ((VERSION, 0), ("9.9.9", 1)):
        assert (
            subprocess.run(["sh", "-c", tag], cwd=tmp_path, env={"TAG": f"v{version}"}, check=False).returncode == code
        )
    subprocess.run(["sh", "-c", owner], cwd=tmp_path, env={"OWNER": "someone"}, check=True)
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"].values()
    assert all(url.startswith("https://github.com/someone/rlsize") for url in urls)
    subprocess.run([*made.split(), "--dry-run"], cwd=root, check=True, capture_output=True)
