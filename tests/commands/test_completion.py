"""What a shell completes: keys of `--set`, words of a flag, names of profiles."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from rlsize.shell.app import app


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rlsize plan --gpu h100-s", {"h100-sxm"}),
        ("rlsize predict step --model qwen3-8", {"qwen3-8b"}),
        ("rlsize predict train --recompute s", {"selective"}),
        ("rlsize plan --framework ver", {"verl", "verl-agent"}),
        ("rlsize plan --set rollout.max_num", {"rollout.max_num_seqs="}),
        ("rlsize fleet --consume 1", set()),
    ],
)
def test_a_word_that_is_begun_is_completed(line: str, words: set[str]) -> None:
    """By the shell's own way to ask; numbers are not."""
    at = str(len(line.split()) - 1)
    told = {"_RLSIZE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": at}
    ran = CliRunner().invoke(app, [], env=told, prog_name="rlsize")
    assert set(ran.stdout.split()) == words
