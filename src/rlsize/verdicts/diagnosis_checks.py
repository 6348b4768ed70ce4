"""The checks of a diagnosis, one function each; what they find is put in order elsewhere."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np

from rlsize.equations import budget, loop_time, redundancy, rollout_batch, train_step
from rlsize.estimates.block_bootstrap import mean_change
from rlsize.estimates.figures import apply, known, measured
from rlsize.facts.evidence import Finding
from rlsize.facts.figure import absent
from rlsize.verdicts.diagnosis_rates import (
    HIDDEN,
    contradicted,
    fleet_rate_of,
    hidden_of,
    instances_of,
    is_sample,
    may_be_router,
    out_of_step,
    trainer_idle_of,
    waits_lie,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.evidence import Evidence
    from rlsize.facts.figure import Figure

    Columns = Mapping[str, Sequence[float]]

REGRESSED = 0.1  # a trainer this much slower per token than at first, or than it should be, is looked at first
GROWN = 0.1  # a queue, or staleness, this much larger in the second half of a run grows
SYNC_SHARE = 0.1  # more than this share of a step in weight syncs is a stall, unless the user says otherwise
IDLE_SHARE = 0.05  # more trainer idle than this is too much, unless the user says otherwise
HALF = 0.5  # hits under this share of those of random routing: nothing is cached
COLD = 0.1  # ... and so are hits under this share of those of affine routing, however groups are routed
_LONG_PROMPTS = {  # of so many blocks that all of it is found again
    "prompt_tokens": 1.0, "cacheable_prompt_tokens": 1.0, "cacheable_shared_tokens": 0.0, "instances_per_group": 1.0,
}  # fmt: skip
HITS = 0.8  # hits under this share of those of affine routing: groups are spread
AS_RANDOM = 0.25  # hits within this of those of random routing are those
PREEMPTED = 0.05  # samples thrown out of the batch per sample finished
FEW_INSTANCES = 2


def trainer_health(evidence: Evidence, random: np.random.Generator) -> Finding:
    """
    Whether the trainer itself became slower.

    Responses that grow cost more per token by themselves, as attention does: a rise that they explain is noted only.
    """
    run = evidence.run
    drift, longer = _drift(evidence, random), _longer(run.columns)
    against = _against(evidence)
    expected = evidence.expected_train_seconds
    figures = known(run.figure("train_seconds"), run.figure("mfu"), expected, drift, longer, against)
    risen = drift.known and drift.number > REGRESSED
    explained = not longer.known or longer.number >= (drift.number if risen else 0.0)
    if risen and not explained:
        lost = apply("gain_fraction", loop_time.waiting_fraction, busy_seconds=1.0, iteration_seconds=1 + drift.number)
        return Finding(check="trainer_health", status="fault", kind="drift", figures=figures, gain=lost)
    if against.known and against.number > REGRESSED:
        return Finding(check="trainer_health", status="fault", kind="expected", figures=figures, gain=_saved(evidence))
    if risen:
        return Finding(check="trainer_health", status="note", kind="lengths", figures=figures)
    told = drift.known or against.known
    kind = "" if told else "short" if run.figure("train_seconds").known else "no log"
    return Finding(check="trainer_health", status="fine" if told else "unknown", kind=kind, figures=figures)


def _against(evidence: Evidence) -> Figure:
    """
    Change of the train time against what it should be.

    Per token where both say how many tokens a step has, as longer responses take longer; else per step.
    """
    expected, given = evidence.expected_train_seconds, evidence.consumption
    if not expected.known:
        return absent("train_time_change_fraction", "--train-seconds")
    seen = evidence.run.figure("consumption_tokens_per_second")
    key, change = "train_time_change_fraction", budget.relative_change
    if given.known and seen.known:
        return apply(key, change, value=given, baseline=seen)
    return apply(key, change, value=evidence.run.figure("train_seconds"), baseline=expected)


def _saved(evidence: Evidence) -> Figure:
    """What the expected train time would save, as a share of the step."""
    run, expected = evidence.run, evidence.expected_train_seconds
    more = apply("lost_seconds", budget.change_from_baseline, value=run.figure("train_seconds"), baseline=expected)
    if not more.known or more.number <= 0:
        return absent("gain_fraction", "a measurement after the change")
    return apply("gain_fraction", train_step.time_share, part=more, whole=run.figure("step_seconds"))


def _drift(evidence: Evidence, random: np.random.Generator) -> Figure:
    """Change of train time per token from the first half of the run to the second; 0 where none can be told."""
    key, columns = "train_time_drift_fraction", evidence.run.columns
    seconds = columns.get("train_seconds")
    if seconds is None:
        return absent(key, "a log with train times")
    tokens = _tokens(columns)
    series = seconds if tokens is None else [time / some for time, some in zip(seconds, tokens, strict=True)]
    half = len(series) // 2
    change = mean_change(series[:half], series[half:], random)
    if change is None:
        return absent(key, "more settled steps")
    source = f"second half of {len(series)} steps against the first, per {'step' if tokens is None else 'token'}"
    found = measured(key, change.fraction if change.told else 0.0, source)
    return replace(found, band=(change.low, change.high))


def _tokens(columns: Columns) -> Sequence[float] | None:
    """The tokens that each step trains on, or what is in proportion to them; None where nothing tells."""
    responses, prompts = columns.get("response_tokens"), columns.get("prompt_tokens")
    found: Sequence[float] | None = None
    if responses and prompts:
        found = [response + prompt for response, prompt in zip(responses, prompts, strict=True)]
    for name in ("total_tokens", "response_tokens", "mean_response_tokens"):
        found = found or columns.get(name)
    return found if found and all(found) else None


def _longer(columns: Columns) -> Figure:
    """Growth of the mean length of a sample from the first half of the run to the second."""
    key, tokens, samples = "length_growth_fraction", _tokens(columns), columns.get("samples")
    if samples and tokens and all(samples):
        lengths = [some / count for some, count in zip(tokens, samples, strict=True)]
    else:
        lengths = list(columns.get("mean_response_tokens", ()))
    half = len(lengths) // 2
    if not half or not all(lengths):
        return absent(key, "a log that tells lengths")
    first, second = (
        measured("mean_tokens", float(np.mean(part)), f"{name} half")
        for name, part in (("first", lengths[:half]), ("second", lengths[half:]))
    )
    return apply(key, budget.relative_change, value=second, baseline=first)


def weight_sync(evidence: Evidence) -> Finding:
    """Whether weight syncs take too much of the step."""
    limit = evidence.sync_target.number if evidence.sync_target.known else SYNC_SHARE
    logged = evidence.run.figure("sync_pause_fraction")
    counted = evidence.load.sync_pause_fraction
    paused = logged
    if counted is not None and (not logged.known or counted > logged.number):
        source = "the engines' count of weight updates, over the window"
        paused = measured("sync_pause_fraction", counted, source)
    if not paused.known:
        return Finding(check="weight_sync", status="unknown")
    other = absent("logged_fraction", "") if paused is logged else logged
    bad = paused.number > limit
    return Finding(
        check="weight_sync",
        status="fault" if bad else "fine",
        figures=known(paused, evidence.run.figure("sync_seconds"), logged_fraction=other),
        gain=paused if bad else absent("gain_fraction", ""),
    )


def idle_ratio(evidence: Evidence) -> Finding:
    """Whether waits that read near zero hide that the run is slow."""
    hidden, logged = hidden_of(evidence), evidence.run.figure("trainer_idle_fraction")
    figures = known(unexplained_fraction=hidden, logged=logged)
    side, own = next(iter(contradicted(evidence).items()), ("", hidden))
    if side:
        figures |= known(own=own, reported=evidence.run.figure(f"reported_{side}_idle_fraction"))
        return Finding(check="idle_ratio", status="note", kind=side, figures=figures)
    if not hidden.known:
        return Finding(check="idle_ratio", status="unknown")
    if not waits_lie(evidence):
        untimed = hidden.number > HIDDEN
        return Finding(check="idle_ratio", status="note" if untimed else "fine", kind="untimed", figures=figures)
    key = evidence.run.keys.get("wait_seconds", "")
    return Finding(check="idle_ratio", status="note", figures=figures, names=(key,))


def missing_instances(evidence: Evidence) -> Finding:
    """Whether instances that were named, or that there should be, could not be read, or make nothing of their work."""
    fleet = evidence.fleet
    if fleet is None:
        return Finding(check="missing_instances", status="unknown")
    lost = tuple(f"{one.instance} ({one.left_out})" for one in fleet.instances if not one.used)
    figures = known(instances=instances_of(evidence))
    if lost:
        return Finding(check="missing_instances", status="fault", names=lost, figures=figures)
    stuck = tuple(one.instance for one in fleet.used if one.stuck)
    if stuck:
        return Finding(check="missing_instances", status="fault", kind="stuck", names=stuck, figures=figures)
    if may_be_router(evidence) or is_sample(evidence):
        needed = not trainer_idle_of(evidence).known
        status: Literal["fault", "note"] = "fault" if needed else "note"
        return Finding(check="missing_instances", status=status, kind="unnamed", figures=figures)
    if out_of_step(evidence):
        figures |= known(fleet_rate_of(evidence), evidence.run.figure("trained_tokens_per_second"))
        return Finding(check="missing_instances", status="note", kind="out of step", figures=figures)
    return Finding(check="missing_instances", status="fine", figures=figures)


def stragglers(evidence: Evidence) -> Finding:
    """Whether single instances are far slower than their neighbours."""
    fleet = evidence.fleet
    if fleet is None or len(fleet.used) <= FEW_INSTANCES:
        return Finding(check="stragglers", status="unknown")
    rates = [one.tokens_per_second or 0.0 for one in fleet.used]
    slow = tuple(one.instance for one in fleet.used if one.straggler and not one.stuck)
    typical = median(rates)
    figures = known(
        measured("median_tokens_per_second", typical, "median of the instances"),
        measured("slowest_tokens_per_second", min(rates), "the slowest instance"),
    )
    if not slow:
        return Finding(check="stragglers", status="fine", figures=figures)
    lost = measured(
        "lost_tokens_per_second", sum(max(0.0, typical - rate) for rate in rates), "median less their own rate"
    )
    whole = measured("fleet_tokens_per_second", sum(rates), "sum of the instances")
    gain = apply("gain_fraction", rollout_batch.share_of, part=lost, whole=whole)
    return Finding(check="stragglers", status="fault", names=slow, figures=figures, gain=gain)


def prefix_cache(evidence: Evidence) -> Finding:
    """Whether the samples of a group find their prompt in the cache, and what it looks like where they do not."""
    fleet, seen = evidence.fleet, evidence.run.figure("prefix_cache_hit_fraction")
    if fleet is not None and fleet.prefix_caching is False and fleet.group_size != 1:
        return Finding(check="prefix_cache", status="fault", kind="off")
    if fleet is not None and fleet.prefix_cache_hit_fraction is not None:
        seen = measured("prefix_cache_hit_fraction", fleet.prefix_cache_hit_fraction, "hits over queries")
    if not seen.known:
        return Finding(check="prefix_cache", status="unknown")
    hits = seen.number
    affine = absent("affine_hits", "") if fleet is None else fleet.affine_prefix_cache_hit_fraction
    if not affine.known:
        # A cache of which only hits and the size of groups are known: cold where next to nothing is found
        size = None if evidence.fleet is None else evidence.fleet.group_size
        group = evidence.said.get("group_size", measured("group_size", size, "the engines' pages", "--group"))
        most = apply(
            "affine_prefix_cache_hit_fraction", redundancy.prefix_cache_hit_ratio, **_LONG_PROMPTS, group_size=group
        )
        if most.known and seen.number < COLD * most.number:
            return Finding(check="prefix_cache", status="fault", kind="cold", figures=known(seen, affine_hits=most))
        lacking = "page" if group.known else "group"
        return Finding(check="prefix_cache", status="unknown", kind=lacking, figures={seen.key: seen})
    random = _random_hits(affine, instances_of(evidence))
    figures = known(seen, affine_hits=affine, random_hits=random)
    kind = _cache_kind(hits, affine.number, random.if_known)
    status: Literal["fault", "fine"] = "fault" if kind else "fine"
    return Finding(check="prefix_cache", status=status, kind=kind, figures=figures)


def _cache_kind(hits: float, affine: float, random: float | None) -> str:
    """cold: nothing is found; random: as much as chance leaves; low: anything else that is too little."""
    if affine <= 0 or hits >= HITS * affine:
        return ""
    if hits < max(COLD * affine, HALF * (affine if random is None else min(random, affine))):
        return "cold"
    if random and abs(hits / random - 1.0) <= AS_RANDOM:
        return "random"
    return "low"


def _random_hits(affine: Figure, instances: Figure) -> Figure:
    """What a group should find where each of its samples goes to an instance at random."""
    inputs = dict(affine.inputs)
    if not instances.known or "group_size" not in inputs:
        return absent("random_prefix_cache_hit_fraction", "--instances")
    group, law = inputs["group_size"], redundancy.instances_per_group_random
    inputs["instances_per_group"] = apply("instances_per_group", law, group_size=group, instances=instances)
    return apply("random_prefix_cache_hit_fraction", redundancy.prefix_cache_hit_ratio, **inputs)


def preemptions(evidence: Evidence) -> Finding:
    """Whether engines throw samples out of their batch, as the KV cache is too small for it."""
    share = evidence.load.preemptions_per_sample
    if share is None:
        return Finding(check="preemptions", status="unknown")
    seen = measured("preemptions_per_sample", share, "preemptions over finished samples")
    return Finding(check="preemptions", status="fault" if share > PREEMPTED else "fine", figures=known(seen))


def starves(evidence: Evidence) -> bool:
    """Whether the trainer waits more than is accepted."""
    idle, target = trainer_idle_of(evidence), evidence.idle_target
    return idle.known and idle.number > (target.number if target.known else IDLE_SHARE)


def backlog_grows(evidence: Evidence, random: np.random.Generator) -> Figure | None:
    """
    What shows that finished samples pile up: a longer queue or staler samples in the second half, or samples dropped.

    None where nothing shows it.
    """
    columns, run = evidence.run.columns, evidence.run
    for key in ("queued_samples", "staleness_steps"):
        series = columns.get(key, ())
        half = len(series) // 2
        change = mean_change(series[:half], series[half:], random)
        if change is not None and change.low > 0 and change.fraction > GROWN:
            source = f"second half of {len(series)} steps against the first"
            growth = measured(f"{key}_growth_fraction", change.fraction, source)
            return replace(growth, band=(change.low, change.high))
    dropped, stalest = run.figure("dropped_samples_per_step"), run.figure("largest_staleness_steps")
    if dropped.known and dropped.number > 0:
        return dropped
    limit = evidence.max_staleness
    return stalest if stalest.known and limit.known and stalest.number > limit.number else None
