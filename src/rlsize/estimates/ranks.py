"""The data-parallel ranks of one server, counted as one instance."""

from __future__ import annotations

from dataclasses import fields, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rlsize.facts.counters import Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.counters import EngineCounters

_MEANS = frozenset({"kv_cache_usage_fraction"})
_ONE = frozenset({"block_size", "started_at", "weight_syncs", "weight_sync_seconds"})  # of the page, not of a rank


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
