"""
The memory bill of an RL run: trainer, critic, reference, reward model, rollout weights, KV cache.

The bill counts one copy of each training state and every rollout instance's own weights; what a sharding makes of it on
each GPU comes beside it.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from rlsize.equations import kv_cache, memory, memory_fit, train_step, training_peak
from rlsize.estimates.constants_memory import constant_figures
from rlsize.estimates.engine_memory import sequence_bytes, sequence_parts, weight_bytes
from rlsize.estimates.engine_shape import engine_shape
from rlsize.estimates.figures import apply, bare, total, with_bands
from rlsize.estimates.memory_shape import MemoryShape, memory_shape, shapeless
from rlsize.estimates.trainer_keeping import Keeping, RankStep, as_kept, micro_batch
from rlsize.estimates.trainer_layout import TrainerLayout
from rlsize.estimates.trainer_memory import (
    ModelBeside,
    TrainerLoad,
    lora_params,
    pass_tokens,
    policy_width,
    trainer_memory,
)
from rlsize.facts.algorithm import ALGORITHMS, RECOMPUTATIONS
from rlsize.facts.figure import Figure, absent
from rlsize.facts.layout import Layout as EngineLayout
from rlsize.facts.quantisation import KV_WIDTHS, WIDTHS, loaded
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.figures import Worked
    from rlsize.estimates.trainer_memory import TrainerMemory
    from rlsize.facts.algorithm import Optimizer, Recomputation, RlAlgorithm
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model

_WHOLE = EngineLayout()
_COMPARED = ("grpo", "ppo")
FROZEN = "frozen weights"
TRAINER_POOL = ("trainer", "critic", "reference", "reward")
_NO_EXPERTS = Figure(key="routed_params", value=0, provenance="default", source="taken for a dense model")
_NO_TOKENS = Figure(key="micro_batch_tokens", value=0, provenance="default", source="not said")
_WEIGHT_BYTES = Figure(key="bytes_per_param", value=2, provenance="default", source="bf16 weights")
_BF16 = Figure(key="bytes_per_gradient", value=2, provenance="default", source="bf16 gradients")
_ONE_INSTANCE = Figure(key="instances", value=1, provenance="default", source="one instance")
_ONE_UPDATE = Figure(key="mini_batches", value=1, provenance="default", source="one update of the weights")
_NO_PIPELINE = Figure(key="rollout_pipeline_parallel", value=1, provenance="default", source="no pipeline")
_CACHED = ("bytes_per_token", "window_bytes_per_token", "window_tokens", "state_bytes")
_WIDTHS = ("bytes_per_param", "bytes_per_gradient", "bytes_per_master", "bytes_per_optimizer_state")
_OF_ITS_SIZE = absent("params", "--params")
_NO_STEP = absent("samples_per_step", "--samples")
_UNEVEN = Figure(key="response_cv", value=1, provenance="default", source="lengths as uneven as an exponential's")
_ROLLOUT_DTYPE = Figure(key="rollout_dtype", value="bf16", provenance="default", source="default of --rollout-dtype")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """
    What one GPU offers.

    Args:
        name: Its profile.
        memory: Its memory as it is sold. [B/gpu]
        trainer_fraction: Share of it that the trainer may plan with. [1]
        rollout_fraction: Share of it that an engine may plan with; absent where the engine finds it out. [1]
        gpus_per_node: GPUs of a node. [1]
    """

    name: str
    memory: Figure
    trainer_fraction: Figure
    rollout_fraction: Figure
    gpus_per_node: Figure


def gpu_memory(gpu: Gpu, trainer_fraction: Figure, rollout_fraction: Figure, gpus_per_node: Figure) -> GpuMemory:
    """
    The memory of a GPU, from its profile.

    Args:
        gpu: The profile.
        trainer_fraction: Share that the trainer may plan with. [1]
        rollout_fraction: Share that an engine may plan with; absent where the engine finds it out. [1]
        gpus_per_node: GPUs of a node. [1]
    """
    fact = gpu.specification.memory
    source = f"profile {gpu.name}: memory; {gpu.sources.get(fact.source, fact.source)}"
    return GpuMemory(
        name=gpu.name,
        memory=Figure(key="gpu_memory_bytes", value=fact.value, source=source, verified=fact.verified),
        trainer_fraction=trainer_fraction,
        rollout_fraction=rollout_fraction,
        gpus_per_node=gpus_per_node,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuestion:
    """
    What is known about the models of a run and how it is spread.

    Args:
        algorithm: Which models it keeps by itself.
        beside: The models that are kept beside the policy (critic, reference, reward) and their parameters; absent ones
            where they are of its size. [param]
        params: Parameters of the policy. [param]
        optimizer: What it keeps for each parameter.
        model: The policy's profile, where known.
        kv_dtype: Number type of the rollout's cache.
        bytes_per_gradient: Width of a gradient. [B/param]
        lora_rank: Rank of the adapters; absent for full training. [1]
        rollout_dtype: Number format of the rollout weights.
        instances: Rollout instances. [instance]
        concurrency: Samples at the same time on one instance. [sample/instance]
        context_tokens: Tokens of a sample in flight; absent where prompt and response say it. [token]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        response_cv: Coefficient of variation of response lengths. [1]
        layout: How the trainer is spread; None where nobody says.
        rollout_tensor_parallel: GPUs that share each layer of an instance; absent where nobody says. [1]
        rollout_pipeline_parallel: Pipeline stages of an instance. [1]
        micro_batch_tokens: Tokens of one forward and backward pass of a data-parallel rank. [token]
        capped: Whether somebody said the cap, so that a micro-batch is known to hold the longest sequence.
        longest_tokens: The longest sequence, which a micro batch and a cache must hold whole; absent where nobody says
            how long samples are. [token]
        recompute: What activations are recomputed.
        offload: Whether master weights and optimizer states live on the host.
        engine: One rollout instance on its GPU; None where model or GPU is not named.
        keeps: How the trainer keeps what it holds.
        sequences: Sequences of a step; absent where nobody says. [1]
        mini_batches: Optimizer steps that share them. [1]
        constants: The constants of memory by name.
        shares_weights: Whether the engine reads the trainer's weights where they are.
    """

    algorithm: RlAlgorithm
    beside: Mapping[str, Figure]
    params: Figure
    optimizer: Optimizer
    model: Model | None = None
    kv_dtype: str = "bf16"
    bytes_per_gradient: Figure = _BF16
    lora_rank: Figure = absent("lora_rank", "--lora-rank")
    rollout_dtype: Figure = _ROLLOUT_DTYPE
    instances: Figure = _ONE_INSTANCE
    concurrency: Figure = absent("concurrency", "--concurrency")
    context_tokens: Figure = absent("context_tokens", "--context")
    prompt_tokens: Figure = absent("prompt_tokens", "--context")
    response_tokens: Figure = absent("response_tokens", "--context")
    response_cv: Figure = _UNEVEN
    layout: TrainerLayout | None = None
    rollout_tensor_parallel: Figure = absent("rollout_tensor_parallel", "--rollout-tensor-parallel")
    rollout_pipeline_parallel: Figure = _NO_PIPELINE
    micro_batch_tokens: Figure = absent("micro_batch_tokens", "--micro-batch-tokens")
    longest_tokens: Figure = absent("longest_tokens", "--response-tokens")
    capped: bool = True
    recompute: Recomputation = RECOMPUTATIONS["full"]
    offload: bool = False
    engine: EngineQuestion | None = None
    keeps: Keeping = field(default_factory=Keeping)
    sequences: Figure = _NO_STEP
    mini_batches: Figure = _ONE_UPDATE
    constants: Mapping[str, Figure] = field(default_factory=constant_figures)
    shares_weights: bool = False

    @property
    def shape(self) -> MemoryShape:
        """The policy as memory sees it."""
        if self.model is None:
            return shapeless(self.params)
        return memory_shape(self.model, self.params, KV_WIDTHS[self.kv_dtype])

    @property
    def context(self) -> Figure:
        """Tokens of a sample in flight: said, or the prompt and the mean live length of a response."""
        if self.context_tokens.known:
            return self.context_tokens
        return apply(
            "context_tokens",
            kv_cache.mean_live_tokens,
            prompt_tokens=self.prompt_tokens,
            response_tokens=self.response_tokens,
            response_cv=self.response_cv,
        )

    @property
    def adapter_params(self) -> Figure:
        """Trained parameters of the policy's adapters; lacking their rank for full training."""
        return lora_params(self.shape.architecture, self.lora_rank)

    @property
    def optimizer_widths(self) -> dict[str, Figure]:
        """Bytes per parameter of the optimizer's own copy of the weights and of its moments."""
        kept, source = self.optimizer, f"{self.optimizer.name}: {self.optimizer.source}"
        return {
            key: Figure(key=key, value=getattr(kept, key), provenance="default", source=source)
            for key in ("bytes_per_master", "bytes_per_optimizer_state")
        }


