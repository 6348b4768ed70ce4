"""What a report tells people of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlsize.reports.report import Column, Table
from rlsize.reports.wording import shown

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ((294.1, 319.0, 606.6), ["294.1 s", "319 s", "606.6 s"]),
        ((1200.0, 3.0), ["20 min", "3 s"]),
        ((0.009333, 0.0778, 0.3111), ["9.333 ms", "77.8 ms", "311.1 ms"]),
        ((0.0002736, 0.0031), ["0.2736 ms", "3.1 ms"]),
        ((None, 400.0, 0.0), ["-", "6.667 min", "0 min"]),
    ],
)
def test_times_that_people_compare_have_one_unit(times: Sequence[float | None], told: list[str]) -> None:
    """A column has the unit of its shortest time, where they do not lie far apart."""
    column = Column("step_seconds", "step")
    table = Table(title="", columns=(column,), rows=tuple({"step_seconds": time} for time in times))
    assert [shown(row["step_seconds"], "step_seconds", like=table.like(column)) for row in table.seen] == told
