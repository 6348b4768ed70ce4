"""`rlsize validate`: which answer, which files, which exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.effort import CI

from rlsize.estimates.recorded import registry
from rlsize.readers.records import listing
from rlsize.shell.app import COMMANDS
from rlsize.shell.command import Entry

RUNS = """
- {id: a1, run_time_s: 21, work_per_s_total: 0.5, work: 10, gpus: 1, tp: 1}
- {id: a2, run_time_s: 12, work: 10, gpus: 2, tp: 1}
- {id: a4, run_time_s: 5, work: 10, gpus: 4, tp: 1}
- {id: b1, run_time_s: 90, work: 40, gpus: 1, source_id: t}
- {id: b2, run_time_s: 40, work: 40, gpus: 2, source_id: t, trust: medium}
- {id: c1, run_time_s: 500, work: 40, gpus: 2, trust: low}
- {id: odd, colour: green}
- {id: lazy, run_time_s: 3}
- {id: other, run_time_s: 3, work: 2, gpu: abacus}
- {id: dead, run_time_s: 3, work: -2}
"""


@pytest.fixture
def validate(rlsize: Any, made_up: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command on records of the made-up class."""
    monkeypatch.setattr(registry, "predictors", lambda: {"made_up": made_up})
    monkeypatch.setattr(listing, "classes", lambda: {"made_up": made_up})
    monkeypatch.setitem(COMMANDS, "validate", Entry("Predict", ""))
    return lambda *args: rlsize("validate", *args)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A file of records, some of them odd."""
    file = tmp_path / "runs.yaml"
    file.write_text(RUNS, encoding="utf-8")
    return file


def test_the_answer_says_errors_refusals_and_the_worst(validate: Callable[..., Any], runs: Path) -> None:
    """All of it within 80 columns."""
    result = validate(str(runs), "--transfer", "--full")
    assert result.code == 0
    assert result.stdout.startswith("6 of 10 records predicted")
    assert max(map(len, result.stdout.splitlines())) <= 80
    for text in ("says no work", "no known class", "abacus", "less than nothing", "made_up *"):
        assert text in " ".join(result.stdout.split())


def test_the_json_has_every_number(validate: Callable[..., Any], runs: Path) -> None:
    """Classes, fields, pairs with their baselines, worst rows and refusals with ids."""
    document = json.loads(validate(str(runs), "--transfer", "--json").stdout)
    assert set(document["rows"]) == {
        *("classes", "cells", "board", "fields", "transfer", "transfer_beside", "worst", "refused"),
    }
    trusted = document["rows"]["classes"][0]
    assert (trusted["records"], trusted["sources"], trusted["trust"]) == (5, 2, "high, medium")
    assert trusted["median_error_fraction"] == pytest.approx(1 / 12)
    assert trusted["resampled"] == "source"
    assert {row["cell"]: row["records"] for row in document["rows"]["cells"]} == {"large": 2, "small": 3}
    fields = {(row["field"], row["trust"]): row["records"] for row in document["rows"]["fields"]}
    assert fields["work_per_s_total", "high, medium"] == 1
    pairs = {row["relation"]: row for row in document["rows"]["transfer"]}
    assert pairs["other layout"]["pairs"] == 8
    assert pairs["other layout"]["time_as_gpus_median_error_fraction"] is not None
    assert {row["ids"] for row in document["rows"]["refused"]} == {"odd", "lazy", "other", "dead"}
    assert document["results"]["graded_records"] == 5


def test_rivals_are_told_apart(validate: Callable[..., Any], made_up: Any, runs: Path) -> None:
    """A table of its own where the class has any: here the run on two GPUs was faster, and the predictions say so."""
    made_up.rivals = lambda one, other: {one.id, other.id} == {"b1", "b2"}
    rows = validate(str(runs), "--json").document["rows"]["winners"]
    assert [(row["clear_pairs"], row["right_pairs"], row["close_pairs"]) for row in rows] == [(1, 1, 0)]
    assert "The faster of two ways" in validate(str(runs), "--full").stdout


@pytest.mark.parametrize(
    ("limits", "code"),
    [(("--max-median", "15"), 0), (("--max-median", "5 %"), 1), (("--max-p90", "100%"), 0), (("--max-p90", "1"), 1)],
)
def test_a_class_that_is_worse_than_allowed_is_a_no(
    validate: Callable[..., Any], runs: Path, limits: tuple[str, str], code: int
) -> None:
    """Exit code 1, and the headline says which; the record of low trust counts for nothing."""
    result = validate(str(runs), *limits)
    assert result.code == code
    assert ("worse than allowed: made_up" in " ".join(result.stdout.split())) == bool(code)


def test_a_cell_worse_than_its_baseline_is_a_no(validate: Callable[..., Any], runs: Path, tmp_path: Path) -> None:
    """A board holds against itself; where its errors were smaller by more than their noise, the cell is named."""
    saved = tmp_path / "board.yaml"
    assert validate(str(runs), "--save", str(saved)).code == 0
    assert validate(str(runs), "--baseline", str(saved)).code == 0
    text = saved.read_text(encoding="utf-8")
    saved.write_text(re.sub(r"(median|noise): .*", r"\1: 0.001", text), encoding="utf-8")
    result = validate(str(runs), "--baseline", str(saved))
    assert result.code == 1
    assert "worse than before by more than their noise" in " ".join(result.stdout.split())
    saved.write_text(re.sub(r"median: .*", "median: -1", text), encoding="utf-8")
    wrong = validate(str(runs), "--baseline", str(saved))
    assert (wrong.code, "median" in wrong.stderr) == (2, True)


@pytest.mark.long
def test_no_cell_of_the_published_records_is_worse_than_it_was(rlsize: Any) -> None:
    """`rlsize validate --save benchmarks/board.yaml --force` renews the board, for a reason that the changelog has."""
    board = str(listing.published_files()[0].parents[1] / "board.yaml")
    quick = () if CI else ("--class", "memory", "--class", "sync", "--class", "train")  # seconds, not a minute
    result = rlsize("validate", "--baseline", board, *quick)
    assert result.code == 0, result.stdout


def test_rows_hold_one_line_for_each_record(validate: Callable[..., Any], runs: Path, tmp_path: Path) -> None:
    """In the order of the file, under the record's own names; and nothing is overwritten unasked."""
    target = tmp_path / "rows.jsonl"
    assert validate(str(runs), "--rows", str(target)).code == 0
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["a1", "a2", "a4", "b1", "b2", "c1", "odd", "lazy", "other", "dead"]
    first = lines[0]["fields"]
    assert set(first) == {"run_time_s", "work_per_s_total"}
    assert first["run_time_s"]["predicted"] == pytest.approx(21.0)
    assert first["run_time_s"]["low"] < 21.0 < first["run_time_s"]["high"]
    assert lines[7]["refused"] == "says no work"
    again = validate(str(runs), "--rows", str(target))
    assert again.code == 2
    assert "exists already" in again.stderr
    assert validate(str(runs), "--rows", str(target), "--force").code == 0


