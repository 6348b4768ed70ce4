"""Which fleet matches a trainer, what any other does beside it, and how GPUs are split between the two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import imbalance, matching, money, redundancy
from rlsize.estimates.flow import rule

if TYPE_CHECKING:
    from rlsize.estimates.flow import Rule

_NEEDED = "required_tokens_per_second"
DEMAND = (
    rule(_NEEDED, matching.required_supply),
    rule("train_seconds", matching.train_time),
)

_GPUS = {f"{pool}_gpus": f"{pool}_gpus" for pool in ("rollout", "trainer")}
_PRICES = {f"{pool}_gpu_hour": f"{pool}_gpu_hour_usd" for pool in ("rollout", "trainer")}


def _judged(prefix: str, supply: str, headroom: str) -> tuple[Rule, ...]:
    """What a number of instances does at one headroom."""
    idle, step = f"{prefix}trainer_idle_fraction", f"{prefix}step_seconds"
    return (
        rule(supply, matching.fleet_supply, headroom=headroom),
        rule(idle, imbalance.trainer_idle_fraction, supply=supply),
        rule(f"{prefix}backlog_tokens_per_second", imbalance.backlog_growth, supply=supply),
        rule(f"{prefix}fleet_utilisation_fraction", matching.utilisation, supply=supply, required_supply=_NEEDED),
        rule(step, imbalance.step_time_with_idle, idle_fraction=idle),
        rule(f"{prefix}cost_per_step_usd", money.cost_per_step, **_GPUS, **_PRICES, step_seconds=step),
    )


FLEET = (
    *DEMAND,
    rule("matched_instances_exact", matching.matched_instances),
    rule("nameplate_matched_instances", matching.matched_instances, headroom=1.0),
    rule("rollout_gpus", matching.fleet_gpus),
    *_judged("", "nameplate_supply_tokens_per_second", "nameplate_headroom"),
    *_judged("expected_", "expected_supply_tokens_per_second", "headroom"),
)

MORE_ROLLOUT = {"rollout_factor": 2.0, "trainer_factor": 1.0}
MORE_TRAINER = {"rollout_factor": 1.0, "trainer_factor": 2.0}
_ROLLOUT = {"gpus": "rollout_gpus", "gpu_rate": "rollout_gpu_tokens_per_second"}
_TRAINER = {"gpus": "trainer_gpus", "gpu_rate": "trainer_gpu_tokens_per_second"}
_FED = "trained_tokens_per_rollout_gpu_second"

SPLIT = (
    rule("rollout_gpus", matching.fleet_gpus),
    rule("trainer_gpus", matching.remaining_gpus),
    rule("rollout_tokens_per_second", matching.trained_token_supply, **_ROLLOUT),
    rule("trainer_tokens_per_second", matching.pool_rate, **_TRAINER),
    rule("loop_tokens_per_second", matching.loop_throughput),
    rule("idle_fraction", matching.idle_fraction),
    rule("waiting_gpus", matching.waiting_gpus),
    rule("idle_gpus", matching.idle_gpus, gpus="waiting_gpus"),
    rule("step_seconds", matching.train_time, consumption="loop_tokens_per_second"),
    rule("speedup_from_doubling_rollout", matching.speedup_from_scaling_overlapped, **MORE_ROLLOUT),
    rule("speedup_from_doubling_trainer", matching.speedup_from_scaling_overlapped, **MORE_TRAINER),
    rule(_FED, matching.trained_token_supply, gpus=1.0, gpu_rate="rollout_gpu_tokens_per_second"),
    rule("balanced_gpus", matching.balanced_rollout_gpus, rollout_gpu_rate=_FED),
    rule("rollout_gpus_fraction", matching.balanced_rollout_gpus, gpus=1.0, rollout_gpu_rate=_FED),
    rule("colocated_before_swap_tokens_per_second", matching.colocated_throughput, rollout_gpu_rate=_FED),
    rule("colocated_tokens_per_second", matching.throughput_with_swap),
)

_EXPECTED, _TODAY = "expected_prefix_cache_hit_fraction", "hit_fraction"
_PREFILL = {"hit_ratio": _TODAY, "prefill_rate": "prefill_tokens_per_second"}
_AFTER = "instance_after_caching_tokens_per_second"

CACHING = (
    rule("prefill_tokens_saved_per_group", redundancy.prefill_tokens_saved, hit_ratio=_EXPECTED),
    rule("deduplicated_training_fraction", redundancy.deduplicated_fraction),
    rule("prefill_time_fraction", redundancy.prefill_time_fraction, **_PREFILL),
    rule(_AFTER, redundancy.instance_rate_after_caching, hit_ratio=_TODAY, expected_hit_ratio=_EXPECTED),
    rule("matched_instances_after_caching", matching.matched_instances, instance_rate=_AFTER),
)
"""What caches that work as they should would save, and the match with them."""
