"""
From which values on somebody is told: thresholds that follow from a plan by stated rules.

A budget's line goes before the rule of its quantity. What a plan does not say has no threshold, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import budget, imbalance, loop_time, matching, redundancy, rl_step
from rlsize.estimates.figures import apply
from rlsize.estimates.prefix_cache import expected_hits
from rlsize.facts.alerts import AlertLimit
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.facts.alerts import PlannedLoop, Signal

IDLE_POINTS = 0.05
TOLERATED = 0.2  # share of the plan by which rates and ratios may be worse
SYNC_TIMES = 1.0  # added to the plan's share: twice as much
LEAST_SYNC = 0.02
WAITING_PER_RUNNING = 1.0
PREEMPTIONS_PER_REQUEST = 0.05
STRAGGLER_FRACTION = 0.7
BUDGETED = "the budget's limit"
_ALL = 0.999  # of the time: nothing can be more


@dataclass(frozen=True, slots=True)
class Lacking:
    """Why a signal has no limit."""

    why: str


def _raised(key: str, value: Figure, share: float) -> Figure:
    """A value and a share of it on top."""
    change = apply("change", budget.allowed_change, baseline=value, change_fraction=share)
    return apply(key, budget.highest_after_change, baseline=value, change=change)


def _lowered(key: str, value: Figure, share: float) -> Figure:
    """A value less a share of it."""
    change = apply("change", budget.allowed_change, baseline=value, change_fraction=share)
    return apply(key, budget.lowest_after_change, baseline=value, change=change)


def _ruled(key: str, value: float, rule: str) -> Figure:
    """A number that a rule of thumb says."""
    return Figure(key=key, value=value, provenance="default", source=rule)


def _budgeted(loop: PlannedLoop, quantity: str) -> Figure | None:
    """What a budget says of a quantity; None without."""
    line = loop.budget.get(quantity)
    return None if line is None else Figure(key=quantity, value=line.value, source=line.where)


def _limit(
    signal: Signal, expected: Figure, limit: Figure, rule: str, *, above: bool = True, key: str = ""
) -> AlertLimit:
    if not limit.source:
        limit = Figure(
            key=limit.key, value=limit.value, provenance="predicted", source=rule, equation=limit.equation,
            inputs=limit.inputs, function=limit.function,
        )  # fmt: skip
    return AlertLimit(signal=signal, key=key or limit.key, expected=expected, limit=limit, rule=rule, above=above)


def _shared(signal: Signal, planned: Figure, said: Figure) -> AlertLimit | Lacking:
    """A budget's limit of a share of the time."""
    if said.number >= _ALL:
        return Lacking("the budget allows all of the time")
    return _limit(signal, planned, said, BUDGETED)


def _waited(loop: PlannedLoop) -> Figure:
    """Of the trainer's idle time what it waits for samples, which is what logs tell: no sync and no overhead."""
    idle, step = loop.figure("trainer_idle_fraction"), loop.figure("step_seconds")
    parts = [loop.figure(key) for key in ("train_seconds", "sync_exposed_seconds", "overhead_seconds")]
    if not idle.known or not all(part.known for part in parts):
        return idle
    train, sync, overhead = parts
    busy = apply("busy_seconds", rl_step.whole_step, phases_seconds=train, sync_seconds=sync, overhead_seconds=overhead)
    found = apply(idle.key, loop_time.waiting_fraction, busy_seconds=busy, iteration_seconds=step)
    band = idle.band
    if band is not None:  # the rest is as sure as the whole
        low, high = (max(0.0, end - idle.number + found.number) for end in band)
        band = (low, high)
    return replace(found, value=max(0.0, found.number), band=band)


def _idle(loop: PlannedLoop) -> AlertLimit | Lacking:
    if loop.word("mode") == "colocated":
        return Lacking("engines run on the trainer's GPUs, so neither side waits for the other")
    planned, said = _waited(loop), _budgeted(loop, "trainer_idle_fraction")
    if said is not None:
        return _shared("idle", planned, said)
    if not planned.known:
        return Lacking("the plan does not say how long the trainer idles")
    limit = apply("trainer_idle_fraction", budget.highest_after_change, baseline=planned, change=IDLE_POINTS)
    if limit.number >= _ALL:
        return Lacking("the plan's trainer idles all the time")
    return _limit("idle", planned, limit, "the plan's wait, and 5 points")


def _sync(loop: PlannedLoop) -> AlertLimit | Lacking:
    planned, said = loop.figure("sync_fraction"), _budgeted(loop, "sync_fraction")
    if said is not None:
        return _shared("sync", planned, said)
    if not planned.known:
        return Lacking("the plan does not say how long weight syncs hold the loop up")
    doubled = _raised("sync_fraction", planned, SYNC_TIMES)
    if doubled.number >= _ALL:
        return Lacking("the plan's weight syncs take half of the time or more")
    if doubled.number < LEAST_SYNC:
        return _limit("sync", planned, _ruled("sync_fraction", LEAST_SYNC, "2 %"), "2 %, as twice the plan's is less")
    return _limit("sync", planned, doubled, "twice the plan's")


def _samples(loop: PlannedLoop) -> Figure:
    said = loop.figure("samples_per_step")
    if said.known:
        return said
    prompts, group = loop.figure("prompts_per_step"), loop.figure("group_size")
    return apply("samples_per_step", matching.samples_per_step, prompts=prompts, group_size=group)


def _cap(loop: PlannedLoop) -> Figure:
    said = _budgeted(loop, "staleness_steps")
    return said if said is not None else loop.figure("staleness_steps")


