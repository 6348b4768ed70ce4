"""Grades of classes, and whether they are worse than allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlsize.verdicts.grading import grades, worse, worst

ROWS: tuple[dict[str, Any], ...] = (
    {"run_time_s": 21.0, "work": 10, "work_per_s_total": 0.4},
    {"run_time_s": 42.0, "work": 10},
    {"run_time_s": 7.0, "work": 10},
    {"run_time_s": 2100.0, "work": 10, "trust": "low"},
)


def test_low_trust_stands_apart(predict: Callable[..., Any]) -> None:
    """Its errors touch no other score, and no limit counts them."""
    trusted, low = grades(predict(*ROWS).records)
    assert (trusted.trusted, trusted.headline.n) == (True, 3)
    assert (low.trusted, low.headline.n) == (False, 1)
    assert trusted.names == {"run_time_s": 3}
    assert trusted.fields["work_per_s_total"].n == 1
    assert low not in worse((trusted, low), (0.0, 0.0))


@pytest.mark.parametrize(("limits", "count"), [((0.5, None), 0), ((0.4, None), 1), ((None, 1.71), 0), ((None, 1.6), 1)])
def test_a_limit_holds_up_to_itself(
    predict: Callable[..., Any], limits: tuple[float | None, float | None], count: int
) -> None:
    """Errors are 0, 50 and 200 %: the median is 50 %, the 90th percentile 170 %."""
    rows = [{**row, "run_time_s": time} for row, time in zip(ROWS, (21.0, 42.0, 7.0), strict=False)]
    assert len(worse(grades(predict(*rows).records), limits)) == count


def test_the_worst_are_off_by_the_largest_factor(predict: Callable[..., Any]) -> None:
    """A third of the time is worse than twice the time, and low trust is not shown."""
    assert [record.record.id for record in worst(predict(*ROWS).records, 2)] == ["r2", "r1"]
