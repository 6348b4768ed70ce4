"""The GitHub Action: its scripts run as they stand, and GitHub reads what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from rlsize.shell.app import COMMANDS
from rlsize.shell.command import loaded

FILES = {"scenario": "rl/scenario.yaml", "budget": "rl/budget.yaml", "baseline": "rl/baseline.yaml"}


@pytest.fixture
def run(runner: Any, root: Path) -> Callable[..., int]:
    """Runs the action on the repository's files, at a price."""
    return lambda price="2.50", **inputs: runner.action(
        root / "action.yml", {**FILES, "args": f"--gpu-hour={price}\n", **inputs}
    )


def failures(runner: Any) -> list[str | None]:
    """The names of the test cases that did not pass."""
    root = ET.parse(runner.outputs["junit"]).getroot()  # noqa: S314 (made here)
    return [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]


@pytest.mark.long
def test_a_kept_budget_is_quiet(runner: Any, run: Callable[..., int]) -> None:
    """No error, a doubt where a band crosses its limit, a summary with every limit, and outputs for later steps."""
    assert run() == 0
    assert [one for one in runner.annotations if one.level == "error"] == []
    doubted = [one.title for one in runner.annotations if one.level == "warning"]
    assert "rlsize: budget in doubt: trainer_idle_fraction" in doubted
    assert (runner.outputs["exit-code"], runner.outputs["verdict"]) == ("0", "within-budget")
    assert runner.summary.startswith("### rlsize check\n\n**Within budget")
    assert failures(runner) == []


@pytest.mark.long
def test_a_broken_limit_is_an_error_at_its_line(runner: Any, run: Callable[..., int]) -> None:
    """The dearer GPU breaks the limit on the change, and nothing else."""
    assert run("2.75") == 1
    (error,) = [one for one in runner.annotations if one.level == "error"]
    lines = (runner.workspace / "rl" / "budget.yaml").read_text(encoding="utf-8").splitlines()
    assert (error.file, error.title) == ("rl/budget.yaml", "rlsize: over budget: cost_per_step_usd")
    assert lines[int(error.line) - 1].startswith("cost_per_step_usd:")
    assert "+14.6 % from" in error.message
    assert "at most +5.0 %" in error.message
    assert (runner.outputs["exit-code"], runner.outputs["verdict"]) == ("1", "over-budget")
    assert "| fail | cost per step |" in runner.summary
    assert failures(runner) == ["cost_per_step_usd max_increase"]


@pytest.mark.long
def test_strict_turns_doubt_into_an_error(runner: Any, run: Callable[..., int]) -> None:
    """The band of the idle share crosses its limit, which is a warning above."""
    assert run(strict="true") == 1
    assert runner.outputs["verdict"] == "over-budget"


@pytest.mark.long
def test_broken_input_is_no_verdict_on_the_loop(
    runner: Any, run: Callable[..., int], edited: Callable[[str, str, str], None]
) -> None:
    """A slip in the budget is an error at its line, with the nearest key; the exit code tells it from a no."""
    edited("budget.yaml", "steps_per_day", "step_per_day")
    assert run() == 2
    (error,) = runner.annotations
    assert (error.level, error.file, error.title) == ("error", "rl/budget.yaml", "rlsize: the budget cannot be checked")
    assert error.message.endswith("the key step_per_day is unknown\ndid you mean steps_per_day?")
    assert (runner.outputs["exit-code"], runner.outputs["verdict"]) == ("2", "broken-input")
    assert "The budget cannot be checked" in runner.summary


@pytest.mark.long
@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"scenario": "$(touch pwned).yaml"}, "no such file"),
        ({"scenario": '"; touch pwned; "'}, "no such file"),
        ({"scenario": "--help"}, "no such file"),
        ({"budget": "`touch pwned`"}, "no such file"),
        ({"baseline": "x && touch pwned"}, "no such file"),
        ({"strict": "true; touch pwned"}, "the input strict must be true or false"),
        ({"args": "--seed=0; touch pwned"}, "is not a whole number"),
        ({"version": "0.1.0; touch pwned"}, "the input version must be a version number"),
        ({"version": "git+https://example.org/x"}, "the input version must be a version number"),
    ],
)
def test_inputs_are_data(runner: Any, run: Callable[..., int], inputs: dict[str, str], says: str) -> None:
    """None of them runs as code, whatever it looks like; all end as broken input."""
    assert run(**inputs) == 2
    assert says in runner.output
    assert [path.name for path in runner.workspace.iterdir()] == ["rl"]
    assert not [asked for asked in runner.asked if "pwned" in asked or "example.org" in asked]


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(
    ("version", "package"), [("", None), ("0.1.0", "rlsize==0.1.0"), ("1.2.0rc1", "rlsize==1.2.0rc1")]
)
def test_it_installs_its_own_checkout_or_a_version(
    runner: Any, run: Callable[..., int], root: Path, version: str, package: str | None
) -> None:
    """Into an environment of its own, so that no other step sees it."""
    assert run(version=version, scenario="none.yaml") == 2  # as installing comes first
    made, installed = runner.asked[-2:]
    assert made == f"-m venv {runner.temporary / 'rlsize'}"
    assert installed == f"-m pip install --quiet --disable-pip-version-check {package or root}"


@pytest.mark.long
def test_without_optional_inputs_the_scenario_s_budget_is_checked(runner: Any, root: Path) -> None:
    """One input is enough."""
    with (runner.workspace / "rl" / "scenario.yaml").open("a", encoding="utf-8") as stream:
        stream.write("budget: {gpus: 16}\n")
    assert runner.action(root / "action.yml", {"scenario": "rl/scenario.yaml"}) == 1
    (error,) = [one for one in runner.annotations if one.level == "error"]
    assert (error.file, error.title) == ("rl/scenario.yaml", "rlsize: over budget: gpus")


@pytest.mark.long
def test_several_arguments_stand_on_lines_of_their_own(runner: Any, run: Callable[..., int]) -> None:
    """With spaces in them, and empty lines between."""
    assert run(args="--gpu-hour\n2.50 ± 0.01\n\n--markdown\n") == 0
    assert "| --- |" in runner.output


def test_the_action_says_what_it_takes_and_gives(root: Path) -> None:
    """Each input and output is explained; flags in the scripts exist; actions of others are pinned to a version."""
    action = yaml.safe_load((root / "action.yml").read_text(encoding="utf-8"))
    for entry in (*action["inputs"].values(), *action["outputs"].values()):
        assert entry["description"].endswith(".")
    assert [name for name, entry in action["inputs"].items() if entry.get("required")] == ["scenario"]
    steps = action["runs"]["steps"]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    assert all(step["shell"] == "bash" for step in steps if "run" in step)
    script = next(step["run"] for step in steps if step.get("id") == "check")
    known = {name for parameter in loaded("check", COMMANDS["check"]).params for name in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z]+(?==|\b)", script)) <= known
