"""Charts as files and in the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlsize.errors import InputError
from rlsize.reports.chart import Chart
from rlsize.writers.plot import FORMATS, picture, write_picture
from rlsize.writers.terminal_plot import print_chart

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_what_its_name_says(chart: Chart, bars: Chart, form: str) -> None:
    """PNG, SVG and PDF, for lines and for bars."""
    for drawn in (chart, bars):
        assert picture(drawn, form).startswith(STARTS[form])


def test_the_same_chart_gives_the_same_bytes(chart: Chart) -> None:
    """A committed picture changes only when its chart does."""
    assert picture(chart, "svg") == picture(chart, "svg")


def test_what_is_drawn_is_what_was_computed(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines on the axes carry the series' numbers, the labels their names and units."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    kept: list[Any] = []
    monkeypatch.setattr(plt, "close", kept.append)
    picture(chart, "png")
    axes = kept[0].axes[0]
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert drawn["supply"] == [10.0, 20.0, 30.0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("instances", "tok/s")
    assert {text.get_text() for text in axes.texts} >= {"match", "needed"}
    monkeypatch.undo()
    plt.close("all")


@pytest.mark.long
def test_a_picture_leaves_home_alone(tmp_path: Path) -> None:
    """Fonts and settings of matplotlib stand elsewhere where nobody says where."""
    home, other = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    other.mkdir()
    code = "from rlsize.writers.plot import drawing; drawing(None).__enter__()"
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(other)}
    subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert not list(home.rglob("*"))
    assert list(other.glob("rlsize-matplotlib-*/*"))


def test_a_picture_is_not_written_over_another(chart: Chart, tmp_path: Path) -> None:
    """Nothing is overwritten without being told to, and no other format is guessed."""
    target = tmp_path / "fleet.png"
    write_picture(chart, str(target))
    before = target.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        write_picture(chart, str(target))
    write_picture(chart, str(target), force=True)
    assert target.read_bytes() == before
    with pytest.raises(InputError, match="svg"):
        write_picture(chart, str(tmp_path / "fleet.gif"))


def test_the_terminal_shows_title_axes_and_legend(
    chart: Chart, bars: Chart, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Braille for lines, blocks for bars, within 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    for drawn in (chart, bars):
        print_chart(drawn)
        out = capsys.readouterr().out
        assert drawn.title in out
        assert all(series.name in out for series in drawn.series)
        assert max(map(len, out.splitlines())) <= 80


def test_a_longer_bar_stands_for_a_larger_number(bars: Chart, capsys: pytest.CaptureFixture[str]) -> None:
    """PPO's bill is twice GRPO's, and so is its bar."""
    print_chart(bars)
    lengths = {line.split()[0]: line.count("█") for line in capsys.readouterr().out.splitlines() if "█" in line}
    assert lengths["ppo"] == pytest.approx(2 * lengths["grpo"], abs=1)
