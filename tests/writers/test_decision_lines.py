"""A decision in lines: never more of them than a screen has, whatever its parts say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.figure import Figure
from rlsize.loop.assumed import Assumption
from rlsize.reports.report import Column, Decision, Report, Table
from rlsize.writers.table import LABEL, MOST_LINES, decision_lines, headline_lines, warning_lines

WIDTH = 80
SENTENCES = st.lists(st.text(st.sampled_from("abc de\n"), min_size=1, max_size=700), max_size=4)


@given(SENTENCES, SENTENCES, SENTENCES, SENTENCES, st.text(max_size=900), st.booleans())
def test_a_decision_never_grows_over_a_screen(
    why: list[str], change: list[str], unused: list[str], warnings: list[str], head: str, long: bool
) -> None:
    """Parts that are too long end in dots, and later sentences go; each part keeps a line."""
    decision = Decision(
        why=why, sure=why, cheapest=change, change=change, done=unused, then="x " * 200 * long,
        figures=["step_seconds"],
        assumed=[Assumption("a", "--a", "1", "2", 1.2)] * 60 * long,
    )  # fmt: skip
    report = Report(
        headline=head, warnings=tuple(warnings), unused=tuple(unused), results=(Figure(key="step_seconds", value=1),)
    )
    lines = decision_lines(report, decision, WIDTH)
    above = [*headline_lines(report, WIDTH), *warning_lines(report, WIDTH)]
    assert len(lines) + len(above) + 1 <= MOST_LINES
    assert all(len(line) <= WIDTH - LABEL for _, line in lines)
    assert [label for label, _ in lines if label][-1] == "next:"


def test_parts_say_more_where_there_is_room() -> None:
    """The first sentence always, the others where the whole stays short; nothing that the headline says already."""
    decision = Decision(why=["The trainer waits.", "Its fleet is small."], sure=["Sure."], then="rlsize plan")
    told = decision_lines(Report(headline="First: the trainer waits."), decision, WIDTH)
    assert told == [("why:", "Its fleet is small."), ("sure:", "Sure."), ("next:", "rlsize plan; --full shows all")]


def test_a_table_that_is_the_answer_shows_the_rows_that_it_points_at() -> None:
    """Some of many rows, and how many more there are."""
    from rlsize.writers.table import table_shown

    rows = tuple({"x": float(one)} for one in range(20))
    table = table_shown(Table(title="", columns=(Column("x", "x"),), rows=rows, marked=12))
    assert table.rows[-1] == rows[12]
    assert table.marked == len(table.rows) - 1
    assert "14 more rows" in table.note
