"""What `measure` found on real GPUs: rollout over concurrency, train step by phase, weight sync by method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.kinds import (
    AMOUNT_OR_NONE,
    BANDWIDTH,
    BYTES,
    COUNT,
    COUNT_OR_NONE,
    PARAMS,
    PART,
    RATIO,
    SECONDS,
    SECONDS_OR_NONE,
    SHARE,
    TOKEN_RATE_OR_NONE,
    TOKENS,
    TOKENS_OR_NONE,
    WHOLE_TOKENS,
)

Stage: TypeAlias = Literal["rollout", "train", "sync"]
STAGES: tuple[Stage, ...] = ("rollout", "train", "sync")
"""What can be measured, in the order in which it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """How a number scattered over equal parts of its window, or over repeats; in the unit of that number."""

    parts: Annotated[int, COUNT.saying("parts or repeats")]
    cv: Annotated[float, RATIO.saying("coefficient of variation over the parts")]
    p10: Annotated[float, Says("tenth percentile over the parts")]
    p50: Annotated[float, Says("median over the parts")]
    p90: Annotated[float, Says("ninetieth percentile over the parts")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """How long half, nine in ten and 99 in a hundred waited at most; null where the look was too short to tell."""

    p50_seconds: Annotated[float | None, SECONDS_OR_NONE.saying("half waited no longer")] = None
    p90_seconds: Annotated[float | None, SECONDS_OR_NONE.saying("nine in ten waited no longer")] = None
    p99_seconds: Annotated[float | None, SECONDS_OR_NONE.saying("99 in a hundred waited no longer")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """What samples waited for that were sent and ended while the load was the same."""

    samples: Annotated[int, COUNT.saying("samples that ended")]
    first_token: Annotated[Percentiles, Says("from sending a sample to its first token")]
    token: Annotated[Percentiles, Says("between two tokens of a sample, on average over the sample")]
    sample: Annotated[Percentiles, Says("from sending a sample to its last token; those that still ran count")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutLevel:
    """One instance at one concurrency, in its steady state: filling and draining are outside the window."""

    concurrency: Annotated[int, COUNT.saying("samples kept in flight")]
    tokens_per_second: Annotated[float, TOKEN_RATE_OR_NONE.saying("response tokens per second, mean of the window")]
    scatter: Annotated[Scatter | None, Says("over equal parts of the window")] = None
    window_seconds: Annotated[float, SECONDS.saying("length of the window")]
    instances: Annotated[int, COUNT.saying("instances averaged")] = 1
    spread_tokens_per_second: Annotated[
        float | None, TOKEN_RATE_OR_NONE.saying("standard deviation over the instances; null for a single one")
    ] = None
    mean_batch: Annotated[float | None, AMOUNT_OR_NONE.saying("samples in the mean engine step")] = None
    seconds_per_step: Annotated[float | None, SECONDS.saying("mean engine step")] = None
    live_kv_tokens: Annotated[float | None, TOKENS_OR_NONE.saying("tokens in the KV cache, mean")] = None
    prefix_cache_hit_fraction: Annotated[float | None, SHARE.saying("prompt tokens found in the prefix cache")] = None
    preemptions: Annotated[int, COUNT_OR_NONE.saying("samples thrown out of the batch")] = 0
    finished_samples: Annotated[int, COUNT_OR_NONE.saying("samples that finished in the window")] = 0
    latency: Annotated[Latency | None, Says("how long samples waited; null where none was sent and ended")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeFit:
    """
    Seconds of one engine step: t0 + t1 (samples in the batch) + t2 (live KV tokens) + t3 (prompt tokens computed).

    A coefficient that the measurement could not tell from zero is zero.
    """

    t0_seconds: Annotated[float, SECONDS_OR_NONE.saying("fixed time of a step")]
    t1_seconds: Annotated[float, SECONDS_OR_NONE.saying("per sample in the batch")]
    t2_seconds: Annotated[float, SECONDS_OR_NONE.saying("per token in the KV cache")] = 0.0
    t3_seconds: Annotated[float, SECONDS_OR_NONE.saying("per prompt token computed in the step")] = 0.0
    residual_fraction: Annotated[
        float, RATIO.saying("root mean square of (measured - fitted) / measured over the intervals")
    ]
    intervals: Annotated[int, COUNT.saying("intervals fitted")]
    smallest_batch: Annotated[float, AMOUNT_OR_NONE.saying("smallest mean batch fitted")]
    largest_batch: Annotated[float, AMOUNT_OR_NONE.saying("largest mean batch fitted")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteBatch:
    """A batch that all starts at once and is waited for to the last sample, as under a barrier."""

    prompts: Annotated[int, COUNT.saying("groups in the batch")]
    samples: Annotated[int, COUNT.saying("samples in the batch")]
    response_tokens: Annotated[float, TOKENS.saying("response tokens generated")]
    longest_response_tokens: Annotated[float, TOKENS.saying("the longest response")]
    seconds: Annotated[float, SECONDS.saying("until the last sample has finished")]
    seconds_to_50_percent: Annotated[float, SECONDS.saying("until half of the samples have finished")]
    seconds_to_90_percent: Annotated[float, SECONDS.saying("until 90 % of the samples have finished")]
    seconds_to_99_percent: Annotated[float, SECONDS.saying("until 99 % of the samples have finished")]
    step_fraction: Annotated[float, PART.saying("share of an optimizer step's samples that the batch holds")] = 1.0
    instances: Annotated[int, COUNT.saying("instances that worked on it")] = 1
    latency: Annotated[Latency | None, Says("how long samples waited; null where nobody says")] = None

    @property
    def tokens_per_second(self) -> float:
        """Response tokens per second of one instance, filling and tail included. [token/s]"""
        return self.response_tokens / self.seconds / self.instances


@dataclass(frozen=True, slots=True, kw_only=True)
class Crosscheck:
    """One count, by the client that asked and by the engine that answered."""

    what: Annotated[str, Says("what was counted")]
    asked: Annotated[float, Says("as the client counted it")]
    counted: Annotated[float, Says("as the engine's own counters say")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutMeasured:
    """What one rollout instance does, by concurrency."""

    levels: Annotated[list[RolloutLevel], Says("the curve, in the order of concurrency")]
    at_concurrency: Annotated[int, COUNT.saying("the concurrency whose rate is the instance rate")]
    knee_concurrency: Annotated[int | None, COUNT.saying("the smallest concurrency within 5 % of the best rate")] = None
    largest_concurrency: Annotated[int | None, COUNT.saying("the most that the engine can run of this workload")] = None
    limited_by: Annotated[str, Says("what sets that limit: max_num_seqs or the KV cache")] = ""
    gpu_tokens_per_second: Annotated[float | None, TOKEN_RATE_OR_NONE.saying("instance rate over its GPUs")] = None
    kv_cache_tokens: Annotated[int | None, WHOLE_TOKENS.saying("tokens that the KV cache holds")] = None
    step_time: Annotated[StepTimeFit | None, Says("the engine step fitted over all intervals")] = None
    finite_batch: Annotated[FiniteBatch | None, Says("a batch waited for to its last sample")] = None
    prefix_cache_hit_fraction: Annotated[
        float | None, SHARE.saying("prompt tokens found in the prefix cache, in the finite batch")
    ] = None
    expected_prefix_cache_hit_fraction: Annotated[
        float | None, SHARE.saying("what groups of that size should find on one instance")
    ] = None
    preemptions: Annotated[int, COUNT_OR_NONE.saying("samples thrown out of the batch, in all")] = 0
    crosschecks: Annotated[list[Crosscheck], Says("counts of the client beside those of the engine")] = field(
        default_factory=list
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPhase:
    """One phase of the optimizer step."""

    name: Annotated[str, Says("logprob, forward, backward or optimizer")]
    seconds: Annotated[float, SECONDS_OR_NONE.saying("in one optimizer step of the workload")]
    seconds_each: Annotated[float, SECONDS_OR_NONE.saying("per micro-batch, or per optimizer step for the optimizer")]
    scatter: Annotated[Scatter | None, Says("of the seconds each, over the timed repeats")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainMeasured:
    """What the trainer does with one optimizer step of the workload."""

    gpus: Annotated[int, COUNT.saying("GPUs, or processes on a CPU")]
    params: Annotated[float, PARAMS.saying("parameters trained")]
    step_samples: Annotated[int, COUNT.saying("samples of one optimizer step")]
    step_response_tokens: Annotated[float, TOKENS.saying("response tokens of one optimizer step")]
    step_total_tokens: Annotated[float, TOKENS.saying("prompt and response tokens of one optimizer step")]
    micro_batch_tokens: Annotated[int, WHOLE_TOKENS.saying("most tokens packed into a micro-batch of a GPU")]
    micro_batches: Annotated[int, COUNT.saying("micro-batches of a GPU in an optimizer step")]
    micro_batches_timed: Annotated[
        int, COUNT.saying("of which were run in each timed step; the rest is scaled by tokens")
    ]
    steps_timed: Annotated[int, COUNT.saying("optimizer steps timed, after warm-up")]
    train_seconds: Annotated[float, SECONDS.saying("busy seconds of one optimizer step, all phases")]
    scatter: Annotated[Scatter | None, Says("of the timed steps, in seconds of a whole step")] = None
    gpu_response_tokens_per_second: Annotated[float, Quantity("token/s", "response tokens per second of a GPU")]
    gpu_total_tokens_per_second: Annotated[float, Quantity("token/s", "prompt and response tokens per second of a GPU")]
    update_total_tokens_per_second: Annotated[
        float, Quantity("token/s", "the same without log-prob passes, as trainers report it")
    ]
    phases: Annotated[list[TrainPhase], Says("where the time goes")]
    flops_per_token: Annotated[
        float | None, Says("FLOPs of forward and backward per token, without attention scores, in FLOP")
    ] = None
    attention_flops_per_token: Annotated[
        float | None, Says("FLOPs of causal attention scores per token, forward and backward, in FLOP")
    ] = None
    mfu: Annotated[float | None, RATIO.saying("of the update, without attention FLOPs; null off GPUs")] = None
    mfu_with_attention: Annotated[float | None, RATIO.saying("of the update, with attention FLOPs; null off GPUs")] = (
        None
    )
    peak_memory_bytes: Annotated[float | None, BYTES.saying("largest allocation of a GPU; of a process on a CPU")] = (
        None
    )
    losses: Annotated[list[float], Says("loss of each step, warm-up included; the batch is the same each time")] = (
        field(default_factory=list)
    )
    setting: Annotated[dict[str, str], Says("how it was trained: sharding, dtype, optimizer, recompute, attention")] = (
        field(default_factory=dict)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncMethod:
    """One way to send all weights from the trainer's ranks to the receivers."""

    method: Annotated[Literal["per-tensor", "bucketed"], Says("one broadcast per tensor, or tensors packed in buckets")]
    bucket_bytes: Annotated[float | None, BYTES.saying("size of a bucket; null per tensor")] = None
    messages: Annotated[int, COUNT.saying("broadcasts")]
    seconds: Annotated[float, SECONDS.saying("median of the repeats, gather, packing and unpacking included")]
    gather_seconds: Annotated[float, SECONDS_OR_NONE.saying("of which trainer ranks gathered their shards, median")] = (
        0.0
    )
    scatter: Annotated[Scatter | None, Says("of the seconds, over the repeats")] = None
    bytes_per_second: Annotated[float, BANDWIDTH.saying("bytes over seconds")]
    identical: Annotated[bool, Says("whether every receiver ended with the sender's bytes")]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUpdate:
    """New weights loaded by a running engine through its own interface."""

    interface: Annotated[str, Says("the calls that were made")]
    seconds: Annotated[float, SECONDS.saying("median time of the update itself")]
    pause_seconds: Annotated[float, SECONDS.saying("median time in which the engine made no token")]
    scatter: Annotated[Scatter | None, Says("of the pauses, over the repeats")] = None
    bytes_per_second: Annotated[float, BANDWIDTH.saying("bytes over the update's seconds")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncMeasured:
    """How long the weights take from trainer to receivers."""

    bytes: Annotated[float, BYTES.saying("bytes of all tensors")]
    tensors: Annotated[int, COUNT.saying("tensors")]
    dtype: Annotated[str, Says("width on the wire")]
    backend: Annotated[str, Says("nccl or gloo")]
    trainer_ranks: Annotated[int, COUNT.saying("ranks that hold shards")]
    receiver_ranks: Annotated[int, COUNT.saying("ranks that receive all weights")]
    methods: Annotated[list[SyncMethod], Says("per tensor, and in buckets of each size")]
    per_message_seconds: Annotated[
        float | None, SECONDS_OR_NONE.saying("fixed cost of one broadcast, fitted over the tensors")
    ] = None
    wire_bytes_per_second: Annotated[
        float | None, BANDWIDTH.saying("what is left when that cost is taken out, fitted likewise")
    ] = None
    engine_update: Annotated[EngineUpdate | None, Says("the reload through the engine, where it has an interface")] = (
        None
    )
    server_update: Annotated[EngineUpdate | None, Says("the same through the routes of a server")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """On what, with what and by which command it was measured."""

    gpus: Annotated[list[str], Says("names of the GPUs; empty on a CPU")] = field(default_factory=list)
    driver: Annotated[str, Says("GPU driver")] = ""
    cpu: Annotated[str, Says("name of the CPU")] = ""
    cpu_cores: Annotated[int | None, COUNT.saying("cores that the process may use")] = None
    libraries: Annotated[dict[str, str], Says("versions of what did the work")] = field(default_factory=dict)
    command: Annotated[str, Says("the command, to run it again")] = ""
