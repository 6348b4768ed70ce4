"""
What each engine's metrics page tells of the signals: expressions, and what a page of given rates looks like.

Names as of vLLM 0.33 (`vllm/v1/metrics/loggers.py`) and SGLang 0.5.23
(`sglang/srt/observability/metrics_collector.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OWN_LABELS = frozenset({"model_name", "engine", "engine_type", "tp_rank", "pp_rank", "dp_rank", "moe_ep_rank"})
"""Labels that engines put on their series themselves, which `up` does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceState:
    """
    One instance in a case for promtool.

    Args:
        tokens_per_second: Response tokens. [token/s]
        hit_fraction: Share of prompt tokens from the prefix cache; None where it is switched off. [1]
        waiting_per_running: Requests that wait for each that runs. [1]
        preemptions_per_request: Preemptions for each request that finishes. [1]
        up: Targets that this one stands for; 0 where it does not answer. [1]
    """

    tokens_per_second: float
    hit_fraction: float | None
    waiting_per_running: float = 0.0
    preemptions_per_request: float = 0.0
    up: float = 1.0


class Scraped(NamedTuple):
    """
    A series of a case: a counter by its slope, a gauge by its value.

    Args:
        name: Its name.
        value: Slope or value.
        labels: Labels of its own.
        counter: Whether it is a counter.
    """

    name: str
    value: float
    labels: Mapping[str, str]
    counter: bool = True


class EngineMetrics(NamedTuple):
    """
    Where the signals of an engine come from.

    Args:
        title: Its name for people.
        exprs: By what they give: `instance` and `fleet` tokens, `cache`, `waiting`, `preemptions`.
        needed: The series without which these are dead, by signal.
        labels: Labels of its own in a case for promtool.
        page: The series of an instance in a given state.
    """

    title: str
    exprs: Mapping[str, str]
    needed: Mapping[str, str]
    labels: Mapping[str, str]
    page: Callable[[InstanceState], list[Scraped]]


_PROMPTS = 1000.0  # tokens per second, in cases
_RUNNING = 64.0
_REQUESTS = 2.0  # finished per second, in cases


def _vllm_page(state: InstanceState) -> list[Scraped]:
    cached = state.hit_fraction is not None
    queries = _PROMPTS if cached else 0.0
    return [
        Scraped(name="vllm:generation_tokens_total", value=state.tokens_per_second, labels={}),
        Scraped(name="vllm:prompt_tokens_total", value=_PROMPTS, labels={}),
        Scraped(name="vllm:prefix_cache_queries_total", value=queries, labels={}),
        Scraped(name="vllm:prefix_cache_hits_total", value=queries * (state.hit_fraction or 0.0), labels={}),
        Scraped(name="vllm:num_requests_waiting", value=_RUNNING * state.waiting_per_running, labels={}, counter=False),
        Scraped(name="vllm:num_requests_running", value=_RUNNING, labels={}, counter=False),
        Scraped(name="vllm:num_preemptions_total", value=_REQUESTS * state.preemptions_per_request, labels={}),
        Scraped(name="vllm:request_success_total", value=_REQUESTS, labels={"finished_reason": "stop"}),
    ]


def _sglang_page(state: InstanceState) -> list[Scraped]:
    hits = state.hit_fraction or 0.0
    realtime = "sglang:realtime_tokens_total"
    return [
        Scraped(name=realtime, value=state.tokens_per_second, labels={"mode": "decode"}),
        Scraped(name=realtime, value=_PROMPTS * (1 - hits), labels={"mode": "prefill_compute"}),
        Scraped(name=realtime, value=_PROMPTS * hits, labels={"mode": "prefill_cache"}),
        Scraped(name="sglang:num_queue_reqs", value=_RUNNING * state.waiting_per_running, labels={}, counter=False),
        Scraped(name="sglang:num_running_reqs", value=_RUNNING, labels={}, counter=False),
        Scraped(name="sglang:num_retracted_requests_total", value=_REQUESTS * state.preemptions_per_request, labels={}),
        Scraped(name="sglang:num_requests_total", value=_REQUESTS, labels={}),
    ]