@dataclass(frozen=True, slots=True)
class Tenant:
    """
    One model, or cache, that memory holds.

    Args:
        name: Who: trainer, critic, reference, reward, rollout_weights, kv_cache.
        held: All its bytes. [B]
        per_gpu: Its bytes on each GPU that it is spread over; None where nothing says how. [B/gpu]
    """

    name: str
    held: Figure
    per_gpu: Figure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswer:
    """
    The bill.

    Args:
        results: All figures, with bands where inputs are uncertain.
        tenants: Who holds what.
        trainer_parts: Weights, gradients, master copy, optimizer state: name, bytes per parameter, bytes.
        overheads: What every trainer GPU holds beside the states: gathered layers, activations, logits, what the
            allocator reserves.
        alternatives: The bills of the asked algorithm and of the usual ones, by name.
    """

    results: tuple[Figure, ...]
    tenants: tuple[Tenant, ...]
    trainer_parts: tuple[tuple[str, Figure, Figure], ...]
    overheads: tuple[Figure, ...]
    alternatives: tuple[tuple[str, tuple[Tenant, ...]], ...]


def bill_memory(question: MemoryQuestion, random: Random | None = None) -> MemoryAnswer:
    """What each tenant needs, in all and on each GPU where a sharding is given."""
    return MemoryAnswer(
        results=with_bands(_results(question), random),
        tenants=tuple(bill(question)),
        trainer_parts=tuple(_trainer_parts(question)),
        overheads=tuple(_overheads(question)),
        alternatives=tuple(_alternatives(question)),
    )


