"""The widget of a page: sliders that stop at sensible values, and the lesson's figures from the equations."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rlsize.commands.report import Phases, Start, lesson_widget
from rlsize.equations import matching
from rlsize.reports.page import Comparison, Slider, number_text

START = Start(
    gpus=64, rollout_gpus=48, response_tokens=1536, rollout_gpu_rate=2000.0, trainer_gpu_rate=5000.0,
    prompts_per_step=64, group_size=8, max_staleness=2, gpu_hour=2.5,
)  # fmt: skip
LOOPS: tuple[Phases, ...] = ("overlapped", "in turn", "colocated")
starts = st.builds(
    Start,
    loop=st.sampled_from(LOOPS),
    gpus=st.integers(2, 20000),
    rollout_gpus=st.integers(1, 19999),
    response_tokens=st.floats(1.0, 1e6),
    rollout_gpu_rate=st.floats(0.01, 1e6),
    trainer_gpu_rate=st.floats(0.01, 1e6),
    prompts_per_step=st.integers(1, 10000),
    group_size=st.integers(1, 512),
    max_staleness=st.integers(0, 64),
    gpu_hour=st.none() | st.floats(0.0, 100.0),
    tokens_generated_per_trained_token=st.floats(1.0, 4.0),
    exposed_seconds=st.floats(0.0, 1000.0),
)


def worked(start: Start, **changed: float) -> dict[str, float]:
    """What follows from a start, some sliders moved."""
    widget = lesson_widget(start)
    return widget.worked(widget.start | changed)


def test_the_lesson_s_figures_come_out() -> None:
    """Both pools, the slower one, idle GPUs of the other, the balanced split; by hand."""
    found = worked(START)
    assert (found["rollout_rate"], found["trainer_rate"], found["loop_rate"]) == (96000.0, 80000.0, 80000.0)
    assert found["rollout_idle_gpus"] == pytest.approx(8.0)  # a sixth of 48
    assert found["trainer_idle_gpus"] == 0.0
    assert found["balanced_rollout_gpus"] == pytest.approx(64 * 5 / 7)
    assert found["step_seconds"] == pytest.approx(512 * 1536 / 80000)
    assert found["cost_per_step"] == pytest.approx(64 * 2.5 * 9.8304 / 3600)
    assert found["in_flight"] == 3 * 512
    said = lesson_widget(START).said(lesson_widget(START).start)
    assert (said["bottleneck"], said["loop"], said["step"]) == ("trainer", "80,000 tok/s", "9.83 s")
    assert said["idle"] == "8.0 rollout + 0.0 trainer"


@given(st.floats(0.05, 0.95), st.floats(10, 1e5), st.floats(10, 1e5))
def test_with_nothing_exposed_it_is_the_lesson(share: float, rollout: float, trainer: float) -> None:
    """The loop runs at the slower rate, and the faster side idles by one minus their ratio."""
    found = worked(START, rollout_fraction=share, rollout_gpu_rate=rollout, trainer_gpu_rate=trainer)
    rates = found["rollout_rate"], found["trainer_rate"]
    assert found["loop_rate"] == pytest.approx(min(rates))
    idle = max(found["rollout_idle_fraction"], found["trainer_idle_fraction"])
    assert idle == pytest.approx(matching.idle_fraction(*rates), abs=1e-12)


@given(st.floats(100, 1e5))
def test_longer_outputs_take_longer_and_change_no_rate(tokens: float) -> None:
    """The output length sets tokens per step: step time and cost grow with it, rates and bottleneck do not."""
    before, after = worked(START), worked(START, response_tokens=tokens)
    for key in ("step_seconds", "cost_per_step", "tokens_per_step"):
        assert after[key] / before[key] == pytest.approx(tokens / 1536)
    assert after["loop_rate"] == pytest.approx(before["loop_rate"])


def test_what_neither_phase_hides_adds_to_the_step() -> None:
    """With a second of sync a step is a second longer, and both sides wait through it."""
    plain, exposed = worked(START), worked(replace(START, exposed_seconds=1.0))
    assert exposed["step_seconds"] == pytest.approx(plain["step_seconds"] + 1.0)
    assert exposed["trainer_idle_fraction"] == pytest.approx(1.0 / exposed["step_seconds"])
    assert exposed["loop_rate"] == pytest.approx(exposed["tokens_per_step"] / exposed["step_seconds"])


@given(starts)
def test_every_loop_is_consistent(start: Start) -> None:
    """Loop rate times step time is what a step trains, idle GPUs are no more than there are, money is paid for all."""
    assume(start.rollout_gpus < start.gpus)
    found = worked(start)
    assert found["loop_rate"] * found["step_seconds"] == pytest.approx(found["tokens_per_step"], rel=1e-6)
    if start.loop != "colocated":
        assert -1e-6 <= found["idle_gpus"] <= start.gpus
    if start.gpu_hour:
        assert found["cost_per_step"] == pytest.approx(start.gpus * start.gpu_hour * found["step_seconds"] / 3600)


@given(starts)
def test_every_start_makes_a_whole_widget(start: Start) -> None:
    """Each formula has all that it needs, each slider holds its start, each output can be said at both ends."""
    assume(start.rollout_gpus < start.gpus)
    widget = lesson_widget(start)
    known = {*widget.constants, *widget.start}
    for formula in widget.formulas:
        assert set(formula.inputs) == set(signature(formula.equation).parameters)
        assert known >= set(formula.inputs.values()), formula.key
        known.add(formula.key)
    for slider in widget.sliders:
        assert slider.start in slider.stops
        assert slider.stops[0] == slider.least
        assert slider.least > 0 or slider.key == "max_staleness"
        assert slider.stops[-1] == slider.most
        assert all(first < second for first, second in pairwise(slider.stops))
        for end in (slider.least, slider.most):
            assert all(widget.said(widget.start | {slider.key: end}).values())
    assert "{" not in widget.summary.format(**widget.said(widget.start))
    assert {part.key for part in widget.strip.parts} | {part.idle for part in widget.strip.parts} <= {*known, ""}


def test_sliders_that_mean_nothing_are_left_out() -> None:
    """No price without one, no staleness where phases take turns, no split where all GPUs do both."""
    keys = {
        loop: [slider.key for slider in lesson_widget(replace(START, loop=loop, gpu_hour=None)).sliders]
        for loop in LOOPS
    }
    everywhere = ["gpus", "response_tokens", "rollout_gpu_rate", "trainer_gpu_rate"]
    assert sorted(keys["overlapped"]) == sorted([*everywhere, "rollout_fraction", "max_staleness"])
    assert sorted(keys["in turn"]) == sorted([*everywhere, "rollout_fraction"])
    assert sorted(keys["colocated"]) == sorted(everywhere)
    assert "cost" not in lesson_widget(replace(START, gpu_hour=None)).summary
    assert "cost" in lesson_widget(START).summary


def test_stops_are_values_that_people_would_type() -> None:
    """Clusters grow by nodes, rates by two digits, shares by whole percents, and the start keeps all its digits."""
    sliders: dict[str, Slider] = {
        slider.key: slider for slider in lesson_widget(replace(START, rollout_gpu_rate=2457.6)).sliders
    }
    assert all(value % 8 == 0 for value in sliders["gpus"].stops)
    odd = {value for value in sliders["rollout_gpu_rate"].stops if float(f"{value:.2g}") != value}
    assert odd == {2457.6}
    assert sliders["rollout_fraction"].stops[:3] == (0.05, 0.06, 0.07)
    assert sliders["rollout_gpu_rate"].said(2457.6) == "2,458 tok/s"
    assert sliders["rollout_fraction"].said(0.75) == "75 %"


def test_nearly_alike_is_balanced() -> None:
    """Within half a percent nobody calls one side the bottleneck."""
    comparison = Comparison(key="x", label="", first="a", second="b", words=("first", "second", "even"))
    cases: list[tuple[float, float, str]] = [(99.0, 100.0, "first"), (100.0, 99.0, "second"), (99.6, 100.0, "even")]
    assert [comparison.said({"a": first, "b": second}) for first, second, _ in cases] == [word for *_, word in cases]


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (0.0042, "0.004200"), (0.0364, "0.0364"), (0.5, "0.500"), (9.8304, "9.83"), (123.45, "123.5"),
     (96000.4, "96,000"), (-12.0, "-12.00")],
)  # fmt: skip
def test_results_have_as_many_digits_as_they_need(value: float, said: str) -> None:
    """Four or so."""
    assert number_text(value) == said


def test_a_start_says_what_it_holds() -> None:
    """Waste and exposed time stand below the sliders, where they are not plain."""
    text: dict[str, Any] = {
        "plain": lesson_widget(START).text,
        "held": lesson_widget(replace(START, tokens_generated_per_trained_token=1.5, exposed_seconds=2.0)).text,
    }
    assert "generated" not in text["plain"]
    assert all(said in text["held"] for said in ("1.5 tokens generated", "2 s of each step"))
