"""Fixtures that many tests share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from typer.testing import CliRunner

settings.register_profile(
    "rlsize", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rlsize")


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    stdout: str
    stderr: str
    code: int

    @property
    def document(self) -> dict[str, Any]:
        """Its stdout as JSON."""
        loaded: dict[str, Any] = json.loads(self.stdout)
        return loaded

    @property
    def results(self) -> dict[str, Any]:
        """The results of its JSON."""
        results: dict[str, Any] = self.document["results"]
        return results


@pytest.fixture
def rlsize(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command line in this process: `rlsize("fleet", "--consume", "1")`."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("RLSIZE_PROFILES", raising=False)

    def run(*args: str) -> Ran:
        from rlsize.cli.app import app

        result = CliRunner().invoke(app, list(args))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.stdout, result.stderr, result.exit_code)

    return run


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout; tests that need it are skipped where only the package is at hand."""
    root = Path(__file__).parents[1]
    if not (root / "README.md").is_file() or not (root / "src").is_dir():
        pytest.skip("needs the checkout, and only the installed package is here")
    return root
