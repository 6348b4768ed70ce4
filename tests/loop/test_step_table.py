"""A step-time table of one's own: the rate that follows from it, in every command, and what the simulator plays."""

from __future__ import annotations

import pytest

from rlsize.commands.simulate.setting import simulated
from rlsize.errors import InputError
from rlsize.loop.answer import answer_of
from rlsize.loop.rates import instance_rate
from rlsize.loop.resolve import resolve
from rlsize.loop.search import searched
from rlsize.shell.inputs import Inputs

TABLE = "1=9 ms, 64=14ms,256=30ms"
POINTS = ((1, 0.009), (64, 0.014), (256, 0.030))
LOOP = {
    "step_points": TABLE, "gpus_per_instance": "2", "rollout_gpus": "8", "trainer_gpus": "8", "mode": "sync",
    "prompts_per_step": "16", "group_size": "8", "response_tokens": "1000", "train_seconds": "10", "headroom": "1",
    "measured_trainer_gpus": "8",
}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "rate"),
    [
        ({}, 256 / 0.030),
        ({"concurrency": "64"}, 64 / 0.014),
        ({"concurrency": "160"}, 160 / 0.022),
        ({"concurrency": "64", "step_kv_token": "1 us", "response_tokens": "999", "response_cv": "0",
          "prompt_tokens": "500"}, 64 / (0.014 + 64e-6 * (500 + 500))),
    ],
    ids=str,
)  # fmt: skip
def test_a_table_says_the_rate_of_an_instance(said: dict[str, str], rate: float) -> None:
    """Samples at once over the step with them, between points on a line, with the cache where it adds something."""
    figure, _ = instance_rate(Inputs(texts={"step_points": TABLE} | said))
    assert figure.number == pytest.approx(rate, rel=1e-6 if "step_kv_token" not in said else 2e-3)
    assert "samples at once" in figure.source


def test_every_command_goes_by_the_table() -> None:
    """A worked-out step and a plan have its rate; the simulator plays it, with slots for its last point."""
    results = answer_of(resolve(Inputs(texts=LOOP))).results
    assert results["generation_seconds"].number == pytest.approx(128 * 1000 / (4 * 256 / 0.030))
    setting = simulated(Inputs(texts=LOOP)).setting
    assert [*map(pytest.approx, setting.engine.points)] == [*POINTS]
    assert setting.engine.slots == 256
    free = {key: text for key, text in LOOP.items() if key not in {"rollout_gpus", "trainer_gpus", "mode"}}
    asked = Inputs(texts=free | {"gpus": "16", "searched_modes": "synchronous"})
    chosen = searched(asked, (None, "")).planned.chosen
    assert chosen is not None
    assert chosen.best.place.fleet.rate.number == pytest.approx(256 / 0.030)


def test_a_scenario_says_the_same() -> None:
    """`rollout.step_time.points`, by --set or in a file."""
    texts = {key: text for key, text in LOOP.items() if key != "step_points"}
    by_set = simulated(Inputs(texts=texts, changes=[f"rollout.step_time.points={TABLE}"]))
    assert by_set.setting == simulated(Inputs(texts=LOOP)).setting


@pytest.mark.parametrize(
    "text", ["", "1=9ms", "64=14ms,1=9ms", "1=9ms,1=9ms", "1=9ms,2=-1ms", "1=9ms,2=0", "0=9ms,2=9ms", "1.5=9ms,2=9ms",
             "1=9 GB,2=9ms", "1,2", "1=nan,2=9ms", "9 ms", "1=9ms,2=1e400"],
)  # fmt: skip
def test_what_is_no_table_is_refused(text: str) -> None:
    """One fault, with an example."""
    with pytest.raises(InputError) as refused:
        simulated(Inputs(texts=LOOP | {"step_points": text}))
    faults = refused.value.faults
    assert [fault.where for fault in faults] == ["--step-points"]
    assert "1=9ms" in faults[0].todo


def test_a_line_and_a_table_are_one_too_many() -> None:
    """Both say what a step takes."""
    with pytest.raises(InputError, match="a line and a table"):
        simulated(Inputs(texts=LOOP | {"step_fixed": "9 ms"}))
