"""Rules and troubles of the loop, each in a case that is worked out by hand in seconds and tokens."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.simulator.tables import Table

from rlsize.simulator.first_order import Pools, first_order
from rlsize.simulator.ledger import Ledger
from rlsize.simulator.outcome import outcome_of
from rlsize.simulator.run import conductor_of, simulate
from rlsize.simulator.setting import (
    EngineSetting,
    Latency,
    LengthSetting,
    Mode,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    WorkSetting,
)

EACH_SECOND = 3600.0  # per hour: one a second, so that a table's times are seconds


def played(
    rows: tuple[tuple[int, ...], ...],
    steps: int = 1,
    *,
    groups: int = 1,
    group_size: int | None = None,
    engine: dict[str, Any] | None = None,
    work: dict[str, Any] | None = None,
    micro_batches: int = 1,
    trainer: dict[str, Any] | None = None,
    sync: SyncSetting | None = None,
    rules: RuleSetting | None = None,
    trouble: TroubleSetting | None = None,
    **outcomes: Any,
) -> Ledger:
    """One instance with steps of 1 s; a trainer that needs 1 s for a token where rows have 2 tokens to a sample."""
    setting = Setting(
        engine=EngineSetting(**{"instances": 1, "slots": 8, "fixed_seconds": 1.0, **(engine or {})}),
        work=WorkSetting(
            groups=groups, group_size=group_size or len(rows[0]), lengths=LengthSetting(mean=2.0), **(work or {})
        ),
        trainer=TrainerSetting(seconds=2.0 * groups * len(rows[0]), micro_batches=micro_batches, **(trainer or {})),
        sync=sync or SyncSetting(),
        rules=rules or RuleSetting(),
        trouble=trouble or TroubleSetting(),
    )
    loop = conductor_of(setting, Table(rows, **outcomes))
    loop.run(steps)
    return loop.ledger


def column(ledger: Ledger, name: str) -> list[float]:
    """A column."""
    return list(ledger.columns[name])


def seconds(ledger: Ledger) -> list[float]:
    """Duration of every step. [s]"""
    return [after - before for before, after in pairwise([0.0, *ledger.columns["end_seconds"]])]


def test_micro_batches_are_trained_as_they_come() -> None:
    """Group 0 ends at 1 s and is trained for 1 s; group 1 ends at 3 s and is trained for 3 s."""
    ledger = played(((1,), (3,)), 2, groups=2, micro_batches=2)
    assert seconds(ledger) == [6.0, 6.0]
    assert column(ledger, "waiting_seconds") == [2.0, 2.0]
    assert column(ledger, "train_seconds") == [4.0, 4.0]


def test_every_second_step_is_synced() -> None:
    """2 s of generation, 4 s of training, 1.5 s of sync after even steps; steps in between are one version old."""
    ledger = played(((2, 2),), 4, sync=SyncSetting(seconds=1.5, every=2))
    assert seconds(ledger) == [6.0, 7.5, 6.0, 7.5]
    assert [dict(counts) for counts in ledger.staleness] == [{0: 2}, {1: 2}, {0: 2}, {1: 2}]


def test_oversampling_drops_what_is_late() -> None:
    """Of ceil(2 × 1.3) = 3 groups two are done after 2 s; the two tokens of the third are lost, each time."""
    rows = ((1,), (2,), (5,))
    ledger = played(rows, 3, groups=2, rules=RuleSetting(oversampling=1.3))
    assert column(ledger, "waiting_seconds") == [2.0, 2.0, 2.0]
    assert column(ledger, "trained_tokens") == [3.0, 3.0, 3.0]
    assert column(ledger, "dropped_tokens") == [2.0, 4.0, 6.0]


def test_partial_rollouts_go_on() -> None:
    """
    Group 1 has one of its three tokens when group 0 ends the first batch, two after the second, and is the third.

    It began two versions before it is trained; nothing is lost, and it computes its tokens anew when it goes on.
    """
    rules = RuleSetting(oversampling=2.0, unfinished="keep")
    ledger = played(((1,), (3,)), 3, rules=rules, engine={"prefill_seconds": 0.125})
    assert column(ledger, "waiting_seconds") == [1.0, 1.125, 1.25]
    assert column(ledger, "trained_tokens") == [1.0, 1.0, 3.0]
    assert column(ledger, "under_way_tokens")[:2] == [1.0, 2.0]
    assert column(ledger, "dropped_tokens") == [0.0] * 3
    assert [dict(counts) for counts in ledger.staleness] == [{0: 1}, {0: 1}, {2: 1}]


def test_a_rejected_group_is_replaced() -> None:
    """Group 0 is thrown away after 2 s, and group 1 takes 3 s in its place; then group 2 takes 2 s."""
    ledger = played(((2, 2), (3, 1)), 2, rejected=frozenset({0}))
    assert column(ledger, "waiting_seconds") == [5.0, 2.0]
    assert column(ledger, "dropped_tokens") == [4.0, 4.0]


@pytest.mark.parametrize(
    ("way", "keeps_kv", "ends", "sync", "dropped"),
    [
        ("in-flight", True, [5.5, 13.0], [1.5, 1.5], [0, 0]),
        ("in-flight", False, [5.5, 15.0], [1.5, 1.5], [0, 0]),
        ("drain", True, [6.5, 13.0], [2.5, 1.5], [0, 0]),
        ("abort", True, [5.5, 11.0], [1.5, 1.5], [4, 8]),
    ],
)
def test_ways_of_a_weight_sync(
    way: Any, keeps_kv: bool, ends: list[float], sync: list[float], dropped: list[int]
) -> None:
    """
    At 4 s group 0 is trained, and group 1 has four of its five tokens. A transport takes 1.5 s.

    It goes on for the fifth, which takes 1 s, with its KV; without it 3 s; or it is waited for; then it is trained for
    5 s. Or it starts anew, is overtaken by group 2, which is trained from 7.5 to 9.5 s, and starts anew once more.
    """
    ledger = played(
        ((2,), (5,)),
        2,
        engine={"prefill_seconds": 0.0 if keeps_kv else 0.5},
        sync=SyncSetting(seconds=1.5, way=way, keeps_kv=keeps_kv),
        rules=RuleSetting(mode="async", max_staleness=1),
    )
    assert column(ledger, "end_seconds") == ends
    assert column(ledger, "sync_seconds") == sync
    assert column(ledger, "dropped_tokens") == dropped


@pytest.mark.parametrize(("workers", "waiting"), [(None, 4.0), (2, 4.0), (1, 6.0)])
def test_verifiers_score_one_after_the_other(workers: int | None, waiting: float) -> None:
    """Two samples end at 2 s and are scored for 2 s each, side by side or one after the other."""
    work = {"verify": Latency(seconds=2.0), "verify_workers": workers}
    ledger = played(((2, 2),), work=work, verify=2.0)
    assert column(ledger, "waiting_seconds") == [waiting]


def test_a_redundant_sample_does_not_wait_for_a_verifier() -> None:
    """
    Of each group's three samples one is needed, and all six end after 2 s; the only verifier takes 2 s for each.

    The first of group 0 is scored at 4 s. The second is begun with at that instant; the third leaves the queue, so
    that group 1 has its score at 8 s, not at 10 s.
    """
    work = {"verify": Latency(seconds=2.0), "verify_workers": 1, "redundant_samples": 2}
    ledger = played(((2, 2, 2), (2, 2, 2)), work=work, verify=2.0, groups=2, group_size=1)
    assert column(ledger, "waiting_seconds") == [8.0]


def test_a_tool_works_between_two_turns() -> None:
    """2 s of steps, 1.5 s of the tool, its three tokens at 0.5 s each, and 2 s of steps; the prompt has its KV."""
    work = {"turns": 2, "tool_tokens": 3, "tool": Latency(seconds=1.5), "prompt_tokens": 2}
    ledger = played(((4,),), work=work, engine={"prefill_seconds": 0.5}, tool=1.5)
    assert column(ledger, "waiting_seconds") == [2 * 0.5 + 2.0 + 1.5 + 3 * 0.5 + 2.0]
    assert column(ledger, "generating_seconds") == [2 * 0.5 + 2.0 + 3 * 0.5 + 2.0]


def test_a_turn_makes_a_token_at_least() -> None:
    """Two tokens have two of four turns, a token each, with 1.5 s of the tool between them."""
    ledger = played(((2,),), work={"turns": 4, "tool": Latency(seconds=1.5)}, tool=1.5)
    assert column(ledger, "waiting_seconds") == [1 + 1.5 + 1]


def test_a_sample_ends_after_the_turns_that_are_drawn_for_it() -> None:
    """4 tokens in one turn, and 2 and 2 with 1.5 s of a tool between them and half a second until a step begins."""
    ledger = played(((4, 4),), work={"turns": 2, "turn_end_fraction": 0.5}, tool=1.5, turns_drawn=(1, 2))
    assert column(ledger, "waiting_seconds") == [2 + 1.5 + 0.5 + 2]
    ledger = played(((4, 4),), work={"turns": 2, "turn_end_fraction": 0.5}, tool=1.5, turns_drawn=(1, 1))
    assert column(ledger, "waiting_seconds") == [4]


def test_the_first_to_end_are_taken_and_the_others_stop_when_their_step_ends() -> None:
    """Of 3, 2 and 6 tokens two samples are needed, which have ended at 3 s; a step of the third lasts to 3.5 s."""
    work = {"redundant_samples": 1, "environments": 3}
    ledger = played(((3, 2, 6),), 2, work=work, group_size=2)
    assert column(ledger, "waiting_seconds") == [3.0, 3.0]
    assert column(ledger, "trained_tokens") == [5.0, 5.0]
    assert column(ledger, "dropped_tokens") == [3.0, 6.0]
    slow = {"instances": 3, "slots": 1, "routing": "round-robin", "fixed_seconds": 1.0}
    trouble = TroubleSetting(straggler_fraction=1 / 3, straggler_slowdown=1.75)
    ledger = played(((6, 3, 2),), 1, work=work, group_size=2, engine=slow, trouble=trouble)
    assert column(ledger, "waiting_seconds") == [3.0]
    assert column(ledger, "generating_seconds") == [3.0 + 2.0 + 2 * 1.75]


@pytest.mark.parametrize(("environments", "waiting"), [(None, 3 + 2), (4, 3 + 2), (3, 2 * (3 + 2)), (2, 2 * (3 + 2))])
def test_groups_wait_for_environments(environments: int | None, waiting: float) -> None:
    """Two groups of two samples of 2 s; environments start in 3 s, side by side if there are four of them."""
    work = {"environments": environments, "environment_seconds": 3.0}
    ledger = played(((2, 2),), groups=2, work=work)
    assert column(ledger, "waiting_seconds") == [waiting]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_group_that_needs_more_environments_than_there_are_never_begins(mode: Mode) -> None:
    """One environment for two samples: the loop stands still, so commands refuse it."""
    ledger = played(((2, 2),), work={"environments": 1}, rules=RuleSetting(mode=mode))
    assert len(ledger) == 0


def test_an_async_loop_admits_only_what_finds_environments() -> None:
    """Two environments: a group of two follows the last one after 1 + 2 s, though slots are free."""
    work = {"environments": 2, "environment_seconds": 1.0}
    rules = RuleSetting(mode="async", max_staleness=None, queue_steps=2.0)
    ledger = played(((2, 2),), steps=3, work=work, rules=rules)
    assert column(ledger, "end_seconds") == [3.0 + 4.0, 7.0 + 4.0, 11.0 + 4.0]
    assert column(ledger, "generating_seconds") == [2 + 2, 4 + 2 + 1, 7 + 1 + 2]


def test_a_full_cache_preempts_the_last() -> None:
    """A prompt of 3 and 3 + 3 tokens are more than 8: the second goes on after the first, and computes its 2 tokens."""
    engine = {"kv_tokens": 8.0, "prefill_seconds": 0.5}
    ledger = played(((4, 4),), engine=engine, work={"prompt_tokens": 3})
    assert column(ledger, "waiting_seconds") == [6 + 0.5 * (3 + 2)]
    assert column(ledger, "preemptions") == [1.0]


@pytest.mark.parametrize(
    ("notice", "waiting", "dropped", "down"), [(0.0, 6.5, 4.0, 1.0), (0.5, 3.0, 0.0, 1.0), (0.25, 6.75, 4.0, 1.0)]
)
def test_a_lost_instance_loses_its_tokens(notice: float, waiting: float, dropped: float, down: float) -> None:
    """Told of at 2.5 s: two samples of 3 tokens lose 2 each, and start anew a second later, unless they end before."""
    trouble = TroubleSetting(losses_per_hour=EACH_SECOND, notice_seconds=notice, restart_seconds=1.0)
    ledger = played(((3, 3),), trouble=trouble, lost={0: (2.5,)})
    assert column(ledger, "waiting_seconds") == [waiting]
    assert column(ledger, "dropped_tokens") == [dropped]
    assert column(ledger, "down_seconds") == [down]


@pytest.mark.parametrize(("checkpoint_every", "third"), [(1, 3.0), (2, 3.0), (5, 11.0)])
def test_a_failed_trainer_replays(checkpoint_every: int, third: float) -> None:
    """
    It fails after 3 s of work, and after 6 s more: 3 s into the first step, and 1 s into the third, of 4 s each.

    A failure costs 2 s of restart, the steps since the checkpoint, and what was done of the step.
    """
    trouble = TroubleSetting(
        failures_per_hour=EACH_SECOND, trainer_restart_seconds=2.0, checkpoint_every=checkpoint_every
    )
    ledger = played(((2, 2),), 3, trouble=trouble, failing=(3.0, 6.0))
    assert column(ledger, "failure_seconds") == [5.0, 0.0, third]
    assert seconds(ledger) == [11.0, 6.0, 6.0 + third]


def test_the_trainer_lends_its_gpus_while_it_waits() -> None:
    """A second sample finds a slot at 1 s on what the trainer lends, ends at 5 s, and the trainer is back at 6 s."""
    trouble = TroubleSetting(lent_instances=1, lend_seconds=1.0)
    ledger = played(((4,), (4,)), 2, groups=2, engine={"slots": 1, "routing": "queue"}, trouble=trouble)
    assert column(ledger, "waiting_seconds") == [6.0, 6.0]
    assert column(ledger, "train_seconds") == [8.0, 8.0]
    assert column(ledger, "away_seconds") == [1.0 + 9.0, 2 * (1.0 + 9.0)]


def test_a_lent_instance_takes_what_is_queued() -> None:
    """Under affine routing two samples wait behind one of 4 s; one goes to lent GPUs at 1 s, and ends at 5 s."""
    trouble = TroubleSetting(lent_instances=1, lend_seconds=1.0)
    ledger = played(((4,), (4,), (4,)), groups=3, engine={"slots": 1}, trouble=trouble)
    assert column(ledger, "waiting_seconds") == [8.0 + 1.0]  # not 12: the third ends at 8 s, then GPUs change over


def test_an_instance_without_samples_gets_some_that_run() -> None:
    """
    Two instances have groups of 4 and of 1 token; after a step of 1.5 s with both samples the second one has none.

    It gets one of two samples that run, which computes its token anew for 0.5 s, and needs three steps of 1.25 s.
    """
    rows, engine = ((4, 4), (1, 1)), {"instances": 2, "prefill_seconds": 0.5, "sample_seconds": 0.25}
    stays, goes = (
        played(rows, groups=2, engine=engine, rules=RuleSetting(redealing=word)) for word in ("waiting", "running")
    )
    assert column(stays, "waiting_seconds") == [4 * 1.5]
    assert column(goes, "waiting_seconds") == [1.5 + 0.5 + 3 * 1.25]


def test_a_node_takes_its_instances_with_it() -> None:
    """Told of at 2.5 s for both instances: all four samples lose 2 tokens, and start anew a second later."""
    trouble = TroubleSetting(losses_per_hour=EACH_SECOND, lost_together=2, restart_seconds=1.0)
    ledger = played(((3, 3), (3, 3)), groups=2, engine={"instances": 2}, trouble=trouble, lost={0: (2.5,), 1: (0.5,)})
    assert column(ledger, "waiting_seconds") == [6.5]
    assert column(ledger, "dropped_tokens") == [8.0]
    assert column(ledger, "down_seconds") == [2.0]


def test_an_overhead_passes_after_each_update() -> None:
    """2 s of generation, 4 s of training, 1 s of overhead, in which the next group does not go on either."""
    setting = {"overhead_seconds": 1.0}
    ledger = played(((2, 2),), 2, sync=SyncSetting(seconds=1.5, every=2), trainer=setting)
    assert seconds(ledger) == [7.0, 8.5]
    assert column(ledger, "overhead_seconds") == [1.0, 1.0]
    assert column(ledger, "sync_seconds") == [0.0, 1.5]
    ahead = played(((2, 2), (5, 5)), 1, rules=RuleSetting(mode="async", max_staleness=1), trainer=setting)
    assert column(ahead, "paused_seconds") == [1.0]


@pytest.mark.parametrize(("cap", "ahead"), [(0.0, 0), (0.4, 0), (0.5, 1), (0.9, 1), (1.0, 2)])
def test_a_fraction_of_a_step_begins_a_part_of_a_batch_ahead(cap: float, ahead: int) -> None:
    """Of batches of two groups, the tokens of whole groups that the cap lets begin are there when one is trained."""
    ledger = played(((2, 2),), groups=2, rules=RuleSetting(mode="async", max_staleness=cap))
    assert column(ledger, "backlog_samples") == [2.0 * ahead]
    assert column(ledger, "generated_tokens") == [8.0 + 4 * ahead]


def test_instances_take_weights_by_themselves() -> None:
    """
    The step ends with its update at 6 s; each instance takes the weights for 1.5 s when its own step ends.

    The trainer has the next batch by then, whose samples are one version old, and trains until 10 s.
    """
    sync, rules = SyncSetting(seconds=1.5, way="rolling"), RuleSetting(mode="async", max_staleness=1)
    ledger = played(((2, 2),), 2, sync=sync, rules=rules)
    assert column(ledger, "end_seconds") == [6.0, 10.0]
    assert column(ledger, "sync_seconds") == [0.0, 0.0]
    assert column(ledger, "paused_seconds") == [0.0, 1.5]
    assert [dict(counts) for counts in ledger.staleness] == [{0: 2}, {1: 2}]


@pytest.mark.parametrize(("restart", "second"), [(0.0, 13.0), (1.0, 14.0), (4.0, 17.0)])
def test_an_instance_that_is_lost_while_it_loads_comes_back_with_new_weights(restart: float, second: float) -> None:
    """
    A batch takes 2 s, its training 4 s, and with a cap of 0 the next one begins with new weights: at 6 s, and 1.5 s on.

    The instance is lost at 7 s, while it loads them, and back with them after the restart: the next one begins then.
    """
    sync, rules = SyncSetting(seconds=1.5, way="rolling"), RuleSetting(mode="async", max_staleness=0)
    trouble = TroubleSetting(losses_per_hour=EACH_SECOND, restart_seconds=restart)
    ledger = played(((2, 2),), 2, sync=sync, rules=rules, trouble=trouble, lost={0: (7.0,)})
    assert column(ledger, "end_seconds") == [6.0, second]


def test_a_straggler_takes_its_time() -> None:
    """One of two instances takes 3 s for a step: its sample of 2 tokens ends at 6 s, while the other is its tail."""
    trouble = TroubleSetting(straggler_fraction=0.5, straggler_slowdown=3.0)
    ledger = played(((2,), (2,)), groups=2, engine={"instances": 2}, trouble=trouble)
    assert column(ledger, "waiting_seconds") == [6.0]
    assert column(ledger, "tail_seconds") == [4.0]
    assert column(ledger, "idle_seconds") == [4.0 + 2 * 4.0]


def test_measures_are_shares_of_the_time_of_all_instances_and_counts_of_a_step() -> None:
    """Two instances with room for few tokens, whose batches end in tails; three steps after the first."""
    setting = Setting(
        engine=EngineSetting(instances=2, slots=4, fixed_seconds=1.0, kv_tokens=20.0),
        work=WorkSetting(groups=8, group_size=1, lengths=LengthSetting(mean=8.0, cv=1.0, cap=16.0)),
        trainer=TrainerSetting(seconds=5.0),
    )
    ledger = simulate(setting, 4)
    found = outcome_of(ledger, setting, Pools(), 0).measures
    grown = {name: column(ledger, name) for name in ("end_seconds", "tail_seconds", "preemptions")}
    end, tail, preemptions = (values[-1] - values[0] for values in grown.values())  # the first step warms up
    assert min(tail, preemptions) > 0
    assert found["tail_idle_fraction"] == pytest.approx(tail / (2 * end))
    assert found["preemptions_per_step"] == pytest.approx(preemptions / 3)


def test_a_cap_lets_samples_be_older_than_the_cadence_of_syncs_makes_them() -> None:
    """In the closed form: a cap of none is a loop in turn; below one of four steps samples wait for the trainer."""
    ages: list[float] = []
    for cap in (0.0, 4.0):
        setting = Setting(
            engine=EngineSetting(instances=8, slots=4, fixed_seconds=1.0),
            work=WorkSetting(groups=16, group_size=1, lengths=LengthSetting(mean=10.0, shape="constant")),
            trainer=TrainerSetting(seconds=50.0),
            rules=RuleSetting(mode="async", max_staleness=cap),
        )
        ages.append(first_order(setting, Pools())["staleness_mean_steps"] or 0.0)
    assert 0.0 == ages[0] < ages[1] <= 4.0


@pytest.mark.parametrize(("lent", "first"), [(0, 20.0), (2, 12.5), (6, 8.75)])
def test_lent_instances_count_while_they_are_there(lent: int, first: float) -> None:
    """
    16 samples of 10 s on 2 instances of 4 take 20 s; with as many lent after 5 s of training (20 + 5) / 2, with three
    times as many (20 + 3 x 5) / 4. What is unused is a share of the instances that are there.
    """
    setting = Setting(
        engine=EngineSetting(instances=2, slots=4, fixed_seconds=1.0),
        work=WorkSetting(groups=16, group_size=1, lengths=LengthSetting(mean=10.0, shape="constant")),
        trainer=TrainerSetting(seconds=5.0),
        rules=RuleSetting(mode="async", max_staleness=1),
        trouble=TroubleSetting(lent_instances=lent),
    )
    assert first_order(setting, Pools())["step_seconds"] == pytest.approx(first)
    measures = outcome_of(simulate(setting, 20), setting, Pools(), 0).measures
    assert measures["step_seconds"] == pytest.approx(first, rel=0.2)
    assert 0.0 <= measures["rollout_unused_fraction"] < 0.25
