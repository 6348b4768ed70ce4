"""How counters grew between two pages of the same engines, and what the growth says about their samples."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from rlsize.dataclass import replace
from rlsize.facts.counters import ADDED_UP, COUNTED, Buckets, LengthCounts, Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.counters import EngineCounters, Snapshot

Ends: TypeAlias = "tuple[EngineCounters, EngineCounters]"
"""The first and the last counters of one engine."""

RESTART_SECONDS = 2.0  # start times read off one process differ by less (clock steps); no engine restarts in less
LENGTHS_AGREE = 0.2  # relative difference of two mean lengths from which the shorter one is called biased
_MEANS = frozenset({"kv_cache_usage_fraction"})
_ONE = frozenset({"block_size", "started_at", "weight_syncs", "weight_sync_seconds"})  # of the page, not of a rank


def grown(ends: Sequence[Ends], name: str) -> float | None:
    """By how much a counter grew over the window, added over the instances that have it; None where none does."""
    pairs = [(getattr(first, name), getattr(last, name)) for first, last in ends]
    known = [last - (first or 0.0) for first, last in pairs if last is not None]
    return sum(known) if known else None


def mean_grown(ends: Sequence[Ends], name: str) -> float | None:
    """The mean of what a histogram was told in the window, over the instances that have it; None where nothing was."""
    pairs: list[tuple[Totals | None, Totals | None]] = [
        (getattr(first, name), getattr(last, name)) for first, last in ends
    ]
    total, count = _total_grown(pairs)
    return total / count if count > 0 else None


def _total_grown(pairs: Sequence[tuple[Totals | None, Totals | None]]) -> tuple[float, float]:
    total = sum(last.sum - (first.sum if first else 0.0) for first, last in pairs if last)
    count = sum(last.count - (first.count if first else 0.0) for first, last in pairs if last)
    return total, count


def lengths_grown(ends: Sequence[Ends]) -> LengthCounts | None:
    """The lengths of samples that finished in the window, over the instances that tell; None where none finished."""
    telling = [(first, last) for first, last in ends if _buckets_grown(first, last)]
    grew = [grown_ for first, last in telling if (grown_ := _buckets_grown(first, last))]
    tokens, samples = _total_grown([(first.response_tokens, last.response_tokens) for first, last in telling])
    if samples <= 0:
        return None
    common = sorted(set.intersection(*(set(buckets.bounds) for buckets in grew)))
    columns = [dict(zip(buckets.bounds, buckets.counts, strict=False)) for buckets in grew]
    return LengthCounts(
        tokens=tokens,
        samples=samples,
        buckets=Buckets(
            bounds=tuple(common),
            counts=(*(sum(column[bound] for column in columns) for bound in common), sum(b.counts[-1] for b in grew)),
        ),
        capped=grown(telling, "length_ended"),
        asked=mean_grown(telling, "asked_tokens"),
        aborted=grown(telling, "aborted_requests"),
    )


def _buckets_grown(first: EngineCounters, last: EngineCounters) -> Buckets | None:
    """By how much an engine's buckets grew; None where it has none, or other ones than before."""
    before, after = first.response_buckets, last.response_buckets
    if after is None or last.response_tokens is None or (before is not None and before.bounds != after.bounds):
        return None
    start = before.counts if before is not None else (0.0,) * len(after.counts)
    return Buckets(bounds=after.bounds, counts=tuple(new - old for old, new in zip(start, after.counts, strict=True)))


def syncs_grown(snapshots: Sequence[Snapshot]) -> tuple[float | None, float | None]:
    """
    Weight syncs of an engine in the window, and their seconds; None where the page does not say.

    Where a page tells only how long the last one took, each change is one: two between two looks count once.
    """
    ends = [(snapshots[0].counters, snapshots[-1].counters)]
    counted = grown(ends, "weight_syncs")
    if counted is not None:
        return counted, grown(ends, "weight_sync_seconds")
    told = [snapshot.counters.last_weight_sync_seconds for snapshot in snapshots]
    if told[-1] is None:
        return None, None
    changes = [after for before, after in pairwise(told) if after is not None and after != before]
    return float(len(changes)), sum(changes)


