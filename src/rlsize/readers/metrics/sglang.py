"""
SGLang's metrics page: one `EngineCounters` per server.

Names as of SGLang 0.5.23 (`sglang/srt/observability/metrics_collector.py`) and those that older ones have, too. What a
server counts when a request finishes has no rank, so its data-parallel ranks are one engine here. Schedulers tell their
ranks: the data-parallel ones each do work of their own; of the tensor and pipeline ranks of one engine only the first
tells, or all tell the same (`--enable-metrics-for-all-schedulers`). Under data-parallel attention the tensor rank
differs between data-parallel ranks. With priority scheduling the label `priority` is empty on totals.
`generation_tokens_total` grows only when a request finishes, so tokens are those of `realtime_tokens_total` where the
page has it. Engine steps are not counted there: no step time can be fitted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.facts.counters import EngineCounters
from rlsize.readers.metrics import tables
from rlsize.readers.metrics.tables import EngineKind, Metric, Seen, chosen, exposed, shared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.readers.metrics.exposition import Series
    from rlsize.readers.metrics.tables import Numbers

_RANKS = ("pp_rank", "tp_rank", "moe_ep_rank")
_SPLIT = frozenset({*_RANKS, "dp_rank", "engine_type", "mode", "is_streaming", "priority", "pid"})
_LIVE = "realtime_tokens"
_EFFECTIVE = "prefill_effective_tokens"
_HITS = frozenset({"device_hit", "host_hit", "storage_hit"})


def _of(mode: str) -> dict[str, frozenset[str]]:
    return {"mode": frozenset({mode})}


_COUNTERS = {
    "live": Metric((_LIVE,), _of("decode")),
    "finished": Metric(("generation_tokens",)),
    "computed": Metric((_LIVE,), _of("prefill_compute")),
    "reused": Metric((_LIVE,), _of("prefill_cache")),
    "input": Metric((_EFFECTIVE,), _of("input")),
    "hits": Metric((_EFFECTIVE,), {"mode": _HITS}),
    "received": Metric(("prompt_tokens",)),
    "cached": Metric(("cached_tokens",)),
    "preemptions": Metric(("num_retracted_requests",)),
    "finished_requests": Metric(("num_requests",)),
    "aborted_requests": Metric(("num_aborted_requests",)),
}
_GAUGES = {
    "requests_running": Metric(("num_running_reqs",)),
    "requests_waiting": Metric(("num_queue_reqs",)),
    "kv_cache_usage_fraction": Metric(("token_usage",), mean=True),
    "last_weight_sync_seconds": Metric(("weight_load_duration_seconds",), page_wide=True, mean=True),
    "kv_cache_tokens": Metric(("max_total_num_tokens",)),
    "block_size": Metric(("page_size",), mean=True),
}
_HISTOGRAMS = {
    "response_tokens": Metric(("generation_tokens_histogram",)),
    "prompt_lengths": Metric(("prompt_tokens_histogram",)),
    "inter_token_seconds": Metric(("inter_token_latency_seconds",)),
}
_BUCKETS = "generation_tokens_histogram_bucket"
_CREATED = Metric(("generation_tokens_created",), mean=True)
_EXPOSED = exposed(_COUNTERS, _GAUGES, _HISTOGRAMS) | {"created": _CREATED}
_AS_THEY_ARE = (
    "preemptions",
    "finished_requests",
    "aborted_requests",
    "requests_running",
    "requests_waiting",
    "kv_cache_usage_fraction",
    "last_weight_sync_seconds",
)


def _counted_once(found: Sequence[Series]) -> list[Series]:
    """Of series that differ in ranks of one engine only, the first rank's; of priorities, their total."""
    first: dict[tuple[str, frozenset[tuple[str, str]]], tuple[tuple[tuple[int, str], ...], Series]] = {}
    for entry in found:
        if entry.labels.get("priority"):
            continue
        rank = tuple(tables.natural(entry.labels.get(name, "0")) for name in _RANKS)
        key = (entry.name, frozenset(item for item in entry.labels.items() if item[0] not in _RANKS))
        if key not in first or rank < first[key][0]:
            first[key] = (rank, entry)
    return [entry for _, entry in first.values()]


def _identities(page: Mapping[str, Sequence[Series]], _: str) -> list[Mapping[str, str]]:
    """The labels that tell one server from another: those of its tokens that split nothing."""
    tokens = chosen(page, _EXPOSED["live"]) or chosen(page, _EXPOSED["finished"])
    running = page.get("num_running_reqs") or tokens
    names = {name for entry in running for name in entry.labels} - _SPLIT
    found = {
        tuple((name, entry.labels.get(name, "")) for name in sorted(names & entry.labels.keys())) for entry in tokens
    }
    return [dict(labels) for labels in sorted(found)]


def _counters(seen: Seen) -> EngineCounters:
    who, numbers, _, lengths, keys = seen
    live = numbers["live"] is not None
    computed, reused = numbers["computed"], numbers["reused"]
    received = numbers["received"] if computed is None else computed + (reused or 0.0)
    cache, cache_keys = _cache(numbers, keys)
    tokens = numbers["live"] if live else numbers["finished"]
    own = {"generation_tokens": keys["live" if live else "finished"], **cache_keys}
    own |= {name: key for name, key in keys.items() if name not in _COUNTERS or name in _AS_THEY_ARE}
    held, block = numbers["kv_cache_tokens"], numbers["block_size"]
    values: dict[str, Any] = {name: numbers[name] for name in _AS_THEY_ARE}
    return EngineCounters(
        **who,
        generation_tokens=tokens or 0.0,
        at_finish=not live,
        prompt_tokens=received,
        computed_prompt_tokens=computed,
        prefix_cache_queries=cache[0],
        prefix_cache_hits=cache[1],
        response_buckets=lengths,
        kv_cache_tokens=int(held) if held else None,
        block_size=int(block) if block else None,
        started_at=numbers["created"],
        keys=shared(own),
        **values,
        **tables.totals(numbers, tuple(_HISTOGRAMS)),
    )


def _cache(numbers: Numbers, keys: Mapping[str, str]) -> tuple[tuple[float | None, float | None], dict[str, str]]:
    """
    Prompt tokens looked up in the prefix cache and found there, with the metrics that say so.

    Best are those without what retracted samples had prefilled a second time; then those of the schedulers; an older
    page counts them when requests finish. A page shows no cached ones as long as there were none.
    """
    for whole, part, add in (("input", "hits", True), ("computed", "reused", True), ("received", "cached", False)):
        total, found = numbers[whole], numbers[part] or 0.0
        if total is not None:
            named = {"prefix_cache_queries": keys[whole], "prefix_cache_hits": keys.get(part, keys[whole])}
            return (total + found if add else total, found), named
    return (None, None), {}


KIND = EngineKind(
    name="sglang",
    title="SGLang",
    prefix=re.compile(r"(?:ray_)?sglang[:_]"),
    metrics=_EXPOSED,
    buckets=_BUCKETS,
    stated={"response_buckets": _BUCKETS},
    once=_counted_once,
    identities=_identities,
    counters=_counters,
    missing=("realtime_tokens_total and generation_tokens_total", "was the page cut, or did nothing run there yet?"),
)
