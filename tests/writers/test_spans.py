"""Gantt charts and panels, as pictures and in the terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.effort import NIGHTLY

from rlsize.commands.simulate.chart import gantt, over_steps
from rlsize.reports.chart import Bar, Chart, Gantt, Panels
from rlsize.simulator.setting import TroubleSetting
from rlsize.writers.colours import COLOURS, shaded
from rlsize.writers.plot import FORMATS, picture
from rlsize.writers.terminal_plot import print_chart

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that draws a picture and gives matplotlib's figure."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    kept: list[Any] = []
    monkeypatch.setattr(plt, "close", kept.append)

    def drawn(chart: Chart | Panels) -> Any:
        picture(chart, "png")
        return kept[-1]

    yield drawn
    monkeypatch.undo()
    plt.close("all")


@pytest.mark.parametrize(
    ("instances", "mode"),
    [(1, "sync"), (16, "async"), *([(1, "async"), (16, "sync"), (300, "async"), (300, "sync")] if NIGHTLY else [])],
)
def test_fleets_of_every_size_are_drawn(instances: int, mode: str, simulated: Any) -> None:
    """One instance, as many as have a name each, and a crowd, which is drawn below at any rate."""
    chart = gantt(simulated(instances, mode, 2).spans, 64, "Title", "inputs")
    assert picture(chart, "png").startswith(STARTS["png"])


@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS if NIGHTLY else ("svg",))
def test_the_same_picture_has_the_same_bytes(form: str, simulated: Any) -> None:
    """Lanes, with shades as shapes and as an image, and panels."""
    few, many = simulated(2, "sync", 2), simulated(16, "async", 5)
    for chart in (gantt(few.spans, 64, "T"), gantt(many.spans, 64, "T"), over_steps(many.ledger, 2, "T")):
        first = picture(chart, form)
        assert first.startswith(STARTS[form])
        assert first == picture(chart, form)


def test_bars_lie_in_their_lanes_with_their_colours(figure: Any) -> None:
    """Lanes run downwards; a phase has its colour, a batch its shade."""
    spans = (
        Bar(lane="trainer", start=0.0, end=3.0, name="waiting", role="waiting"),
        Bar(lane="trainer", start=3.0, end=4.0, name="update", role="update"),
        Bar(lane="instance 0", start=0.0, end=2.0, shade=1.0),
        Bar(lane="instance 0", start=2.0, end=3.0, shade=0.5),
    )
    chart = Gantt(title="T", x_label="time (s)", lanes=("trainer", "instance 0", "instance 1"), spans=spans, full=8)
    axes = figure(chart).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == list(chart.lanes)
    first, second = axes.collections
    assert [path.get_extents().x1 for path in first.get_paths()] == [3.0, 4.0]
    from matplotlib.colors import to_hex

    assert [to_hex(colour) for colour in first.get_facecolors()] == [
        COLOURS["waiting"].lower(),
        COLOURS["update"].lower(),
    ]
    assert [tuple(colour[:3]) for colour in second.get_facecolors()] == [shaded(1.0), shaded(0.5)]
    assert first.get_paths()[0].get_extents().y1 <= second.get_paths()[0].get_extents().y0
    assert axes.yaxis_inverted()
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"waiting", "update"}


def test_a_fuller_batch_is_darker_and_idle_is_white() -> None:
    """One sample of many can be told from none."""
    brightness = [sum(shaded(step / 64)) for step in range(65)]
    assert brightness == sorted(brightness, reverse=True)
    assert shaded(0.0) == (1.0, 1.0, 1.0)
    assert brightness[0] - brightness[1] > 0.2


@pytest.mark.long
def test_lanes_of_a_crowd_are_thin_and_few_have_names(figure: Any, simulated: Any) -> None:
    """300 instances make no picture that is twice as high as that of 16, and names do not collide."""
    small, large = (figure(gantt(simulated(count, "sync", 2).spans, 64, "T")) for count in (16, 300))
    assert len(small.axes[0].get_yticklabels()) == 18
    assert len(large.axes[0].get_yticklabels()) <= 12
    assert large.get_size_inches()[1] < 2 * small.get_size_inches()[1]


@pytest.mark.long
def test_panels_share_their_x_and_grow_downwards(figure: Any, simulated: Any) -> None:
    """Three panels with their own titles and units, one x label, and the ledger's numbers."""
    trouble = TroubleSetting(failures_per_hour=60.0, trainer_restart_seconds=5.0)
    run = simulated(4, "async", 20, trouble)
    panels = over_steps(run.ledger, 5, "Title", "inputs")
    drawn = figure(panels)
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [chart.title for chart in panels.charts]
    assert [axes.get_xlabel() for axes in drawn.axes] == ["", "", "optimizer step"]
    assert len({axes.get_xlim() for axes in drawn.axes}) == 1
    assert list(drawn.axes[0].get_lines()[0].get_ydata()) == list(run.ledger.columns["backlog_samples"])
    assert {text.get_text() for text in drawn.texts} == {"Title", "inputs"}
    two = figure(replace(panels, charts=panels.charts[:2]))
    assert two.get_size_inches()[1] < drawn.get_size_inches()[1]


