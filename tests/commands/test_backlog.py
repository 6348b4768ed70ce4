"""What is said about a backlog."""

from __future__ import annotations

import pytest

from rlsize.commands.backlog import backlog_report
from rlsize.facts.figure import Figure
from rlsize.planner.backlog import BacklogQuestion, grow_backlog


@pytest.mark.parametrize(("seconds", "warned"), [(300.0, False), (310.0, True)])
def test_staleness_beyond_eight_steps_is_warned_about_with_its_source(seconds: float, warned: bool) -> None:
    """20,678.4 tok/s on top of batches of 786,432 are 8 steps after 304 s."""
    question = BacklogQuestion(
        instances=Figure(key="instances", value=15),
        instance_rate=Figure(key="instance_tokens_per_second", value=4000.0),
        headroom=Figure(key="headroom", value=1.0),
        consumption=Figure(key="consumption_tokens_per_second", value=39321.6),
        tokens_generated_per_trained_token=Figure(key="tokens_generated_per_trained_token", value=1.0),
        batch_tokens=Figure(key="batch_tokens", value=786432.0),
        seconds=Figure(key="backlog_seconds", value=seconds),
    )
    warnings = backlog_report(grow_backlog(question), (question.seconds,), ()).warnings
    assert len(warnings) == warned
    if warned:
        assert "arXiv:2505.24298" in warnings[0]
