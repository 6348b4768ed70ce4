"""Command lines that are born valid keep what always holds; `python -m tests.fuzz.lines` tries more of them."""

from __future__ import annotations

import pytest
from tests.effort import CI
from tests.fuzz.lines import broken, faults, turned
from tests.loop.one_answer import Answer

EACH = 50


@pytest.mark.parametrize("part", range(40 if CI else 1))
def test_a_line_of_declared_quantities_is_answered_or_refused(part: int) -> None:
    """No traceback, no hang, no share above 1, no negative time or money, no band whose ends are exchanged."""
    assert not [*faults(range(part * EACH, (part + 1) * EACH))]


@pytest.mark.parametrize(
    "answer",
    [
        Answer("fleet", 99, {}, "error: crashed"),
        Answer("fleet", 2, {}, ""),
        Answer("fleet", 0, {"results": {"trainer_idle_fraction": 1.5}}, ""),
        Answer("fleet", 0, {"results": {"step_seconds": -1.0}}, ""),
        Answer("fleet", 0, {"results": {"step_seconds": float("nan")}}, ""),
        Answer("fleet", 0, {"explain": {"step_seconds": {"band": [2.0, 1.0]}}}, ""),
    ],
)
def test_what_cannot_be_is_seen(answer: Answer) -> None:
    """Each promise, broken."""
    assert [*broken(answer, 0.0)]


def test_an_answer_that_takes_too_long_is_seen() -> None:
    """In seconds of a processor, as machines have other work."""
    assert [*broken(Answer("fleet", 0, {}, ""), 60.0)]


def test_a_figure_that_goes_the_wrong_way_is_seen() -> None:
    """A price that doubles makes no step cheaper."""
    before, after = (Answer("cost", 0, {"results": {"cost_per_step_usd": usd}}, "") for usd in (2.0, 1.0))
    assert [*turned(before, after, "cost_per_step_usd", 1)]
    assert not [*turned(before, after, "cost_per_step_usd", -1)]
