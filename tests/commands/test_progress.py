"""What takes long says so."""

from __future__ import annotations

import pytest

from rlsize.shell import progress


def test_what_takes_long_says_once_that_it_works(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe too; what is over before says nothing, nor what tells of itself."""
    with progress.saying_if_long("rlsize plan: working", 0.0):
        progress._waiting[0].join()
    assert capsys.readouterr().err == "rlsize plan: working\n"
    with progress.saying_if_long("rlsize plan: working", 60.0):
        timer = progress._waiting[0]
        progress.stop_waiting()
        timer.join()
    assert capsys.readouterr().err == ""