def _queue(loop: PlannedLoop) -> AlertLimit | Lacking:
    cap, samples = _cap(loop), _samples(loop)
    if not cap.known:
        return Lacking("the plan says no staleness cap")
    if not samples.known:
        return Lacking("the plan does not say how many samples a step takes")
    under_way = samples if cap.number > 0 else 0.0
    limit = apply(
        "queue_samples", imbalance.queue_allowed, max_staleness=cap, samples_per_step=samples, in_flight=under_way
    )
    if limit.number <= 0:
        return Lacking("a staleness cap below one step lets nothing wait")
    batches = f"{cap.number:g} batches" if cap.number > 1 else "one batch"
    rule = f"the staleness cap in samples: {batches} of {samples.number:g}"
    return _limit("queue", absent("queue_samples", "a plan"), limit, rule)


def _age(loop: PlannedLoop) -> AlertLimit | Lacking:
    planned, cap = loop.figure("staleness_steps"), _cap(loop)
    if not cap.known:
        return Lacking("the plan says no staleness cap")
    rule = BUDGETED if "staleness_steps" in loop.budget else "the staleness cap"
    return _limit("age", planned, cap, rule, key="oldest_sample_age_steps")


def _waste(loop: PlannedLoop) -> AlertLimit | Lacking:
    key = "tokens_generated_per_trained_token"
    planned = loop.figure(key)
    if not planned.known:
        return Lacking("the plan does not say how many tokens are generated for a trained one")
    return _limit("waste", planned, _raised(key, planned, TOLERATED), "1.2 times the plan's")


def _goodput(loop: PlannedLoop) -> AlertLimit | Lacking:
    key = "loop_tokens_per_gpu_second"
    planned, said = loop.figure(key), _budgeted(loop, key)
    shown = "goodput_tokens_per_gpu_second"
    if not loop.figure("gpus").known:
        return Lacking("the plan does not say how many GPUs there are")
    if said is not None:
        return _limit("goodput", planned, said, BUDGETED, above=False, key=shown)
    if not planned.known:
        return Lacking("the plan does not say how many tokens are trained")
    return _limit("goodput", planned, _lowered(key, planned, TOLERATED), "0.8 times the plan's", above=False, key=shown)


def _rollout(loop: PlannedLoop) -> AlertLimit | Lacking:
    trained, waste = loop.figure("loop_tokens_per_second"), loop.figure("tokens_generated_per_trained_token")
    key = "rollout_output_tokens_per_second"
    planned = apply(key, matching.required_supply, consumption=trained, tokens_generated_per_trained_token=waste)
    if not planned.known:
        return Lacking("the plan does not say how many tokens the fleet makes")
    return _limit("rollout", planned, _lowered(key, planned, TOLERATED), "0.8 times what the plan needs", above=False)


def _cache(loop: PlannedLoop) -> AlertLimit | Lacking:
    group, prompt, instances = (loop.figure(key) for key in ("group_size", "prompt_tokens", "instances"))
    if not group.known or not prompt.known:
        return Lacking("the plan does not say how large a group and how long a prompt is")
    spread: Figure | float = 1.0
    if loop.routing not in {"", "affine"}:
        if not instances.known:
            return Lacking(f"with {loop.routing} routing it depends on the instances, which the plan does not say")
        known = redundancy.instances_per_group_random
        equation = known if loop.routing == "random" else redundancy.instances_per_group_round_robin
        spread = apply("instances_per_group", equation, group_size=group, instances=instances)
    block = Figure(key="block_tokens", value=loop.block_tokens, provenance="default", source="blocks of the engine")
    planned = expected_hits(group, prompt, block, spread)
    if planned.number <= 0:
        return Lacking("no prompt is expected in a cache")
    limit = _lowered("prefix_cache_hit_fraction", planned, TOLERATED)
    how = loop.routing or "affine"
    return _limit(
        "cache", planned, limit, f"0.8 times what groups of {group.number:g} find, {how} routing", above=False
    )


def _waiting(_: PlannedLoop) -> AlertLimit | Lacking:
    rule = "as many wait as run (a rule of thumb)"
    key = "waiting_per_running"
    return _limit("waiting", absent(key, "a plan"), _ruled(key, WAITING_PER_RUNNING, rule), rule)


def _preemptions(_: PlannedLoop) -> AlertLimit | Lacking:
    rule = "one request in twenty (a rule of thumb)"
    key = "preemptions_per_request"
    planned = Figure(key=key, value=0.0, provenance="default", source="a plan leaves room for the cache")
    return _limit("preemptions", planned, _ruled(key, PREEMPTIONS_PER_REQUEST, rule), rule)


def _straggler(loop: PlannedLoop) -> AlertLimit | Lacking:
    instances = loop.figure("instances")
    if instances.known and instances.number < 2:  # noqa: PLR2004 (one has no median beside it)
        return Lacking("the plan has one instance")
    key, rule = "instance_rate_fraction", "share of the median instance's rate (a rule of thumb)"
    planned = Figure(key=key, value=1.0, provenance="default", source="instances are alike")
    return _limit("straggler", planned, _ruled(key, STRAGGLER_FRACTION, rule), rule, above=False)


def _up(loop: PlannedLoop) -> AlertLimit | Lacking:
    planned = loop.figure("instances")
    if not planned.known:
        return Lacking("the plan does not say how many instances there are")
    return _limit("up", planned, planned, "the plan's", above=False, key="instances")


RULES: Mapping[Signal, Callable[[PlannedLoop], AlertLimit | Lacking]] = MappingProxyType(
    {
        "idle": _idle,
        "sync": _sync,
        "queue": _queue,
        "age": _age,
        "waste": _waste,
        "goodput": _goodput,
        "rollout": _rollout,
        "cache": _cache,
        "waiting": _waiting,
        "preemptions": _preemptions,
        "straggler": _straggler,
        "up": _up,
    }
)
"""The rule of each signal."""