def _alternatives(question: MemoryQuestion) -> Iterator[tuple[str, tuple[Tenant, ...]]]:
    """What GRPO and PPO would hold with the same models, beside the asked algorithm."""
    asked = question.algorithm
    for name in dict.fromkeys((*_COMPARED, asked.name)):
        other = ALGORITHMS[name]
        kept = other.reference and not question.lora_rank.known  # adapters off is a reference without a copy
        held = {"critic": other.critic, "reference": kept, "reward": "reward" in question.beside}
        beside = {one: question.beside.get(one, _OF_ITS_SIZE) for one, there in held.items() if there}
        same = replace(question, algorithm=other, beside=beside)
        yield name, tuple(bill(question if name == asked.name else same))


def _results(question: MemoryQuestion) -> list[Figure]:
    tenants = bill(question)
    shares = [tenant.per_gpu for tenant in tenants if tenant.per_gpu is not None]
    peak = [] if question.layout is None else [on_trainer(question, question.layout).peak]
    return [
        total("total_bytes", [tenant.held for tenant in tenants]),
        *(tenant.held for tenant in tenants),
        *_cache(question),
        *shares,
        *_overheads(question),
        *(replace(held, key="trainer_pool_bytes_per_gpu") for held in peak),
    ]


def bill(question: MemoryQuestion) -> list[Tenant]:
    """Every tenant, the policy's trainer first."""
    parts = list(_trainer_parts(question))
    widths = [width for name, width, _ in parts if name != FROZEN]
    each = dict(zip(_WIDTHS, widths, strict=True))
    trained = apply("training_bytes_per_param", memory.training_bytes_per_param, **each)
    policy = _state("trainer", question.params, trained)
    if question.lora_rank.known:
        policy = total("trainer_bytes", [replace(part, key=name) for name, _, part in parts])
    whole = {"trainer": policy}
    for name, params in question.beside.items():
        size = params if params.known else question.params
        whole[name] = _state(name, size, trained) if name == "critic" else _frozen(name, size)
    shares: dict[str, Figure] = {}
    if question.layout is not None:
        placed = on_trainer(question, question.layout)
        shares = {"trainer": placed.policy, **placed.beside}
    tenants = [Tenant(name, held, shares.get(name)) for name, held in whole.items()]
    return [*tenants, *_rollout(question)] if question.algorithm.rollout else tenants


def _state(name: str, params: Figure, width: Worked) -> Figure:
    """All bytes of a model's state, or of a part of it."""
    return apply(f"{name}_bytes", memory.trainer_state_bytes, params=params, training_bytes_per_param=width)


