"""
TensorRT-LLM's metrics page: one `EngineCounters` per server.

Names as of `tensorrt_llm/metrics/collector.py` (2026); `trtllm-serve` shows them under /prometheus/metrics where it
runs with `return_perf_metrics: true`. Tokens and samples are counted when a request finishes. There is no histogram of
response lengths; the mean is tokens over samples. The sizes of the parallel groups stand on the page.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

from rlsize.facts.counters import EngineCounters
from rlsize.readers.metrics.tables import EngineKind, Metric, Seen, chosen, exposed, shared, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.readers.metrics.exposition import Series

_LENGTH, _ABORT = frozenset({"length"}), frozenset({"cancelled", "abort"})
_COUNTERS = {
    "generation_tokens": Metric(("generation_tokens",)),
    "prompt_tokens": Metric(("prompt_tokens",)),
    "prefix_cache_hits": Metric(("prompt_cached_tokens",)),
    "finished_requests": Metric(("request_success", "num_requests_completed")),
    "length_ended": Metric(("request_success",), {"finished_reason": _LENGTH}),
    "aborted_requests": Metric(("request_success",), {"finished_reason": _ABORT}),
}
_GAUGES = {
    "requests_running": Metric(("num_requests_running",)),
    "requests_waiting": Metric(("num_requests_waiting",)),
    "kv_cache_usage_fraction": Metric(("kv_cache_utilization",)),
}
_STATED = {
    "blocks": Metric(("kv_cache_max_blocks",)),
    "block": Metric(("kv_cache_tokens_per_block",)),
    "created": Metric(("generation_tokens_created",)),
}
_PARALLEL = "parallel_config_info"
_SIZES = ("tp_size", "pp_size")
_FROM = {"prefix_cache_queries": "prompt_tokens", "kv_cache_tokens": "blocks"}  # fields worked out of other numbers
_EXPOSED = exposed(_COUNTERS, _GAUGES, {}) | _STATED


def _identities(page: Mapping[str, Sequence[Series]], _: str) -> list[Mapping[str, str]]:
    return [entry.labels for entry in chosen(page, _EXPOSED["generation_tokens"])]


def _counters(seen: Seen) -> EngineCounters:
    who, numbers, parallel, _, keys = seen
    values: dict[str, Any] = {name: numbers[name] for name in (*_COUNTERS, *_GAUGES)}
    blocks, block = numbers["blocks"], numbers["block"]
    sizes = [size for name in _SIZES if (size := whole(parallel.get(name)))]
    return EngineCounters(
        **who,
        at_finish=True,
        prefix_cache_queries=None if numbers["prefix_cache_hits"] is None else numbers["prompt_tokens"],
        kv_cache_tokens=int(blocks * block) if blocks and block else None,
        block_size=int(block) if block else None,
        gpus=prod(sizes) if sizes else None,
        started_at=numbers["created"],
        keys=shared({**keys, **{name: keys[of] for name, of in _FROM.items() if of in keys}}),
        **values,
    )


KIND = EngineKind(
    name="tensorrt-llm",
    title="TensorRT-LLM",
    prefix=re.compile(r"trtllm_"),
    metrics=_EXPOSED,
    info=_PARALLEL,
    identities=_identities,
    counters=_counters,
    missing=(
        "generation_tokens_total",
        "run it with return_perf_metrics: true, and a release that counts tokens there; or give a benchmark's rate",
    ),
)
