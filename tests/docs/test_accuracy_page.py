"""The page about errors holds what its program writes, for the constants that are shipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.accuracy import NOT_80

from rlsize.estimates.recorded.registry import predictors

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def tables(root: Path) -> str:
    """The part of the page between the marks."""
    text = (root / "docs" / "accuracy.md").read_text(encoding="utf-8")
    return text.partition("<!-- accuracy: begin -->")[2].partition("<!-- accuracy: end -->")[0]


def test_the_page_lists_every_constant_with_its_value(tables: str) -> None:
    """Constants that were changed leave the tables old; `python -m benchmarks.accuracy --write` renews them."""
    stages = {stage.name: stage for found in predictors().values() for stage in found.STAGES}
    shown = [
        (constant.name, f"| `{constant.name}` | {stage.name} | {constant.value:.4g} {constant.unit} |")
        for stage in stages.values()
        for constant in stage.constants
    ]
    assert [name for name, row in shown if row not in tables] == []


def test_no_constant_that_was_fitted_is_decided_by_one_record(tables: str) -> None:
    """Each bears on several trusted records; one that is assumed may bear on none."""
    rows = [line.strip("| ").split(" | ") for line in tables.partition("### Constants\n")[2].splitlines()[4:]]
    counts = {row[0]: int(row[5].split()[0]) for row in rows if len(row) > 5 and row[4] == "fitted"}
    assert len(counts) > 50
    assert min(counts.values()) > 1


def test_every_class_of_record_has_its_errors(tables: str) -> None:
    """Each class that can be predicted stands in the first table."""
    first = tables.partition("### Constants fitted")[0]
    assert [name for name in predictors() if f"| {name} |" not in first] == []


def test_every_band_holds_as_much_as_so_many_publications_can_tell(tables: str) -> None:
    """Of all classes, under each way of leaving out, by a binomial over publications."""
    assert [line for line in tables.splitlines() if NOT_80 in line] == []


def test_every_aim_stands_beside_what_is_reached(generate: Any) -> None:
    """The tables hold a row for each aim, under the names by which it is looked up."""
    text = generate("accuracy").aims()
    assert "no such records" not in text
    assert "weight sync" in text


def test_every_aim_that_is_missed_has_its_reason(generate: Any) -> None:
    """What is not reached is told cell by cell; a reason that is not needed any more goes."""
    page = generate("accuracy")
    told = {tuple(row.strip("| ").split(" | ")[:2]) for row in page.missed().splitlines()[2:]}
    assert told == page.WHY_NOT.keys()
