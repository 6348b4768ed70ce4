"""A decision in lines: never more of them than a screen has, whatever its parts say."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.figure import Figure
from rlsize.loop.assumed import Assumption
from rlsize.reports.report import Column, Decision, Report, Table
from rlsize.writers.table import LABEL, MOST_LINES, decision_lines, headline_lines, print_report, warning_lines

WIDTH = 80
SENTENCES = st.lists(st.text(st.sampled_from("abc de\n"), min_size=1, max_size=700), max_size=4)


@given(SENTENCES, SENTENCES, SENTENCES, SENTENCES, st.text(max_size=900), st.booleans())
def test_a_decision_never_grows_over_a_screen(
    why: list[str], change: list[str], unused: list[str], warnings: list[str], head: str, long: bool
) -> None:
    """Parts that are too long end in dots, and later sentences go; each part keeps a line."""
    decision = Decision(
        why=why, sure=why, cheapest=change, change=change, then="x " * 200 * long,
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


@given(
    st.integers(0, 30),
    st.integers(0, 60),
    st.lists(st.text(max_size=200), max_size=3),
    SENTENCES,
    st.text(max_size=900),
)
def test_a_report_without_a_decision_never_grows_over_a_screen(
    figures: int, rows: int, cells: list[str], notes: list[str], head: str
) -> None:
    """Figures, the rows around the marked one and notes: fewer of each, in lines that a terminal has room for."""
    table = Table(
        title="Rows",
        columns=tuple(Column(f"c{index}", "cell", wide=True) for index in range(len(cells))),
        rows=tuple({f"c{index}": cell for index, cell in enumerate(cells)} for _ in range(rows)),
        marked=rows - 1 if rows else None,
    )
    report = Report(
        headline=head,
        results=tuple(Figure(key=f"part_{index}_seconds", value=float(index)) for index in range(figures)),
        tables={"rows": table} if cells else {},
        inputs=(Figure(key="headroom", value=0.8, provenance="default"),),
        notes=(*notes, "Idle."),
        unused=("Idle.",),
    )
    told = StringIO()
    with redirect_stdout(told):
        print_report(report, full=False)
    assert told.getvalue().count("\n") <= MOST_LINES


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
    assert table.marked is not None
    assert 0 < table.marked < len(table.rows) - 1
    assert table.rows[table.marked] == rows[12]
    assert "14 more rows" in table.note
