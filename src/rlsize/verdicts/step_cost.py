"""What a step of a running loop costs, and what it would cost once the first thing to do is done, at best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import budget, matching, money
from rlsize.estimates.figures import apply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.evidence import Diagnosis, Evidence
    from rlsize.facts.figure import Figure

_OF_THE_STEP = frozenset({"phases", "trainer_health", "weight_sync", "fleet_size"})
"""Checks whose gain is a share of the step."""


def step_costs(found: Diagnosis, evidence: Evidence, pools: Mapping[str, Figure]) -> tuple[Figure, ...]:
    """
    Dollars of a step as it is, and after the first thing to do; nothing where GPUs, prices or the step are not known.

    Args:
        found: The diagnosis.
        evidence: What it was made of.
        pools: `rollout_gpus` (0 where both sides share theirs), `trainer_gpus`, `rollout_gpu_hour`,
            `trainer_gpu_hour`.
    """
    step = evidence.run.figure("step_seconds")
    now = apply("cost_per_step_usd", money.cost_per_step, **pools, step_seconds=step)
    if not now.known:
        return ()
    first = found.steps[0] if found.steps else None
    if first is None or first.check not in _OF_THE_STEP:
        return (now,)
    after = dict(pools)
    if first.check == "fleet_size" and found.matched.known:
        fleet = {"instances": found.matched, "gpus_per_instance": evidence.gpus_per_instance}
        after["rollout_gpus"] = apply("rollout_gpus", matching.fleet_gpus, **fleet)
    if first.gain.known:
        saved = apply("saved_seconds", budget.allowed_change, baseline=step, change_fraction=first.gain)
        step = apply("step_seconds", budget.lowest_after_change, baseline=step, change=saved)
    then = apply("cost_per_step_after_usd", money.cost_per_step, **after, step_seconds=step)
    return (now, then) if then.known and then.value != now.value else (now,)