_VLLM = EngineMetrics(
    title="vLLM",
    exprs={
        "instance": "sum by (instance) (rate(vllm:generation_tokens_total{$S}[$W]))",
        "fleet": "sum(rate(vllm:generation_tokens_total{$S}[$W]))",
        "cache": (
            "sum by (instance) (rate(vllm:prefix_cache_hits_total{$S}[$W]))\n"
            "  / (sum by (instance) (rate(vllm:prefix_cache_queries_total{$S}[$W])) > 0)\n"
            "or 0 * (sum by (instance) (rate(vllm:prompt_tokens_total{$S}[$W])) > 0)"
        ),
        "waiting": (
            "sum by (instance) (avg_over_time(vllm:num_requests_waiting{$S}[$W]))\n"
            "  / sum by (instance) (avg_over_time(vllm:num_requests_running{$S}[$W]))"
        ),
        "preemptions": (
            "sum by (instance) (rate(vllm:num_preemptions_total{$S}[$W]))\n"
            "  / sum by (instance) (rate(vllm:request_success_total{$S}[$W]))"
        ),
    },
    needed={
        "rollout": "vllm:generation_tokens_total{$S}",
        "cache": "vllm:prefix_cache_queries_total{$S}",
        "waiting": "vllm:num_requests_waiting{$S}",
        "preemptions": "vllm:num_preemptions_total{$S}",
    },
    labels={"model_name": "policy", "engine": "0"},
    page=_vllm_page,
)

_REALTIME = "sglang:realtime_tokens_total"


def _told(series: str, by: str = "") -> str:
    """
    A series of each instance: data-parallel ranks add up, while further ranks of one tell the same again.

    Under data-parallel attention `tp_rank` differs between data-parallel ranks, so no one rank stands for all.
    """
    return f"max by (instance, dp_rank{by}) ({series})"


def _each(series: str, by: str = "") -> str:
    return f"sum by (instance) ({_told(series, by)})"


_DECODED = f'rate({_REALTIME}{{$S,mode="decode"}}[$W])'
_COMPUTED = _each(f'rate({_REALTIME}{{$S,mode="prefill_compute"}}[$W])')
_PREFILLED = _each(f'rate({_REALTIME}{{$S,mode=~"prefill_.+"}}[$W])', ", mode")
_QUEUED = _each("avg_over_time(sglang:num_queue_reqs{$S}[$W])")
_RAN = _each("avg_over_time(sglang:num_running_reqs{$S}[$W])")
_RETRACTED = _each("rate(sglang:num_retracted_requests_total{$S}[$W])")
_FINISHED = "sum by (instance) (rate(sglang:num_requests_total{$S}[$W]))"  # the server counts these: no ranks

_SGLANG = EngineMetrics(
    title="SGLang",
    exprs={
        "instance": _each(_DECODED),
        "fleet": f"sum({_told(_DECODED)})",
        "cache": f"1 - {_COMPUTED}\n  / {_PREFILLED}",
        "waiting": f"{_QUEUED}\n  / {_RAN}",
        "preemptions": f"({_RETRACTED}\n  or 0 * {_FINISHED})\n  / {_FINISHED}",  # no retractions before the first
    },
    needed={
        "rollout": 'sglang:realtime_tokens_total{$S,mode="decode"}',
        "cache": 'sglang:realtime_tokens_total{$S,mode="prefill_compute"}',
        "waiting": "sglang:num_queue_reqs{$S}",
        "preemptions": "sglang:num_requests_total{$S}",
    },
    labels={"model_name": "policy", "engine_type": "unified", "tp_rank": "0", "pp_rank": "0"},
    page=_sglang_page,
)

ENGINES: Mapping[str, EngineMetrics] = {"vllm": _VLLM, "sglang": _SGLANG}
"""Engines whose pages are known."""
