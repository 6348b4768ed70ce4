"""What engines counted: one page, pages of one stretch of generation, and the lengths of what finished."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (a field's type, resolved at run time)
from dataclasses import dataclass, field
from typing import Annotated

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.kinds import AMOUNT_OR_NONE, RATIO, SECONDS_OR_NONE, TOKENS_OR_NONE


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

    generation_tokens: Annotated[float, TOKENS_OR_NONE.saying("response tokens generated since the start")]
    prompt_tokens: Annotated[float | None, TOKENS_OR_NONE.saying("prompt tokens received, cached ones included")] = None
    computed_prompt_tokens: Annotated[float | None, TOKENS_OR_NONE.saying("prompt tokens that had to be prefilled")] = (
        None
    )
    prefix_cache_queries: Annotated[
        float | None, TOKENS_OR_NONE.saying("prompt tokens looked up in the prefix cache")
    ] = None
    prefix_cache_hits: Annotated[float | None, TOKENS_OR_NONE.saying("prompt tokens found in the prefix cache")] = None
    accepted_draft_tokens: Annotated[float | None, TOKENS_OR_NONE.saying("speculated tokens that were accepted")] = None
    preemptions: Annotated[float | None, AMOUNT_OR_NONE.saying("samples thrown out of the running batch")] = None
    finished_requests: Annotated[float | None, AMOUNT_OR_NONE.saying("samples finished, for any reason")] = None

    length_ended: Annotated[
        float | None, AMOUNT_OR_NONE.saying("samples that ended because they reached their cap")
    ] = None
    aborted_requests: Annotated[float | None, AMOUNT_OR_NONE.saying("samples broken off by the client")] = None

    requests_running: Annotated[float | None, AMOUNT_OR_NONE.saying("samples in the running batch")] = None
    requests_waiting: Annotated[float | None, AMOUNT_OR_NONE.saying("samples waiting, for any reason")] = None
    requests_waiting_for_capacity: Annotated[
        float | None, AMOUNT_OR_NONE.saying("samples waiting for room in the batch")
    ] = None
    kv_cache_usage_fraction: Annotated[float | None, RATIO.saying("share of the KV cache in use")] = None

    response_tokens: Annotated[Totals | None, Says("response tokens of finished samples")] = None
    response_buckets: Annotated[Buckets | None, Says("response tokens of finished samples, by length")] = None
    asked_tokens: Annotated[Totals | None, Says("cap on the response that each finished sample was given")] = None
    prompt_lengths: Annotated[Totals | None, Says("prompt tokens of finished samples")] = None
    samples_per_request: Annotated[
        Totals | None, Says("samples asked for by one request (n): the group size where groups are sent whole")
    ] = None
    step_tokens: Annotated[Totals | None, Says("tokens computed in one engine step, prompt and response")] = None
    inter_token_seconds: Annotated[Totals | None, Says("seconds between two tokens of a sample")] = None

    weight_syncs: Annotated[float | None, AMOUNT_OR_NONE.saying("weight syncs finished; of the whole page")] = None
    weight_sync_seconds: Annotated[
        float | None, SECONDS_OR_NONE.saying("seconds spent in weight syncs; of the whole page")
    ] = None

    last_weight_sync_seconds: Annotated[
        float | None, SECONDS_OR_NONE.saying("seconds that the last weight sync took; of the whole page")
    ] = None

    at_finish: Annotated[bool, Says("whether tokens are counted only when their sample finishes")] = False
    gpus: Annotated[int | None, Says("GPUs of the engine")] = None
    block_size: Annotated[int | None, Says("tokens in one block of the KV cache")] = None
    kv_cache_tokens: Annotated[int | None, Says("tokens that the KV cache holds")] = None
    prefix_caching: Annotated[bool | None, Says("whether the prefix cache is on")] = None
    started_at: Annotated[float | None, SECONDS_OR_NONE.saying("start of the engine, seconds since 1970")] = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """
    Samples that finished together.

    Args:
        seconds: When, on the clock of the run. [s]
        samples: How many. [1]
        tokens: Their response tokens in all. [token]
        sent: When they were sent; None where nobody says. [s]
        first: When their first token came; likewise. [s]
        last: Whether no further turn of theirs follows.
    """

    seconds: float
    samples: int
    tokens: int
    sent: float | None = None
    first: float | None = None
    last: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRun:
    """
    What one instance did in one phase.

    Args:
        instance: What it is called.
        concurrency: Samples kept in flight; of a finite batch, all of them. [1]
        begun: When the first request was sent, on the clock of the run. [s]
        full: When all that it began with had been read, on all instances; None before that, and of a finite batch. [s]
        ended: When the phase ended; None where it broke off. [s]
        asked: Response tokens asked for. [token]
        snapshots: Counters, the first from before the phase; an engine without a page has those of the client.
        finished: Samples that finished.
        running: When the samples that still ran at its end had been sent, and how many at that moment.
        refused: Requests that the server turned away as busy. [1]
        broken: Requests whose connection broke. [1]
        own_counters: Whether the snapshots are the engine's own.
    """

    instance: str
    concurrency: int
    begun: float
    full: float | None = None
    ended: float | None = None
    asked: int = 0
    snapshots: tuple[Snapshot, ...] = ()
    finished: tuple[Finished, ...] = field(default=())
    running: tuple[tuple[float, int], ...] = ()
    refused: int = 0
    broken: int = 0
    own_counters: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutWork:
    """
    The workload of a rollout.

    Args:
        prompt_tokens: Length of each prompt, which its samples share; the mean where they are played. [token]
        group_size: Samples of one prompt. [1]
        response_tokens: Response lengths, one for each prompt of the batch. [token]
        block_tokens: Tokens of one KV block. [token]
        played: Whether prompts are those of a file, each as long as it is.
    """

    prompt_tokens: int
    group_size: int
    response_tokens: tuple[int, ...]
    block_tokens: int = 16
    played: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthCounts:
    """
    Response lengths of the samples that finished in a window.

    Args:
        tokens: Their tokens, added up. [token]
        samples: How many finished. [1]
        buckets: How many were no longer than each bound.
        capped: How many ended because they reached their cap; None where the engine does not count them. [1]
        asked: The cap that the samples were given, on average; None where the engine does not say. [token]
        aborted: How many were broken off; None where the engine does not say. [1]
    """

    tokens: float
    samples: float
    buckets: Buckets
    capped: float | None = None
    asked: float | None = None
    aborted: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFit:
    """
    A lognormal distribution with a cap, as scenarios have it.

    Args:
        samples: Samples that it was fitted to. [1]
        mean: Mean length, the cap included. [token]
        cv: Coefficient of variation without the cap. [1]
        cv_error: Its standard error. [1]
        cap: The cap; None where no sample seems to have reached one. [token]
        cap_from: Where the cap comes from.
        quantiles: The lengths that half, nine in ten and 99 in a hundred samples stay within. [token]
        misfit: The largest difference between the shares that it has and those that were seen, at any bound. [1]
        why: Why there is no cv; empty where there is one.
    """

    samples: float
    mean: float
    cv: float | None = None
    cv_error: float | None = None
    cap: float | None = None
    cap_from: str = ""
    quantiles: tuple[float, float, float] | None = None
    misfit: float | None = None
    why: str = ""
