"""What `measure` found on real GPUs: rollout over concurrency, train step by phase, weight sync by method."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal, TypeAlias

from rlsize.facts.fields import Quantity, Says
from rlsize.frozen import dataclass

Stage: TypeAlias = Literal["rollout", "train", "sync"]
STAGES: tuple[Stage, ...] = ("rollout", "train", "sync")
"""What can be measured, in the order in which it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """How a number scattered over equal parts of its window, or over repeats; in the unit of that number."""

    parts: Annotated[int, Quantity("count", "parts or repeats", whole=True)]
    cv: Annotated[float, Quantity("1", "coefficient of variation over the parts", least=0)]
    p10: Annotated[float, Says("tenth percentile over the parts")]
    p50: Annotated[float, Says("median over the parts")]
    p90: Annotated[float, Says("ninetieth percentile over the parts")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """How long half, nine in ten and 99 in a hundred waited at most; null where the look was too short to tell."""

    p50_seconds: Annotated[float | None, Quantity("s", "half waited no longer", least=0)] = None
    p90_seconds: Annotated[float | None, Quantity("s", "nine in ten waited no longer", least=0)] = None
    p99_seconds: Annotated[float | None, Quantity("s", "99 in a hundred waited no longer", least=0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """What samples waited for that were sent and ended while the load was the same."""

    samples: Annotated[int, Quantity("count", "samples that ended", whole=True)]
    first_token: Annotated[Percentiles, Says("from sending a sample to its first token")]
    token: Annotated[Percentiles, Says("between two tokens of a sample, on average over the sample")]
    sample: Annotated[Percentiles, Says("from sending a sample to its last token; those that still ran count")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutLevel:
    """One instance at one concurrency, in its steady state: filling and draining are outside the window."""

    concurrency: Annotated[int, Quantity("count", "samples kept in flight", whole=True)]
    tokens_per_second: Annotated[float, Quantity("token/s", "response tokens per second, mean of the window", least=0)]
    scatter: Annotated[Scatter | None, Says("over equal parts of the window")] = None
    window_seconds: Annotated[float, Quantity("s", "length of the window")]
    instances: Annotated[int, Quantity("count", "instances averaged", whole=True)] = 1
    spread_tokens_per_second: Annotated[
        float | None, Quantity("token/s", "standard deviation over the instances; null for a single one", least=0)
    ] = None
    mean_batch: Annotated[float | None, Quantity("count", "samples in the mean engine step", least=0)] = None
    seconds_per_step: Annotated[float | None, Quantity("s", "mean engine step")] = None
    live_kv_tokens: Annotated[float | None, Quantity("token", "tokens in the KV cache, mean", least=0)] = None
    prefix_cache_hit_fraction: Annotated[
        float | None, Quantity("1", "prompt tokens found in the prefix cache", least=0, most=1)
    ] = None
    preemptions: Annotated[int, Quantity("count", "samples thrown out of the batch", least=0, whole=True)] = 0
    finished_samples: Annotated[int, Quantity("count", "samples that finished in the window", least=0, whole=True)] = 0
    latency: Annotated[Latency | None, Says("how long samples waited; null where none was sent and ended")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeFit:
    """
    Seconds of one engine step: t0 + t1 (samples in the batch) + t2 (live KV tokens) + t3 (prompt tokens computed).

    A coefficient that the measurement could not tell from zero is zero.
    """

    t0_seconds: Annotated[float, Quantity("s", "fixed time of a step", least=0)]
    t1_seconds: Annotated[float, Quantity("s", "per sample in the batch", least=0)]
    t2_seconds: Annotated[float, Quantity("s", "per token in the KV cache", least=0)] = 0.0
    t3_seconds: Annotated[float, Quantity("s", "per prompt token computed in the step", least=0)] = 0.0
    residual_fraction: Annotated[
        float, Quantity("1", "root mean square of (measured - fitted) / measured over the intervals", least=0)
    ]
    intervals: Annotated[int, Quantity("count", "intervals fitted", whole=True)]
    smallest_batch: Annotated[float, Quantity("count", "smallest mean batch fitted", least=0)]
    largest_batch: Annotated[float, Quantity("count", "largest mean batch fitted", least=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteBatch:
    """A batch that all starts at once and is waited for to the last sample, as under a barrier."""

    prompts: Annotated[int, Quantity("count", "groups in the batch", whole=True)]
    samples: Annotated[int, Quantity("count", "samples in the batch", whole=True)]
    response_tokens: Annotated[float, Quantity("token", "response tokens generated")]
    longest_response_tokens: Annotated[float, Quantity("token", "the longest response")]
    seconds: Annotated[float, Quantity("s", "until the last sample has finished")]
    seconds_to_50_percent: Annotated[float, Quantity("s", "until half of the samples have finished")]
    seconds_to_90_percent: Annotated[float, Quantity("s", "until 90 % of the samples have finished")]
    seconds_to_99_percent: Annotated[float, Quantity("s", "until 99 % of the samples have finished")]
    step_fraction: Annotated[
        float, Quantity("1", "share of an optimizer step's samples that the batch holds", most=1)
    ] = 1.0
    instances: Annotated[int, Quantity("count", "instances that worked on it", whole=True)] = 1
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
    at_concurrency: Annotated[int, Quantity("count", "the concurrency whose rate is the instance rate", whole=True)]
    knee_concurrency: Annotated[
        int | None, Quantity("count", "the smallest concurrency within 5 % of the best rate", whole=True)
    ] = None
    largest_concurrency: Annotated[
        int | None, Quantity("count", "the most that the engine can run of this workload", whole=True)
    ] = None
    limited_by: Annotated[str, Says("what sets that limit: max_num_seqs or the KV cache")] = ""
    gpu_tokens_per_second: Annotated[float | None, Quantity("token/s", "instance rate over its GPUs", least=0)] = None
    kv_cache_tokens: Annotated[int | None, Quantity("token", "tokens that the KV cache holds", whole=True)] = None
    step_time: Annotated[StepTimeFit | None, Says("the engine step fitted over all intervals")] = None
    finite_batch: Annotated[FiniteBatch | None, Says("a batch waited for to its last sample")] = None
    prefix_cache_hit_fraction: Annotated[
        float | None, Quantity("1", "prompt tokens found in the prefix cache, in the finite batch", least=0, most=1)
    ] = None
    expected_prefix_cache_hit_fraction: Annotated[
        float | None, Quantity("1", "what groups of that size should find on one instance", least=0, most=1)
    ] = None
    preemptions: Annotated[int, Quantity("count", "samples thrown out of the batch, in all", least=0, whole=True)] = 0
    crosschecks: Annotated[list[Crosscheck], Says("counts of the client beside those of the engine")] = field(
        default_factory=list
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPhase:
    """One phase of the optimizer step."""

    name: Annotated[str, Says("logprob, forward, backward or optimizer")]
    seconds: Annotated[float, Quantity("s", "in one optimizer step of the workload", least=0)]
    seconds_each: Annotated[float, Quantity("s", "per micro-batch, or per optimizer step for the optimizer", least=0)]
    scatter: Annotated[Scatter | None, Says("of the seconds each, over the timed repeats")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainMeasured:
    """What the trainer does with one optimizer step of the workload."""

    gpus: Annotated[int, Quantity("count", "GPUs, or processes on a CPU", whole=True)]
    params: Annotated[float, Quantity("param", "parameters trained")]
    step_samples: Annotated[int, Quantity("count", "samples of one optimizer step", whole=True)]
    step_response_tokens: Annotated[float, Quantity("token", "response tokens of one optimizer step")]
    step_total_tokens: Annotated[float, Quantity("token", "prompt and response tokens of one optimizer step")]
    micro_batch_tokens: Annotated[int, Quantity("token", "most tokens packed into a micro-batch of a GPU", whole=True)]
    micro_batches: Annotated[int, Quantity("count", "micro-batches of a GPU in an optimizer step", whole=True)]
    micro_batches_timed: Annotated[
        int, Quantity("count", "of which were run in each timed step; the rest is scaled by tokens", whole=True)
    ]
    steps_timed: Annotated[int, Quantity("count", "optimizer steps timed, after warm-up", whole=True)]
    train_seconds: Annotated[float, Quantity("s", "busy seconds of one optimizer step, all phases")]
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
    mfu: Annotated[float | None, Quantity("1", "of the update, without attention FLOPs; null off GPUs", least=0)] = None
    mfu_with_attention: Annotated[
        float | None, Quantity("1", "of the update, with attention FLOPs; null off GPUs", least=0)
    ] = None
    peak_memory_bytes: Annotated[float | None, Quantity("B", "largest allocation of a GPU; of a process on a CPU")] = (
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
    bucket_bytes: Annotated[float | None, Quantity("B", "size of a bucket; null per tensor")] = None
    messages: Annotated[int, Quantity("count", "broadcasts", whole=True)]
    seconds: Annotated[float, Quantity("s", "median of the repeats, gather, packing and unpacking included")]
    gather_seconds: Annotated[float, Quantity("s", "of which trainer ranks gathered their shards, median", least=0)] = (
        0.0
    )
    scatter: Annotated[Scatter | None, Says("of the seconds, over the repeats")] = None
    bytes_per_second: Annotated[float, Quantity("B/s", "bytes over seconds")]
    identical: Annotated[bool, Says("whether every receiver ended with the sender's bytes")]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUpdate:
    """New weights loaded by a running engine through its own interface."""

    interface: Annotated[str, Says("the calls that were made")]
    seconds: Annotated[float, Quantity("s", "median time of the update itself")]
    pause_seconds: Annotated[float, Quantity("s", "median time in which the engine made no token")]
    scatter: Annotated[Scatter | None, Says("of the pauses, over the repeats")] = None
    bytes_per_second: Annotated[float, Quantity("B/s", "bytes over the update's seconds")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncMeasured:
    """How long the weights take from trainer to receivers."""

    bytes: Annotated[float, Quantity("B", "bytes of all tensors")]
    tensors: Annotated[int, Quantity("count", "tensors", whole=True)]
    dtype: Annotated[str, Says("width on the wire")]
    backend: Annotated[str, Says("nccl or gloo")]
    trainer_ranks: Annotated[int, Quantity("count", "ranks that hold shards", whole=True)]
    receiver_ranks: Annotated[int, Quantity("count", "ranks that receive all weights", whole=True)]
    methods: Annotated[list[SyncMethod], Says("per tensor, and in buckets of each size")]
    per_message_seconds: Annotated[
        float | None, Quantity("s", "fixed cost of one broadcast, fitted over the tensors", least=0)
    ] = None
    wire_bytes_per_second: Annotated[
        float | None, Quantity("B/s", "what is left when that cost is taken out, fitted likewise")
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
    cpu_cores: Annotated[int | None, Quantity("count", "cores that the process may use", whole=True)] = None
    libraries: Annotated[dict[str, str], Says("versions of what did the work")] = field(default_factory=dict)
    command: Annotated[str, Says("the command, to run it again")] = ""
