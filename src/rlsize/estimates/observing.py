"""Snapshots of running engines as rates: per instance, over the fleet, and what those rates already contain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from rlsize.equations.redundancy import cacheable_prompt_tokens, prefix_cache_hit_ratio
from rlsize.estimates.growth import grown, hit_fraction, mean_grown, mean_response_tokens, restart
from rlsize.estimates.saturation import ENOUGH, saturation
from rlsize.facts.rates import HEADROOM_PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.growth import Ends
    from rlsize.facts.counters import Snapshot
    from rlsize.facts.rates import HeadroomPart

COVERED = 0.5  # share of the window that an instance must have been readable for
PRODUCTION_SECONDS = 300.0  # a window that holds a few weight syncs, where the page does not count them
STRAGGLER_FRACTION = 0.8  # a straggler is slower than this share of the median ...
STRAGGLER_DEVIATIONS = 2.0  # ... and further below it than this many median absolute deviations
STRAGGLER_INSTANCES = 3  # fewer have no median to speak of
HITS_EXPECTED = 0.8  # share of the expected prefix-cache hits below which groups seem to be spread


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceObservation:
    """
    What one instance did in the window.

    Args:
        instance: What it is called.
        left_out: Why it does not count; empty where it does.
        seconds: Time between its first and its last page. [s]
        tokens_per_second: Response tokens per second by wall clock. [token/s]
        busy_tokens_per_second: The same over the intervals in which it ran something; None where nobody looked in between. [token/s]
        saturated_fraction: Share of the time with work waiting; None where unknown. [1]
        why: What showed that.
        lower_bound: Whether the rate is only what the instance was asked for.
        straggler: Whether it is far slower than its neighbours.
        preemptions_per_second: Samples thrown out of the batch. [1/s]
        prefix_cache_hit_fraction: Prompt tokens found in the prefix cache. [1]
        mean_response_tokens: Mean response length. [token]
        weight_updates: Weight syncs. [1]
        weight_update_seconds: Time in weight syncs. [s]
    """

    instance: str
    left_out: str = ""
    seconds: float = 0.0
    tokens_per_second: float | None = None
    busy_tokens_per_second: float | None = None
    saturated_fraction: float | None = None
    why: str = ""
    lower_bound: bool = True
    straggler: bool = False
    preemptions_per_second: float | None = None
    prefix_cache_hit_fraction: float | None = None
    mean_response_tokens: float | None = None
    weight_updates: float | None = None
    weight_update_seconds: float | None = None

    @property
    def used(self) -> bool:
        """Whether it counts."""
        return not self.left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """
    What a fleet did in the window.

    Args:
        instances: Every instance, those left out too.
        window_seconds: The longest time that one was watched. [s]
        mean: Mean of the instances' rates by wall clock; None where no instance is left. [token/s]
        spread: Their standard deviation; None for a single one. [token/s]
        busy_mean: Mean of their rates while busy. [token/s]
        saturated_fraction: Of the least saturated instance; None where one is unknown. [1]
        lower_bound: Whether the mean is only what the fleet was asked for.
        why: What showed that.
        includes: The parts of headroom that the mean already holds, each with its reason.
        model: Name of the model, or names.
        mean_response_tokens: Mean response length. [token]
        mean_prompt_tokens: Mean prompt length. [token]
        group_size: Samples of one prompt; None where the engine does not see it. [1]
        prefix_cache_hit_fraction: Prompt tokens found in the prefix cache. [1]
        expected_prefix_cache_hit_fraction: What it would be with each group kept on one instance. [1]
        preemptions_per_second: Per instance. [1/s]
        weight_updates: Weight syncs that one instance saw, at most. [1]
        weight_update_seconds: Time that one instance spent in them, at most. [s]
        kv_cache_tokens: Tokens that one instance's KV cache holds, at least. [token]
        keys: The metric behind each quantity.
        warnings: What the reader must know before trusting the mean.
    """

    instances: tuple[InstanceObservation, ...]
    window_seconds: float = 0.0
    mean: float | None = None
    spread: float | None = None
    busy_mean: float | None = None
    saturated_fraction: float | None = None
    lower_bound: bool = True
    why: str = ""
    includes: Mapping[HeadroomPart, str]
    model: str = ""
    mean_response_tokens: float | None = None
    mean_prompt_tokens: float | None = None
    group_size: float | None = None
    prefix_cache_hit_fraction: float | None = None
    expected_prefix_cache_hit_fraction: float | None = None
    preemptions_per_second: float | None = None
    weight_updates: float | None = None
    weight_update_seconds: float | None = None
    kv_cache_tokens: int | None = None
    keys: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[InstanceObservation, ...]:
        """The instances that count."""
        return tuple(instance for instance in self.instances if instance.used)


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
        group_size: Samples of one prompt, where the caller knows it; the engine sees it only where groups are sent whole. [1]
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
    return _with_warnings(_with_conditions(seen, ends, group_size), ends)


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
    return InstanceObservation(
        instance=name,
        seconds=seconds,
        tokens_per_second=tokens / seconds,
        busy_tokens_per_second=_busy_rate(snapshots, tokens),
        saturated_fraction=found.fraction,
        why=found.why,
        lower_bound=not found.enough,
        preemptions_per_second=None if preempted is None else preempted / seconds,
        prefix_cache_hit_fraction=hit_fraction(ends),
        mean_response_tokens=mean_response_tokens(ends)[0],
        weight_updates=grown(ends, "weight_updates"),
        weight_update_seconds=grown(ends, "weight_update_seconds"),
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
    return f"{len(held_back)} of {len(used)} instances were not shown to be saturated; {held_back[0].instance}: {held_back[0].why}"


def _included(used: Sequence[InstanceObservation]) -> dict[HeadroomPart, str]:
    syncs = [instance.weight_updates for instance in used if instance.weight_updates is not None]
    shortest = min(instance.seconds for instance in used)
    found: dict[HeadroomPart, str] = {
        "ramp": "a mean by wall clock holds the filling of the batch",
        "tail": "a mean by wall clock holds its draining",
    }
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
    prompts, block = mean_grown(ends, "prompt_lengths"), ends[0][1].block_size
    expected = None
    if group and prompts and block and ends[0][1].prefix_caching is not False:
        cached = cacheable_prompt_tokens(prompt_tokens=prompts, block_tokens=block)
        expected = prefix_cache_hit_ratio(
            group_size=group,
            prompt_tokens=prompts,
            cacheable_prompt_tokens=cached,
            cacheable_shared_tokens=0.0,
            instances_per_group=1.0,
        )
    preempted = [instance.preemptions_per_second for instance in used if instance.preemptions_per_second is not None]
    capacities = [last.kv_cache_tokens for _, last in ends if last.kv_cache_tokens]
    return replace(
        seen,
        model=", ".join(sorted({last.model for _, last in ends if last.model})),
        mean_response_tokens=mean_response_tokens(ends)[0],
        mean_prompt_tokens=prompts,
        group_size=group,
        prefix_cache_hit_fraction=hit_fraction(ends),
        expected_prefix_cache_hit_fraction=expected,
        preemptions_per_second=fmean(preempted) if preempted else None,
        weight_updates=max(
            (instance.weight_updates for instance in used if instance.weight_updates is not None), default=None
        ),
        weight_update_seconds=max(
            (instance.weight_update_seconds for instance in used if instance.weight_update_seconds is not None),
            default=None,
        ),
        kv_cache_tokens=min(capacities, default=None),
    )


def _with_warnings(seen: Observation, ends: Sequence[Ends]) -> Observation:
    warnings = [
        f"{instance.instance} is left out: it {instance.left_out}" for instance in seen.instances if not instance.used
    ]
    if seen.lower_bound:
        warnings.append(f"the rate is a lower bound, what the fleet was asked for: {seen.why}")
    for instance in seen.used:
        if instance.straggler:
            cause = ", or was asked for less: it was not saturated" if instance.lower_bound else ""
            warnings.append(
                f"{instance.instance} is a straggler: {instance.tokens_per_second or 0.0:,.0f} tok/s{cause}"
            )
    if ", " in seen.model:
        warnings.append(
            f"the instances serve different models ({seen.model}), so their mean is the rate of none of them"
        )
    observed, expected = seen.prefix_cache_hit_fraction, seen.expected_prefix_cache_hit_fraction
    if observed is not None and expected is not None and observed < HITS_EXPECTED * expected:
        warnings.append(
            f"the prefix cache hit {100 * observed:.0f} % of prompt tokens where {100 * expected:.0f} % is expected: "
            "keep each group on one instance"
        )
    doubt = mean_response_tokens(ends)[1]
    return replace(seen, warnings=(*warnings, *([doubt] if doubt else [])))
