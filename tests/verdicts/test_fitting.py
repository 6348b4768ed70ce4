"""Constants fitted to records: found where they are, and not thrown by a broken record."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from benchmarks.fitting import fitted, untuned

from rlsize.estimates.constants import Constant, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def constant(name: str, value: float, before: tuple[float, float] | None) -> Constant:
    """A part of the tests below."""
    return Constant(
        name=name,
        value=value,
        spread=0.1,
        unit="1",
        meaning="made up",
        basis="fitted",
        source="this test",
        untuned=before,
    )


STAGE = Stage(name="first", constants=(constant("rate", 9.0, (1.0, 1.0)), constant("fixed", 4.0, None)), noise=0.1)
OTHER = Stage(name="second", constants=(constant("elsewhere", 7.0, (1.0, 1.0)),), noise=0.1)


def residual(truth: float, values: Mapping[str, Any]) -> Any:
    """A part of the tests below."""
    return np.log(values["rate"] * values["fixed"] / truth)


def test_a_stage_forgets_what_records_taught_it() -> None:
    """Untuned values and spreads come back; constants that were never fitted stay."""
    first, second = untuned(STAGE).constants
    assert (first.value, first.spread) == (1.0, 1.0)
    assert (second.value, second.spread) == (4.0, 0.1)


def test_records_that_agree_are_met() -> None:
    """Twenty tables that say 8 = rate x 4 put the rate near 2; only the first stage moves."""
    values = fitted([partial(residual, 8.0)] * 20, list(range(20)), (STAGE, OTHER))
    assert values["rate"] == pytest.approx(2.0, rel=0.01)
    assert values["fixed"] == pytest.approx(4.0)
    assert values["elsewhere"] == pytest.approx(7.0)


def test_one_broken_record_does_not_move_the_fit() -> None:
    """Twenty sound records and one a hundred times too large: a few percent."""
    rows = [partial(residual, 8.0)] * 20 + [partial(residual, 800.0)]
    assert fitted(rows, list(range(21)), (STAGE,))["rate"] == pytest.approx(2.0, rel=0.05)


def test_a_long_table_counts_as_six() -> None:
    """Sixty rows of one table that say 9 against six tables that say 8: half way, in logarithms."""
    rows = [partial(residual, 9.0)] * 60 + [partial(residual, 8.0)] * 6
    tables = ["long"] * 60 + [f"short {index}" for index in range(6)]
    assert fitted(rows, tables, (STAGE,))["rate"] == pytest.approx(2.0 * (9 / 8) ** 0.5, rel=0.01)


def test_nothing_to_fit_changes_nothing() -> None:
    """Without records the untuned values stand."""
    assert fitted([], [], (STAGE,)) == pytest.approx({"rate": 1.0, "fixed": 4.0})
