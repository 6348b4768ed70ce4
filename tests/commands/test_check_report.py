"""What is said about a budget: the verdict first, the worst on top, within 80 columns."""

from __future__ import annotations

from typing import Any

import pytest

from rlsize.commands.check import Checked, Place, check_report, findings, findings_of, findings_report
from rlsize.errors import Fault
from rlsize.facts.budget import Budget, Change, Limit
from rlsize.facts.figure import Figure, absent
from rlsize.facts.plan import Plan, PlanFigure
from rlsize.verdicts.budget import judged, memory_line
from rlsize.writers.table import print_report

RESULTS = {
    "cost_per_step_usd": Figure(key="cost_per_step_usd", value=2.7, provenance="predicted"),
    "trainer_idle_fraction": Figure(key="trainer_idle_fraction", value=0.04, band=(0.01, 0.08), provenance="predicted"),
    "steps_per_day": Figure(key="steps_per_day", value=2044.9, band=(1341.5, 2325.7), provenance="predicted"),
    "loop_tokens_per_second": Figure(key="loop_tokens_per_second", value=38776.8, provenance="predicted"),
    "trainer_memory_headroom_fraction": Figure(
        key="trainer_memory_headroom_fraction", value=-0.5, provenance="predicted"
    ),
    "gpus": Figure(key="gpus", value=32.0, provenance="given"),
    "run_seconds": absent("run_seconds", "--steps"),
}
BASELINE = Plan(
    command="check", rlsize_version="0", facts_digest="0", placement={},
    results={"cost_per_step_usd": PlanFigure(value=2.4), "trainer_idle_fraction": PlanFigure(value=0.02)},
)  # fmt: skip
FIVE = Change(0.05, relative=True)


def checked(budget: Budget, *, baseline: Plan | None = None, **said: Any) -> Checked:
    """A loop, judged."""
    lines = judged(RESULTS, budget, baseline)
    places = {line.name: Place(file="b.yaml", line=number) for number, line in enumerate(lines, start=2)}
    name = "base.yaml" if baseline else ""
    return Checked(lines=lines, places=places, results=RESULTS, baseline=name, **said)


def test_a_broken_limit_is_the_headline() -> None:
    """With value, limit and by how much; the answer is no."""
    report = check_report(checked(Budget(cost_per_step_usd=Limit(max=2.5), gpus=Limit(max=64))))
    assert report.no
    assert report.headline == (
        "Over budget: 1 of 2 limits is broken. Cost per step: $2.70; the budget allows at most $2.50; it is missed by "
        "$0.2 (8.0 % of the limit)."
    )


def test_a_change_is_told_with_the_baseline_and_what_it_comes_to() -> None:
    """So that nobody needs to do the sum."""
    report = check_report(checked(Budget(cost_per_step_usd=Limit(max_increase=FIVE)), baseline=BASELINE))
    assert "+12.5 % from $2.40 in the baseline; the budget allows at most +5.0 % ($2.52)" in report.headline


@pytest.mark.parametrize(
    ("strict", "begins"), [(False, "Within budget, but in doubt: 1 of 2"), (True, "Over budget, as --strict")]
)
def test_doubt_is_a_yes_or_a_no_as_one_wants(strict: bool, begins: str) -> None:
    """`--strict` changes the answer and the headline, not the verdict on the limit."""
    found = checked(Budget(trainer_idle_fraction=Limit(max=0.05), gpus=Limit(max=64)), strict=strict)
    report = check_report(found)
    assert report.headline.startswith(begins)
    assert "its band crosses the limit" in report.headline
    assert report.no == strict
    assert [row["status"] for row in report.tables["limits"].rows] == ["warn", "pass"]
    assert [finding.level for finding in findings(found)] == ["failure" if strict else "warning", "pass"]


def test_a_kept_budget_names_its_closest_limit() -> None:
    """The one with the least room for its size."""
    report = check_report(checked(Budget(cost_per_step_usd=Limit(max=2.8), gpus=Limit(max=64))))
    assert not report.no
    assert report.headline == "Within budget: 2 limits kept; the closest is cost per step, $2.70 with at most $2.80."


