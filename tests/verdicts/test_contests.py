"""Which of two ways is faster, by measurement and by prediction."""

from __future__ import annotations

from typing import Any

import pytest

from rlsize.verdicts.contests import contests


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """One way on one GPU, three on two: predicted to take 21 s and 11 s."""
    return [{"run_time_s": 20.0, "work": 10}] + [
        {"run_time_s": seconds, "work": 10, "gpus": 2} for seconds in (10.0, 19.0, 30.0)
    ]


def test_without_a_word_of_the_class_there_are_no_rivals(made_up: Any, predict: Any, rows: Any) -> None:
    """Records of other work are no alternatives."""
    assert not contests(predict(*rows).records, {"made_up": made_up})


def test_the_winner_is_named_right_or_wrong(made_up: Any, predict: Any, rows: Any) -> None:
    """Shorter times win; a gap of a tenth is too close, whoever is named."""
    made_up.rivals = lambda one, other: one.gpus != other.gpus
    found = contests(predict(*rows).records, {"made_up": made_up})
    assert [contest.other for contest in found] == ["r1", "r2", "r3"]
    assert [contest.clear for contest in found] == [True, False, True]
    assert [contest.right for contest in found] == [True, True, False]
    assert found[0].measured == pytest.approx(0.5)
    assert found[0].predicted == pytest.approx(11 / 21)
    assert not any(contest.doubtful for contest in found)


def test_of_rates_the_larger_wins(made_up: Any, predict: Any, rows: Any) -> None:
    """And records of low trust take no part."""
    made_up.rivals = lambda one, other: one.gpus != other.gpus
    made_up.graded = lambda _: "work_per_s_total"
    made_up.predict = lambda run, _, values: {"work_per_s_total": run.gpus * values["start"]}
    said = [{**row, "work_per_s_total": row["work"] / row["run_time_s"]} for row in rows]
    said[3]["trust"] = "low"
    found = contests(predict(*said).records, {"made_up": made_up})
    assert [contest.right for contest in found] == [True, True]
    assert found[0].measured == pytest.approx(0.5)
