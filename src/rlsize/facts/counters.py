"""What an engine's metrics page says at one moment."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (a field's type, resolved at run time)
from dataclasses import dataclass, field
from typing import Annotated

from rlsize.facts.fields import Quantity, Says


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a histogram has added up since the engine started."""

    sum: Annotated[float, Says("sum of all observations")]
    count: Annotated[float, Says("number of observations")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """A histogram's buckets, as they stand on the page: upper bounds, and how many observations lie at or below."""

    bounds: Annotated[tuple[float, ...], Says("upper bounds, rising; the last bucket has none")]
    counts: Annotated[tuple[float, ...], Says("observations at or below each bound, and at last all of them")]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCounters:
    """One engine (one data-parallel rank) at one moment; None where its page does not say."""

    instance: Annotated[str, Says("where the page came from: host and port, or file name")]
    engine: Annotated[str, Says("the inference engine whose page it is, such as vllm")]
    rank: Annotated[str, Says("data-parallel rank as the page names it; empty where it names none")] = ""
    model: Annotated[str, Says("model name as the engine serves it")] = ""

    generation_tokens: Annotated[float, Quantity("token", "response tokens generated since the start", least=0)]
    prompt_tokens: Annotated[
        float | None, Quantity("token", "prompt tokens received, cached ones included", least=0)
    ] = None
    computed_prompt_tokens: Annotated[
        float | None, Quantity("token", "prompt tokens that had to be prefilled", least=0)
    ] = None
    prefix_cache_queries: Annotated[
        float | None, Quantity("token", "prompt tokens looked up in the prefix cache", least=0)
    ] = None
    prefix_cache_hits: Annotated[
        float | None, Quantity("token", "prompt tokens found in the prefix cache", least=0)
    ] = None
    accepted_draft_tokens: Annotated[
        float | None, Quantity("token", "speculated tokens that were accepted", least=0)
    ] = None
    preemptions: Annotated[float | None, Quantity("count", "samples thrown out of the running batch", least=0)] = None
    finished_requests: Annotated[float | None, Quantity("count", "samples finished, for any reason", least=0)] = None

    length_ended: Annotated[
        float | None, Quantity("count", "samples that ended because they reached their cap", least=0)
    ] = None
    aborted_requests: Annotated[float | None, Quantity("count", "samples broken off by the client", least=0)] = None

    requests_running: Annotated[float | None, Quantity("count", "samples in the running batch", least=0)] = None
    requests_waiting: Annotated[float | None, Quantity("count", "samples waiting, for any reason", least=0)] = None
    requests_waiting_for_capacity: Annotated[
        float | None, Quantity("count", "samples waiting for room in the batch", least=0)
    ] = None
    kv_cache_usage_fraction: Annotated[float | None, Quantity("1", "share of the KV cache in use", least=0)] = None

    response_tokens: Annotated[Totals | None, Says("response tokens of finished samples")] = None
    response_buckets: Annotated[Buckets | None, Says("response tokens of finished samples, by length")] = None
    asked_tokens: Annotated[Totals | None, Says("cap on the response that each finished sample was given")] = None
    prompt_lengths: Annotated[Totals | None, Says("prompt tokens of finished samples")] = None
    samples_per_request: Annotated[
        Totals | None, Says("samples asked for by one request (n): the group size where groups are sent whole")
    ] = None
    step_tokens: Annotated[Totals | None, Says("tokens computed in one engine step, prompt and response")] = None
    inter_token_seconds: Annotated[Totals | None, Says("seconds between two tokens of a sample")] = None

    weight_syncs: Annotated[float | None, Quantity("count", "weight syncs finished; of the whole page", least=0)] = None
    weight_sync_seconds: Annotated[
        float | None, Quantity("s", "seconds spent in weight syncs; of the whole page", least=0)
    ] = None

    last_weight_sync_seconds: Annotated[
        float | None, Quantity("s", "seconds that the last weight sync took; of the whole page", least=0)
    ] = None

    at_finish: Annotated[bool, Says("whether tokens are counted only when their sample finishes")] = False
    gpus: Annotated[int | None, Says("GPUs of the engine")] = None
    block_size: Annotated[int | None, Says("tokens in one block of the KV cache")] = None
    kv_cache_tokens: Annotated[int | None, Says("tokens that the KV cache holds")] = None
    prefix_caching: Annotated[bool | None, Says("whether the prefix cache is on")] = None
    started_at: Annotated[float | None, Quantity("s", "start of the engine, seconds since 1970", least=0)] = None

    keys: Annotated[Mapping[str, str], Says("the metric that each field was read from")] = field(default_factory=dict)


COUNTED = (
    "generation_tokens", "prompt_tokens", "computed_prompt_tokens", "prefix_cache_queries", "prefix_cache_hits",
    "accepted_draft_tokens", "preemptions", "finished_requests", "length_ended", "aborted_requests", "weight_syncs",
    "weight_sync_seconds",
)  # fmt: skip
"""The fields that only grow while an engine lives."""

ADDED_UP = (
    "response_tokens", "asked_tokens", "prompt_lengths", "samples_per_request", "step_tokens", "inter_token_seconds",
)  # fmt: skip
"""The fields that are totals of a histogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Counters and the moment at which they were read."""

    seconds: Annotated[float, Quantity("s", "moment on the reader's own clock", above=None)]
    counters: Annotated[EngineCounters, Says("what the page said then")]
