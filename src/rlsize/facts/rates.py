"""What was measured about one rollout instance and about the trainer, and what those rates already contain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.headroom import HeadroomPart  # noqa: TC001 (pydantic resolves the annotations at run time)
from rlsize.facts.kinds import (
    AMOUNT_OR_NONE,
    COUNT,
    RATIO,
    SECONDS,
    SECONDS_OR_NONE,
    SHARE,
    TOKEN_RATE_OR_NONE,
    TOKENS,
    WHOLE_TOKENS,
)
from rlsize.facts.measured import (  # noqa: TC001 (pydantic resolves the annotations at run time)
    Machine,
    RolloutMeasured,
    SyncMeasured,
    TrainMeasured,
)

Counts: TypeAlias = Literal["response", "total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRate:
    """Response tokens per second of one rollout instance."""

    mean: Annotated[float, Quantity("token/s", "mean over the instances, by wall clock", least=1e-6)]
    spread: Annotated[
        float | None, TOKEN_RATE_OR_NONE.saying("standard deviation over the instances; null for a single one")
    ] = None
    instances: Annotated[int, Quantity("count", "instances averaged", least=1, whole=True)] = 1
    standard_error: Annotated[
        float | None, TOKEN_RATE_OR_NONE.saying("how far the mean of a single instance may lie from its long-run rate")
    ] = None
    lower_bound: Annotated[bool, Says("true where the instances were not asked for all that they can do")] = False
    saturated_fraction: Annotated[
        float | None,
        SHARE.saying("share of the window in which the least saturated instance had work waiting; null if unknown"),
    ] = None
    why: Annotated[str, Says("how that was judged")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredInstance:
    """One instance of the measurement."""

    instance: Annotated[str, Says("host and port, or file; with the data-parallel rank where there are several")]
    tokens_per_second: Annotated[float, TOKEN_RATE_OR_NONE.saying("response tokens per second by wall clock")]
    busy_tokens_per_second: Annotated[float | None, TOKEN_RATE_OR_NONE.saying("the same while it was busy")] = None
    saturated_fraction: Annotated[float | None, SHARE.saying("share of the window with work waiting")] = None
    lower_bound: Annotated[bool, Says("true where it was not asked for all that it can do")] = False
    straggler: Annotated[bool, Says("true where it is far slower than its neighbours")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RateConditions:
    """What the rate was measured with; it holds for nothing else."""

    model: Annotated[str | None, Says("model name as the engine served it")] = None
    mean_response_tokens: Annotated[float | None, TOKENS.saying("mean response length")] = None
    mean_prompt_tokens: Annotated[float | None, TOKENS.saying("mean prompt length")] = None
    group_size: Annotated[
        float | None, Quantity("count", "samples of one prompt; null if the engine does not see it", least=1)
    ] = None
    prefix_cache_hit_fraction: Annotated[float | None, SHARE.saying("prompt tokens found in the prefix cache")] = None
    preemptions_per_second: Annotated[float | None, RATIO.saying("per instance")] = None
    weight_syncs: Annotated[float | None, AMOUNT_OR_NONE.saying("weight syncs seen in the window")] = None
    weight_sync_seconds: Annotated[float | None, SECONDS_OR_NONE.saying("seconds that they took")] = None
    kv_cache_tokens: Annotated[int | None, WHOLE_TOKENS.saying("tokens that one instance's KV cache holds")] = None
    response_cv: Annotated[
        float | None, RATIO.saying("coefficient of variation of response lengths, without the cap")
    ] = None
    max_response_tokens: Annotated[float | None, TOKENS.saying("cap on the response length")] = None
    temperature: Annotated[float | None, RATIO.saying("sampling temperature")] = None
    dtype: Annotated[str | None, Says("width of the engine's weights")] = None
    kv_dtype: Annotated[str | None, Says("width of the KV cache")] = None
    tensor_parallel: Annotated[int | None, COUNT.saying("GPUs that share each layer")] = None
    dummy_weights: Annotated[bool | None, Says("true where weights were random: speed does not need real ones")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSource:
    """Who measured, and which numbers were read."""

    method: Annotated[str, Says("the command that measured")]
    engine: Annotated[str | None, Says("the engine whose counters were read")] = None
    keys: Annotated[dict[str, str], Says("the metric behind each quantity")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """A rates file: measured rates, the conditions they hold for, and what they already contain."""

    measured_at: Annotated[str, Says("when, as an ISO 8601 date and time")]
    source: Annotated[RateSource, Says("who measured, and which numbers were read")]
    instance_tokens_per_second: Annotated[
        InstanceRate | None, Says("response tokens per second of one rollout instance")
    ] = None
    counts: Annotated[Counts, Says("the tokens that the rate counts: response, or total (prompt and response)")] = (
        "response"
    )
    prompt_share: Annotated[float | None, SHARE.saying("share of prompt tokens in a total; needed to convert it")] = (
        None
    )
    includes: Annotated[list[HeadroomPart], Says("the parts of headroom that the rate already holds")] = field(
        default_factory=list
    )
    gpus_per_instance: Annotated[
        float | None, Quantity("count", "GPUs of one instance; null if unknown", least=1e-6)
    ] = None
    window_seconds: Annotated[float | None, SECONDS.saying("how long was measured")] = None
    train_seconds: Annotated[float | None, Quantity("s", "busy trainer seconds per optimizer step", least=1e-6)] = None
    consumption_tokens_per_second: Annotated[
        float | None, Quantity("token/s", "response tokens that the trainer consumes while it trains", least=1e-6)
    ] = None
    conditions: Annotated[RateConditions, Says("what the rate was measured with")] = field(
        default_factory=RateConditions
    )
    instances: Annotated[list[MeasuredInstance], Says("the instances one by one")] = field(default_factory=list)
    trainer_gpus: Annotated[int | None, COUNT.saying("GPUs of the trainer that was measured")] = None
    rollout: Annotated[RolloutMeasured | None, Says("a rollout instance by concurrency")] = None
    train: Annotated[TrainMeasured | None, Says("a train step by phase")] = None
    sync: Annotated[SyncMeasured | None, Says("a weight sync by method")] = None
    machine: Annotated[Machine | None, Says("on what, with what and by which command")] = None
    doubts: Annotated[list[str], Says("what the reader must know before trusting these rates")] = field(
        default_factory=list
    )
    partial: Annotated[str, Says("why not all was measured; empty where it was")] = ""