@pytest.mark.long
@pytest.mark.parametrize(("mode", "steps"), [("async", 1), ("sync", 1), ("sync", 3)])
def test_short_runs_have_panels(mode: str, steps: int, simulated: Any) -> None:
    """One step, and nothing that ever waits."""
    assert picture(over_steps(simulated(2, mode, steps).ledger, 1, "T"), "png").startswith(STARTS["png"])


def test_a_gantt_chart_may_be_a_panel(chart: Chart, simulated: Any) -> None:
    """Lanes above lines, and lanes of nothing at all."""
    lanes = gantt(simulated(2, "sync", 2).spans, 64, "T")
    for drawn in (Panels(title="T", charts=(lanes, chart)), gantt([], 64, "T")):
        assert picture(drawn, "png").startswith(STARTS["png"])


@pytest.mark.long
def test_panels_with_another_x_keep_their_own(figure: Any, simulated: Any) -> None:
    """Lanes over time below lines over steps: two groups, each with its own numbers and label."""
    run = simulated(4, "async", 20)
    panels, lanes = over_steps(run.ledger, 5, "Title"), gantt(run.spans, 64, "Who does what when")
    drawn = figure(replace(panels, charts=(*panels.charts, lanes))).axes
    assert [axes.get_xlabel() for axes in drawn] == ["", "", "optimizer step", lanes.x_label]
    assert drawn[0].get_xlim() == drawn[2].get_xlim() == (0.5, 20.5)
    assert drawn[3].get_xlim()[0] == 0.0
    assert drawn[3].get_xlim()[1] == pytest.approx(max(bar.end for bar in lanes.spans), rel=0.01)
    assert drawn[3].get_title(loc="left") == lanes.title


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("instances", [1, 13, 300])
def test_the_terminal_shows_lanes_within_80_columns(
    instances: int, simulated: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters for phases, blocks for batches, and a legend for both; many lanes share rows."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    print_chart(gantt(simulated(instances, "sync", 2).spans, 64, "Title"))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 28
    trainer = next(line for line in lines if line.lstrip().startswith("trainer"))
    assert {"·", "U"} <= set(trainer)
    assert "S" in next(line for line in lines if line.lstrip().startswith("sync"))
    assert any("U update" in line and "S sync" in line for line in lines)
    assert any("░ to 16" in line and "█ to 64" in line for line in lines)
    assert any(line.lstrip().startswith("instance 0") and "░" in line for line in lines)


def test_a_full_engine_is_a_full_block(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Density is the mean of a column: full, half, nothing."""
    monkeypatch.setenv("NO_COLOR", "1")
    spans = (Bar(lane="a", start=0.0, end=1.0, shade=1.0), Bar(lane="a", start=1.0, end=2.0, shade=0.4))
    other = Bar(lane="b", start=3.0, end=4.0, shade=0.01)
    print_chart(Gantt(title="T", x_label="time (s)", lanes=("a", "b"), spans=(*spans, other)))
    first, second = [line.partition("│")[2] for line in capsys.readouterr().out.splitlines() if "│" in line]
    quarter = len(first) // 4
    assert (set(first[: quarter - 1]), set(first[quarter + 1 : 2 * quarter - 1])) == ({"█"}, {"▒"})
    assert set(first[2 * quarter + 1 :]) <= {" "}
    assert set(second[: 3 * quarter - 1]) == {" "}
    assert second[-1] == "░"


def test_the_terminal_shows_panels_one_after_the_other(
    simulated: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its own title, the whole with one."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    panels = over_steps(simulated(4, "async", 20).ledger, 5, "The title", "inputs")
    print_chart(panels)
    out = capsys.readouterr().out
    places = [out.index(text) for text in ("The title", *(chart.title for chart in panels.charts))]
    assert places == sorted(places)
    assert max(map(len, out.splitlines())) <= 80
