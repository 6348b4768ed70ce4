"""The page of known set-ups says what plan answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.experts import BEGIN, END, SET_UPS, table
from tests.effort import NIGHTLY

PAGE = Path(__file__).parents[2] / "docs" / "expert-plans.md"


def written() -> str:
    """The table of the page."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def test_every_set_up_is_told_with_its_practice_and_why_it_differs() -> None:
    """A row each, twelve of them, none without a reason."""
    rows = written().splitlines()[2:]
    assert len(rows) == len(SET_UPS) == 12
    for row, one in zip(rows, SET_UPS, strict=True):
        assert one.said["model"] in row
        assert one.practice in row
        assert one.why
        assert one.why in row


@pytest.mark.skipif(not NIGHTLY, reason="twelve searches, some for 1,024 GPUs: RLSIZE_NIGHTLY=1")
def test_the_answers_are_those_of_plan() -> None:
    """`python -m benchmarks.experts --write docs/expert-plans.md` renews them."""
    assert written() == table()
