"""
What engines tell of the signals: each spelling of it under one name, expressions of that, and pages of given rates.

The spellings are those of `readers/metrics`: `vllm:`, `vllm_` (prometheus_client from 0.23 on, to a Prometheus 2) and
`ray_vllm_`, one process of which is told by its `WorkerId`; those of SGLang and TensorRT-LLM; newer names and older.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlsize.facts.published import EXPORTED, RECORDED
from rlsize.frozen import dataclass
from rlsize.readers.metrics import sglang, trtllm, vllm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlsize.readers.metrics.tables import EngineKind

OWN_LABELS = frozenset({"model_name", "engine", "engine_type", "tp_rank", "pp_rank", "dp_rank", "moe_ep_rank"})
"""Labels that engines put on their series themselves, which `up` does not have."""
BY = "(instance, WorkerId)"
"""What tells one instance from another: Ray shows all processes of a node as one target."""


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
        kind: Its names.
        page: The series of an instance in a given state.
        labels: Labels of its own in a case for promtool.
        fields: Fields of its table by the one that is recorded: groups, of which the first counts that an instance has.
        ranks: Labels by which ranks of one engine tell the same.
        parts: Labels by which series only split.
        among: A matcher of the series that count.
    """

    kind: EngineKind
    page: Callable[[InstanceState], list[Scraped]]
    labels: Mapping[str, str]
    fields: Mapping[str, tuple[tuple[str, ...], ...]]
    ranks: str = ""
    parts: str = ""
    among: str = ""

    def spelled(self, field: str, selector: str) -> str:
        """
        The series behind a field, whatever an instance calls them.

        Args:
            field: A field that is recorded.
            selector: Which targets are the instances.
        """
        selected = ",".join(part for part in (selector, self.among) if part)
        found = [one for group in self.fields[field] for one in self._series(group, selected)]
        found.append(f"{EXPORTED[field]}{{{selector}}}")  # `rlsize export` beside engines
        return f"\nor on {BY} ".join(found)

    def _series(self, group: tuple[str, ...], selected: str) -> Iterator[str]:
        """The series of a group of fields, by today's name and by each older one."""
        metrics = [self.kind.metrics[name] for name in group]
        only: dict[str, set[str]] = {}
        for metric in metrics:
            for label, values in metric.only.items():
                only.setdefault(label, set()).update(values)
        more = "".join(f',{label}=~"{"|".join(sorted(values))}"' for label, values in only.items())
        for base in dict.fromkeys(name.removesuffix("_total") for metric in metrics for name in metric.names):
            ending = "(_total)?" if f"{base}_total" in metrics[0].names else ""
            series = f'{{__name__=~"{self.kind.prefix.pattern}{base}{ending}",{selected}{more}}}'
            series = f"max without ({self.ranks}) ({series})" if self.ranks else series
            yield f"sum without ({self.parts}) ({series})" if self.parts else series


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
        Scraped(name=f"vllm:{vllm.SYNC}_sum", value=0.01, labels={"operation": "update"}),
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


def _trtllm_page(state: InstanceState) -> list[Scraped]:
    hits = state.hit_fraction or 0.0
    return [
        Scraped(name="trtllm_generation_tokens_total", value=state.tokens_per_second, labels={}),
        Scraped(name="trtllm_prompt_tokens_total", value=_PROMPTS, labels={}),
        Scraped(name="trtllm_prompt_cached_tokens_total", value=_PROMPTS * hits, labels={}),
        Scraped(
            name="trtllm_num_requests_waiting", value=_RUNNING * state.waiting_per_running, labels={}, counter=False
        ),
        Scraped(name="trtllm_num_requests_running", value=_RUNNING, labels={}, counter=False),
        Scraped(name="trtllm_request_success_total", value=_REQUESTS, labels={"finished_reason": "stop"}),
    ]


_TIMED = "weight_sync_seconds"  # which vLLM alone counts
_SAME: Mapping[str, tuple[tuple[str, ...], ...]] = {name: ((name,),) for name in RECORDED if name != _TIMED}
_READ = (("computed", "reused"), ("received",))

ENGINES: Mapping[str, EngineMetrics] = {
    "vllm": EngineMetrics(
        vllm.KIND, _vllm_page, {"model_name": "policy", "engine": "0"}, {**_SAME, _TIMED: ((_TIMED,),)}
    ),
    "sglang": EngineMetrics(
        sglang.KIND,
        _sglang_page,
        {"model_name": "policy", "engine_type": "unified", "tp_rank": "0", "pp_rank": "0"},
        {
            **_SAME,
            "generation_tokens": (("live",), ("finished",)),
            "prompt_tokens": _READ,
            "prefix_cache_queries": _READ,
            "prefix_cache_hits": (("reused",), ("cached",)),
        },
        ranks="tp_rank, pp_rank, moe_ep_rank",  # under data-parallel attention `dp_rank` tells apart what adds up
        parts="mode, is_streaming, cache_source",
        among='priority=""',  # with priorities, the total
    ),
    "tensorrt-llm": EngineMetrics(
        trtllm.KIND,
        _trtllm_page,
        {"model_name": "policy"},
        {
            **{name: fields for name, fields in _SAME.items() if name != "preemptions"},
            "prefix_cache_queries": (("prompt_tokens",),),
        },
    ),
}
"""Engines whose pages are known."""


def _each(field: str, over: str = "rate") -> str:
    return f"sum by {BY} ({over}({RECORDED[field]}{{$S}}[$W]))"


EXPRS: Mapping[str, str] = {
    "instance": _each("generation_tokens"),
    "fleet": f"sum(rate({RECORDED['generation_tokens']}{{$S}}[$W]))",
    "cache": (
        f"{_each('prefix_cache_hits')}\n  / ({_each('prefix_cache_queries')} > 0)\n"
        f"or 0 * ({_each('prompt_tokens')} > 0)"
    ),
    "waiting": f"{_each('requests_waiting', 'avg_over_time')}\n  / {_each('requests_running', 'avg_over_time')}",
    "preemptions": (  # SGLang shows none before the first
        f"({_each('preemptions')}\n  or 0 * {_each('finished_requests')})\n  / {_each('finished_requests')}"
    ),
    "up": (  # a target, times the processes that it shows
        "sum(max by (instance) (up{$T})\n  * on (instance) count by (instance) "
        f"(count by {BY} ({RECORDED['generation_tokens']}{{$S}})))"
    ),
}
"""What is worked out of the recorded series, by signal: $S selects a loop, $W is a window, $T selects targets."""

NEEDED: Mapping[str, str] = {
    "rollout": "generation_tokens",
    "cache": "prefix_cache_queries",
    "waiting": "requests_waiting",
    "preemptions": "finished_requests",
}
"""The field without which a signal is dead."""
