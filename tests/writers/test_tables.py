"""Tables for people, Markdown and CSV."""

from __future__ import annotations

import csv
import io

import pytest

from rlsize.reports.report import Report
from rlsize.writers.json_document import csv_text
from rlsize.writers.markdown import markdown_text
from rlsize.writers.table import print_report


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


def test_the_table_fits_80_columns_and_says_what_is_missing(plain: Report, capsys: pytest.CaptureFixture[str]) -> None:
    """Answer on stdout, warnings on stderr, nothing wider than the terminal, no escape codes."""
    print_report(plain, explain=True)
    out, err = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 80
    assert "needs --gpu-hour" in out
    assert "1 to 3" in out
    assert "predicted" in out
    assert "R = C w" in out
    assert "given: --consume" in out
    assert "warning: mind the <gap>" in err
    assert "warning" not in out
    assert "\x1b" not in out + err


def test_hostile_text_cannot_drive_the_terminal(hostile: Report, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape codes in foreign text are not sent to the terminal."""
    print_report(hostile)
    assert "\x1b" not in capsys.readouterr().out


def test_markdown_escapes_what_would_break_a_cell(plain: Report, hostile: Report) -> None:
    """Bars and tags of foreign text stay text; the marked row is bold."""
    text = markdown_text(plain, explain=True)
    assert "| required |" in text
    assert "Two instances \\| match." in text
    assert "**2**" in text
    assert "```\nR = C w" in text
    assert "<script>" not in markdown_text(hostile)


def test_csv_carries_every_key_and_no_formulas(plain: Report, hostile: Report) -> None:
    """Base units for machines; text that a spreadsheet would run is quoted as text."""
    rows = list(csv.DictReader(io.StringIO(csv_text(plain))))
    assert rows[0] == {"instances": "1", "idle_fraction": "0.25", "cost_usd": ""}
    assert next(csv.DictReader(io.StringIO(csv_text(hostile))))["name"] == "'=cmd()|calc"
    assert (
        csv_text(Report(command="x", headline="h", results=plain.results)).splitlines()[0]
        == "key,value,provenance,source"
    )
