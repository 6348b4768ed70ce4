"""What is played of a plan: the loop that `simulate` plays where the plan is said, with all that was said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.effort import NIGHTLY

from rlsize.commands.simulate.setting import simulated
from rlsize.loop.applied import MODES, applied
from rlsize.loop.played import played
from rlsize.loop.search import searched
from rlsize.planner import simulation
from rlsize.shell import planning
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from rlsize.simulator.setting import Setting

SAID = {
    "model": "qwen3-1.7b", "gpu": "h100-sxm", "gpus": "4", "max_staleness": "2", "prompts_per_step": "16",
    "group_size": "4", "prompt_tokens": "64", "response_tokens": "200", "max_response_tokens": "500",
    "group_correlation": "0.4", "length_drift": "0.2", "redealing": "running", "queue_steps": "3",
    "queue_order": "freshest", "micro_batches": "2", "kept_fraction": "0.8", "losses_per_hour": "2",
    "lost_together": "2", "notice_seconds": "3", "restart_seconds": "60", "straggler_fraction": "0.2",
    "straggler_slowdown": "2", "failures_per_hour": "1", "trainer_restart_seconds": "30", "checkpoint_every": "4",
    "sync_every": "2", "sync_way": "rolling", "kv_after_sync": "recomputed", "concurrency": "12",
    "routing": "round-robin", "searched_rollout_tensor_parallel": "1", "searched_tensor_parallel": "1",
    "searched_pipeline_parallel": "1", "searched_context_parallel": "1", "searched_recompute": "none",
    "searched_micro_batch_tokens": "4096",
}  # fmt: skip
AGENTS = {"turns": "2", "tool_seconds": "1", "tool_cv": "1", "environments": "64", "verify_seconds": "0.1"}


def said(**more: str) -> Inputs:
    """A loop of which nearly all is said that only a simulation follows."""
    return Inputs(texts=SAID | more)


MODES_TRIED = ("async", "colocated", "synchronous", "one-step-off")[: 4 if NIGHTLY else 2]


@pytest.mark.parametrize("modes", MODES_TRIED)
def test_a_plan_is_played_as_simulate_plays_it(modes: str) -> None:
    """Whatever was said: rules, troubles, agents, engines and syncs are those of the same loop under `simulate`."""
    inputs = said(searched_modes=modes)
    found = searched(inputs, (None, ""))
    best = found.planned.chosen
    assert best is not None
    setting, pools = played(inputs.apart(), found.planned.outlook.central, best.best.place)
    values = applied(inputs.said_values(""), found.loop, best.best.place)
    assert values["placement.mode"] == MODES[best.best.place.loop]
    own = simulated(said().changed(values))
    assert setting == replace(own.setting, trainer=replace(own.setting.trainer, logprob_fraction=0.0))
    assert pools == own.pools


@pytest.mark.long
def test_nothing_that_was_said_is_left_out_of_a_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is used, is among the inputs, and is in each setting that is played."""
    ran: list[Setting] = []

    def noted(_work: object, runs: list[tuple[int, Setting, object, int]]) -> list[None]:
        ran.extend(setting for _, setting, *_ in runs)
        return [None for _ in runs]

    monkeypatch.setattr(planning, "side_by_side", noted)
    inputs = said(simulated_plans="4", **AGENTS)
    _, ranked = planning.search(inputs)
    assert not inputs.unused()
    assert {"lost_together", "redealing", "queue_steps", "concurrency"} <= set(inputs.used)
    assert len(ran) == len(ranked) * simulation._SEEDS
    for setting in ran:
        assert (setting.rules.redealing, setting.trouble.lost_together, setting.engine.slots) == ("running", 2, 12)
