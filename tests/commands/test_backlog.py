"""What is said about a backlog."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from rlsize.shell.app import app


@pytest.mark.parametrize(("seconds", "warned"), [("300", False), ("310", True)])
def test_staleness_beyond_eight_steps_is_warned_about_with_its_source(seconds: str, warned: bool) -> None:
    """20,678.4 tok/s on top of batches of 786,432 are 8 steps after 304 s."""
    rates = ["--instances", "15", "--per-instance", "4000", "--consume", "39321.6", "--batch-tokens", "786432"]
    answer = CliRunner().invoke(app, ["backlog", *rates, "--seconds", seconds, "--json"])
    assert answer.exit_code == 0
    warnings = json.loads(answer.stdout)["warnings"]
    assert len(warnings) == warned
    if warned:
        assert "arXiv:2505.24298" in warnings[0]


def test_nothing_piles_up_where_both_sides_take_turns() -> None:
    """A fleet that is quicker than the trainer waits for it."""
    loop = "--model qwen3-8b --gpu h100-sxm --gpus 8 --prompts 256 --group 16 --response-tokens 600 --mode colocated"
    answer = CliRunner().invoke(app, ["backlog", *loop.split()])
    assert answer.stdout.startswith("No backlog: the two sides of a loop that is colocated take turns")