def test_a_loop_that_cannot_run_is_a_no_without_limits() -> None:
    """An answer, with its reason, at the place where the loop is written down."""
    found = Checked(lines=(), impossible="2 GPUs do not hold an instance of 4", loop=Place(file="s.yaml", line=7))
    report = check_report(found)
    assert report.no
    assert report.headline == "Over budget: the loop cannot run: 2 GPUs do not hold an instance of 4."
    assert report.tables == {}
    (one,) = findings(found)
    assert (one.level, one.file, one.line) == ("failure", "s.yaml", 7)


def test_a_loop_that_may_not_fit_in_memory_is_told_so() -> None:
    """Without naming a limit that nobody set."""
    held = Figure(key="worst_phase_bytes_per_gpu", value=70e9, provenance="predicted", band=(60e9, 90e9))
    found = Checked(lines=(memory_line(held, 80e9),), loop=Place(file="s.yaml", line=7), strict=True)
    report = check_report(found)
    assert report.no
    assert report.headline.endswith("Fullest phase: 70 GB/GPU (80 % band 60 to 90); the loop may not fit in memory.")
    assert report.tables["limits"].rows[0]["_limit"] == "must fit"
    assert (findings(found)[0].file, findings(found)[0].line) == ("s.yaml", 7)


def test_rows_have_numbers_for_programs_and_words_for_people() -> None:
    """Base units, with the place of the limit; a change of a share is in points."""
    budget = Budget(trainer_idle_fraction=Limit(max_increase=Change(0.01, relative=False)))
    (row,) = check_report(checked(budget, baseline=BASELINE)).tables["limits"].rows
    assert dict(row) | {
        "status": "fail", "quantity": "trainer_idle_fraction", "bound": "max_increase", "value": 0.04, "low": 0.01,
        "high": 0.08, "baseline": 0.02, "provenance": "predicted", "file": "b.yaml", "line": 2,
    } == row  # fmt: skip
    assert row["limit"] == pytest.approx(0.03)
    assert row["margin"] == pytest.approx(-0.01)
    assert row["change"] == pytest.approx(0.02)
    assert row["change_fraction"] == pytest.approx(1.0)
    assert (row["_change"], row["_limit"], row["_margin"]) == ("+2.0 pp", "at most +1.0 pp", "-1.0 pp")


def test_the_table_fits_into_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With bands, changes and rates, broken limits first."""
    monkeypatch.setenv("COLUMNS", "80")
    budget = Budget(
        gpus=Limit(max=64), steps_per_day=Limit(min=1800), loop_tokens_per_second=Limit(min=30000),
        trainer_idle_fraction=Limit(max=0.05, max_increase=FIVE), cost_per_step_usd=Limit(max=2.5, max_increase=FIVE),
    )  # fmt: skip
    print_report(check_report(checked(budget, baseline=BASELINE)))
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= 80
    order = [line[:4] for line in shown if line[:4] in {"fail", "warn", "pass"}]
    assert order == ["fail"] * 3 + ["warn"] * 2 + ["pass"] * 2
    assert [line.split()[0] for line in shown if "(tok/s)" in line] == ["(tok/s)"]


@pytest.mark.parametrize(
    ("where", "file", "line"),
    [
        ("b.yaml:12: gpus.max", "b.yaml", 12),
        ("a:b/c d.yaml:3", "a:b/c d.yaml", 3),
        ("b.yaml", "", None),
        ("--budget", "", None),
        ("", "", None),
        ("b.yaml:0: x", "", None),
        ("b.yaml:99999999999999999999", "", None),
    ],
)
def test_a_fault_points_at_its_line(where: str, file: str, line: int | None) -> None:
    """Where its place names one."""
    (one,) = findings_of([Fault("is wrong", where, "mend it")], answer=False)
    assert (one.level, one.file, one.line) == ("error", file, line)
    assert one.message == (f"{where}: is wrong\nmend it" if where else "is wrong\nmend it")


def test_a_fault_can_be_the_answer() -> None:
    """A loop that does not fit is a no, and not a broken input."""
    found = findings_of([Fault("needs 90 GB of 80 GB")], answer=True)
    assert found[0].level == "failure"
    report = findings_report(found)
    assert (report.no, report.headline, report.notes) == (True, "The loop cannot run.", ("needs 90 GB of 80 GB",))
