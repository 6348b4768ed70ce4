"""Snapshots of running engines as rates: per instance, over the fleet, and what those rates already contain."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from rlsize.dataclass import replace
from rlsize.estimates.counter_growth import (
    grown,
    hit_fraction,
    lengths_grown,
    mean_grown,
    mean_response_tokens,
    restart,
    syncs_grown,
    unfinished_tokens,
)
from rlsize.estimates.figures import alike, measured
from rlsize.estimates.length_fit import length_doubts, length_fit
from rlsize.estimates.prefix_cache import expected_hits
from rlsize.estimates.saturation import ENOUGH, saturation
from rlsize.facts.figure import absent
from rlsize.facts.headroom import HEADROOM_PARTS
from rlsize.facts.observations import InstanceObservation, Observation
from rlsize.facts.rates import InstanceRate, MeasuredInstance, RateConditions, Rates, RateSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.counter_growth import Ends
    from rlsize.facts.counters import EngineCounters, Snapshot
    from rlsize.facts.figure import Figure
    from rlsize.facts.headroom import HeadroomPart

COVERED = 0.5  # share of the window that an instance must have been readable for
ALWAYS_FULL = 0.995  # a window saturated for this share held neither ramp nor tail
PRODUCTION_SECONDS = 300.0  # a window that holds a few weight syncs, where the page does not count them
STRAGGLER_FRACTION = 0.8  # a straggler is slower than this share of the median ...
STRAGGLER_DEVIATIONS = 2.0  # ... and further below it than this many median absolute deviations
STRAGGLER_INSTANCES = 3  # fewer have no median to speak of
HITS_EXPECTED = 0.8  # share of the expected prefix-cache hits below which groups seem to be spread


def observation(
    histories: Mapping[str, Sequence[Snapshot]],
    unread: Mapping[str, str],
    window: float,
    *,
    group_size: float | None = None,
    largest_batch: float | None = None,
) -> Observation:
    """
    What a fleet did, from snapshots of its instances.

    Args:
        histories: Snapshots of each instance, in the order of time.
        unread: Instances of which there are no snapshots, with the reason.
        window: How long it was to be watched. [s]
        group_size: Samples of one prompt, where the caller knows it; engines see only whole groups. [1]
        largest_batch: The engines' limit on running requests, where the caller knows it. [1]

    Returns:
        The rates with what they hold; an instance that restarted or was hardly readable is left out with its reason.
    """
    every = [_instance(name, snapshots, window, largest_batch) for name, snapshots in histories.items()]
    every = [
        *_with_stragglers(every),
        *(InstanceObservation(instance=name, left_out=reason) for name, reason in unread.items()),
    ]
    used = [instance for instance in every if instance.used]
    if not used:
        return Observation(instances=tuple(every), includes={}, keys={}, why="no instance is left")
    ends = [(histories[instance.instance][0].counters, histories[instance.instance][-1].counters) for instance in used]
    rates = [instance.tokens_per_second or 0.0 for instance in used]
    fractions = [instance.saturated_fraction for instance in used]
    busy = [instance.busy_tokens_per_second for instance in used if instance.busy_tokens_per_second is not None]
    seen = Observation(
        instances=tuple(every),
        window_seconds=max(instance.seconds for instance in used),
        mean=fmean(rates),
        spread=stdev(rates) if len(rates) > 1 else None,
        busy_mean=fmean(busy) if busy else None,
        saturated_fraction=None
        if None in fractions
        else min(fraction for fraction in fractions if fraction is not None),
        lower_bound=any(instance.lower_bound for instance in used),
        why=_why(used),
        includes=_included(used),
        keys=ends[0][1].keys,
    )
    seen = _with_conditions(seen, ends, group_size)
    doubts = (*_of_instances(seen), *_of_fleet(seen), *_of_counting(ends), *_of_lengths(seen, ends))
    return replace(seen, warnings=doubts)


def _instance(
    name: str, snapshots: Sequence[Snapshot], window: float, largest_batch: float | None
) -> InstanceObservation:
    seconds = snapshots[-1].seconds - snapshots[0].seconds
    reason = _unusable(snapshots, seconds, window)
    if reason:
        return InstanceObservation(instance=name, left_out=reason, seconds=seconds)
    ends = [(snapshots[0].counters, snapshots[-1].counters)]
    found = saturation(snapshots, largest_batch)
    tokens = grown(ends, "generation_tokens") or 0.0
    preempted = grown(ends, "preemptions")
    syncs, sync_seconds = syncs_grown(snapshots)
    return InstanceObservation(
        instance=name,
        seconds=seconds,
        tokens_per_second=tokens / seconds,
        busy_tokens_per_second=_busy_rate(snapshots, tokens),
        saturated_fraction=found.fraction,
        why=found.why,
        lower_bound=not found.enough,
        stuck=found.enough and not tokens and not snapshots[-1].counters.at_finish,
        preemptions_per_second=None if preempted is None else preempted / seconds,
        prefix_cache_hit_fraction=hit_fraction(ends),
        mean_response_tokens=mean_response_tokens(ends)[0],
        weight_syncs=syncs,
        weight_sync_seconds=sync_seconds,
    )


def _unusable(snapshots: Sequence[Snapshot], seconds: float, window: float) -> str:
    if seconds <= 0:
        return "was read only once"
    for first, second in pairwise(snapshots):
        reason = restart(first.counters, second.counters)
        if reason:
            return reason
    if seconds < COVERED * window:
        return f"could be read for only {seconds:.0f} s of {window:.0f} s"
    return ""


def _busy_rate(snapshots: Sequence[Snapshot], tokens: float) -> float | None:
    """Tokens over the intervals in which something ran; unknown where nobody looked between first and last."""
    if len(snapshots) == 2:  # noqa: PLR2004 (a first and a last look)
        return None
    busy = sum(
        second.seconds - first.seconds
        for first, second in pairwise(snapshots)
        if first.counters.requests_running
        or second.counters.requests_running
        or second.counters.generation_tokens > first.counters.generation_tokens
    )
    return tokens / busy if busy > 0 else None


def _with_stragglers(instances: Sequence[InstanceObservation]) -> list[InstanceObservation]:
    rates = [instance.tokens_per_second for instance in instances if instance.tokens_per_second is not None]
    if len(rates) < STRAGGLER_INSTANCES:
        return list(instances)
    middle = median(rates)
    deviation = median(abs(rate - middle) for rate in rates)
    limit = min(STRAGGLER_FRACTION * middle, middle - STRAGGLER_DEVIATIONS * deviation)
    return [
        replace(instance, straggler=instance.tokens_per_second is not None and instance.tokens_per_second < limit)
        for instance in instances
    ]


def _why(used: Sequence[InstanceObservation]) -> str:
    if len(used) == 1:
        return used[0].why
    held_back = [instance for instance in used if instance.lower_bound]
    if not held_back:
        return f"all {len(used)} instances were saturated for {100 * ENOUGH:.0f} % of the window or more"
    first = held_back[0]
    return f"{len(held_back)} of {len(used)} instances were not shown to be saturated; {first.instance}: {first.why}"


def _included(used: Sequence[InstanceObservation]) -> dict[HeadroomPart, str]:
    syncs = [instance.weight_syncs for instance in used if instance.weight_syncs is not None]
    shortest = min(instance.seconds for instance in used)
    found: dict[HeadroomPart, str] = {}
    if any(ENOUGH <= (instance.saturated_fraction or 0.0) < ALWAYS_FULL for instance in used):
        found["ramp"] = "the window holds moments at which the batch was filling"
        found["tail"] = "the window holds moments at which it was draining"
    if any(syncs):
        found["sync_pauses"] = f"{max(syncs):.0f} weight syncs ran in the window"
    elif not syncs and shortest >= PRODUCTION_SECONDS:
        found["sync_pauses"] = (
            f"a window of {shortest:.0f} s is taken to hold its share of weight syncs, which the pages do not count"
        )
    if len(used) > 1:
        found["stragglers"] = f"the mean is over {len(used)} instances"
    return {part: found[part] for part in HEADROOM_PARTS if part in found}


def _with_conditions(seen: Observation, ends: Sequence[Ends], group_size: float | None) -> Observation:
    used = seen.used
    asked = mean_grown(ends, "samples_per_request")
    group = group_size or (asked if asked is not None and asked > 1 else None)
    prompts = mean_grown(ends, "prompt_lengths")
    preempted = [instance.preemptions_per_second for instance in used if instance.preemptions_per_second is not None]
    syncs = [instance.weight_syncs for instance in used if instance.weight_syncs is not None]
    paused = [instance.weight_sync_seconds for instance in used if instance.weight_sync_seconds is not None]
    gpus = {last.gpus for _, last in ends}
    counts = lengths_grown(ends)
    capacities = [last.kv_cache_tokens for _, last in ends if last.kv_cache_tokens]
    return replace(
        seen,
        engine=", ".join(sorted({last.engine for _, last in ends})),
        model=", ".join(sorted({last.model for _, last in ends if last.model})),
        mean_response_tokens=mean_response_tokens(ends)[0],
        mean_prompt_tokens=prompts,
        group_size=group,
        prefix_cache_hit_fraction=hit_fraction(ends),
        affine_prefix_cache_hit_fraction=_affine_hits(group, prompts, ends[0][1]),
        prefix_caching=min((last.prefix_caching for _, last in ends if last.prefix_caching is not None), default=None),
        preemptions_per_second=fmean(preempted) if preempted else None,
        weight_syncs=max(syncs, default=None),
        weight_sync_seconds=max(paused, default=None),
        kv_cache_tokens=min(capacities, default=None),
        gpus_per_instance=gpus.pop() if len(gpus) == 1 else None,
        lengths=None if counts is None else length_fit(counts),
    )


def _affine_hits(group: float | None, prompts: float | None, counters: EngineCounters) -> Figure:
    """The hit ratio that groups kept on one instance would reach; what is missing for it where something is."""
    if counters.prefix_caching is False:
        return absent("affine_prefix_cache_hit_fraction", "a prefix cache, which is off")
    prompt_tokens = measured("prompt_tokens", prompts, missing="finished samples")
    block_tokens = measured("block_tokens", counters.block_size, missing="a page that states its block size")
    hits: Figure = expected_hits(measured("group_size", group, missing="--group"), prompt_tokens, block_tokens)
    return replace(hits, key="affine_prefix_cache_hit_fraction")


def _of_instances(seen: Observation) -> list[str]:
    found = [
        f"{instance.instance} is left out: it {instance.left_out}" for instance in seen.instances if not instance.used
    ]
    if seen.lower_bound:
        found.append(f"the rate is a lower bound, what the fleet was asked for: {seen.why}")
    for instance in seen.used:
        if instance.straggler:
            cause = ", or was asked for less: it was not saturated" if instance.lower_bound else ""
            found.append(f"{instance.instance} is a straggler: {instance.tokens_per_second or 0.0:,.0f} tok/s{cause}")
    return found


def _of_fleet(seen: Observation) -> list[str]:
    found = []
    if ", " in seen.model:
        found.append(f"the instances serve different models ({seen.model}), so their mean is the rate of none of them")
    if ", " in seen.engine:
        found.append(f"the instances run different engines ({seen.engine}), so their mean is the rate of none of them")
    observed, affine = seen.prefix_cache_hit_fraction, seen.affine_prefix_cache_hit_fraction
    if observed is not None and affine.known and observed < HITS_EXPECTED * affine.number:
        found.append(
            f"the prefix cache hit {100 * observed:.0f} % of prompt tokens where {100 * affine.number:.0f} % "
            "is expected: keep each group on one instance"
        )
    return found


def _of_counting(ends: Sequence[Ends]) -> list[str]:
    late = sorted({last.engine for _, last in ends if last.at_finish})
    if not late:
        return []
    found = f"{', '.join(late)} counts tokens only when their sample finishes"
    unfinished, counted = unfinished_tokens(ends), grown(ends, "generation_tokens")
    if not unfinished or not counted:
        return [f"{found}: watch for several times as long as a sample takes"]
    share = 100 * unfinished / counted
    found += f": samples in flight at either end hold about {unfinished:,.0f} more, {share:.0f} % of those counted; "
    return [found + "whether short ones finished first cannot be told, and a longer window makes both small"]


def _of_lengths(seen: Observation, ends: Sequence[Ends]) -> list[str]:
    doubt = mean_response_tokens(ends)[1]
    counts = lengths_grown(ends)
    fit = length_doubts(counts, seen.lengths) if counts is not None and seen.lengths is not None else []
    return [*([doubt] if doubt else []), *fit]


def observed_rates(seen: Observation, *, measured_at: str, gpus_per_instance: float | None = None) -> Rates:
    """
    What was seen as a rates file's content.

    Args:
        seen: An observation in which some instance generated something.
        measured_at: When, as an ISO 8601 date and time.
        gpus_per_instance: GPUs of one instance, where the caller knows it; else what the pages say. [gpu]
    """
    told = {key: getattr(seen, key) or None for key in ("model", "mean_response_tokens", "mean_prompt_tokens")}
    return Rates(
        measured_at=measured_at,
        source=RateSource(method="observe", engine=seen.engine or None, keys=dict(seen.keys)),
        instance_tokens_per_second=InstanceRate(
            **alike(seen, InstanceRate) | {"mean": seen.mean or 0.0, "instances": len(seen.used)},
        ),
        includes=list(seen.includes),
        gpus_per_instance=gpus_per_instance or seen.gpus_per_instance,
        window_seconds=seen.window_seconds,
        conditions=RateConditions(
            **alike(seen, RateConditions) | told,
            response_cv=seen.lengths.cv if seen.lengths else None,
            max_response_tokens=seen.lengths.cap if seen.lengths else None,
        ),
        instances=[
            MeasuredInstance(**alike(one, MeasuredInstance) | {"tokens_per_second": one.tokens_per_second or 0.0})
            for one in seen.used
        ],
    )
