"""A flags-only answer loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

HEAVY = ("numpy", "pydantic", "httpx", "matplotlib", "yaml", "prometheus_client", "torch", "hashlib")
PROGRAM = """
import json, sys
sys.argv = ["rlsize", *{arguments!r}]
from rlsize.shell.app import main
try:
    main()
except SystemExit as stop:
    code = stop.code
print("\\n" + json.dumps([code, [name for name in {heavy!r} if name in sys.modules]]))
"""

COMMANDS = [
    ["--help"],
    ["fleet", "--consume", "39321", "--per-instance", "4000"],
    ["fleet", "--consume", "39321 ± 500", "--per-instance", "4000", "--explain"],
    ["fleet", "--help"],
    ["split", "--gpus", "64", "--rollout-tps", "2000", "--trainer-tps", "6000"],
    ["backlog", "--instances", "15", "--per-instance", "4000", "--consume", "39321.6"],
    ["sync", "--params", "70e9", "--bandwidth", "50 GB/s"],
    ["memory", "--params", "70e9", "--algorithm", "grpo", "--reward-model"],
    [
        "iteration",
        "--instances",
        "8",
        "--group",
        "8",
        "--group-seconds",
        "3",
        "--samples",
        "256",
        "--train-seconds",
        "5",
    ],
    ["cost", "--rollout-gpus", "48", "--trainer-gpus", "16", "--gpu-hour", "2.5", "--step-seconds", "20"],
    ["explain", "weight_sync_time"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_flags_only_answer_loads_nothing_heavy(arguments: list[str]) -> None:
    """Neither numpy nor pydantic, httpx, matplotlib or a YAML parser: the answer is there before they would be."""
    program = PROGRAM.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert (code or 0, loaded) == (0, []), done.stderr


def test_help_cuts_no_flag_short(rlsize: Callable[..., Any]) -> None:
    """At 80 columns every flag of every command is whole, and a second name of a flag is told in its text."""
    from rlsize.shell.app import COMMANDS

    for name in COMMANDS:
        assert "…" not in rlsize(name, "--help").stdout
    assert "--learn-tps" in rlsize("split", "--help").stdout
