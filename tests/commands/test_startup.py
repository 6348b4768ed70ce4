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
from rlsize.shell.app import main
for arguments in {commands!r}:
    sys.argv = ["rlsize", *arguments]
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    sys.stderr.write(json.dumps([code or 0, [name for name in {heavy!r} if name in sys.modules]]) + "\\n")
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


@pytest.mark.long
def test_a_flags_only_answer_loads_nothing_heavy() -> None:
    """Neither numpy nor pydantic, httpx, matplotlib or a YAML parser: the answer is there before they would be."""
    program = PROGRAM.format(commands=COMMANDS, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("[")]  # nor that it works, on a slow machine
    found = dict(zip(map(" ".join, COMMANDS), map(json.loads, said), strict=True))
    assert {line: said for line, said in found.items() if said != [0, []]} == {}


@pytest.mark.long
def test_help_cuts_no_flag_short(rlsize: Callable[..., Any]) -> None:
    """At 80 columns every flag of every command is whole, and a second name of a flag is told in its text."""
    from rlsize.shell.app import COMMANDS

    for name in COMMANDS:
        assert "…" not in rlsize(name, "--help").stdout
    assert "--learn-tps" in rlsize("split", "--help").stdout


def test_a_plan_from_known_rates_loads_no_prediction() -> None:
    """Neither what predicts engines and trainers, nor pydantic or a YAML parser; one from a scenario no pydantic."""
    plan = ["plan", "--gpus", "64", "--rollout-tps", "2000", "--trainer-tps", "6000", "--batch-tokens", "786432"]
    predicted = ("rlsize.estimates.generation", "rlsize.estimates.train_prediction", "rlsize.frameworks.told")
    for command, heavy in ((plan, ("pydantic", "yaml", *predicted)), (["plan", "examples/grpo-32b.yaml"], HEAVY[1:2])):
        program = PROGRAM.format(commands=[command], heavy=heavy)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr.splitlines()[-1] == "[0, []]", done.stderr
