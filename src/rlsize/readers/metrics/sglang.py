"""
SGLang's metrics page as counters, as far as `measure` needs them for its cross-check and its steady state.

Names as of SGLang 0.5.23 (`sglang/srt/observability/metrics_collector.py`). Its `generation_tokens_total` grows only
when a request finishes, so tokens are those of `realtime_tokens_total` where the page has it. Engine steps are not
counted there: no step time can be fitted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.counters import EngineCounters
from rlsize.readers.metrics.exposition import series

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.metrics.exposition import Series

ENGINE = "sglang"
_LINE = re.compile(r"^sglang[:_]", re.MULTILINE)
_REALTIME = "realtime_tokens_total"
_WANTED = frozenset(
    {
        _REALTIME,
        "generation_tokens_total",
        "num_requests_total",
        "num_retracted_requests_total",
        "num_running_reqs",
        "num_queue_reqs",
        "token_usage",
        "max_total_num_tokens",
        "page_size",
    }
)


def sglang_counters(text: str, instance: str) -> EngineCounters:
    """
    The counters of a SGLang page; its data-parallel ranks added up, its tensor-parallel ones counted once.

    Args:
        text: The page.
        instance: What to call its origin.

    Raises:
        InputError: It is no SGLang page, or a damaged one.
    """
    page: dict[str, list[Series]] = {}
    for entry in series(text, instance, _LINE, lambda name: _bare(name) in _WANTED):
        if all(entry.labels.get(rank, "0") == "0" for rank in ("tp_rank", "pp_rank")):
            page.setdefault(_bare(entry.name), []).append(entry)
    if _REALTIME not in page and "generation_tokens_total" not in page:
        raise InputError(Fault("holds no tokens of SGLang", instance, "is it started with --enable-metrics?"))
    decoded = _sum(page, _REALTIME, {"mode": "decode"})
    computed = _sum(page, _REALTIME, {"mode": "prefill_compute"})
    cached = _sum(page, _REALTIME, {"mode": "prefill_cache"})
    prompts = computed + cached if computed is not None and cached is not None else None
    usage = [entry.value for entry in page.get("token_usage", [])]
    held = _sum(page, "max_total_num_tokens")
    block = _sum(page, "page_size")
    return EngineCounters(
        instance=instance,
        engine=ENGINE,
        model=page[next(iter(page))][0].labels.get("model_name", "")[:100],
        generation_tokens=decoded if decoded is not None else _sum(page, "generation_tokens_total") or 0.0,
        prompt_tokens=prompts,
        computed_prompt_tokens=computed,
        prefix_cache_queries=prompts,
        prefix_cache_hits=cached,
        preemptions=_sum(page, "num_retracted_requests_total"),
        finished_requests=_sum(page, "num_requests_total"),
        requests_running=_sum(page, "num_running_reqs"),
        requests_waiting=_sum(page, "num_queue_reqs"),
        kv_cache_usage_fraction=sum(usage) / len(usage) if usage else None,
        kv_cache_tokens=int(held) if held else None,
        block_size=int(block) if block else None,
        keys={"generation_tokens": f"sglang:{_REALTIME if decoded is not None else 'generation_tokens_total'}"},
    )


def _bare(name: str) -> str:
    return _LINE.sub("", name, count=1)


def _sum(page: Mapping[str, list[Series]], name: str, only: Mapping[str, str] | None = None) -> float | None:
    """The values of a metric added up; None where the page has none with those labels."""
    values = [
        entry.value
        for entry in page.get(name, [])
        if all(entry.labels.get(label) == value for label, value in (only or {}).items())
    ]
    return sum(values) if values else None