def test_a_picture_is_drawn(validate: Callable[..., Any], runs: Path, tmp_path: Path) -> None:
    """In a file and in the terminal."""
    target = tmp_path / "accuracy.svg"
    assert validate(str(runs), "--plot", str(target)).code == 0
    assert b"predicted" in target.read_bytes()
    shown = validate(str(runs), "--plot").stdout
    assert "measurement" in shown
    assert "• made_up" in shown


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "there are no records"),
        ("[]", "there are no records"),
        ("a: 1", "not a list of records"),
        ("- [1", "not valid YAML"),
        ("- {id: x}\n- 7", "none of the 2 records can be predicted"),
    ],
)
def test_a_file_without_records_is_told_so(
    validate: Callable[..., Any], tmp_path: Path, content: str, message: str
) -> None:
    """Exit code 2, and the message says what is wrong."""
    file = tmp_path / "runs.yaml"
    file.write_text(content, encoding="utf-8")
    result = validate(str(file))
    assert result.code == 2
    assert message in result.stderr


def test_what_is_asked_wrongly_is_told_at_once(validate: Callable[..., Any], runs: Path) -> None:
    """All faults of the flags together."""
    result = validate(str(runs), "--class", "made-up", "--max-median", "few", "--seed", "x", "--max-p90", "nan")
    assert result.code == 2
    for text in ("did you mean made_up?", "'few' is not a number of percent", "'x' is not a whole", "'nan' is not"):
        assert text in result.stderr


def test_without_a_file_the_published_records_are_graded(
    validate: Callable[..., Any], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come with a checkout; elsewhere a file must be named."""
    monkeypatch.setattr(listing, "published_files", lambda: [runs])
    assert validate().code == 0
    monkeypatch.setattr(listing, "published_files", list)
    result = validate()
    assert result.code == 2
    assert "no file of records is named" in result.stderr


def test_repeated_ids_are_told(validate: Callable[..., Any], runs: Path, tmp_path: Path) -> None:
    """A file named twice counts once; a different record of the same id counts, with a warning."""
    other = tmp_path / "other.yaml"
    other.write_text("- {id: a1, run_time_s: 22, work: 10}\n", encoding="utf-8")
    result = validate(str(runs), str(runs), str(other))
    assert "10 records repeat one before them" in " ".join(result.stderr.split())
    assert "all are graded: a1" in result.stderr
    assert result.stdout.startswith("7 of 11 records predicted")
