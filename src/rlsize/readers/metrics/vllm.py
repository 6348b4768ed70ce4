"""
vLLM's metrics page: one `EngineCounters` per data-parallel rank.

Names as of vLLM 0.33 (`vllm/v1/metrics/loggers.py`, `vllm/entrypoints/rl/online/metrics.py`) and those it had before;
with and without `_total`; `vllm:`, or `vllm_` where Ray rewrote it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.facts.counters import EngineCounters
from rlsize.readers.metrics import tables
from rlsize.readers.metrics.tables import EngineKind, Metric, Seen, chosen, exposed, shared, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.readers.metrics.exposition import Series

MOST_ENGINES = 1024

SYNC = "rl_weight_update_operation_duration_seconds"
"""The histogram of weight syncs, by operation."""
_SYNC_PARTS = frozenset({"start", "update", "finish"})

_COUNTERS = {
    "generation_tokens": Metric(("generation_tokens",)),
    "prompt_tokens": Metric(("prompt_tokens",)),
    "computed_prompt_tokens": Metric(("prompt_tokens_by_source",), {"source": frozenset({"local_compute"})}),
    "prefix_cache_queries": Metric(("prefix_cache_queries", "gpu_prefix_cache_queries")),
    "prefix_cache_hits": Metric(("prefix_cache_hits", "gpu_prefix_cache_hits")),
    "accepted_draft_tokens": Metric(("spec_decode_num_accepted_tokens",)),
    "preemptions": Metric(("num_preemptions",)),
    "finished_requests": Metric(("request_success",)),
    "length_ended": Metric(("request_success",), {"finished_reason": frozenset({"length"})}),
    "aborted_requests": Metric(("request_success",), {"finished_reason": frozenset({"abort"})}),
}
_GAUGES = {
    "requests_running": Metric(("num_requests_running",)),
    "requests_waiting": Metric(("num_requests_waiting",)),
    "requests_waiting_for_capacity": Metric(("num_requests_waiting_by_reason",), {"reason": frozenset({"capacity"})}),
    "kv_cache_usage_fraction": Metric(("kv_cache_usage_perc", "gpu_cache_usage_perc")),
    # one of a sync's operations may run many times (an update per bucket of weights), but each sync finishes once
    "weight_syncs": Metric((f"{SYNC}_count",), {"operation": frozenset({"finish"})}, page_wide=True),
    "weight_sync_seconds": Metric((f"{SYNC}_sum",), {"operation": _SYNC_PARTS}, page_wide=True),
}
_HISTOGRAMS = {
    "response_tokens": Metric(("request_generation_tokens",)),
    "asked_tokens": Metric(("request_params_max_tokens",)),
    "prompt_lengths": Metric(("request_prompt_tokens",)),
    "samples_per_request": Metric(("request_params_n",)),
    "step_tokens": Metric(("iteration_tokens_total", "iteration_tokens")),
    "inter_token_seconds": Metric(("inter_token_latency_seconds", "time_per_output_token_seconds")),
}
_BUCKETS = "request_generation_tokens_bucket"
_CONFIG = "cache_config_info"
_START = "process_start_time_seconds"


_EXPOSED = exposed(_COUNTERS, _GAUGES, _HISTOGRAMS) | {
    "created": Metric(("generation_tokens_created",)),
    "start": Metric((_START,), page_wide=True),
}


def _identities(page: Mapping[str, Sequence[Series]], instance: str) -> list[Mapping[str, str]]:
    generation = chosen(page, _EXPOSED["generation_tokens"])
    if len(generation) > MOST_ENGINES:
        todo = "name each engine's own page, not one that gathers a whole fleet"
        raise InputError(Fault(f"holds {len(generation):,} engines; at most {MOST_ENGINES:,} are read", instance, todo))
    return [entry.labels for entry in generation]


def _counters(seen: Seen) -> EngineCounters:
    who, numbers, config, lengths, keys = seen
    values: dict[str, Any] = {name: numbers[name] for name in (*_COUNTERS, *_GAUGES)}
    block, blocks = whole(config.get("block_size")), whole(config.get("num_gpu_blocks"))
    return EngineCounters(
        **who,
        response_buckets=lengths,
        block_size=block,
        kv_cache_tokens=whole(config.get("kv_cache_size_tokens")) or (block * blocks if block and blocks else None),
        prefix_caching={"True": True, "False": False}.get(config.get("enable_prefix_caching", "")),
        started_at=numbers["start"] or numbers["created"],
        keys=shared(keys),
        **values,
        **tables.totals(numbers, tuple(_HISTOGRAMS)),
    )


KIND = EngineKind(
    name="vllm",
    title="vLLM",
    prefix=re.compile(r"(?:ray_)?vllm[:_]"),
    metrics=_EXPOSED,
    info=_CONFIG,
    buckets=_BUCKETS,
    stated={"kv_cache_tokens": _CONFIG, "response_buckets": _BUCKETS},
    bare=frozenset({_START}),
    identities=_identities,
    counters=_counters,
    missing=("generation_tokens", "was the page cut, or does the engine run with --disable-log-stats?"),
)
