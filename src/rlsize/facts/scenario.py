"""A scenario: what is planned, in one file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from rlsize.facts.budget import Budget
from rlsize.facts.fields import Quantity, Says, Uncertain
from rlsize.facts.simulation import AgentChoice, LengthShape, PolicyChoice, StepTimeChoice, SyncWay, TroubleChoice

Algorithm = Literal["grpo", "ppo", "rloo", "reinforce++", "dapo", "sft"]
Mode = Literal["colocated", "disaggregated", "sync", "overlapped", "one-step-off", "async", "partial"]
Routing = Literal["affine", "random", "round-robin", "queue"]
OptimizerName = Literal["adamw", "adam-8bit", "adamw-bf16-states", "sgd-momentum", "muon"]
Dtype = Literal["fp32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNumbers:
    """A model by its size alone, where there is no profile."""

    params: Annotated[float, Quantity("param", "Parameters in total.")]
    active_params: Annotated[
        float | None, Quantity("param", "Parameters that work on each token; all of them when not given.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """Which GPUs, how many, and what joins them."""

    gpu: Annotated[str | None, Says("A GPU profile, such as h100-sxm.")] = None
    gpus: Annotated[int | None, Quantity("count", "GPUs of both pools.", whole=True)] = None
    gpus_per_node: Annotated[int | None, Quantity("count", "GPUs in one node.", whole=True)] = None
    interconnect: Annotated[str | None, Says("A link profile between nodes, such as infiniband-400g.")] = None
    profile: Annotated[str | None, Says("A cluster profile, in place of the fields above.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmChoice:
    """Which models the algorithm keeps, and how much it throws away."""

    name: Annotated[Algorithm | None, Says("The RL algorithm; grpo when not given.")] = None
    reference: Annotated[bool | None, Says("Whether a frozen reference model is kept for a KL term.")] = None
    critic: Annotated[bool | None, Says("Whether a critic is trained; PPO does.")] = None
    reward_model: Annotated[
        str | bool | None, Says("A reward model: its profile, true for one of the policy's size, or none.")
    ] = None
    tokens_generated_per_trained_token: Annotated[
        Uncertain | None,
        Quantity("1", "Response tokens generated for each one that is trained.", least=1.0, spread=True),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthChoice:
    """Response lengths."""

    mean: Annotated[float, Quantity("token", "Mean response length.")]
    cv: Annotated[
        float | None, Quantity("1", "Coefficient of variation: standard deviation over mean.", least=0.0, most=20.0)
    ] = None
    max: Annotated[float | None, Quantity("token", "Cap on the response length.")] = None
    distribution: Annotated[
        LengthShape | None, Says("Family of the lengths: lognormal, gamma, constant, or empirical with a file.")
    ] = None
    file: Annotated[
        str | None, Says("A file of lengths: one a line, or length and count; `simulate` draws from it.")
    ] = None
    group_correlation: Annotated[
        float | None, Quantity("1", "How alike the lengths of a group are, 0 to 1.", least=0.0, most=1.0)
    ] = None
    drift: Annotated[
        float | None, Quantity("1", "Relative growth of the mean over 1,000 optimizer steps.", least=-0.99, most=100.0)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadChoice:
    """What one optimizer step is made of."""

    prompts_per_step: Annotated[float | None, Quantity("count", "Prompts per optimizer step.")] = None
    group_size: Annotated[float | None, Quantity("count", "Samples of one prompt, G.")] = None
    prompt_tokens: Annotated[float | None, Quantity("token", "Mean prompt length.")] = None
    response_tokens: Annotated[LengthChoice | None, Says("Response lengths: mean and cv.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementChoice:
    """Where the two sides run, and how stale samples may get."""

    mode: Annotated[Mode | None, Says("How rollout and training are laid out in time.")] = None
    max_staleness: Annotated[float | None, Quantity("count", "Staleness cap in optimizer steps, k.", least=0.0)] = None
    instances: Annotated[int | None, Quantity("count", "Rollout instances.", whole=True)] = None
    rollout_gpus: Annotated[int | None, Quantity("count", "GPUs of the rollout fleet.", whole=True)] = None
    trainer_gpus: Annotated[int | None, Quantity("count", "GPUs of the trainer.", whole=True)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutChoice:
    """The rollout engines."""

    engine: Annotated[str | None, Says("The inference engine: vllm, sglang or tensorrt-llm.")] = None
    tensor_parallel: Annotated[
        int | None, Quantity("count", "GPUs that share each layer of an instance.", whole=True)
    ] = None
    pipeline_parallel: Annotated[int | None, Quantity("count", "Pipeline stages of an instance.", whole=True)] = None
    dtype: Annotated[Dtype | None, Says("Width of the rollout weights.")] = None
    kv_dtype: Annotated[Dtype | None, Says("Width of the KV cache.")] = None
    memory_fraction: Annotated[
        float | None, Quantity("1", "Share of GPU memory that the engine may use.", most=1.0)
    ] = None
    routing: Annotated[
        Routing | None, Says("Whether a group stays on one instance, is spread at random, or is dealt out in turn.")
    ] = None
    concurrency: Annotated[float | None, Quantity("count", "Samples generated at the same time on one instance.")] = (
        None
    )
    kv_cache_tokens: Annotated[float | None, Quantity("token", "Tokens that the KV cache of an instance holds.")] = None
    step_time: Annotated[StepTimeChoice, Says("Time of an engine step, for `simulate`.")] = field(
        default_factory=StepTimeChoice
    )
    block_size: Annotated[float | None, Quantity("token", "Tokens in a KV-cache block.")] = None
    temperature: Annotated[
        float | None, Quantity("1", "Sampling temperature; `measure` uses it.", least=0.0, most=10.0)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelismChoice:
    """How the trainer is spread over its GPUs."""

    fsdp: Annotated[
        int | None, Quantity("count", "Ranks that shard all training states (FSDP, ZeRO-3).", whole=True)
    ] = None
    data: Annotated[int | None, Quantity("count", "Data-parallel ranks.", whole=True)] = None
    tensor: Annotated[int | None, Quantity("count", "Tensor-parallel ranks.", whole=True)] = None
    pipeline: Annotated[int | None, Quantity("count", "Pipeline stages.", whole=True)] = None
    expert: Annotated[int | None, Quantity("count", "Expert-parallel ranks.", whole=True)] = None
    context: Annotated[int | None, Quantity("count", "Context-parallel ranks.", whole=True)] = None
    zero: Annotated[
        int | None,
        Quantity("count", "ZeRO stage over the data-parallel ranks: 0, 1, 2 or 3.", least=0.0, most=3.0, whole=True),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerChoice:
    """The trainer."""

    parallelism: Annotated[ParallelismChoice, Says("How training states are sharded.")] = field(
        default_factory=ParallelismChoice
    )
    optimizer: Annotated[OptimizerName | None, Says("The optimizer; adamw when not given.")] = None
    gradients: Annotated[Literal["bf16", "fp32"] | None, Says("Width of the gradients.")] = None
    recompute: Annotated[Literal["none", "selective", "full"] | None, Says("Activation recomputation.")] = None
    logprob_passes: Annotated[
        list[Literal["old", "reference", "proximal"]] | None,
        Says("Extra forward passes per step."),
    ] = None
    micro_batch_tokens: Annotated[
        float | None, Quantity("token", "Tokens of a micro-batch of one data-parallel rank.")
    ] = None
    lora_rank: Annotated[
        int | None, Quantity("count", "Rank of LoRA adapters; full training when not given.", whole=True)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSyncChoice:
    """How new weights reach the fleet."""

    transport: Annotated[
        str | None, Says("The method: nccl-broadcast, rdma, disk, object-store, colocated, delta, fp8.")
    ] = None
    every: Annotated[int | None, Quantity("count", "Optimizer steps between syncs, m.", whole=True)] = None
    bandwidth: Annotated[float | None, Quantity("B/s", "Slowest link on the path, one direction.")] = None
    link: Annotated[str | None, Says("A link profile, in place of the bandwidth.")] = None
    dtype: Annotated[Dtype | None, Says("Width of the weights on the wire.")] = None
    way: Annotated[
        SyncWay | None,
        Says("What running samples do meanwhile: in-flight (go on), drain (finish), abort (start anew)."),
    ] = None
    kv: Annotated[
        Literal["kept", "recomputed"] | None, Says("The KV cache of samples that go on with new weights.")
    ] = None
    swap_seconds: Annotated[
        float | None,
        Quantity("s", "Seconds that a colocated step spends changing over, both ways together.", least=0.0),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateChoice:
    """Rates that were measured: they replace what would be predicted."""

    instance_tokens_per_second: Annotated[
        Uncertain | str | None,
        Quantity(
            "token/s",
            "Response tokens per second of one instance: a number, or a rates file.",
            spread=True,
            or_file=True,
        ),
    ] = None
    consumption_tokens_per_second: Annotated[
        Uncertain | None, Quantity("token/s", "Response tokens that the trainer consumes per second.", spread=True)
    ] = None
    train_seconds: Annotated[
        Uncertain | None, Quantity("s", "Busy trainer seconds per optimizer step.", spread=True)
    ] = None
    rollout_gpu_tokens_per_second: Annotated[
        Uncertain | None, Quantity("token/s", "Response tokens per second of one rollout GPU.", spread=True)
    ] = None
    trainer_gpu_tokens_per_second: Annotated[
        Uncertain | None, Quantity("token/s", "Response tokens per second of one trainer GPU.", spread=True)
    ] = None
    sync_seconds: Annotated[Uncertain | None, Quantity("s", "Weight-sync pause per sync.", spread=True)] = None
    group_seconds: Annotated[
        Uncertain | None, Quantity("s", "Time of one group of samples on one instance.", spread=True)
    ] = None
    headroom: Annotated[
        float | None, Quantity("1", "Derating for what the instance rate does not contain.", least=0.01, most=1.0)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceChoice:
    """What GPUs cost."""

    gpu_hour: Annotated[Uncertain | None, Quantity("usd", "Price of a GPU-hour in both pools.", spread=True)] = None
    rollout_gpu_hour: Annotated[
        Uncertain | None, Quantity("usd", "Price of a rollout GPU-hour, where it differs (preemptible).", spread=True)
    ] = None
    trainer_gpu_hour: Annotated[
        Uncertain | None, Quantity("usd", "Price of a trainer GPU-hour, where it differs.", spread=True)
    ] = None
    profile: Annotated[str | None, Says("A price profile, in place of the numbers.")] = None
    as_of: Annotated[str | None, Says("Date of the price.")] = None
    region: Annotated[str | None, Says("Region of the price.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is planned: model, cluster, algorithm, workload, placement, and what has been measured."""

    model: Annotated[
        str | ModelNumbers | None, Says("A model profile, a path to a config.json, or `{params: 70B}`.")
    ] = None
    cluster: Annotated[ClusterChoice, Says("Which GPUs, how many, and what joins them.")] = field(
        default_factory=ClusterChoice
    )
    algorithm: Annotated[AlgorithmChoice, Says("The RL algorithm and the models that it keeps.")] = field(
        default_factory=AlgorithmChoice
    )
    workload: Annotated[WorkloadChoice, Says("What one optimizer step is made of.")] = field(
        default_factory=WorkloadChoice
    )
    placement: Annotated[PlacementChoice, Says("Where the two sides run.")] = field(default_factory=PlacementChoice)
    rollout: Annotated[RolloutChoice, Says("The rollout engines.")] = field(default_factory=RolloutChoice)
    trainer: Annotated[TrainerChoice, Says("The trainer.")] = field(default_factory=TrainerChoice)
    weight_sync: Annotated[WeightSyncChoice, Says("How new weights reach the fleet.")] = field(
        default_factory=WeightSyncChoice
    )
    rates: Annotated[RateChoice, Says("What has been measured.")] = field(default_factory=RateChoice)
    policies: Annotated[PolicyChoice, Says("Rules of the loop, for `simulate`.")] = field(default_factory=PolicyChoice)
    agents: Annotated[AgentChoice, Says("Tools and verifiers, for `simulate`.")] = field(default_factory=AgentChoice)
    trouble: Annotated[TroubleChoice, Says("What goes wrong, for `simulate`.")] = field(default_factory=TroubleChoice)
    prices: Annotated[PriceChoice, Says("What GPUs cost.")] = field(default_factory=PriceChoice)
    budget: Annotated[Budget, Says("Limits to keep; `check` judges them.")] = field(default_factory=Budget)