def unfinished_tokens(ends: Sequence[Ends]) -> float | None:
    """
    Tokens of samples in flight at an end of the window, which engines that count at the finish have not counted.

    None where all engines count tokens as they come. A sample in flight is taken to be half done.
    """
    late = [(first, last) for first, last in ends if last.at_finish]
    mean = mean_response_tokens(late)[0]
    if not late or mean is None:
        return None
    running = sum(((first.requests_running or 0.0) + (last.requests_running or 0.0)) / 2.0 for first, last in late)
    return running * mean / 2.0


def restart(first: EngineCounters, second: EngineCounters) -> str:
    """Why two pages cannot be of one life of one engine; empty where they can."""
    why = "restarted, or several engines answer at its address"
    for name in (*COUNTED, *ADDED_UP):
        before, after = _count(first, name), _count(second, name)
        if before is not None and after is not None and after < before:
            key = second.keys.get(name) or second.keys.get(f"{name}.count") or name
            return f"{why}: {key} went back from {before:.10g} to {after:.10g}"
    if first.started_at is not None and second.started_at is not None:
        apart = abs(second.started_at - first.started_at)
        if apart > RESTART_SECONDS:
            return f"{why}: the start times on its pages lie {apart:.0f} s apart"
    return ""


def _count(counters: EngineCounters, name: str) -> float | None:
    value: Totals | float | None = getattr(counters, name)
    return value if value is None or isinstance(value, (int, float)) else value.count


def hit_fraction(ends: Sequence[Ends]) -> float | None:
    """Share of prompt tokens that the prefix cache answered; None where nothing was asked."""
    queries, hits = grown(ends, "prefix_cache_queries"), grown(ends, "prefix_cache_hits")
    return None if hits is None or not queries else hits / queries


def mean_response_tokens(ends: Sequence[Ends]) -> tuple[float | None, str]:
    """Mean response length, and what is doubtful about it."""
    finished = mean_grown(ends, "response_tokens")
    requests = grown(ends, "finished_requests")
    generated = (grown(ends, "generation_tokens") or 0.0) / requests if requests else None
    if finished is None:
        doubt = "no response lengths are on the page; their mean is tokens generated over samples finished"
        exact = all(last.at_finish for _, last in ends)
        return generated, doubt if generated and not exact else ""
    if generated is None or abs(generated - finished) <= LENGTHS_AGREE * finished:
        return finished, ""
    doubt = (
        f"finished samples have {finished:,.0f} tokens on average, but {generated:,.0f} were generated for each that "
        "finished: short samples finish first, so take the mean response length with care"
    )
    return finished, doubt


def together(ranks: Sequence[EngineCounters]) -> EngineCounters:
    """
    All ranks of a page as one engine: counts added up, the share of the cache that is in use averaged.

    Their steps run side by side, so their number over the time says nothing about one step; it is left out, and so are
    the buckets of their lengths.

    Args:
        ranks: One or more, of one page.
    """
    if len(ranks) == 1:
        return ranks[0]
    changes: dict[str, Any] = {"rank": "", "step_tokens": None, "response_buckets": None}
    for field in fields(ranks[0]):
        values = [value for rank in ranks if (value := getattr(rank, field.name)) is not None]
        if field.name in _ONE or field.name in changes or not values:
            continue
        if isinstance(values[0], Totals):
            changes[field.name] = Totals(sum=sum(v.sum for v in values), count=sum(v.count for v in values))
        elif isinstance(values[0], (int, float)) and not isinstance(values[0], bool):
            changes[field.name] = fmean(values) if field.name in _MEANS else sum(values)
    return replace(ranks[0], **changes)
