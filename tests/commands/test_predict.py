"""`rlsize predict` as a group: its commands load when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def test_the_commands_are_listed(rlsize: Run) -> None:
    """Each with its sentence."""
    ran = rlsize("predict", "--help")
    assert ran.code == 0
    for name in ("rollout", "train", "sync"):
        assert f"│ {name}" in ran.stdout


def test_an_unknown_one_is_refused_with_the_nearest(rlsize: Run) -> None:
    """As `rlsize` itself does."""
    ran = rlsize("predict", "rolout")
    assert ran.code == 2
    assert "rollout" in ran.stderr


def test_one_command_loads_no_other() -> None:
    """The help of one prediction imports neither the others nor their arrays."""
    code = (
        "import sys\n"
        "from rlsize.commands.predict import app\n"
        "import typer\n"
        "group = typer.main.get_command(app)\n"
        "group.get_command(typer.Context(group), 'rollout')\n"
        "others = ('numpy', 'rlsize.commands.predict.train', 'rlsize.commands.predict.sync')\n"
        "sys.exit(any(name in sys.modules for name in others))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
