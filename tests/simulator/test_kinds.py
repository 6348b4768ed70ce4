"""Fleets of several kinds of instances: how they are dealt to, how quick they are, what they cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.simulator.tables import Table

from rlsize.commands.simulate.setting import simulated
from rlsize.errors import InputError
from rlsize.shell.inputs import Inputs
from rlsize.simulator.first_order import first_order, mean_rate
from rlsize.simulator.played import covers
from rlsize.simulator.run import conductor_of
from rlsize.simulator.setting import EngineSetting, LengthSetting, Setting, TrainerSetting, WorkSetting

OWN = EngineSetting(instances=1, slots=1, fixed_seconds=1.0)


def setting(*others: EngineSetting) -> Setting:
    """Three samples of 10 tokens a step; a trainer that takes no time."""
    work = WorkSetting(groups=3, group_size=1, lengths=LengthSetting(mean=10.0))
    return Setting(engine=OWN, others=others, work=work, trainer=TrainerSetting(seconds=0.0))


@pytest.mark.parametrize(
    ("others", "end"),
    [
        ((), 30.0),
        ((OWN,), 20.0),
        ((replace(OWN, slots=2),), 10.0),  # by slots: one sample to the first, two to the second
        ((replace(OWN, slots=2).slowed(2.0),), 20.0),
        ((replace(OWN, slots=2).slowed(0.5),), 10.0),
        ((OWN, OWN.slowed(3.0)), 30.0),
        ((replace(OWN, instances=2),), 10.0),
    ],
    ids=str,
)
def test_samples_go_where_there_are_the_fewest_for_the_slots(others: tuple[EngineSetting, ...], end: float) -> None:
    """Each kind has slots and steps of its own; how slow a kind is does not keep samples from it."""
    loop = conductor_of(setting(*others), Table(((10,),)))
    loop.run(1)
    assert loop.ledger.columns["end_seconds"][0] == end


def test_the_first_order_counts_all_kinds() -> None:
    """The fleet's rate is the sum of its instances' at their batches; the kernel leaves it to the specification."""
    several = setting(replace(OWN, instances=2, slots=2).slowed(4.0))
    several = replace(several, work=replace(several.work, groups=10))
    assert mean_rate(several) == pytest.approx((1.0 + 2 * 2 / 4) / 3)
    assert first_order(several, simulated(Inputs(texts=SAID)).pools)["step_seconds"] == pytest.approx(10 * 10 / 2.0)
    assert covers(setting())
    assert not covers(several)


SAID = {
    "mode": "async", "instances": "4", "gpus_per_instance": "2", "trainer_gpus": "8", "prompts_per_step": "16",
    "group_size": "8", "response_tokens": "500", "train_seconds": "2", "instance_tokens_per_second": "2000",
    "concurrency": "32", "max_response_tokens": "2000", "rollout_gpu_hour_usd": "2", "trainer_gpu_hour_usd": "3",
}  # fmt: skip


def test_kinds_are_said_by_what_differs() -> None:
    """Slots, rate or slowdown, cache, GPUs and price; the rest is the fleet's own. The mean price is by GPUs."""
    text = "4 slots=16 rate=1000 gpus=1 gpu_hour=0.90; 1 slowdown=2 kv=100k"
    found = simulated(Inputs(texts=SAID | {"more_instances": text}))
    own, (first, second) = found.setting.engine, found.setting.others
    assert (first.instances, first.slots) == (4, 16)
    assert first.fixed_seconds == pytest.approx(0.016)
    assert second == replace(own.slowed(2.0), instances=1, kv_tokens=100_000.0)
    assert found.pools.rollout_gpus == 8 + 4 + 2
    assert found.pools.rollout_gpu_hour == pytest.approx((10 * 2 + 4 * 0.9) / 14)


@pytest.mark.parametrize(
    "text", ["", "x", "0", "-1", "1.5", "4 slots=0", "4 slots=1.5", "4 speed=2", "4 slots", "4 slots=", "4 rate=0",
             "4 slowdown=2 rate=10", "4 gpu_hour=-1", "4; ", "4 slots=2 GB", "4 rate=nan"],
)  # fmt: skip
def test_what_says_no_kind_is_refused(text: str) -> None:
    """One fault, with an example."""
    with pytest.raises(InputError) as refused:
        simulated(Inputs(texts=SAID | {"more_instances": text}))
    assert [fault.where for fault in refused.value.faults] == ["--more-instances"]
    assert "4 slots=64" in refused.value.faults[0].todo


@pytest.mark.parametrize("more", [{"mode": "colocated"}, {"resizes": "1=+1"}], ids=str)
def test_kinds_go_neither_with_shared_gpus_nor_with_resizing(more: dict[str, str]) -> None:
    """Colocated GPUs are of one kind, and nobody says which kind comes or goes."""
    with pytest.raises(InputError, match="leave one of them out"):
        simulated(Inputs(texts=SAID | {"more_instances": "4"} | more))
