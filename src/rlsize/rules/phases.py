"""One iteration: its rollout, by what that follows from; and its phases laid out in time, by mode."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rlsize.equations import iteration, loop_time, matching, planning, rollout_batch
from rlsize.estimates.flow import rule
from rlsize.rules.match import MORE_ROLLOUT, MORE_TRAINER

if TYPE_CHECKING:
    from rlsize.estimates.flow import Rule

SYNC, OVERLAPPED, COLOCATED = "sync", "overlapped", "colocated"
_FLEET = {"samples": "generated_samples", "instance_rate": "expected_tokens_per_second"}
_POOLS = {"phase_seconds": "train_seconds", "pool_gpus": "measured_gpus", "gpus": "trainer_gpus"}

MEASURED = (
    rule("generated_samples", loop_time.generated_samples),
    rule("derated_tokens_per_second", matching.fleet_supply, instances=1.0),
    rule("expected_tokens_per_second", planning.supply_that_is_there, rate="derated_tokens_per_second"),
    rule("generation_seconds", rollout_batch.fleet_time, **_FLEET),
    rule("update_seconds", iteration.phase_time_on, **_POOLS),
)
"""Phases of a placed loop at rates that are known."""

_PHASES = {"rollout_seconds": "rollout_phase_seconds", "train_seconds": "train_phase_seconds"}
"""Rollout and training on the GPUs that a mode gives them."""
_AFTER = {"exposed_sync_seconds": "sync_seconds"}


@cache
def rollout(source: str, prefix: str) -> tuple[Rule, ...]:
    """
    The time in which a fleet generates the samples of a step.

    Args:
        source: What it follows from: `said`, `groups` or `rate`.
        prefix: Of keys: empty for a rate as it is, `expected_` for one that headroom derates.
    """
    finished, supply = f"{prefix}completions_per_second", f"{prefix}supply_tokens_per_second"
    derated: dict[str, str | float] = {"headroom": "headroom" if prefix else 1.0}
    by_source = {
        "said": rule(finished, iteration.samples_per_second, iteration_seconds="rollout_seconds"),
        "groups": rule(finished, iteration.completions_per_second),
        "rate": rule(finished, loop_time.completions_from_tokens, supply=supply),
    }
    made = {"completions_per_second": finished}
    return (
        rule(supply, matching.fleet_supply, **derated),
        by_source[source],
        rule("generated_samples", loop_time.generated_samples),
        rule(f"{prefix}rollout_seconds", iteration.rollout_seconds, samples_per_step="generated_samples", **made),
        rule("as_prompts_samples", matching.samples_per_step, prompts="samples_per_step"),
        rule("as_prompts_generated", loop_time.generated_samples, samples_per_step="as_prompts_samples"),
        rule("as_prompts_rollout_seconds", iteration.rollout_seconds, samples_per_step="as_prompts_generated", **made),
    )


@cache
def laid_out(mode: str, prefix: str) -> tuple[Rule, ...]:
    """
    An iteration in a mode: its wall clock, who waits in it, and what more of a pool would bring.

    Args:
        mode: `sync`, `overlapped` or `colocated`.
        prefix: Of keys.
    """
    whole, scored = f"{prefix}iteration_seconds", f"{prefix}scored_samples_per_second"
    over, keys = {"iteration_seconds": whole}, tuple(_PHASES.values())
    busy = ("busy_seconds", "busy_seconds") if mode == COLOCATED else keys
    return (
        *_WHOLE[mode](whole, prefix),
        rule(f"{prefix}iterations_per_day", iteration.iterations_per_day, **over),
        rule(f"{prefix}rollout_fraction", iteration.rollout_share, rollout_seconds=keys[0], **over),
        rule("busy_seconds", iteration.synchronous_iteration_time, **_PHASES, exposed_sync_seconds=0.0),
        rule(f"{prefix}rollout_idle_fraction", loop_time.waiting_fraction, busy_seconds=busy[0], **over),
        rule(f"{prefix}trainer_idle_fraction", loop_time.waiting_fraction, busy_seconds=busy[1], **over),
        rule(
            scored,
            iteration.samples_per_second,
            samples_per_step="generated_samples",
            iteration_seconds=whole if mode == OVERLAPPED else keys[0],
        ),
        rule(f"{prefix}verifier_workers", iteration.verifier_workers, samples_per_second=scored),
    )


def _in_turn(whole: str, prefix: str) -> tuple[Rule, ...]:
    double = matching.speedup_from_scaling
    return (
        rule(whole, iteration.synchronous_iteration_time, **_PHASES, **_AFTER),
        rule(f"{prefix}speedup_from_doubling_rollout", double, **_PHASES, **MORE_ROLLOUT),
        rule(f"{prefix}speedup_from_doubling_trainer", double, **_PHASES, **MORE_TRAINER),
    )


def _overlapped(whole: str, prefix: str) -> tuple[Rule, ...]:
    double, rates = matching.speedup_from_scaling_overlapped, {}
    found = [rule(whole, iteration.overlapped_iteration_time, **_PHASES, **_AFTER)]
    for pool, seconds in zip(("rollout", "trainer"), _PHASES.values(), strict=True):
        rates[f"{pool}_rate"] = f"{pool}_samples_per_second"
        found.append(rule(rates[f"{pool}_rate"], iteration.samples_per_second, iteration_seconds=seconds))
    return (
        *found,
        rule(f"{prefix}speedup_from_doubling_rollout", double, **rates, **MORE_ROLLOUT),
        rule(f"{prefix}speedup_from_doubling_trainer", double, **rates, **MORE_TRAINER),
    )


def _colocated(whole: str, _prefix: str) -> tuple[Rule, ...]:
    return (rule(whole, iteration.colocated_iteration_time, **_PHASES),)


_WHOLE = {SYNC: _in_turn, OVERLAPPED: _overlapped, COLOCATED: _colocated}
