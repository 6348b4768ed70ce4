"""A runner of GitHub Actions, as far as scripts, environment and outputs go."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
COMMAND = re.compile(r"::(error|warning|notice)(?: ([^:]*))?::(.*)")
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")  # what `shell: bash` means

# In place of a Python: notes what it is asked, and makes environments in which rlsize is the one of the tests.
SHIM = """\
#!/usr/bin/env bash
printf '%s\\n' "$*" >> "{log}"
if [[ "$2" == venv ]]; then
  mkdir -p "$3/bin"
  cp "$0" "$3/bin/python"
  printf '#!/usr/bin/env bash\\nexec "{python}" -m rlsize "$@"\\n' > "$3/bin/rlsize"
  chmod +x "$3/bin/rlsize"
fi
"""


@dataclass(frozen=True)
class Annotation:
    """What GitHub shows beside a line."""

    level: str
    message: str
    file: str = ""
    line: str = ""
    title: str = ""


@dataclass
class Runner:
    """One job: its folders, the environment of its steps, and what they left."""

    workspace: Path
    temporary: Path
    log: list[str] = field(default_factory=list)
    output: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """What GitHub sets for every step."""
        hidden = ("GITHUB_", "RLSIZE_", "RUNNER_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        return kept | {
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_STEP_SUMMARY": str(self.temporary / "summary.md"),
            "GITHUB_OUTPUT": str(self.temporary / "output"),
            "RUNNER_TEMP": str(self.temporary),
            "PATH": f"{self.temporary / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def step(self, step: Mapping[str, Any], known: Mapping[str, str]) -> int:
        """Run the script of a step; expressions in its environment are looked up in `known`."""
        assert "${{" not in step["run"], "an expression in a script is text of others that becomes code"
        script = self.temporary / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        said = {name: EXPRESSION.sub(lambda found: known[found[1]], text) for name, text in step.get("env", {}).items()}
        done = subprocess.run(
            [*BASH, str(script)], cwd=self.workspace, env=self.environment | said, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        self.output += done.stdout + done.stderr
        return done.returncode

    def action(self, path: Path, inputs: Mapping[str, str]) -> int:
        """Run the scripts of a composite action, as long as they succeed; the exit code of the last."""
        action = yaml.safe_load(path.read_text(encoding="utf-8"))
        given = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()} | dict(inputs)
        assert set(given) == set(action["inputs"])
        known = {f"inputs.{name}": value for name, value in given.items()}
        known |= {"github.action_path": str(path.parent), "steps.python.outputs.python-path": str(self.python)}
        code = 0
        for step in action["runs"]["steps"]:
            if "run" in step and not code:
                code = self.step(step, known)
        return code

    @property
    def python(self) -> Path:
        """The Python of the runner, which notes what it is asked."""
        return self.temporary / "bin" / "python"

    @property
    def asked(self) -> list[str]:
        """What the Python was asked, line by line."""
        return (self.temporary / "asked").read_text(encoding="utf-8").splitlines()

    @property
    def outputs(self) -> dict[str, str]:
        """What the steps put out."""
        file = self.temporary / "output"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return {name: value for name, _, value in (line.partition("=") for line in lines)}

    @property
    def summary(self) -> str:
        """The Markdown of the step summary."""
        file = self.temporary / "summary.md"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    @property
    def annotations(self) -> list[Annotation]:
        """The workflow commands in what the steps printed, read back."""
        found = []
        for match in filter(None, map(COMMAND.fullmatch, self.output.splitlines())):
            pairs = (entry.partition("=") for entry in (match[2] or "").split(",") if entry)
            properties = {name: unquote(value) for name, _, value in pairs}
            found.append(Annotation(level=match[1], message=unquote(match[3]), **properties))
        return found


@pytest.fixture(scope="session")
def root(checkout: Path) -> Path:
    """The checkout, where bash is at hand to run its scripts."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    return checkout


def _ready(folder: Path) -> Runner:
    """A runner in a folder, with its Python."""
    made = Runner(workspace=folder / "repository", temporary=folder / "runner")
    (made.temporary / "bin").mkdir(parents=True)
    made.python.write_text(SHIM.format(log=made.temporary / "asked", python=sys.executable), encoding="utf-8")
    made.python.chmod(0o755)
    subprocess.run([made.python, "-m", "venv", made.temporary], check=True, timeout=60)
    return made


@pytest.fixture(scope="session")
def repository(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a scenario, a budget, and a baseline at $2.40 a GPU-hour."""
    made = _ready(tmp_path_factory.mktemp("repository"))
    (made.workspace / "rl").mkdir(parents=True)
    shutil.copy(root / "examples" / "unmeasured-8b.yaml", made.workspace / "rl" / "scenario.yaml")
    shutil.copy(root / "examples" / "budget.yaml", made.workspace / "rl" / "budget.yaml")
    save = "rlsize check rl/scenario.yaml --budget rl/budget.yaml --gpu-hour 2.40 --save rl/baseline.yaml"
    assert made.step({"run": save}, {}) == 0, made.output
    return made.workspace


@pytest.fixture
def runner(repository: Path, tmp_path: Path) -> Runner:
    """A job on a copy of the repository."""
    made = _ready(tmp_path)
    shutil.copytree(repository, made.workspace)
    return made


@pytest.fixture
def edited(runner: Runner) -> Callable[[str, str, str], None]:
    """Changes a text in a file of the repository."""

    def edit(name: str, old: str, new: str) -> None:
        file = runner.workspace / "rl" / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    return edit
