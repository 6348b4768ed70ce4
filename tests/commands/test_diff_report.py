"""What a comparison says, whatever was compared."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.commands.diff import words
from rlsize.commands.diff.report import SHOWN, SHOWN_INPUTS, Compared, diff_report
from rlsize.commands.diff.words import LONGEST, brief, brief_key
from rlsize.facts.figure import Figure
from rlsize.readers.scenario_changes import Leaf
from rlsize.reports import wording
from rlsize.reports.chart import Gantt
from rlsize.reports.report import Report
from rlsize.verdicts.causes import Cause, Split, differences
from rlsize.writers.table import print_report

KEY = "step_seconds"


def _figures(**values: float) -> dict[str, Figure]:
    return {key: Figure(key=key, value=value, provenance="predicted") for key, value in values.items()}


def _report(split: Split | None = None, inputs: tuple[Leaf, ...] = (), **extra: Any) -> Report:
    told = differences(_figures(step_seconds=10.0, gpus=32), _figures(step_seconds=12.0, gpus=32))
    inputs = inputs or (Leaf(path=("model",), before="a", after="b", before_line=3, after_line=3),)
    return diff_report(Compared(before="a.yaml", after="b.yaml", differences=told, inputs=inputs, split=split, **extra))


def test_the_examples_hold() -> None:
    """As the docstrings say."""
    assert doctest.testmod(words).failed == doctest.testmod(wording).failed == 0


TEXT = st.text(max_size=200)
YAML: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(TEXT, YAML, YAML, st.integers(24, 60))
def test_no_value_breaks_the_table(key: str, before: Any, after: Any, room: int) -> None:
    """Whatever stands in a file: a narrow line of text without control characters."""
    for text in brief(before, after):
        assert len(text) <= LONGEST
        assert "\x1b" not in text
        assert len(text.splitlines()) <= 1
    assert len(brief_key(key, room)) <= room


@given(TEXT, YAML, YAML)
def test_the_answer_fits_80_columns(key: str, before: Any, after: Any) -> None:
    """Hostile keys and values do not widen the table of inputs."""
    table = _report(inputs=(Leaf(path=(key,), before=before, after=after, before_line=10**6),)).tables["inputs"]
    assert sum(max(len(str(row[column.key])) for row in table.rows) + 2 for column in table.columns) <= 82


def test_many_inputs_are_cut_short_for_people() -> None:
    """Programs get all of them; details of a measurement come last, and are not shown beside others."""
    many = tuple(Leaf(path=(f"k{index}",), before=1, after=2) for index in range(SHOWN_INPUTS + 7))
    table = _report(inputs=many).tables["inputs"]
    assert (len(table.rows), len(table.seen), table.note) == (SHOWN_INPUTS + 7, SHOWN_INPUTS, "7 more in --json")
    some = (Leaf(path=("why",), before=1, after=2), Leaf(path=("mean",), before=1, after=2))
    details = frozenset({"why"})
    assert [row["input"] for row in _report(inputs=some, details=details).tables["inputs"].seen] == ["mean"]
    assert [row["input"] for row in _report(inputs=some[:1], details=details).tables["inputs"].seen] == ["why"]


def test_many_results_are_cut_short_for_people() -> None:
    """The main one first, what changed before what did not, and a line that says what is left out."""
    before = {f"x{index}_seconds": 1.0 + index for index in range(20)}
    told = differences(
        _figures(**before, same=5.0), _figures(**{key: 2 * one for key, one in before.items()}, same=5.0)
    )
    of = "x19_seconds"
    inputs = (Leaf(path=("model",), before="a", after="b"),)
    table = diff_report(Compared(before="a", after="b", differences=told, of=of, inputs=inputs)).tables["results"]
    assert (len(table.rows), len(table.seen)) == (21, SHOWN)
    assert (table.rows[0]["quantity"], table.rows[-1]["quantity"]) == (of, "same")
    assert table.note.endswith("in --json too: 8 more that change, 1 that do not")


def _split(*effects: float) -> Split:
    causes = tuple(
        Cause(keys=(f"k{index}",), effects={KEY: effect, "gpus": 0.0}) for index, effect in enumerate(effects)
    )
    together, left = {KEY: 2.0, "gpus": 0.0}, {KEY: 2.0 - sum(effects), "gpus": 0.0}
    return Split(causes=causes, together=together, unexplained=left, alone={})


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=30))
def test_the_picture_leads_from_before_to_after(effects: list[float]) -> None:
    """Each bar begins where the one above it ends, and the last one ends at the second value."""
    drawn = _report(_split(*effects)).chart
    assert isinstance(drawn, Gantt)
    at = 10.0
    for bar in drawn.spans:
        start, end = (bar.start, bar.end) if bar.name == "more" else (bar.end, bar.start)
        assert start == pytest.approx(at, abs=1e-3)
        at = end
    assert at == pytest.approx(12.0, abs=1e-3)
    assert len(set(drawn.lanes)) == len(drawn.lanes)


def test_lanes_of_one_name_stay_apart() -> None:
    """The ends of two long keys may be the same."""
    long = "a_key_that_is_longer_than_a_lane_has_room_for"
    causes = tuple(Cause(keys=(f"{end}.{long}",), effects={KEY: 1.0}) for end in "ab")
    drawn = _report(Split(causes=causes, together={KEY: 2.0}, unexplained={KEY: 0.0}, alone={})).chart
    assert isinstance(drawn, Gantt)
    assert len(set(drawn.lanes)) == len(drawn.spans) == 2


def test_the_headline_names_the_largest_cause() -> None:
    """Of those that move it the way it went, by what each does by itself; a single cause has no rival."""
    assert "; k2 by itself makes +10.0 %" in _report(_split(-9.0, 0.5, 1.0)).headline
    assert "; k1 by itself makes +30.0 %" in _report(_split(-1.0, 3.0)).headline
    assert "by itself" not in _report(_split(2.0)).headline


def test_a_cause_that_cannot_run_says_so() -> None:
    """In its row, and in a sentence with the reason."""
    cause = Cause(keys=("model",), refused="does not fit")
    split = Split(causes=(cause,), together={}, unexplained={}, alone={"model": "does not fit"})
    report = _report(split)
    assert report.tables["causes"].rows[0]["_change"] == "cannot run"
    assert report.notes == ("model by itself cannot be worked out (does not fit), and no other change helps.",)


def test_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """As text of 80 columns."""
    print_report(_report(_split(1.5, 0.25)))
    out = capsys.readouterr().out
    assert out.startswith("Step time rises from 10 s to 12 s (+20.0 %); k0 by itself makes +15.0 %.")
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80
