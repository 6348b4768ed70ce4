"""Instances that come and go during a run: worked out by hand, and what they cost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulator.tables import Table

from rlsize.commands.simulate.setting import simulated
from rlsize.errors import InputError
from rlsize.shell.inputs import Inputs
from rlsize.simulator.first_order import Pools
from rlsize.simulator.outcome import outcome_of
from rlsize.simulator.played import covers
from rlsize.simulator.resizing import held_seconds
from rlsize.simulator.run import conductor_of, simulate
from rlsize.simulator.setting import (
    EngineSetting,
    LengthSetting,
    Resize,
    RuleSetting,
    Setting,
    TrainerSetting,
    TroubleSetting,
    WorkSetting,
)


def setting(*resizes: Resize, instances: int = 1, **trouble: Any) -> Setting:
    """Two samples of 10 tokens a step, 1 s a token, a slot to an instance, a trainer that takes no time."""
    return Setting(
        engine=EngineSetting(instances=instances, slots=1, fixed_seconds=1.0),
        work=WorkSetting(groups=2, group_size=1, lengths=LengthSetting(mean=10.0)),
        trainer=TrainerSetting(seconds=0.0),
        rules=RuleSetting(resizes=resizes),
        trouble=TroubleSetting(**trouble),
    )


def ends(of: Setting, steps: int) -> list[float]:
    """When each step ends. [s]"""
    loop = conductor_of(of, Table(((10,),)))
    loop.run(steps)
    return list(loop.ledger.columns["end_seconds"])


@pytest.mark.parametrize(
    ("resizes", "expected"),
    [
        ((), [20.0, 40.0, 60.0]),
        ((Resize(1, 1),), [20.0, 30.0, 40.0]),  # both samples run at once from the second step on
        ((Resize(1, None, 25.0),), [20.0, 35.0, 45.0]),  # at 25 the queued sample moves
        ((Resize(1, None, 25.0), Resize(-1, None, 39.5)), [20.0, 35.0, 51.0]),  # with 4 of its tokens back in the queue
        ((Resize(1, 1), Resize(-1, 2)), [20.0, 30.0, 50.0]),
        ((Resize(-1, 1),), [20.0, 40.0, 60.0]),  # one stays
        ((Resize(5, 1), Resize(-9, 2)), [20.0, 30.0, 50.0]),
    ],
    ids=str,
)
def test_instances_come_and_go(resizes: tuple[Resize, ...], expected: list[float]) -> None:
    """After a step or at a time; what ran on one that goes goes on elsewhere with its tokens."""
    assert ends(setting(*resizes), 3) == expected


def test_the_last_to_come_are_the_first_to_go() -> None:
    """One that has gone may come again, as an instance without samples and with the newest weights."""
    assert ends(setting(Resize(-1, 1), Resize(1, 2), instances=2), 3) == [10.0, 30.0, 40.0]


def test_an_instance_that_was_taken_away_is_not_brought_back_by_the_end_of_its_loss() -> None:
    """Lost at 5 s for 10 s, taken away at 6 s: from then on one instance, and its loss ends for nobody."""
    of = setting(Resize(-1, None, 6.0), instances=2, losses_per_hour=3600.0, restart_seconds=10.0)
    loop = conductor_of(of, Table(((10,),), lost={1: (5.0,)}))
    loop.run(2)
    columns = loop.ledger.columns
    assert columns["end_seconds"][0] == 20.0
    assert columns["down_seconds"][1] == 1.0
    assert columns["away_seconds"][1] == columns["end_seconds"][1] - 6.0


def test_what_is_held_is_paid() -> None:
    """GPU-hours and dollars of the run: the fleet's by the instances that it had, the trainer's throughout."""
    of = setting(Resize(1, None, 25.0), Resize(-1, None, 39.5))
    times = ends(of, 3)
    assert held_seconds(of, times, 0.0) == 25.0 + 2 * 14.5 + 11.5
    assert held_seconds(of, times, 30.0) == 2 * 9.5 + 11.5
    pools = Pools(rollout_gpus=4.0, trainer_gpus=8.0, rollout_gpu_hour=1.0, trainer_gpu_hour=3.0)
    found = outcome_of(simulate(of, 3), of, pools, 0).measures
    assert found["gpu_hours_per_run"] == pytest.approx((4 * 65.5 + 8 * 51.0) / 3600)
    assert found["cost_per_run_usd"] == pytest.approx((4 * 65.5 + 3 * 8 * 51.0) / 3600)
    after = (4 * (held_seconds(of, times, 20.0) / 31.0) + 3 * 8) * 15.5 / 3600
    assert found["cost_per_step_usd"] == pytest.approx(after)


def test_the_specification_plays_it() -> None:
    """The kernel knows no fleet whose size changes."""
    assert covers(setting())
    assert not covers(setting(Resize(1, 1)))


SAID = {
    "mode": "sync", "instances": "2", "prompts_per_step": "4", "response_tokens": "10", "train_seconds": "1",
    "instance_tokens_per_second": "100",
}  # fmt: skip


def test_it_is_said_by_steps_and_times() -> None:
    """A bare number is an optimizer step, one with a unit a time."""
    said = simulated(Inputs(texts=SAID | {"resizes": "100=+4, 2 h=-2,90s=+1"})).setting.rules.resizes
    assert said == (Resize(4, 100), Resize(-2, None, 7200.0), Resize(1, None, 90.0))


@pytest.mark.parametrize("text", ["", "4", "100=4", "0=+1", "1=+0", "1.5=+1", "-1=+1", "2 GB=+1", "1=+1;2=+1", "a=+1"])
def test_what_says_nothing_of_the_kind_is_refused(text: str) -> None:
    """One fault, with an example."""
    with pytest.raises(InputError) as refused:
        simulated(Inputs(texts=SAID | {"resizes": text}))
    assert [fault.where for fault in refused.value.faults] == ["--resizes"]
    assert "100=+4" in refused.value.faults[0].todo


def test_colocated_instances_cannot_be_resized() -> None:
    """They are the trainer's GPUs."""
    with pytest.raises(InputError, match="are the trainer's GPUs"):
        simulated(Inputs(texts=SAID | {"mode": "colocated", "resizes": "1=+1"}))