def _frozen(name: str, params: Figure) -> Figure:
    """All bytes of a model that is only run forward."""
    width = {"bytes_per_param": _WEIGHT_BYTES, "bytes_per_unquantised_param": _WEIGHT_BYTES}
    return apply(f"{name}_bytes", memory.inference_weight_bytes, params=params, unquantised_params=0, **width)


def _trainer_parts(question: MemoryQuestion) -> Iterator[tuple[str, Figure, Figure]]:
    """Parts of the policy's training state, wherever they are: name, bytes per parameter, bytes."""
    load, params = _load(replace(question, offload=False), TrainerLayout()), question.params
    widths = {"weights": load.weight_width, "gradients": load.gradient_width}
    master = 0.0 if question.keeps.one_copy else question.optimizer.bytes_per_master
    widths |= {"master weights": master, "optimizer state": float(bare(load.optimizer_width)) - master}
    if question.lora_rank.known:
        yield _part(FROZEN, params, policy_width(apply, load))
        params = question.adapter_params
        widths = {"adapter weights": widths.pop("weights"), **widths}
    for name, width in widths.items():
        yield _part(name, params, width)


def _part(name: str, params: Figure, width: Worked) -> tuple[str, Figure, Figure]:
    """A part of a training state: its name, bytes per parameter, bytes."""
    part = _state("part", params, width)
    return name, part.inputs["training_bytes_per_param"], part


def on_trainer(question: MemoryQuestion, layout: TrainerLayout) -> TrainerMemory:
    """What each GPU of the trainer holds at its peak, spread in this way."""
    return trainer_memory(apply, _load(question, layout), question.constants)


def _load(question: MemoryQuestion, layout: TrainerLayout) -> TrainerLoad:
    """What the GPUs of the trainer have to hold, spread in this way."""
    tokens = question.micro_batch_tokens if question.micro_batch_tokens.known else _NO_TOKENS
    longest = question.longest_tokens if question.longest_tokens.known and question.capped else _NO_TOKENS
    packed = pass_tokens(apply, tokens, longest, layout.context_parallel)
    largest, whole = _micro_batch(question, layout, packed)
    load = TrainerLoad(
        shape=question.shape,
        tokens=largest,
        tensor=layout.tensor_parallel,
        pipeline=layout.pipeline_parallel,
        context=layout.context_parallel,
        expert=layout.expert_parallel,
        shards=layout.shards,
        sharding=layout.sharding,
        gathered=layout.sharding == "full",
        recompute=question.recompute.name,
        weight_width=_WEIGHT_BYTES,
        gradient_width=question.bytes_per_gradient,
        optimizer_width=0.0
        if question.offload
        else apply("bytes_per_optimizer", memory.optimizer_bytes_per_param, **question.optimizer_widths),
        adapter_params=question.adapter_params if question.lora_rank.known else None,
        beside=tuple(_beside(question)),
    )
    return as_kept(load, question.keeps, whole=whole)


def _micro_batch(question: MemoryQuestion, layout: TrainerLayout, packed: Figure) -> tuple[Figure, bool]:
    """Tokens of the largest micro-batch on each GPU, and whether it holds all that a rank has for a step."""
    if not (question.sequences.known and question.response_tokens.known and question.longest_tokens.known):
        return packed, False
    both = {"prompt_tokens": question.prompt_tokens, "response_tokens": question.response_tokens}
    step = RankStep(
        mean_tokens=apply("sequence_tokens", train_step.trained_sequence_tokens, **both),
        tokens_cv=apply("sequence_cv", train_step.trained_sequence_cv, response_cv=question.response_cv, **both),
        longest_tokens=question.longest_tokens,
        sequences=question.sequences,
        ranks=layout.data_parallel,
        optimizer_steps=question.mini_batches,
        context=layout.context_parallel,
    )
    return micro_batch(apply, question.keeps, step, packed, question.keeps.samples)


def _beside(question: MemoryQuestion) -> Iterator[ModelBeside]:
    """The models beside the policy; one of another size is taken for a dense one."""
    own = (question.shape.dense_params, question.shape.routed_params)
    for name, params in question.beside.items():
        yield ModelBeside(name=name, params=(params, _NO_EXPERTS) if params.known else own, trained=name == "critic")


def overheads(held: TrainerMemory) -> list[Figure]:
    """What each trainer GPU holds beside the states: gathered layers, activations, logits, the allocator's reserve."""
    return [held.gathered, held.activations, held.logits, held.overhead]


def _overheads(question: MemoryQuestion) -> list[Figure]:
    """The same of the trainer as it is spread; nothing where nobody says how."""
    return [] if question.layout is None else overheads(on_trainer(question, question.layout))


