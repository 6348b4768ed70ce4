"""Published measurements: what each class of record says, and how they were listed."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import WeightTypes
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

Placement = Literal["colocated", "disaggregated"]
Loop = Literal["synchronous", "one-step-off", "async"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    One published measurement.

    Args:
        id: Its name.
        source_id: The publication; records of one are not independent of each other.
        trust: high, medium or low.
        model: Name of the model profile.
        gpu: Name of the GPU profile; empty where the record names none.
        gpus: GPUs that were measured together. [1]
        stack: Engine or framework, lower case, without its version.
        version: Its version; empty where unknown.
        measured: What was measured, under the record's own field names and in its own units.
        assumed: What the record does not say and the reader filled in, in words, for the report.
    """

    id: str
    source_id: str
    trust: str
    model: str
    gpu: str
    gpus: int
    stack: str
    version: str = ""
    measured: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRecord:
    """
    A record that could be read.

    Args:
        place: Where it stood among all rows of all files, from 0. [1]
        class_name: Its class, such as rollout.
        record: What it says.
    """

    place: int
    class_name: str
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRecord:
    """
    A row that is not graded.

    Args:
        place: Where it stood among all rows of all files, from 0. [1]
        id: Its name; file and position where it has none.
        class_name: Its class; empty where no class knows such fields.
        reason: Why, in a line.
    """

    place: int
    id: str
    class_name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """
    What files of records hold.

    Args:
        records: Those that could be read, in the order of the files.
        refused: Those that could not.
        repeated: Names that more than one record of a class bears, though the records differ.
        copies: Rows that say exactly what one before them said; they are left out. [1]
    """

    records: tuple[ListedRecord, ...] = ()
    refused: tuple[RefusedRecord, ...] = ()
    repeated: tuple[str, ...] = ()
    copies: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRecord(Record):
    """
    One measured rate of one replica.

    Args:
        layout: How the replica is spread.
        laid_out: Whether the record says so; where it does not, the GPUs are dealt out to replicas that have room.
        weights: Number types of its weights.
        kv_dtype: Number type of its cache.
        prompt_tokens: Prompt length. [token]
        response_tokens: Response length. [token]
        concurrency: Requests in the system, for a closed loop; None for an offline run. [1]
        requests: Requests of an offline run; None where unknown. [1]
        served: Whether requests came through a server.
        experts: Whether the model is a mixture of experts, whose rates scatter more.
        unseen: Whether no record of its kind stands behind the constants; None where the shipped ones are asked.
    """

    layout: Layout = field(default_factory=Layout)
    laid_out: bool = True
    weights: WeightTypes = field(default_factory=WeightTypes)
    kv_dtype: str = "bf16"
    prompt_tokens: float
    response_tokens: float
    concurrency: float | None = None
    requests: float | None = None
    served: bool = False
    experts: bool = False
    unseen: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord(Record):
    """
    One reading.

    Args:
        kind: engine (start-up of an inference engine) or training (peak of a pass).
        layout: How the model is spread.
        weights: Number types of an engine's weights; as published where None.
        kv_dtype: Number type of its cache.
        memory_fraction: Share of the memory that it plans with; its default where 0. [1]
        batched_tokens: Most tokens of its step; its default where 0. [token]
        max_sequences: Most sequences of its step; its default where 0. [1]
        sequence_tokens: Longest sequence that it is started for; the model's where 0. [token]
        graphs_counted: Whether it takes CUDA graphs off before it sizes the cache.
        windows_whole: Whether its sliding layers keep every token.
        sequences: Sequences of a training pass on a data-parallel rank. [1]
        trained_tokens: Tokens of such a sequence. [token]
        recompute: none, selective or full.
        widths: Bytes per parameter of weights, gradients, optimizer state, and of gathered weights. [B/param]
        traits: What else a training pass does: compiled, chunked_loss, activations_offloaded, state_offloaded,
            gradients_held, gathered_whole.
    """

    kind: Literal["engine", "training"] = "engine"
    layout: Layout = field(default_factory=Layout)
    weights: WeightTypes | None = None
    kv_dtype: str = "bf16"
    memory_fraction: float = 0.0
    batched_tokens: float = 0.0
    max_sequences: float = 0.0
    sequence_tokens: float = 0.0
    graphs_counted: bool = False
    windows_whole: bool = False
    sequences: float = 1.0
    trained_tokens: float = 0.0
    recompute: Literal["none", "selective", "full"] = "full"
    widths: tuple[float, float, float, float] = (2.0, 2.0, 12.0, 2.0)
    traits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord(Record):
    """
    One measured loop.

    Args:
        placement: Whether both sides share their GPUs.
        loop: Whether they take turns, overlap one step, or overlap with refill.
        rollout_gpus: GPUs that generate. [1]
        trainer_gpus: GPUs that train. [1]
        rollout: Layout of one engine.
        trainer: Layout of one model replica of the trainer.
        samples: Samples of a step. [1]
        group_size: Samples of one prompt. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        max_tokens: Longest sequence, prompt and response. [token]
        train_batch: Samples of one optimizer update; None where it is the whole step. [1]
        trained_samples: Samples that are trained on; None for all that are generated. [1]
        max_staleness: Staleness cap, in steps. [1]
        rollout_dtype: Number type of generation.
        train_dtype: Number type of training.
        memory_fraction: Share of the memory that engines use; None where unsaid. [1]
        passes: Extra forward passes of the trainer.
        reference: Profile of the reference model; empty where it is as large as the policy.
        recompute: What backward computes again.
        offload: What of the trainer lives on the host while engines generate: optimizer states, weights too.
        micro_batch_tokens: Tokens of a micro-batch of a replica; None where nobody says. [token]
        forward_micro_batch_tokens: The same of passes without backward. [token]
        lora: Whether adapters alone are trained.
        megatron: Whether the trainer shards optimizer states only (Megatron), in place of everything (FSDP).
        engine: The engine.
        graphs: Whether decode steps are CUDA graphs.
        synced: Whether engines keep weights of their own: not where the trainer's modules generate.
        unsure: Standard deviation of the step's logarithm that what was assumed brings. [1]
        sized: Whether its samples and their length are stated.
    """

    placement: Placement
    loop: Loop
    rollout_gpus: int
    trainer_gpus: int
    rollout: Layout = field(default_factory=Layout)
    trainer: Layout = field(default_factory=Layout)
    samples: float
    group_size: float
    prompt_tokens: float
    response_tokens: float
    max_tokens: float | None = None
    train_batch: float | None = None
    trained_samples: float | None = None
    max_staleness: float = 0.0
    rollout_dtype: str = "bf16"
    train_dtype: str = "bf16"
    memory_fraction: float | None = None
    passes: tuple[str, ...] = ()
    reference: str = ""
    recompute: str = "full"
    offload: tuple[str, ...] = ()
    micro_batch_tokens: float | None = None
    forward_micro_batch_tokens: float | None = None
    lora: bool = False
    megatron: bool = True
    engine: str = "vllm"
    graphs: bool = True
    synced: bool = True
    unsure: float = 0.0
    sized: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRecord(Record):
    """
    One weight update.

    Args:
        transport: Class of its transport.
        method: What the publication calls it.
        dtype: Number type on the wire.
        trainer_gpus: GPUs that hold the trainer's shards. [1]
        rollout_gpus: GPUs of the fleet. [1]
        instance_gpus: GPUs of one rollout instance. [1]
        bucket_bytes: Bytes sent at once. [B]
        converted: Whether weights are quantised on the way; None where the transport and the type decide.
        sharding: How the publication says that the trainer spreads its weights.
    """

    transport: str
    method: str = ""
    dtype: str = "bf16"
    trainer_gpus: int = 8
    rollout_gpus: int = 8
    instance_gpus: int = 1
    bucket_bytes: float = 1e9
    converted: bool | None = None
    sharding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRecord(Record):
    """
    One measured training setup.

    Args:
        layout: Degrees of parallelism of a model replica; its data ranks are what the GPUs leave.
        shards: Ranks over which weights or states are sharded; 0: all data and context ranks. [1]
        sharding: full (ZeRO-3, FSDP), gradients (ZeRO-2), optimizer (ZeRO-1) or none.
        virtual_stages: Chunks of layers of each pipeline stage. [1]
        dtype: Number type of linear layers.
        scaling: What has a scale of its own in fp8: tensor, block or row.
        recompute: none, selective, alternate or full.
        sequences: Sequences of the step. [1]
        tokens: Tokens of a sequence. [token]
        micro_batch_tokens: Tokens of a micro-batch of one replica. [token]
        fused: Whether element-wise work is compiled or fused.
        overlapped: Whether tensor-parallel transfers overlap with matrix products.
        native_attention: Whether attention kernels are made for this generation of GPU.
        early_attention: Whether they are older than FlashAttention-2.
        dropping: Whether experts drop tokens beyond a capacity.
        offload: Whether optimizer states live on the host.
        lora_rank: Rank of adapters that alone are trained; 0 for full training. [1]
        activation_offload: Whether what the layers keep goes to the host.
        workload: pretraining or rl.
    """

    layout: Layout = field(default_factory=Layout)
    shards: int = 0
    sharding: Literal["full", "gradients", "optimizer", "none"] = "full"
    virtual_stages: int = 1
    dtype: str = "bf16"
    scaling: str = "tensor"
    recompute: str = "full"
    sequences: float
    tokens: float
    micro_batch_tokens: float
    fused: bool = False
    overlapped: bool = False
    native_attention: bool = False
    early_attention: bool = False
    dropping: bool = False
    offload: bool = False
    activation_offload: bool = False
    lora_rank: int = 0
    workload: Literal["pretraining", "rl"] = "pretraining"
