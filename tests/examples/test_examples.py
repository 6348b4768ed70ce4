"""Every example prints what is written down beside it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

_AROUND = [folder / "examples" for folder in Path(__file__).resolve().parents]
EXAMPLES = next((folder for folder in _AROUND if (folder / "run.py").is_file()), None)
pytestmark = pytest.mark.skipif(EXAMPLES is None, reason="the examples are not beside these tests")


def _run() -> Any:
    """`examples/run.py` as a module."""
    spec = importlib.util.spec_from_file_location("examples_run", EXAMPLES / "run.py") if EXAMPLES else None
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


RUN: Any = _run() if EXAMPLES else None
NAMES = [file.stem for file in RUN.files()] if RUN else []
LONG = {"calibrate-run", "calibrate-runs", "memory-launch", "plan", "plan-impossible", "predict-step-agents", "report"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in NAMES])
def test_an_example_prints_what_is_written_down(name: str) -> None:
    """The command of `NAME.cmd` prints `NAME.out` on stdout and ends with its exit code."""
    file = RUN.EXAMPLES / f"{name}.cmd"
    wanted, found = RUN.example(file), RUN.outcome(RUN.example(file).line)
    assert found.exit_code == wanted.exit_code, found.stderr
    assert found.stdout == RUN.expected(file), "where the new output is right, `make docs-write` writes it down"


def test_every_output_belongs_to_a_command() -> None:
    """No `.out` file is left over from an example that is gone."""
    assert EXAMPLES is not None
    assert {file.stem for file in EXAMPLES.glob("*.out")} == set(NAMES)


def test_every_example_says_what_it_shows() -> None:
    """Each `.cmd` file opens with a comment."""
    silent = [file.name for file in RUN.files() if not file.read_text("utf-8").startswith("# ")]
    assert not silent