def reserved(question: MemoryQuestion, key: str, parts: Sequence[Figure]) -> Figure:
    """What the allocator of a trainer's GPU reserves for some parts of its peak."""
    nothing = Figure(key="nothing", value=0.0, provenance="predicted", source="counted elsewhere")
    return apply(
        key,
        training_peak.training_peak_bytes,
        state_bytes=total("in_use_bytes", parts),
        activation_bytes=nothing,
        logits_bytes=nothing,
        gradient_bytes=nothing,
        gathered_bytes=nothing,
        overhead=question.constants["memory_training_overhead"],
    )


def _cache(question: MemoryQuestion) -> list[Figure]:
    if not question.algorithm.rollout:
        return []
    size = question.shape.size
    per_token = size.kv_bytes_per_token if size else absent("kv_bytes_per_token", "--model")
    return [per_token, question.context, sample_cache("sample_kv_cache_bytes", question, _WHOLE)]


def _rollout(question: MemoryQuestion) -> list[Tenant]:
    tensor = question.rollout_tensor_parallel
    weights = apply(
        "rollout_weights_bytes",
        memory_fit.fleet_weight_bytes,
        instances=question.instances,
        instance_weight_bytes=rollout_weights("instance_weight_bytes", question, _WHOLE),
    )
    cache = apply(
        "kv_cache_bytes",
        memory_fit.fleet_kv_bytes,
        sample_kv_bytes=sample_cache("sample_kv_cache_bytes", question, _WHOLE),
        concurrency=question.concurrency,
        instances=question.instances,
    )
    each: tuple[Figure | None, Figure | None] = (None, None)
    if tensor.known:
        layout = engine_layout(question, round(tensor.number))
        each = rollout_weights("rollout_weights_bytes_per_gpu", question, layout), _kv_per_gpu(question, layout)
    weighing = [] if question.shares_weights else [Tenant("rollout_weights", weights, each[0])]
    return [*weighing, Tenant("kv_cache", cache, each[1])]


def engine_layout(question: MemoryQuestion, tensor: int) -> EngineLayout:
    """A rollout instance of so many tensor-parallel GPUs, as engines are asked about; experts lie over all ranks."""
    if question.engine is None:
        return EngineLayout(tensor=tensor, pipeline=round(question.rollout_pipeline_parallel.number))
    asked = question.engine.layout
    return replace(asked, tensor=tensor, expert=tensor * asked.data if asked.expert > 1 else 1)


def rollout_weights(key: str, question: MemoryQuestion, layout: EngineLayout) -> Figure:
    """Weights on each GPU of an instance, as its engine loads them; parameters by width where that is not known."""
    dtype = str(question.rollout_dtype.value)
    found: Figure
    if question.model is not None:
        types = loaded(question.model.name, dtype, moe=question.model.architecture.moe is not None)
        found = weight_bytes(apply, question.model, types, layout, question.constants)
    else:
        width = replace(question.rollout_dtype, key="bytes_per_param", value=WIDTHS[dtype])
        load = TrainerLoad(
            shape=question.shape, tokens=0.0, tensor=layout.tensor, pipeline=layout.pipeline, weight_width=width
        )
        found = trainer_memory(apply, load, question.constants).weights
    return replace(found, key=key)


def sample_cache(key: str, question: MemoryQuestion, layout: EngineLayout, tokens: Figure | None = None) -> Figure:
    """KV cache of one sample on each GPU of an instance: of the mean tokens in flight, or of so many."""
    parts: dict[str, Figure] = dict.fromkeys(_CACHED, absent("kv_bytes_per_token", "--model"))
    if question.model is not None:
        parts = sequence_parts(apply, engine_shape(question.model, KV_WIDTHS[question.kv_dtype]), layout)
    found: Figure = sequence_bytes(apply, parts, question.context if tokens is None else tokens)
    return replace(found, key=key)


def _kv_per_gpu(question: MemoryQuestion, layout: EngineLayout) -> Figure:
    """KV cache of all samples of an instance on each of its GPUs."""
    return apply(
        "kv_cache_bytes_per_gpu",
        memory_fit.fleet_kv_bytes,
        instances=Figure(key="instances", value=1, provenance="default", source="one instance on its own GPUs"),
        concurrency=question.concurrency,
        sample_kv_bytes=sample_cache("sample_kv_cache_bytes_per_gpu", question, layout),
    )
